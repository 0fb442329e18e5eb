/* Functions and methods of NumPy's that keep nothing of what they are given. */
#include "array.h"

typedef struct {
    PyObject_HEAD
    PyObject *numpys, *python;
    PyObject *operation;  /* what is recorded, or NULL */
    int costly;  /* as in names.h; CREATES: the first argument is the shape of the result */
    int first;   /* whether the first argument is an array of ours */
    int ufunc;   /* whether it is a ufunc of one result, whose last argument may take it */
    int arrays;  /* arguments that are arrays, at most: an array after these is one for the result */
} Direct;

enum { MOST = 8, CREATES = 2 };

/* Whether NumPy may be given it as it is, as an argument that is named. */
static int is_plain(PyObject *value)
{
    if (PyTuple_CheckExact(value)) {
        for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(value); n++)
            if (!PyLong_CheckExact(PyTuple_GET_ITEM(value, n))) return 0;
        return 1;
    }
    return value == Py_None || PyType_Check(value) || is_scalar(value) || PyObject_TypeCheck(value, K.dtype);
}

static int are_plain(PyObject *kwargs)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &name, &value))
        if (!is_plain(value) || PyUnicode_CompareWithASCIIString(name, "out") == 0) return 0;
    return 1;
}

static PyObject *named_out;  /* ("out",) */

/* The array that takes the result of a ufunc (borrowed), if there is one and nothing else is named. */
static PyObject *out_of(Direct *self, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t count = PyTuple_GET_SIZE(args), named = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs);
    PyObject *out = NULL;
    if (!self->ufunc) return NULL;
    if (count == self->arrays && named == 1)
        out = PyDict_GetItem(kwargs, PyTuple_GET_ITEM(named_out, 0));
    else if (count == self->arrays + 1 && !named)
        out = PyTuple_GET_ITEM(args, self->arrays);
    return out != NULL && IS_OURS(out) && SLOT(out, K.x.writeable) != Py_False ? out : NULL;
}

