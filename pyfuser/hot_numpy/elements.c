/* Single elements, and numbers that are one. */
#include "array.h"
#include <math.h>
#include <stdint.h>

/* A number of Python's that is no integer. */
static int put_real(double value, int type, char *to)
{
    float rounded = (float)value;
    if (type == REAL64) *(double *)to = value;
    if (type == REAL32) *(float *)to = rounded;
    /* exact enough that NumPy does not warn of it */
    return type == REAL64 || (type == REAL32 && rounded - rounded == 0 && (fabsf(rounded) >= 1e-37f || value == 0));
}

/* An integer of Python's, if it fits; as a float, if it is exact. */
static int put_integer(PyObject *x, int type, char *to)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow) return 0;
    switch (type) {
    case REAL64: *(double *)to = (double)value; return -(1LL << 53) <= value && value <= 1LL << 53;
    case REAL32: *(float *)to = (float)value; return -(1LL << 24) <= value && value <= 1LL << 24;
    case INTEGER64: *(int64_t *)to = value; return 1;
    case INTEGER32: *(int32_t *)to = (int32_t)value; return value == (int32_t)value;
    case UNSIGNED64: *(uint64_t *)to = (uint64_t)value; return value >= 0;
    case UNSIGNED32: *(uint32_t *)to = (uint32_t)value; return value == (uint32_t)value;
    case UNSIGNED8: *(uint8_t *)to = (uint8_t)value; return value == (uint8_t)value;
    default: return 0;
    }
}

/* A number as an element of an array's type, if that is what NumPy makes of it. NumPy's scalars have their
   value behind the head of the object. */
int put_number(PyObject *x, int type, char *to)
{
    if (Py_IS_TYPE(x, ((Descr *)descrs[type])->scalars)) {
        memcpy(to, (char *)x + sizeof(PyObject), BYTES[type]);
        return 1;
    }
    if (PyFloat_CheckExact(x)) return put_real(PyFloat_AS_DOUBLE(x), type, to);
    return PyLong_CheckExact(x) && put_integer(x, type, to);
}

/* An integer of Python's or of NumPy's commonest kind; 0: something else, or one that is too large. */
int put_index(PyObject *x, Py_ssize_t *to)
{
    int64_t value;
    if (PyLong_CheckExact(x)) {
        int overflow;
        *to = PyLong_AsLongAndOverflow(x, &overflow);
        return !overflow;
    }
    if (!Py_IS_TYPE(x, ((Descr *)descrs[INTEGER64])->scalars)) return 0;
    memcpy(&value, (char *)x + sizeof(PyObject), sizeof value);
    *to = value;
    return 1;
}

/* Where the one element lies that a key chooses; NULL: it chooses others, or none. */
static char *element(const Numpys *array, PyObject *key)
{
    const int tuple = PyTuple_CheckExact(key);
    PyObject *const *entries = tuple ? &PyTuple_GET_ITEM(key, 0) : &key;
    char *at = array->data;
    if ((tuple ? PyTuple_GET_SIZE(key) : 1) != array->nd) return NULL;
    for (int n = 0; n < array->nd; n++) {
        Py_ssize_t index;
        const Py_ssize_t extent = array->dimensions[n];
        if (!put_index(entries[n], &index)) return NULL;
        index += index < 0 ? extent : 0;
        if (index < 0 || index >= extent) return NULL;
        at += index * array->strides[n];
    }
    return at;
}

/* The type of single elements; ALL_TYPES: another one, or that of truth values, of which NumPy has one object each. */
static int element_type(const Numpys *array)
{
    const int type = type_among(array, ALL_TYPES);
    return type == BOOLEAN ? ALL_TYPES : type;
}

