/* Operands that are numbers, as loops have them. */
#include "record.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Whether an operation divides by its second operand. */
static int divides(PyObject *operation)
{
    PyObject *told = PyObject_GetAttr(operation, P.divides_name);
    Py_XDECREF(told);
    return told != Py_False;
}

static PyObject *plain_real(PyObject *value, PyObject *dtype)
{
    if (dtype == P.float32 && Py_IS_TYPE(value, P.numpys_single)) {
        PyObject *number = PyNumber_Float(value);
        if (number != NULL && PyFloat_AS_DOUBLE(number) != PyFloat_AS_DOUBLE(number)) Py_CLEAR(number);
        return number;
    }
    int exact = PyFloat_CheckExact(value);
    if (!exact && !Py_IS_TYPE(value, P.numpys_float)) return NULL;
    double number = PyFloat_AS_DOUBLE(value);
    if (number != number) return NULL;
    if (dtype == P.float64) return exact ? Py_NewRef(value) : PyFloat_FromDouble(number);
    return exact && dtype == P.float32 && fabs(number) < FLT_MAX ? PyFloat_FromDouble((float)number) : NULL;
}

/* A number for which resolution.number asks nothing else; NULL, without an error: another one, or a NaN. */
static PyObject *plain_number(PyObject *operation, int place, PyObject *value, PyObject *dtype)
{
    if (!PyLong_CheckExact(value)) {
        for (int n = 0; n < INTEGERS; n++)
            if (P.integers[n].dtype == dtype && Py_IS_TYPE(value, P.integers[n].scalars) && !(place == 1 && divides(operation)))
                return PyNumber_Index(value);
        return plain_real(value, dtype);
    }
    int beyond;
    long long number = PyLong_AsLongLongAndOverflow(value, &beyond);
    if (beyond) return NULL;
    if (dtype == P.float64) return llabs(number) < 1LL << 53 ? PyFloat_FromDouble((double)number) : NULL;
    for (int n = 0; n < INTEGERS; n++) {
        if (P.integers[n].dtype != dtype) continue;
        if (number < P.integers[n].least || number > P.integers[n].most) return NULL;
        return place == 1 && (number == 0 || number == -1) && divides(operation) ? NULL : Py_NewRef(value);
    }
    return NULL;
}

/* A number as the loop has it: a new reference, or NULL without an error: it is Python's to see to. */
PyObject *number_of(PyObject *operation, int place, PyObject *value, PyObject *dtype)
{
    PyObject *found = plain_number(operation, place, value, dtype);
    if (found != NULL || PyErr_Occurred()) return found;
    found = PyObject_CallFunction(P.number, "OiOO", operation, place, value, dtype);
    if (found == Py_None) Py_CLEAR(found);
    return found;
}
