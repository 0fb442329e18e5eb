/* Policies and arguments of a call: `dispatch.space_of` and `arguments.classify` for the usual kinds. */
#include "hot.h"

/* Policies by the very objects that they are made of: what `KNOWN_POLICIES` said of them. */
enum { POLICIES = 64 };
static struct {
    PyObject *begin, *end, *space, *found;
    PyTypeObject *type;
} policies[POLICIES];

void forget_policies(void)
{
    for (int n = 0; n < POLICIES; n++) {
        Py_CLEAR(policies[n].found);
        Py_CLEAR(policies[n].begin);
        Py_CLEAR(policies[n].end);
        Py_CLEAR(policies[n].space);
    }
}

/* Whether begin and end, numbers or tuples of them, are a range that `dispatch.space_of` has no word about:
   32 bits, not below 0. Returns its dimensions, or 0. */
static Py_ssize_t dimensions_of(PyObject *begin, PyObject *end)
{
    PyObject **from = &begin, **to = &end;
    Py_ssize_t count = 1;
    if (PyTuple_CheckExact(begin) && PyTuple_CheckExact(end)) {
        count = PyTuple_GET_SIZE(begin);
        if (PyTuple_GET_SIZE(end) != count) return 0;
        from = ((PyTupleObject *)begin)->ob_item;
        to = ((PyTupleObject *)end)->ob_item;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        int overflow = 0;
        if (!PyLong_CheckExact(from[n]) || !PyLong_CheckExact(to[n])) return 0;
        long long low = PyLong_AsLongLongAndOverflow(from[n], &overflow);
        long long high = overflow ? -1 : PyLong_AsLongLongAndOverflow(to[n], &overflow);
        if (overflow || low < 0 || high < low || high > INT32_MAX) return 0;
    }
    return count;
}

/* `dispatch.space_of` for a range of the host that is new: (Space, head), which is kept, or NULL. space: None for a
   number of indices. */
static PyObject *made_policy(PyObject *key, PyObject *begin, PyObject *end, PyObject *space)
{
    PyObject *name = PyDict_GetItemWithError(R.hosts, space);
    Py_ssize_t count = name != NULL ? dimensions_of(begin, end) : 0;
    PyTypeObject *type = (PyTypeObject *)R.space_class;
    PyObject *made = count ? type->tp_alloc(type, 3) : NULL;
    if (made == NULL) return NULL;
    int single = PyLong_CheckExact(begin);
    PyTuple_SET_ITEM(made, 0, single ? PyTuple_Pack(1, begin) : Py_NewRef(begin));
    PyTuple_SET_ITEM(made, 1, single ? PyTuple_Pack(1, end) : Py_NewRef(end));
    PyTuple_SET_ITEM(made, 2, Py_NewRef(name));
    int failed = PyTuple_GET_ITEM(made, 0) == NULL || PyTuple_GET_ITEM(made, 1) == NULL;
    PyObject *found = failed ? NULL : Py_BuildValue("(On)", made, count);
    Py_DECREF(made);
    PyObject *kept = found == NULL ? NULL : PyObject_CallMethodObjArgs(R.policies, R.keep, key, found, NULL);
    Py_XDECREF(found);
    return kept;
}

/* What is known of begin, end and space of a policy, or of sizes of league and team and space; borrowed. */
static PyObject *known_policy(PyTypeObject *type, PyObject *begin, PyObject *end, PyObject *space)
{
    size_t hash = ((uintptr_t)begin >> 4) + 31 * ((uintptr_t)end >> 4) + 7 * ((uintptr_t)space >> 4);
    size_t at = hash * 0x9E3779B97F4A7C15ull >> 32 & (POLICIES - 1);
    if (policies[at].found != NULL && policies[at].begin == begin && policies[at].end == end &&
        policies[at].space == space && policies[at].type == type)
        return policies[at].found;
    int teams = (PyObject *)type == R.team_policy;
    PyObject *key = teams ? PyTuple_Pack(3, begin, space, end) : PyTuple_Pack(3, begin, end, space);
    PyObject *found = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(R.policies, key));
    if (found == NULL && key != NULL && !teams) found = made_policy(key, begin, end, space);
    Py_XDECREF(key);
    if (found == NULL) return NULL;
    policies[at].type = type;
    Py_XSETREF(policies[at].begin, Py_NewRef(begin));
    Py_XSETREF(policies[at].end, Py_NewRef(end));
    Py_XSETREF(policies[at].space, Py_NewRef(space));
    Py_XSETREF(policies[at].found, found);
    return policies[at].found;
}

