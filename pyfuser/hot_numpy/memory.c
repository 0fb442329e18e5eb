/* The state of our arrays (see frontends/numpy/memory.py), and the module `pyfuser._numpy`. */
#include "array.h"

Known K;

static int is_true(PyObject *x, Py_ssize_t place)
{
    PyObject *value = SLOT(x, place);
    return value == Py_True || (value != Py_False && value != NULL && PyLong_AsSsize_t(value) > 0);
}

static int touched(PyObject *buffer)
{
    return is_true(buffer, K.b.pending) || (is_true(buffer, K.b.external) && is_true(K.tracer, K.t.raw));
}

/* As memory.is_pending. */
int is_pending(PyObject *x)
{
    if (!PyList_GET_SIZE(SLOT(K.tracer, K.t.calls))) return 0;
    PyObject *region = SLOT(x, K.x.region), *owner = SLOT(x, K.x.owner);
    if (region != NULL && region != Py_None) return touched(PyTuple_GET_ITEM(region, 0));
    if (owner == NULL || owner == K.fresh) return 0;
    if (Py_IS_TYPE(owner, K.owner)) {
        PyObject *buffer = SLOT(owner, K.o.buffer);
        return buffer != NULL && buffer != Py_None && touched(buffer);
    }
    return owner == Py_None && is_true(K.tracer, K.t.raw);
}

/* Elements of one of our arrays, NumPy's array of it made or not. */
Py_ssize_t elements_of(PyObject *x)
{
    PyObject *array = SLOT(x, K.x.array), *region = SLOT(x, K.x.region);
    if (array != NULL && array != Py_None) return size_of(array);
    if (region == NULL || region == Py_None) return 0;
    PyObject *shape = PyTuple_GET_ITEM(region, 3);
    Py_ssize_t size = 1;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(shape); n++) size *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, n));
    return size;
}

/* The elements of an array, once what is pending on it has run (borrowed); NULL, without an error: Python sees to it. */
PyObject *settled(PyObject *x)
{
    if (SLOT(K.use, K.u.devices) == Py_True) return NULL;
    PyObject *found = PyObject_CallOneArg(K.host, x);  /* it keeps it */
    if (found == NULL) PyErr_Clear();  /* it comes again */
    Py_XDECREF(found);
    PyObject *array = SLOT(x, K.x.array);
    return found == NULL || array == Py_None ? NULL : array;
}

/* The elements of an array that has fewer than `least` and nothing pending. */
PyObject *at_once(PyObject *x, Py_ssize_t least)
{
    PyObject *array = SLOT(x, K.x.array);
    if (array == NULL) return NULL;  /* what a mask selects */
    int made = array != NULL && array != Py_None;
    if (elements_of(x) >= least || SLOT(K.use, K.u.devices) == Py_True || is_pending(x)) return NULL;
    return made ? array : settled(x);
}

/* A number of Python's or NumPy's, or a string. */
int is_scalar(PyObject *x)
{
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x)) return 1;
    return x != Py_None && PySet_Contains(K.scalars, (PyObject *)Py_TYPE(x)) > 0;
}

