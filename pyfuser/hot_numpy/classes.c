/* What the class of arrays has and its objects have not: NumPy asks the class for `__array_ufunc__`, several
   times for an operator whose left side is a number of its own. */
#include "array.h"

PyObject *recorded_for;  /* operations by NumPy's ufuncs */
static PyObject *of_class;  /* by name; a subclass has others */
static PyObject *plain_ufunc;

static int has_no_axes(PyObject *x) { return Py_IS_TYPE(x, K.numpys) && !((Numpys *)x)->nd; }

/* An operand of a ufunc that is recorded; for an array of NumPy's without axes, as which its scalars come
   where they stand on the left of a comparison, the scalar (a new reference). */
static PyObject *without_axes(PyObject *x)
{
    if (!has_no_axes(x)) return Py_NewRef(x);
    PyObject *scalar = PyObject_GetItem(x, no_entries);  /* of arrays of objects, anything */
    if (scalar != NULL && Py_IS_TYPE(scalar, ((Descr *)((Numpys *)x)->descr)->scalars) && is_scalar(scalar)) return scalar;
    PyErr_Clear();
    Py_XDECREF(scalar);
    return Py_NewRef(x);
}

/* A call of a ufunc, recorded; NULL, without an error: it is not. */
static PyObject *recorded_ufunc(PyObject *ufunc, PyObject *const *inputs, int count)
{
    PyObject *operation = recorded_for == NULL ? NULL : PyDict_GetItemWithError(recorded_for, ufunc), *given[2] = {NULL, NULL};
    if (operation == NULL) return NULL;
    for (int n = 0; n < count; n++) given[n] = without_axes(inputs[n]);
    PyObject *found = recorded(operation, given, count, NULL);
    for (int n = 0; n < count; n++) Py_DECREF(given[n]);
    return found;
}

/* What NumPy takes for the operands (borrowed), NULL for one that it does not; whether they may be recorded. */
static int operands(PyObject *const *inputs, int count, PyObject **given)
{
    int large = 0;
    for (int n = 0; n < count; n++) {
        given[n] = has_no_axes(inputs[n]) ? inputs[n] : operand(inputs[n], limit(1));
        large |= given[n] == NULL || is_middling(given[n]);
    }
    return large;
}

/* A call of a ufunc, computed at once or recorded; NULL, without an error: neither. */
static PyObject *ufunc_call(PyObject *ufunc, PyObject *const *inputs, int count)
{
    PyObject *given[2] = {NULL, NULL};
    int large = operands(inputs, count, given);
    if (large) {
        PyObject *found = recorded_ufunc(ufunc, inputs, count);
        if (found != NULL || PyErr_Occurred()) return found;
        operands(inputs, count, given);  /* what was pending may have run */
    }
    for (int n = 0; n < count; n++)
        if (given[n] == NULL) return NULL;
    PyObject *made = of_few(few_of(ufunc), given[0], given[count - 1]);
    if (made != NULL || PyErr_Occurred()) return made;
    for (int n = 0; n < count; n++) Py_INCREF(given[n]);
    PyObject *value = PyObject_Vectorcall(ufunc, given, count, NULL);
    for (int n = 0; n < count; n++) Py_DECREF(given[n]);
    if (value == NULL || !PyTuple_Check(value)) return finish(value);
    Py_DECREF(value);
    return NULL;
}

/* ufunc(self, ufunc, method, *inputs, **kwargs): `__array_ufunc__` of the class. */
static PyObject *ufunc(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    int inputs = (int)count - 3;
    if (kwnames == NULL && (inputs == 1 || inputs == 2) && IS_OURS(args[0]) && PyUnicode_Check(args[2])
        && PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0) {
        PyObject *value = ufunc_call(args[1], args + 3, inputs);
        if (value != NULL || PyErr_Occurred()) return value;
    }
    return PyObject_Vectorcall(plain_ufunc, args, count, kwnames);
}

static PyObject *attribute_of_class(PyObject *class, PyObject *name)
{
    PyObject *found = class == (PyObject *)K.ours ? PyDict_GetItemWithError(of_class, name) : NULL;
    return found == NULL ? PyType_Type.tp_getattro(class, name) : Py_NewRef(found);
}

static PyType_Slot SLOTS[] = {{Py_tp_getattro, attribute_of_class}, {0}};
static PyType_Spec SPEC = {"pyfuser._numpy.Meta", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, SLOTS};

/* meta(attributes of the class, its `__array_ufunc__` for what C leaves) */
static PyObject *meta(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &of_class, &plain_ufunc)) return NULL;
    Py_INCREF(args);  /* for good */
    return PyType_FromSpecWithBases(&SPEC, (PyObject *)&PyType_Type);
}

PyMethodDef CLASSES[] = {
    {"meta", meta, METH_VARARGS, "The class of the class of arrays: that has attributes of its own."},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))ufunc, METH_FASTCALL | METH_KEYWORDS,
     "__array_ufunc__(self, ufunc, method, /, *inputs, **kwargs)\n--\n\nSee numpy.ndarray.__array_ufunc__."},
    {NULL},
};