/* Space and head of a policy: (Space, head), borrowed; NULL if Python has to say. */
PyObject *space_of(PyObject *policy)
{
    PyObject *found = NULL;
    PyTypeObject *type = Py_TYPE(policy);
    if (PyLong_CheckExact(policy)) {
        found = PyDict_GetItemWithError(R.policies, policy);
        if (found == NULL && !PyErr_Occurred()) {
            PyObject *zero = PyLong_FromLong(0);
            found = zero == NULL ? NULL : made_policy(policy, zero, policy, Py_None);
            Py_XDECREF(found);  /* the table has it */
            Py_XDECREF(zero);
        }
    } else {
        int teams = (PyObject *)type == R.team_policy;
        if (!teams && (PyObject *)type != R.range && (PyObject *)type != R.md_range) return NULL;
        PyObject *begin = PyObject_GetAttr(policy, teams ? R.league_size : R.begin);
        PyObject *end = PyObject_GetAttr(policy, teams ? R.team_size : R.end);
        PyObject *space = PyObject_GetAttr(policy, R.space);
        if (begin != NULL && end != NULL && space != NULL) found = known_policy(type, begin, end, space);
        Py_XDECREF(begin);
        Py_XDECREF(end);
        Py_XDECREF(space);
    }
    if (found == NULL) PyErr_Clear();
    return found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2 ? found : NULL;
}

/* ------------------------------------------------------------------ arguments */

/* The type that a format of the buffer protocol stands for, -1 for all that is unusual. */
static int type_of_format(const char *format)
{
    static const char codes[] = {[BOOL] = '?', [INT8] = 'b', [INT16] = 'h', [INT32] = 'i', [INT64] = 'l', [UINT8] = 'B',
                                 [UINT16] = 'H', [UINT32] = 'I', [UINT64] = 'L', [FLOAT32] = 'f', [FLOAT64] = 'd'};
    if (format == NULL) return -1;
    if (format[0] == 'Z') return format[1] == 0 || format[2] != 0 ? -1 : format[1] == 'f' ? COMPLEX64 : format[1] == 'd' ? COMPLEX128 : -1;
    if (format[0] == 0 || format[1] != 0) return -1;
    for (int n = 0; n < (int)sizeof codes; n++)
        if (codes[n] == format[0]) return n;
    return -1;
}

/* `trace.memory.region_of` for memory that is described; NULL without an exception if it is unusual. */
static PyObject *region_of(PyObject *array, const Py_buffer *view, int kind)
{
    PyObject *buffer = L.Buffer->tp_alloc(L.Buffer, 0), *region = NULL;
    PyObject *size = PyLong_FromSsize_t(view->len), *address = PyLong_FromVoidPtr(view->buf);
    if (buffer != NULL && size != NULL && address != NULL) {
        SLOT(buffer, L.buffer.nbytes) = Py_NewRef(size);
        SLOT(buffer, L.buffer.root) = Py_NewRef(array);
        SLOT(buffer, L.buffer.address) = Py_NewRef(address);
        SLOT(buffer, L.buffer.image) = Py_NewRef(Py_None);
        SLOT(buffer, L.buffer.external) = Py_NewRef(Py_True);
        SLOT(buffer, L.buffer.lent) = Py_NewRef(Py_True);
        SLOT(buffer, L.buffer.pending) = PyLong_FromLong(0);
        SLOT(buffer, L.buffer.exports) = Py_NewRef(Py_None);
        SLOT(buffer, L.buffer.handle) = Py_NewRef(Py_None);
        region = new_region(buffer, PyLong_FromLong(0), tuple_of(view->strides, view->ndim), tuple_of(view->shape, view->ndim), L.dtypes[kind]);
    }
    Py_XDECREF(buffer);
    Py_XDECREF(size);
    Py_XDECREF(address);
    return region;
}