/* What NumPy takes for an argument (a new reference); NULL, without an error: it is not to be called. */
static PyObject *given_for(PyObject *x, Py_ssize_t least, int any)
{
    if (IS_OURS(x)) return Py_XNewRef(at_once(x, least));
    if (is_scalar(x) || (any && is_plain(x))) return Py_NewRef(x);
    if (!PyList_CheckExact(x) && !PyTuple_CheckExact(x)) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(x);
    PyObject *list = count > MOST ? NULL : PyList_New(count);
    for (Py_ssize_t n = 0; list != NULL && n < count; n++) {
        PyObject *entry = PySequence_Fast_GET_ITEM(x, n);
        PyObject *array = IS_OURS(entry) ? at_once(entry, least) : NULL;
        if (array != NULL)
            PyList_SET_ITEM(list, n, Py_NewRef(array));
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Whether it is the shape of an array of few elements. */
static int is_small(PyObject *shape)
{
    Py_ssize_t size = 1, least = limit(0), count = PyTuple_CheckExact(shape) ? PyTuple_GET_SIZE(shape) : 1;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *entry = PyTuple_CheckExact(shape) ? PyTuple_GET_ITEM(shape, n) : shape;
        Py_ssize_t extent = PyLong_CheckExact(entry) ? PyLong_AsSsize_t(entry) : -1;
        if (extent < 0 || extent > least) {
            PyErr_Clear();
            return 0;
        }
        size *= extent;
        if (size >= least) return 0;
    }
    return 1;
}

static int creates(PyObject *args, PyObject **given)
{
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (!count || !is_small(PyTuple_GET_ITEM(args, 0))) return 0;
    for (Py_ssize_t n = 1; n < count; n++)
        if (!is_plain(PyTuple_GET_ITEM(args, n))) return 0;
    for (Py_ssize_t n = 0; n < count; n++) given[n] = Py_NewRef(PyTuple_GET_ITEM(args, n));
    return 1;
}

/* NumPy's arguments (new references) for ours; 0: NumPy is not to be called. */
static int converted(Direct *self, PyObject *args, PyObject **given)
{
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (count > MOST || (self->first && (!count || !IS_OURS(PyTuple_GET_ITEM(args, 0))))) return 0;
    if (self->costly == CREATES) return creates(args, given);
    Py_ssize_t least = self->costly < 0 ? PY_SSIZE_T_MAX : limit(self->costly);
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *x = PyTuple_GET_ITEM(args, n);
        given[n] = n < self->arrays ? given_for(x, least, n && self->first) : is_plain(x) ? Py_NewRef(x) : NULL;
        if (given[n] == NULL) {
            while (n) Py_DECREF(given[--n]);
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

static PyObject *called(Direct *self, PyObject *args, PyObject *kwargs, PyObject **given)
{
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (kwargs == NULL || !PyDict_GET_SIZE(kwargs)) return PyObject_Vectorcall(self->numpys, given, count, NULL);
    PyObject *tuple = PyTuple_New(count);
    if (tuple == NULL) return NULL;
    for (Py_ssize_t n = 0; n < count; n++) PyTuple_SET_ITEM(tuple, n, Py_NewRef(given[n]));
    PyObject *value = PyObject_Call(self->numpys, tuple, kwargs);
    Py_DECREF(tuple);
    return value;
}

/* Whether only a view refers to the array that it is a view of. */
static int is_alone(PyObject *base)
{
    return Py_IS_TYPE(base, K.numpys) && Py_REFCNT(base) == 1 && ((Numpys *)base)->base == NULL;
}

/* Ours for a result (which it steals) that nobody else has, or that is a view of the first argument;
   NULL, without an error: neither. */
static PyObject *result(Direct *self, PyObject *value, PyObject *args, PyObject *array)
{
    if (!Py_IS_TYPE(value, K.numpys)) {
        if (!PyTuple_Check(value) && !PyList_Check(value)) return value;
    } else if (Py_REFCNT(value) == 1) {
        Numpys *made = (Numpys *)value;
        if (made->base == NULL || is_alone(made->base)) return adopt(value);
        int is_view = self->first && (made->base == array || made->base == ((Numpys *)array)->base);
        if (is_view && made->flags & WRITEABLE) return sliced(PyTuple_GET_ITEM(args, 0), value);
    }
    Py_DECREF(value);
    return NULL;
}

/* A ufunc into an array; NULL, without an error: not at once. */
static PyObject *call_into(Direct *self, PyObject *args, PyObject *out)
{
    PyObject *given[MOST], *value = NULL;
    Py_ssize_t least = limit(self->costly > 0), count = self->arrays;
    if (count + 1 > MOST) return NULL;
    for (Py_ssize_t n = 0; n <= count; n++) {
        PyObject *x = n < count ? PyTuple_GET_ITEM(args, n) : out;
        given[n] = IS_OURS(x) ? at_once(x, least) : is_scalar(x) ? x : NULL;
        if (given[n] == NULL) return NULL;
    }
    for (Py_ssize_t n = 0; n <= count; n++) Py_INCREF(given[n]);
    if (PyTuple_GET_SIZE(args) > count)  /* as the program does it: NumPy may warn */
        value = PyObject_Vectorcall(self->numpys, given, count + 1, NULL);
    else
        value = PyObject_Vectorcall(self->numpys, given, count, named_out);
    for (Py_ssize_t n = 0; n <= count; n++) Py_DECREF(given[n]);
    if (value == NULL) return NULL;
    Py_DECREF(value);
    return Py_NewRef(out);
}

static int may_be_recorded(PyObject *x)
{
    PyObject *array = IS_OURS(x) ? SLOT(x, K.x.array) : NULL;
    return IS_OURS(x) && (array == NULL || array == Py_None || size_of(array) >= MIDDLE || is_pending(x));
}

/* The operation, recorded; NULL, without an error: not by this. */
static PyObject *record(Direct *self, PyObject *args, PyObject *kwargs, PyObject *out)
{
    int count = self->arrays, large = 0;
    if (self->operation == NULL || PyTuple_GET_SIZE(args) != count || count > 3) return NULL;
    if (out == NULL && kwargs != NULL && PyDict_GET_SIZE(kwargs)) return NULL;
    for (int n = 0; n < count; n++) large |= may_be_recorded(PyTuple_GET_ITEM(args, n));
    return large ? recorded(self->operation, &PyTuple_GET_ITEM(args, 0), count, out) : NULL;
}

static PyObject *call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    Direct *self = (Direct *)object;
    PyObject *given[MOST], *out = out_of(self, args, kwargs);
    PyObject *made = record(self, args, kwargs, out);
    if (made != NULL || PyErr_Occurred()) return made;
    if (out != NULL) {
        PyObject *found = call_into(self, args, out);
        if (found != NULL || PyErr_Occurred()) return found;
    } else if ((kwargs == NULL || are_plain(kwargs)) && converted(self, args, given)) {
        PyObject *value = called(self, args, kwargs, given);
        PyObject *found = value == NULL ? NULL : result(self, value, args, given[0]);
        for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(args); n++) Py_DECREF(given[n]);
        if (found != NULL || PyErr_Occurred()) return found;
    }
    return PyObject_Call(self->python, args, kwargs);
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Direct *self = (Direct *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    PyObject *operation = Py_None;
    if (!PyArg_ParseTuple(args, "OOiii|O", &self->numpys, &self->python, &self->costly, &self->first, &self->arrays, &operation)) {
        self->numpys = self->python = NULL;
        Py_DECREF(self);
        return NULL;
    }
    self->ufunc = !self->first && PyObject_HasAttrString(self->numpys, "nin");
    Py_INCREF(self->numpys);
    Py_INCREF(self->python);
    self->operation = operation == Py_None ? NULL : Py_NewRef(operation);
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    Direct *self = (Direct *)object;
    Py_XDECREF(self->numpys);
    Py_XDECREF(self->python);
    Py_XDECREF(self->operation);
    Py_TYPE(object)->tp_free(object);
}

/* All else is the Python function's. */
static PyObject *of_python(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(object, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Direct *)object)->python, name);
}