PyObject *adopt(PyObject *array)
{
    PyObject *x = K.ours->tp_alloc(K.ours, 0);
    if (x == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    SLOT(x, K.x.array) = array;
    return x;
}

PyObject *finish(PyObject *value)
{
    return value != NULL && Py_IS_TYPE(value, K.numpys) ? adopt(value) : value;
}

/* As wrap.sliced. */
PyObject *sliced(PyObject *x, PyObject *part)
{
    PyObject *owner = SLOT(x, K.x.owner);
    if (owner == NULL || owner == K.fresh) {
        PyObject *made = K.owner->tp_alloc(K.owner, 0);
        if (made == NULL) goto failed;
        SLOT(made, K.o.buffer) = Py_NewRef(Py_None);
        SLOT(x, K.x.owner) = made;
        Py_XDECREF(owner);
        owner = made;
    }
    if (!Py_IS_TYPE(owner, K.owner)) {
        PyObject *found = PyObject_CallFunctionObjArgs(K.view, x, part, NULL);
        Py_DECREF(part);
        return found;
    }
    PyObject *found = K.ours->tp_alloc(K.ours, 0);
    if (found == NULL) goto failed;
    PyObject *base = SLOT(x, K.x.base), *writeable = SLOT(x, K.x.writeable);
    SLOT(found, K.x.array) = part;
    SLOT(found, K.x.base) = Py_NewRef(base == NULL || base == Py_None ? x : base);
    SLOT(found, K.x.owner) = Py_NewRef(owner);
    SLOT(found, K.x.region) = Py_NewRef(Py_None);
    SLOT(found, K.x.writeable) = Py_NewRef(writeable == NULL ? Py_True : writeable);
    return found;
failed:
    Py_DECREF(part);
    return NULL;
}

static int is_known(PyObject *probe)  /* 3 by 5 */
{
    Numpys *a = (Numpys *)probe;
    return Py_IS_TYPE(probe, K.numpys) && a->nd == 2 && a->dimensions[0] == 3 && a->dimensions[1] == 5
        && a->base == NULL && a->flags & WRITEABLE;
}

/* bind(ours, owner, buffer, integer, dtype, fresh, scalars, tracer, use, limits, view, host, taken, probe) */
static PyObject *bind(PyObject *module, PyObject *args)
{
    PyObject *ours, *owner, *buffer, *integer, *dtype, *probe;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOOO", &ours, &owner, &buffer, &integer, &dtype, &K.fresh, &K.scalars, &K.tracer,
                          &K.use, &K.limits, &K.view, &K.host, &K.taken, &probe))
        return NULL;
    Py_INCREF(args);  /* for good */
    K.ours = (PyTypeObject *)ours;
    K.ours->tp_name = "numpy.ndarray";  /* in messages of Python's */
    K.owner = (PyTypeObject *)owner;
    K.integer = (PyTypeObject *)integer;
    K.dtype = (PyTypeObject *)dtype;
    K.numpys = Py_TYPE(probe);
    if (!is_known(probe)) {
        PyErr_SetString(PyExc_ImportError, "NumPy's arrays are laid out in another way");
        return NULL;
    }
    PyObject *tracer = (PyObject *)Py_TYPE(K.tracer), *use = (PyObject *)Py_TYPE(K.use);
    PyObject *limits = (PyObject *)Py_TYPE(K.limits);
    if (place(ours, "_array", &K.x.array) < 0 || place(ours, "_base", &K.x.base) < 0
        || place(ours, "_owner", &K.x.owner) < 0 || place(ours, "_region", &K.x.region) < 0
        || place(ours, "_writeable", &K.x.writeable) < 0 || place(owner, "buffer", &K.o.buffer) < 0
        || place(buffer, "pending", &K.b.pending) < 0 || place(buffer, "external", &K.b.external) < 0
        || place(tracer, "calls", &K.t.calls) < 0 || place(tracer, "raw", &K.t.raw) < 0
        || place(use, "devices", &K.u.devices) < 0 || place(limits, "most", &K.l.most) < 0
        || place(limits, "costly", &K.l.costly) < 0 || place(limits, "sure", &K.l.sure) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"bind", bind, METH_VARARGS, "Tell the module the classes that it works on."},
    {"bind_few", bind_few, METH_VARARGS, "Tell it NumPy's C API, the types that it computes with, and float64's scalars."},
    {"few", few_for_tests, METH_VARARGS, "What the ufunc gives for two arrays of NumPy's, or numbers; None: it is NumPy's to compute."},
    {"tree_sum", tree_sum, METH_VARARGS, "tree_sum(array, tile): the sum as doubles; None: of another array."},
    {"are_below", are_below, METH_VARARGS, "are_below(array, extent): whether its integers are subscripts, none negative; False of another array, too."},
    {"fast", make_fast, METH_O, "A subclass of the class of arrays that computes small ones at once."},
    {NULL},
};

static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "pyfuser._numpy", NULL, -1, METHODS};

PyMODINIT_FUNC PyInit__numpy(void)
{
    PyObject *module = PyModule_Create(&MODULE);
    if (module == NULL || add_functions(module) < 0 || PyModule_AddFunctions(module, RECORDING) < 0 || PyModule_AddFunctions(module, CLASSES) < 0
        || PyModule_AddIntConstant(module, "INTERFACE", 13) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
