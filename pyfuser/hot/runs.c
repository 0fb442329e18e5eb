/* `trace.runs._rounds` in C: how often calls repeat while their arguments move by the same steps. */
#include "hot.h"

/* By how much an integer moves, if that is known here. */
static int moved(PyObject *one, PyObject *other, int64_t *step)
{
    int overflow[2];
    int64_t from = PyLong_AsLongLongAndOverflow(one, &overflow[0]);
    int64_t to = PyLong_AsLongLongAndOverflow(other, &overflow[1]);
    return !overflow[0] && !overflow[1] && !__builtin_sub_overflow(to, from, step);
}

/* Whether Python takes them for equal; tuples of integers and words of ours run none of it. */
static int equal(PyObject *one, PyObject *other)
{
    return one == other || PyObject_RichCompareBool(one, other, Py_EQ) == 1;
}

/* As `_step`, which says None where this says 0. */
static int step_of(PyObject *one, PyObject *other, int64_t *step)
{
    *step = 0;
    if (Py_TYPE(one) == L.Future) return 0;
    if (one == other) return 1;
    if (Py_TYPE(one) == L.Region)
        return Py_TYPE(other) == L.Region && PyTuple_GET_ITEM(one, BUFFER) == PyTuple_GET_ITEM(other, BUFFER) &&
               PyTuple_GET_ITEM(one, DTYPE) == PyTuple_GET_ITEM(other, DTYPE) &&
               equal(PyTuple_GET_ITEM(one, STRIDES), PyTuple_GET_ITEM(other, STRIDES)) &&
               equal(PyTuple_GET_ITEM(one, SHAPE), PyTuple_GET_ITEM(other, SHAPE)) &&
               moved(PyTuple_GET_ITEM(one, OFFSET), PyTuple_GET_ITEM(other, OFFSET), step);
    if (PyLong_CheckExact(one) && PyLong_CheckExact(other)) return moved(one, other, step);
    if (PyFloat_CheckExact(one) && PyFloat_CheckExact(other)) {
        double a = PyFloat_AS_DOUBLE(one), b = PyFloat_AS_DOUBLE(other);
        return a == b && memcmp(&a, &b, sizeof a) == 0;
    }
    return 0;
}

static int is_for(PyObject *call)
{
    PyObject *pattern = SLOT(call, L.call.pattern);
    return Py_TYPE(call) == L.Call && *(char *)PyUnicode_DATA(pattern) == 'f';
}

/* Whether a call is the one before it, moved by these steps. */
static int follows(PyObject *one, PyObject *other, PyObject *steps)
{
    if (!is_for(one) || !is_for(other)) return 0;
    if (SLOT(one, L.call.workunit) != SLOT(other, L.call.workunit)) return 0;
    if (!equal(SLOT(one, L.call.space), SLOT(other, L.call.space))) return 0;
    PyObject *from = SLOT(one, L.call.arguments), *to = SLOT(other, L.call.arguments);
    Py_ssize_t count = PyTuple_GET_SIZE(from);
    if (PyTuple_GET_SIZE(to) != count || PyTuple_GET_SIZE(steps) != count) return 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        int large;  /* no number here moves by such a step */
        int64_t step, wanted = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(steps, n), &large);
        if (large || !step_of(PyTuple_GET_ITEM(from, n), PyTuple_GET_ITEM(to, n), &step) || step != wanted) return 0;
    }
    return 1;
}

/* rounds(calls, first, steps): as `_rounds`; steps of more than 64 bits are of no round but the first. */
PyObject *rounds(PyObject *module, PyObject *args)
{
    PyObject *calls, *steps;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(args, "O!nO!", &PyList_Type, &calls, &first, &PyTuple_Type, &steps)) return NULL;
    Py_ssize_t period = PyTuple_GET_SIZE(steps), place = first + period;
    if (!L.bound || first < 0 || !period) {
        PyErr_SetString(PyExc_ValueError, "rounds: there are none");
        return NULL;
    }
    while (place < PyList_GET_SIZE(calls) &&
           follows(PyList_GET_ITEM(calls, place - period), PyList_GET_ITEM(calls, place),
                   PyTuple_GET_ITEM(steps, (place - first) % period)))
        place++;
    if (PyErr_Occurred()) return NULL;
    return PyLong_FromSsize_t((place - first) / period);
}
