/* Operators, subscripts and attributes of arrays that NumPy computes with at once. All else is done by
   the method of the class in Python. */
#include "array.h"

/* Methods of the class in Python, by the names below. */
enum {
#define BINARY(name, function, costly) m_##name, m_r##name, m_i##name,
#define UNARY(name, function) m_##name,
#define ATTRIBUTE(name) a_##name,
#include "names.h"
#undef BINARY
#undef UNARY
#undef ATTRIBUTE
    m_lt, m_le, m_eq, m_ne, m_gt, m_ge, m_pow, m_rpow, m_ipow, m_getitem, m_setitem, m_delitem, m_len, m_iter, a_T, a_real, a_imag, COUNT
};

static const char *NAMES[] = {
#define BINARY(name, function, costly) "__" #name "__", "__r" #name "__", "__i" #name "__",
#define UNARY(name, function) "__" #name "__",
#define ATTRIBUTE(name) #name,
#include "names.h"
#undef BINARY
#undef UNARY
#undef ATTRIBUTE
    "__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__", "__pow__", "__rpow__", "__ipow__",
    "__getitem__", "__setitem__", "__delitem__", "__len__", "__iter__", "T", "real", "imag",
};

static PyObject *python[COUNT], *names[COUNT];
static PyObject *operations[COUNT];  /* what is recorded for a method; NULL: nothing that C knows */

PyObject *no_entries;
PyObject *copies;