/* `arguments._array` for a plain array of NumPy's: 1, or 0 for all that is unusual. */
static int array_of(PyObject *array, long *code, PyObject **value)
{
    Py_buffer view;
    if (devices_in_use()) return 0;
    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    int kind = type_of_format(view.format);
    /* Of axes with one index NumPy tells any stride here. */
    int usual = kind >= 0 && !view.readonly && view.ndim > 0 && view.itemsize == L.sizes[kind] &&
                (uintptr_t)view.buf % view.itemsize == 0;
    for (int axis = 0; usual && axis < view.ndim; axis++)
        usual = view.shape[axis] > 1 && view.strides[axis] % view.itemsize == 0;
    *value = usual ? region_of(array, &view, kind) : NULL;
    *code = (long)view.ndim << 5 | kind;  /* `view_memory.view_code` */
    PyBuffer_Release(&view);
    return *value != NULL;
}

/* Whether what Python does to classify it calls no code of others, which would see that it is done again
   if the call is left to Python. */
static int is_harmless(PyTypeObject *kind)
{
    if (Py_TYPE(kind) != &PyType_Type) return 0;  /* it may have a hash of its own */
    int found = PySet_Contains(R.harmless, (PyObject *)kind);
    if (found < 0) PyErr_Clear();
    return found > 0;
}

/* Code and value (a new reference) of an argument; 0: Python has to do all of the call. */
int classify(PyObject *name, PyObject *argument, long *code, PyObject **value)
{
    PyTypeObject *kind = Py_TYPE(argument);
    if ((PyObject *)kind == R.view || (PyObject *)kind == R.subview) {
        PyObject *number = PyObject_GetAttr(argument, R.code_name);
        if (number == NULL) return 0;
        *code = PyLong_AsLong(number);
        Py_DECREF(number);
        *value = PyObject_GetAttr(argument, R.region_name);
        return *value != NULL;
    }
    if (kind == &PyFloat_Type) {
        *code = R.float64;
        *value = Py_NewRef(argument);
        return 1;
    }
    if (kind == &PyLong_Type) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(argument, &overflow);
        *code = !overflow && -(1ll << 31) < number && number < (1ll << 31) ? R.int32 : R.int64;
        *value = Py_NewRef(argument);
        return 1;
    }
    if (kind == L.Future) {
        PyObject *number = SLOT(argument, L.future.value), *dtype = SLOT(argument, L.future.dtype);
        if (number != NULL && number != Py_None) return Py_TYPE(number) != L.Future && classify(name, number, code, value);
        if (number != NULL && (dtype == L.dtypes[FLOAT32] || dtype == L.dtypes[FLOAT64])) {
            *code = R.float64 | R.future;
            *value = Py_NewRef(argument);
            return 1;
        }
    }
    if ((PyObject *)kind == R.numpys_float) {
        *code = R.float64;
        *value = PyFloat_FromDouble(PyFloat_AS_DOUBLE(argument));
        return *value != NULL;
    }
    if ((PyObject *)kind == R.ndarray && array_of(argument, code, value)) return 1;
    if (PyErr_Occurred() || !is_harmless(kind)) return 0;
    PyObject *both = PyObject_CallFunctionObjArgs(R.classify, name, argument, NULL);
    if (both == NULL) return 0;
    *code = PyLong_AsLong(PyTuple_GET_ITEM(both, 0));
    *value = Py_NewRef(PyTuple_GET_ITEM(both, 1));
    Py_DECREF(both);
    return 1;
}

int same_names(PyObject *known, PyObject *names)
{
    if (known == names) return 1;
    if (names == NULL || PyTuple_GET_SIZE(known) != PyTuple_GET_SIZE(names)) return 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(known); n++) {
        PyObject *one = PyTuple_GET_ITEM(known, n), *other = PyTuple_GET_ITEM(names, n);
        if (one != other && PyUnicode_Compare(one, other) != 0) return 0;
    }
    return 1;
}
