/* Slots of objects of classes with __slots__, for `pyfuser._hot` and `pyfuser._numpy`. */
#ifndef PYFUSER_SLOTS_H
#define PYFUSER_SLOTS_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define SLOT(object, place) (*(PyObject **)((char *)(object) + (place)))

/* Where a class has a slot. -1, with an error, for what is none. */
static inline int place(PyObject *type, const char *name, Py_ssize_t *place)
{
    PyObject *slot = PyObject_GetAttrString(type, name);
    if (slot == NULL) return -1;
    int right = Py_IS_TYPE(slot, &PyMemberDescr_Type);
    if (right)
        *place = ((PyMemberDescrObject *)slot)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_DECREF(slot);
    return right ? 0 : -1;
}
#endif