int bind_operations(PyObject *given)
{
    for (int n = 0; n < COUNT; n++) {
        operations[n] = PyDict_GetItemWithError(given, names[n]);
        Py_XINCREF(operations[n]);
    }
    copies = operations[m_setitem];
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *call2(int method, PyObject *a, PyObject *b)
{
    return PyObject_CallFunctionObjArgs(python[method], a, b, NULL);
}

/* An operator or, if only the right operand is ours (or of a class made of it), the reflected one. */
static PyObject *by_python(PyObject *a, PyObject *b, int method)
{
    return PyObject_TypeCheck(a, K.ours) ? call2(method, a, b) : call2(method + 1, b, a);
}

/* What NumPy takes for an operand (borrowed), or NULL. */
PyObject *operand(PyObject *x, Py_ssize_t least)
{
    if (IS_OURS(x)) return at_once(x, least);
    return is_scalar(x) ? x : NULL;
}

/* The same for what is never recorded. */
static PyObject *run(PyObject *x) { return IS_OURS(x) ? settled(x) : operand(x, 0); }

typedef PyObject *(*Binary)(PyObject *, PyObject *);

/* NumPy overwrites temporaries that only its caller refers to: not these. */
static PyObject *numpys(Binary function, PyObject *a, PyObject *b)
{
    Py_INCREF(a);
    Py_INCREF(b);
    PyObject *value = function(a, b);
    Py_DECREF(a);
    Py_DECREF(b);
    return value;
}

/* Whether the result of two arrays has that many elements, and neither does. */
static int spread(PyObject *one, PyObject *other)
{
    if (one == NULL || other == NULL || !Py_IS_TYPE(one, K.numpys) || !Py_IS_TYPE(other, K.numpys)) return 0;
    const Numpys *a = (Numpys *)one, *b = (Numpys *)other;
    Py_ssize_t size = 1;
    for (int n = 1; n <= a->nd || n <= b->nd; n++) {
        const Py_ssize_t here = n > a->nd ? 1 : a->dimensions[a->nd - n], there = n > b->nd ? 1 : b->dimensions[b->nd - n];
        size *= here > there ? here : there;
    }
    return size >= MIDDLE;
}

static int few_of_method(int method)
{
    switch (method) {
    case m_add: return FEW_ADD;
    case m_sub: return FEW_SUB;
    case m_mul: return FEW_MUL;
    case m_truediv: return FEW_DIV;
    case m_neg: return FEW_NEG;
    case m_abs: return FEW_ABS;
    case m_and: return FEW_AND;
    case m_or: return FEW_OR;
    case m_xor: return FEW_XOR;
    case m_invert: return FEW_INVERT;
    case m_lshift: return FEW_SHL;
    case m_rshift: return FEW_SHR;
    default: return FEW_OPERATIONS;
    }
}

/* Our array of a result, if `few` computes it; NULL, without an error: it does not. */
PyObject *of_few(int operation, PyObject *one, PyObject *other)
{
    PyObject *made = operation == FEW_OPERATIONS ? NULL : few(operation, one, other);
    return made == NULL ? NULL : adopt(made);
}

static PyObject *binary(PyObject *a, PyObject *b, Binary function, int method, Py_ssize_t least)
{
    PyObject *one = operand(a, least), *other = one == NULL ? NULL : operand(b, least);
    if (other == NULL || is_middling(one) || is_middling(other) || spread(one, other)) {
        PyObject *found = recorded(operations[method], (PyObject *[]){a, b}, 2, NULL);
        if (found != NULL || PyErr_Occurred()) return found;
        one = operations[method] == NULL ? run(a) : operand(a, least);  /* what was pending may have run */
        other = one == NULL ? NULL : operations[method] == NULL ? run(b) : operand(b, least);
    }
    if (other == NULL) return by_python(a, b, method);
    PyObject *made = of_few(few_of_method(method), one, other);
    return made != NULL || PyErr_Occurred() ? made : finish(numpys(function, one, other));
}

static PyObject *in_place(PyObject *a, PyObject *b, Binary function, int method)
{
    if (IS_OURS(a) && SLOT(a, K.x.writeable) != Py_False) {
        PyObject *one = operand(a, limit(0)), *other = one == NULL ? NULL : operand(b, limit(0));
        if (one == NULL || other == NULL || is_middling(one)) {
            PyObject *found = recorded(operations[method], (PyObject *[]){a, b}, 2, a);
            if (found != NULL || PyErr_Occurred()) return found;
            one = operand(a, limit(0));
            other = one == NULL ? NULL : operand(b, limit(0));
        }
        if (other != NULL) {
            int fast = few_of_method(method);
            if (fast != FEW_OPERATIONS && few_into(fast, one, other)) return Py_NewRef(a);
            PyObject *value = numpys(function, one, other);
            if (value != one) return finish(value);
            Py_DECREF(value);
            return Py_NewRef(a);
        }
    }
    return call2(method + 2, a, b);
}

#define BINARY(name, function, costly) \
    static PyObject *do_##name(PyObject *a, PyObject *b) \
    { \
        return binary(a, b, PyNumber_##function, m_##name, costly < 0 ? PY_SSIZE_T_MAX : limit(costly)); \
    } \
    static PyObject *do_i##name(PyObject *a, PyObject *b) { return in_place(a, b, PyNumber_InPlace##function, m_##name); }
#define UNARY(name, function) \
    static PyObject *do_##name(PyObject *x) \
    { \
        PyObject *one = IS_OURS(x) ? at_once(x, limit(0)) : NULL; \
        if (one == NULL || is_middling(one)) { \
            PyObject *found = IS_OURS(x) ? recorded(operations[m_##name], &x, 1, NULL) : NULL; \
            if (found != NULL || PyErr_Occurred()) return found; \
            one = IS_OURS(x) ? at_once(x, limit(0)) : NULL; \
        } \
        if (one == NULL) return PyObject_CallOneArg(python[m_##name], x); \
        PyObject *made = of_few(few_of_method(m_##name), one, one); \
        if (made != NULL || PyErr_Occurred()) return made; \
        Py_INCREF(one); \
        PyObject *value = finish(PyNumber_##function(one)); \
        Py_DECREF(one); \
        return value; \
    }
#define ATTRIBUTE(name) \
    static PyObject *get_##name(PyObject *x, void *unused) { return attribute(x, a_##name); }

static PyObject *attribute_by_python(PyObject *x, int which)
{
    return Py_TYPE(python[which])->tp_descr_get(python[which], x, (PyObject *)Py_TYPE(x));
}

static PyObject *attribute(PyObject *x, int which)
{
    PyObject *array = SLOT(x, K.x.array);
    if (array != NULL && array != Py_None) return PyObject_GetAttr(array, names[which]);
    return attribute_by_python(x, which);
}

#include "names.h"
#undef BINARY
#undef UNARY
#undef ATTRIBUTE

static int set_attribute(PyObject *x, PyObject *value, void *which)
{
    PyObject *property = python[(Py_ssize_t)which];
    return Py_TYPE(property)->tp_descr_set(property, x, value);
}

static PyObject *get_T(PyObject *x, void *unused)
{
    PyObject *array = SLOT(x, K.x.array);
    if (array == NULL || array == Py_None || !IS_OURS(x)) {
        PyObject *found = IS_OURS(x) ? reversed(x) : NULL;
        return found == NULL ? attribute_by_python(x, a_T) : found;
    }
    PyObject *part = PyObject_GetAttr(array, names[a_T]);
    return part == NULL ? NULL : sliced(x, part);
}

/* A part of complex numbers. */
static PyObject *get_part(PyObject *x, void *which)
{
    PyObject *array = SLOT(x, K.x.array);
    int at = (int)(Py_ssize_t)which;
    if (array == NULL || array == Py_None || !IS_OURS(x) || ((Descr *)((Numpys *)array)->descr)->kind != 'c') return attribute_by_python(x, at);
    PyObject *part = PyObject_GetAttr(array, names[at]);
    return part == NULL ? NULL : sliced(x, part);
}

static PyObject *do_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    int square = PyLong_CheckExact(b) && PyLong_AsSsize_t(b) == 2;
    if (!square && PyErr_Occurred()) PyErr_Clear();
    Py_ssize_t least = limit(!square);
    PyObject *one = operand(a, least), *other = one == NULL ? NULL : operand(b, least);
    if (square && IS_OURS(a) && (one == NULL || is_middling(one))) {
        PyObject *found = recorded(operations[m_pow], &a, 1, NULL);
        if (found != NULL || PyErr_Occurred()) return found;
        one = operand(a, least);
        other = one == NULL ? NULL : operand(b, least);
    }
    if (other == NULL) return by_python(a, b, m_pow);
    PyObject *made = square ? of_few(FEW_SQUARE, one, one) : NULL;
    if (made != NULL || PyErr_Occurred()) return made;
    Py_INCREF(one);
    Py_INCREF(other);
    PyObject *value = finish(PyNumber_Power(one, other, Py_None));
    Py_DECREF(one);
    Py_DECREF(other);
    return value;
}

static PyObject *do_ipower(PyObject *a, PyObject *b, PyObject *modulus) { return call2(m_ipow, a, b); }

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    Py_ssize_t least = limit(0);
    PyObject *one = IS_OURS(a) ? at_once(a, least) : NULL, *other = one == NULL ? NULL : operand(b, least);
    if (other == NULL || is_middling(one) || is_middling(other)) {
        PyObject *found = recorded(operations[m_lt + op], (PyObject *[]){a, b}, 2, NULL);
        if (found != NULL || PyErr_Occurred()) return found;
        one = IS_OURS(a) ? at_once(a, least) : NULL;
        other = one == NULL ? NULL : operand(b, least);
    }
    if (other == NULL || PyUnicode_Check(other) || PyBytes_Check(other)) return call2(m_lt + op, a, b);
    PyObject *made = of_few(FEW_LT + op, one, other);
    if (made != NULL || PyErr_Occurred()) return made;
    Py_INCREF(one);
    Py_INCREF(other);
    PyObject *value = finish(PyObject_RichCompare(one, other, op));
    Py_DECREF(one);
    Py_DECREF(other);
    return value;
}

/* Whether an entry of a key selects without reading an array. */
static int is_basic_entry(PyObject *key)
{
    return PyLong_CheckExact(key) || PySlice_Check(key) || key == Py_None || key == Py_Ellipsis
        || PyObject_TypeCheck(key, K.integer);
}

static int is_basic(PyObject *key)
{
    if (!PyTuple_CheckExact(key)) return is_basic_entry(key);
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(key); n++)
        if (!is_basic_entry(PyTuple_GET_ITEM(key, n))) return 0;
    return 1;
}

/* A key that is or has arrays of ours, as NumPy takes it (a new reference); NULL, without an error: it
   has something else that is not basic. */
static PyObject *advanced(PyObject *key, Py_ssize_t least)
{
    if (IS_OURS(key)) return Py_XNewRef(at_once(key, least));
    if (is_list_of_numbers(key)) return Py_NewRef(key);
    if (!PyTuple_CheckExact(key)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(key);
    PyObject *found = PyTuple_New(count);
    for (Py_ssize_t n = 0; found != NULL && n < count; n++) {
        PyObject *entry = PyTuple_GET_ITEM(key, n);
        PyObject *given = IS_OURS(entry) ? at_once(entry, least) : is_basic_entry(entry) || is_list_of_numbers(entry) ? entry : NULL;
        if (given != NULL)
            PyTuple_SET_ITEM(found, n, Py_NewRef(given));
        else
            Py_CLEAR(found);
    }
    if (found == NULL) PyErr_Clear();
    return found;
}

/* Whether a key is a mask, or Python does not record what it selects. */
static int is_few_or_unripe(PyObject *key)
{
    PyObject *array = IS_OURS(key) ? SLOT(key, K.x.array) : NULL;
    if (array == NULL || array == Py_None) return 0;
    return type_of((Numpys *)array) == BOOLEAN || size_of(array) < lazy_from(0) || !is_caller_ripe(size_of(array));
}

/* Whether Python no longer records what a key selects of an array, see gathers.gathered. */
static int is_lost_gather(PyObject *x, PyObject *key)
{
    PyObject *array = IS_OURS(x) ? SLOT(x, K.x.array) : NULL, *indices = IS_OURS(key) ? SLOT(key, K.x.array) : NULL;
    if (array == NULL || array == Py_None || indices == NULL || indices == Py_None) return 0;
    const Numpys *source = (Numpys *)array;
    if (source->nd != 1 && source->nd != 2) return 0;
    return is_caller_lost((Py_ssize_t[]){size_of(indices), source->nd > 1 ? source->dimensions[1] : 1}, source->nd);
}

/* By indices or masks: a copy. */
static PyObject *selected(PyObject *x, PyObject *key)
{
    Py_ssize_t least = is_few_or_unripe(key) || is_lost_gather(x, key) ? limit(0) : lazy_from(0);
    PyObject *array = IS_OURS(x) ? at_once(x, least) : NULL, *plain = array == NULL ? NULL : advanced(key, least);
    if (plain == NULL) return call2(m_getitem, x, key);
    Py_INCREF(array);
    PyObject *value = PyObject_GetItem(array, plain);
    Py_DECREF(array);
    Py_DECREF(plain);
    if (value == NULL || !Py_IS_TYPE(value, K.numpys)) return value;
    PyObject *base = ((Numpys *)value)->base;
    if (Py_REFCNT(value) == 1 && (base == NULL || is_alone(base))) return adopt(value);
    Py_DECREF(value);
    return call2(m_getitem, x, key);
}

static Py_ssize_t length(PyObject *x)
{
    PyObject *array = SLOT(x, K.x.array);
    if (array != NULL && Py_IS_TYPE(array, K.numpys) && ((Numpys *)array)->nd) return ((Numpys *)array)->dimensions[0];
    PyObject *found = PyObject_CallOneArg(python[m_len], x);
    Py_ssize_t count = found == NULL ? -1 : PyLong_AsSsize_t(found);
    Py_XDECREF(found);
    return count;
}

static PyObject *iterate(PyObject *x)
{
    PyObject *found = entries_of(x);
    return found != NULL || PyErr_Occurred() ? found : PyObject_CallOneArg(python[m_iter], x);
}

static int on_devices(void) { return SLOT(K.use, K.u.devices) == Py_True; }

static PyObject *get(PyObject *x, PyObject *key)
{
    if (!is_basic(key)) {
        PyObject *field = PyUnicode_CheckExact(key) ? field_of(x, key) : NULL;
        return field != NULL || PyErr_Occurred() ? field : selected(x, key);
    }
    PyObject *array = SLOT(x, K.x.array);
    if (array == NULL || array == Py_None || !IS_OURS(x) || on_devices()) {
        int known = IS_OURS(x) && (on_devices() || (array == Py_None && is_pending(x)));
        PyObject *part = known ? part_of_region(x, key) : NULL;
        return part != NULL ? part : call2(m_getitem, x, key);
    }
    PyObject *value = is_pending(x) ? NULL : get_element(array, key);
    if (value != NULL || PyErr_Occurred()) return value;
    Py_INCREF(array);
    const int objects = has_objects(array);  /* of which one may be an array */
    value = part_of_array(array, key, PY_SSIZE_T_MAX);
    if (value == NULL && !PyErr_Occurred()) value = PyObject_GetItem(array, key);
    Py_DECREF(array);
    if (value == NULL) return NULL;
    if (Py_IS_TYPE(value, K.numpys) && !objects) return sliced(x, value);
    if (!Py_IS_TYPE(value, K.numpys) && !is_pending(x)) return value;
    Py_DECREF(value);
    return call2(m_getitem, x, key);
}

/* Record `x[key] = value`: 1, 0: it is not, -1: an error. */
static int records_copy(PyObject *x, PyObject *key, PyObject *value)
{
    PyObject *array = SLOT(x, K.x.array), *target = NULL;
    if (!IS_OURS(x) || SLOT(x, K.x.writeable) == Py_False || !is_basic(key)) return 0;
    if (array == NULL || array == Py_None || on_devices()) {
        target = part_of_region(x, key);
    } else {
        int pending = is_pending(x) || (IS_OURS(value) && is_pending(value));
        if (!pending && K.strided * size_of(array) < MIDDLE) return 0;
        Py_INCREF(array);
        PyObject *part = part_of_array(array, key, PY_SSIZE_T_MAX);
        Py_DECREF(array);
        if (part != NULL && (pending || weight_of(part) >= MIDDLE))
            target = sliced(x, part);
        else
            Py_XDECREF(part);
    }
    PyErr_Clear();  /* it comes again */
    PyObject *done = target == NULL ? NULL : recorded(operations[m_setitem], &value, 1, target);
    Py_XDECREF(target);
    Py_XDECREF(done);
    return done != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether a few elements were assigned to a part of an array that has memory and nothing pending. */
static int assigned_few(PyObject *array, PyObject *key, PyObject *value)
{
    PyObject *source = operand(value, limit(0));
    const int any = source != NULL && (!Py_IS_TYPE(source, K.numpys) || share_base(array, source));
    PyObject *part = source == NULL || !is_basic(key) ? NULL : part_of_array(array, key, any ? MIDDLE : MOST_APART);
    if (part == NULL) {
        PyErr_Clear();  /* it comes again */
        return 0;
    }
    const int done = weight_of(part) < MIDDLE && (is_same(part, source) || few_into(FEW_COPY, part, source));
    Py_DECREF(part);
    return done;
}

/* Whether NumPy assigns at once; the part of large arrays that is assigned to is small. */
static int assigns(PyObject *x, PyObject *key, PyObject *array, Py_ssize_t least)
{
    if (size_of(array) < least) return 1;
    PyObject *part = PyObject_GetItem(array, key);
    if (part == NULL) {
        PyErr_Clear();  /* it comes again */
        return 0;
    }
    int small = !Py_IS_TYPE(part, K.numpys) || size_of(part) < least;
    Py_DECREF(part);
    return small;
}

static int set(PyObject *x, PyObject *key, PyObject *value)
{
    if (value == NULL) {
        Py_XDECREF(call2(m_delitem, x, key));
        return -1;
    }
    PyObject *array = IS_OURS(x) ? SLOT(x, K.x.array) : NULL;
    const int made = array != NULL && array != Py_None && SLOT(x, K.x.writeable) != Py_False && !on_devices() && !is_pending(x);
    if (made) {
        Py_INCREF(array);
        const int done = set_element(array, key, value) || assigned_few(array, key, value);
        Py_DECREF(array);
        if (done) return 0;
    }
    int records = records_copy(x, key, value);
    if (records) return records < 0 ? -1 : 0;
    array = IS_OURS(x) ? at_once(x, PY_SSIZE_T_MAX) : NULL;  /* what was pending may have run */
    Py_ssize_t least = limit(0);
    int keeps = array != NULL && has_objects(array) && IS_OURS(value);  /* the array itself, not its elements */
    PyObject *source = array == NULL || keeps ? NULL : operand(value, least);
    if (source != NULL && SLOT(x, K.x.writeable) != Py_False) {
        PyObject *plain = NULL;
        if (!is_basic(key))
            plain = size_of(array) < least ? advanced(key, least) : NULL;
        else if (assigns(x, key, array, least))
            plain = Py_NewRef(key);
        if (plain != NULL) {
            Py_INCREF(array);
            Py_INCREF(source);
            int result = PyObject_SetItem(array, plain, source);
            Py_DECREF(array);
            Py_DECREF(source);
            Py_DECREF(plain);
            return result;
        }
    }
    PyObject *done = PyObject_CallFunctionObjArgs(python[m_setitem], x, key, value, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

#define ATTRIBUTE(name) {#name, get_##name, NULL, NULL, NULL},
#define SETTABLE(name) {#name, get_##name, set_attribute, NULL, (void *)a_##name},
#define BINARY(name, function, costly)
#define UNARY(name, function)
static PyGetSetDef ATTRIBUTES[] = {
#include "names.h"
    {"T", get_T, NULL, NULL, NULL},
    {"real", get_part, set_attribute, NULL, (void *)a_real},
    {"imag", get_part, set_attribute, NULL, (void *)a_imag},
    {NULL},
};
#undef ATTRIBUTE
#undef SETTABLE
#undef BINARY
#undef UNARY

static PyType_Slot SLOTS[] = {
    {Py_nb_add, do_add}, {Py_nb_subtract, do_sub}, {Py_nb_multiply, do_mul}, {Py_nb_true_divide, do_truediv},
    {Py_nb_floor_divide, do_floordiv}, {Py_nb_remainder, do_mod}, {Py_nb_and, do_and}, {Py_nb_or, do_or},
    {Py_nb_xor, do_xor}, {Py_nb_lshift, do_lshift}, {Py_nb_rshift, do_rshift}, {Py_nb_power, do_power},
    {Py_nb_matrix_multiply, do_matmul},
    {Py_nb_inplace_add, do_iadd}, {Py_nb_inplace_subtract, do_isub}, {Py_nb_inplace_multiply, do_imul},
    {Py_nb_inplace_true_divide, do_itruediv}, {Py_nb_inplace_floor_divide, do_ifloordiv},
    {Py_nb_inplace_remainder, do_imod}, {Py_nb_inplace_and, do_iand}, {Py_nb_inplace_or, do_ior},
    {Py_nb_inplace_xor, do_ixor}, {Py_nb_inplace_lshift, do_ilshift}, {Py_nb_inplace_rshift, do_irshift},
    {Py_nb_inplace_power, do_ipower},
    {Py_nb_negative, do_neg}, {Py_nb_positive, do_pos}, {Py_nb_absolute, do_abs}, {Py_nb_invert, do_invert},
    {Py_tp_richcompare, compare}, {Py_mp_subscript, get}, {Py_mp_ass_subscript, set}, {Py_mp_length, length}, {Py_tp_iter, iterate},
    {Py_tp_getset, ATTRIBUTES}, {0},
};

static PyType_Spec SPEC = {"pyfuser._numpy.FastArray", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, SLOTS};

PyObject *make_fast(PyObject *module, PyObject *plain)
{
    for (int n = 0; n < COUNT; n++) {
        if (no_entries == NULL && (no_entries = PyTuple_New(0)) == NULL) return NULL;
        names[n] = PyUnicode_InternFromString(NAMES[n]);
        python[n] = names[n] == NULL ? NULL : PyObject_GetAttr(plain, names[n]);
        if (python[n] == NULL) return NULL;
    }
    return PyType_FromSpecWithBases(&SPEC, plain);
}