/* The element that a key chooses (a new reference); NULL, without an error: NumPy is to find it. */
PyObject *get_element(PyObject *array, PyObject *key)
{
    if (!Py_IS_TYPE(array, K.numpys)) return NULL;
    const int type = element_type((Numpys *)array);
    const char *at = type < ALL_TYPES ? element((Numpys *)array, key) : NULL;
    if (at == NULL) return NULL;
    PyTypeObject *scalars = ((Descr *)descrs[type])->scalars;
    PyObject *found = scalars->tp_alloc(scalars, 0);
    if (found != NULL) memcpy((char *)found + sizeof(PyObject), at, BYTES[type]);
    return found;
}

/* Whether a number was assigned to the one element that a key chooses; else NumPy is to. */
int set_element(PyObject *array, PyObject *key, PyObject *value)
{
    char number[WIDEST];
    if (!Py_IS_TYPE(array, K.numpys) || !is_writeable((Numpys *)array)) return 0;
    const int type = element_type((Numpys *)array);
    char *at = type < ALL_TYPES ? element((Numpys *)array, key) : NULL;
    if (at == NULL || !put_number(value, type, number)) return 0;
    memcpy(at, number, BYTES[type]);
    return 1;
}

/* Whether another array is a part of what an array is a part of, or of that itself. */
int share_base(PyObject *array, PyObject *other)
{
    const PyObject *base = Py_IS_TYPE(other, K.numpys) ? ((Numpys *)other)->base : NULL;
    return base != NULL && (base == array || base == ((Numpys *)array)->base);
}

/* The first byte of an array that is not empty, and the one behind its last. */
static void put_bytes(const Numpys *array, const char **first, const char **end)
{
    *first = *end = array->data;
    for (int n = 0; n < array->nd; n++) {
        const Py_ssize_t reach = (array->dimensions[n] - 1) * array->strides[n];
        *(reach < 0 ? first : end) += reach;
    }
    *end += BYTES[type_of(array)];
}

/* Whether two arrays, of types that `few` knows and not empty, may have a byte in common. */
int may_overlap(const Numpys *one, const Numpys *other)
{
    const char *first, *end, *start, *stop;
    put_bytes(one, &first, &end);
    put_bytes(other, &start, &stop);
    return first < stop && start < end;
}

/* Whether two arrays are the same elements of one memory, as in `x[key] op= y` when the result is assigned. */
int is_same(PyObject *one, PyObject *other)
{
    const Numpys *a = (Numpys *)one, *b = (Numpys *)other;
    if (!Py_IS_TYPE(one, K.numpys) || !Py_IS_TYPE(other, K.numpys)) return 0;
    if (a->data != b->data || a->descr != b->descr || a->nd != b->nd || !is_writeable(a)) return 0;
    const size_t bytes = a->nd * sizeof *a->strides;
    return !memcmp(a->dimensions, b->dimensions, bytes) && !memcmp(a->strides, b->strides, bytes);
}

#define BELOW(name, type) \
    CLONES static int name(const char *data, Py_ssize_t count, int64_t extent) \
    { \
        const type *x = (const type *)data, most = (type)(extent - 1); \
        type beyond = 0; \
        for (Py_ssize_t n = 0; n < count; n++) beyond |= (type)(x[n] > most ? -1 : 0) | x[n]; \
        return beyond >= 0; \
    }
BELOW(below_8, int64_t)
BELOW(below_4, int32_t)

/* are_below(array, extent): whether its integers are subscripts of an axis, none negative; False of another array, too. */
PyObject *are_below(PyObject *module, PyObject *args)
{
    PyObject *given;
    long long extent;
    if (!PyArg_ParseTuple(args, "OL", &given, &extent)) return NULL;
    const Numpys *array = (Numpys *)given;
    if (!Py_IS_TYPE(given, K.numpys) || !(array->flags & ALIGNED) || !(array->flags & C_CONTIGUOUS)) Py_RETURN_FALSE;
    const int type = type_of(array);
    if ((type != INTEGER64 && type != INTEGER32) || extent < 1 || extent > INT32_MAX) Py_RETURN_FALSE;
    const Py_ssize_t count = size_of(given);
    int found;
    Py_BEGIN_ALLOW_THREADS
    found = (type == INTEGER64 ? below_8 : below_4)(array->data, count, extent);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(found);
}
