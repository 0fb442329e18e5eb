/* A Future as a number: `trace.future.Future` where its value is there, or a known flush computes it.

Whatever else there is to do the Python function behind each method does.
*/
#include "hot.h"

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, OPERATIONS };

static struct {
    PyObject *read, *why, *stuck;  /* Future.result, the reason of a flush, a name */
    PyObject *method[OPERATIONS], *reflected[OPERATIONS];
    long long large;  /* bytes of pending arguments with which arithmetic is recorded */
} N;

static int is_there(PyObject *value)
{
    return value != NULL && value != Py_None;
}

/* Whether the tracer computes it by a flush, as `Tracer.compute` does, with nothing under way. */
static int may_flush(PyObject *future)
{
    PyObject *force = SLOT(future, L.future.force), *tracer = R.tracer;
    if (!R.ready || force == NULL || !PyMethod_Check(force) || !PyMethod_Check(R.compute)) return 0;
    if (PyMethod_GET_SELF(force) != tracer || PyMethod_GET_FUNCTION(force) != PyMethod_GET_FUNCTION(R.compute)) return 0;
    PyObject *calls = SLOT(tracer, L.tracer.calls);
    return SLOT(future, L.future.error) == Py_None && SLOT(future, L.future.deferred) == Py_None &&
           SLOT(tracer, L.tracer.watch) == Py_None && SLOT(tracer, L.tracer.gate) == Py_None &&
           is_there(SLOT(tracer, L.tracer.fast)) && PyList_CheckExact(calls) && PyList_GET_SIZE(calls) > 0;
}

/* An error of a flush that is told each time, as what is stuck is still pending, is not that of a result. */
static int is_of_others(PyObject *future)
{
    PyObject *kind, *error, *traceback;
    if (!is_there(SLOT(future, L.future.value)) || !PyErr_ExceptionMatches(PyExc_Exception)) return 0;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    PyObject *stuck = PyObject_GetAttr(R.tracer, N.stuck);
    int others = stuck != NULL && stuck == error;
    Py_XDECREF(stuck);
    if (others) {
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    } else
        PyErr_Restore(kind, error, traceback);
    return others;
}

/* `Future.result`: a new reference. */
static PyObject *result(PyObject *self, PyObject *nothing)
{
    PyObject *value = SLOT(self, L.future.value);
    if (is_there(value)) return Py_NewRef(value);
    if (may_flush(self)) {
        PyObject *done = hot_flush(NULL, &N.why, 1);
        if (done == NULL && !is_of_others(self)) return NULL;
        Py_XDECREF(done);
        value = SLOT(self, L.future.value);
        if (is_there(value)) return Py_NewRef(value);
    }
    return PyObject_CallOneArg(N.read, self);
}

static PyObject *plain(PyObject *value)
{
    return Py_TYPE(value) == L.Future ? result(value, NULL) : Py_NewRef(value);
}

static PyObject *as_float(PyObject *self, PyObject *nothing)
{
    PyObject *value = result(self, NULL);
    if (value == NULL || PyFloat_CheckExact(value)) return value;
    Py_SETREF(value, PyNumber_Float(value));
    return value;
}

static PyObject *as_bool(PyObject *self, PyObject *nothing)
{
    PyObject *value = result(self, NULL);
    if (value == NULL) return NULL;
    int is_true = PyObject_IsTrue(value);
    Py_DECREF(value);
    return is_true < 0 ? NULL : PyBool_FromLong(is_true);
}

static PyObject *compare(PyObject *self, PyObject *other, int how)
{
    PyObject *left = result(self, NULL), *right = left == NULL ? NULL : plain(other), *answer = NULL;
    if (right != NULL) answer = PyObject_RichCompare(left, right, how);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return answer;
}

#define COMPARISON(name, how) \
    static PyObject *name(PyObject *self, PyObject *other) { return compare(self, other, how); }
COMPARISON(equal, Py_EQ)
COMPARISON(unequal, Py_NE)
COMPARISON(less, Py_LT)
COMPARISON(less_equal, Py_LE)
COMPARISON(greater, Py_GT)
COMPARISON(greater_equal, Py_GE)