static PyObject *doc(PyObject *object, void *unused)
{
    return PyObject_GetAttrString(((Direct *)object)->python, "__doc__");
}

static PyObject *shown(PyObject *object) { return PyObject_Repr(((Direct *)object)->python); }

static PyObject *reduced(PyObject *object, PyObject *protocol)
{
    return PyObject_CallMethod(((Direct *)object)->python, "__reduce_ex__", "O", protocol);
}

static PyMethodDef METHODS[] = {{"__reduce_ex__", reduced, METH_O, NULL}, {NULL}};

static PyGetSetDef ATTRIBUTES[] = {{"__doc__", doc, NULL, NULL, NULL}, {NULL}};

static PyObject *bound(PyObject *object, PyObject *instance, PyObject *type)
{
    return instance == NULL ? Py_NewRef(object) : PyMethod_New(object, instance);
}

static PyTypeObject DIRECT = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfuser._numpy.Function", .tp_basicsize = sizeof(Direct),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .tp_new = make, .tp_dealloc = drop, .tp_call = call, .tp_repr = shown,
    .tp_getattro = of_python, .tp_methods = METHODS, .tp_getset = ATTRIBUTES,
};

static PyTypeObject METHOD = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfuser._numpy.Method", .tp_basicsize = sizeof(Direct),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR, .tp_new = make, .tp_dealloc = drop,
    .tp_call = call, .tp_repr = shown, .tp_getattro = of_python, .tp_methods = METHODS, .tp_getset = ATTRIBUTES,
    .tp_descr_get = bound,
};

int add_functions(PyObject *module)
{
    named_out = Py_BuildValue("(s)", "out");
    if (named_out == NULL || PyType_Ready(&DIRECT) < 0 || PyType_Ready(&METHOD) < 0) return -1;
    if (PyModule_AddObjectRef(module, "Function", (PyObject *)&DIRECT) < 0) return -1;
    return PyModule_AddObjectRef(module, "Method", (PyObject *)&METHOD);
}