static const binaryfunc FUNCTIONS[] = {PyNumber_Add, PyNumber_Subtract, PyNumber_Multiply, PyNumber_TrueDivide};

static int is_pending(PyObject *value)
{
    return Py_TYPE(value) == L.Future && !is_there(SLOT(value, L.future.value));
}

/* In a captured step, and where much is to be computed before, Python may record it. */
static PyObject *operate(PyObject *self, PyObject *other, int which, int swapped)
{
    if (!R.ready || SLOT(R.tracer, L.tracer.watch) != Py_None ||
        (number_of(SLOT(R.tracer, L.tracer.bytes)) >= N.large && (is_pending(self) || is_pending(other))))
        return PyObject_CallFunctionObjArgs((swapped ? N.reflected : N.method)[which], self, other, NULL);
    PyObject *mine = result(self, NULL), *its = mine == NULL ? NULL : plain(other), *answer = NULL;
    if (its != NULL) answer = swapped ? FUNCTIONS[which](its, mine) : FUNCTIONS[which](mine, its);
    Py_XDECREF(mine);
    Py_XDECREF(its);
    return answer;
}

#define OPERATION(name, which) \
    static PyObject *name(PyObject *self, PyObject *other) { return operate(self, other, which, 0); } \
    static PyObject *r##name(PyObject *self, PyObject *other) { return operate(self, other, which, 1); }
OPERATION(add, ADD)
OPERATION(subtract, SUBTRACT)
OPERATION(multiply, MULTIPLY)
OPERATION(divide, DIVIDE)

static PyMethodDef METHODS[] = {
    {"result", result, METH_NOARGS, NULL},
    {"__float__", as_float, METH_NOARGS, NULL},
    {"__bool__", as_bool, METH_NOARGS, NULL},
    {"__eq__", equal, METH_O, NULL},
    {"__ne__", unequal, METH_O, NULL},
    {"__lt__", less, METH_O, NULL},
    {"__le__", less_equal, METH_O, NULL},
    {"__gt__", greater, METH_O, NULL},
    {"__ge__", greater_equal, METH_O, NULL},
};

/* In the order of the operations: each, and what is called where it is the right operand's. */
static PyMethodDef OPERATORS[] = {
    {"__add__", add, METH_O, NULL},         {"__radd__", radd, METH_O, NULL},
    {"__sub__", subtract, METH_O, NULL},    {"__rsub__", rsubtract, METH_O, NULL},
    {"__mul__", multiply, METH_O, NULL},    {"__rmul__", rmultiply, METH_O, NULL},
    {"__truediv__", divide, METH_O, NULL},  {"__rtruediv__", rdivide, METH_O, NULL},
};

static int replace(PyMethodDef *method, PyObject **before)
{
    PyObject *type = (PyObject *)L.Future, *python = PyObject_GetAttrString(type, method->ml_name);
    if (python == NULL) return -1;
    if (before != NULL) Py_XSETREF(*before, Py_NewRef(python));
    Py_DECREF(python);
    PyObject *made = PyDescr_NewMethod(L.Future, method);
    int failed = made == NULL || PyObject_SetAttrString(type, method->ml_name, made) < 0;
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

/* bind_number(why, large): the methods of Futures are these; after `bind_recording`, once. */
PyObject *bind_number(PyObject *module, PyObject *args)
{
    PyObject *why;
    if (!PyArg_ParseTuple(args, "OL", &why, &N.large)) return NULL;
    if (N.read != NULL) Py_RETURN_NONE;
    N.stuck = PyUnicode_InternFromString("stuck");
    if (N.stuck == NULL) return NULL;
    N.why = Py_NewRef(why);
    for (size_t n = 0; n < sizeof OPERATORS / sizeof *OPERATORS; n++)
        if (replace(&OPERATORS[n], &(n % 2 ? N.reflected : N.method)[n / 2]) < 0) return NULL;
    for (size_t n = sizeof METHODS / sizeof *METHODS; n-- > 0;)  /* `result` is the last one */
        if (replace(&METHODS[n], n == 0 ? &N.read : NULL) < 0) return NULL;
    Py_RETURN_NONE;
}
