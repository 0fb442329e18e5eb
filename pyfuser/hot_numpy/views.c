/* Views that are no parts of an array of such elements: fields of records, elements as of another type;
   and iteration, which takes elements or parts one by one. */
#include "array.h"

/* NumPy's array of an array of ours, if it can be looked at, whatever is pending; else NULL. */
static Numpys *there(PyObject *x)
{
    PyObject *array = IS_OURS(x) ? SLOT(x, K.x.array) : NULL;
    if (array == NULL || !Py_IS_TYPE(array, K.numpys) || SLOT(K.use, K.u.devices) == Py_True) return NULL;
    return (Numpys *)array;
}

/* A field of records, on which nothing is ever recorded, as wrap.view makes it; NULL, without an error: not by this. */
PyObject *field_of(PyObject *x, PyObject *name)
{
    Numpys *array = there(x);
    if (array == NULL || ((Descr *)array->descr)->kind != 'V' || SLOT(x, K.x.writeable) == Py_False) return NULL;
    PyObject *part = PyObject_GetItem((PyObject *)array, name);
    if (part == NULL || !Py_IS_TYPE(part, K.numpys) || !(((Numpys *)part)->flags & WRITEABLE) || !size_of(part)) {
        PyErr_Clear();  /* it comes again */
        Py_XDECREF(part);
        return NULL;
    }
    PyObject *found = adopt(part), *base = SLOT(x, K.x.base);
    if (found == NULL) return NULL;
    SLOT(found, K.x.base) = Py_NewRef(base == NULL || base == Py_None ? x : base);
    SLOT(found, K.x.owner) = Py_NewRef(Py_None);
    SLOT(found, K.x.region) = Py_NewRef(Py_None);
    SLOT(found, K.x.writeable) = Py_NewRef(Py_True);
    return found;
}

/* `x.view(dtype)` as wrap.view makes it; NULL, without an error: not by this. */
PyObject *viewed(PyObject *const *args, Py_ssize_t count)
{
    Numpys *array = count == 2 ? there(args[0]) : NULL;
    if (array == NULL || SLOT(args[0], K.x.writeable) == Py_False || type_of(array) == TYPES) return NULL;
    if (!PyObject_TypeCheck(args[1], K.dtype) && PySet_Contains(K.scalars, args[1]) <= 0) {
        PyErr_Clear();  /* of what has no hash */
        return NULL;
    }
    PyObject *part = PyObject_CallMethod((PyObject *)array, "view", "O", args[1]);
    const int regular = ALIGNED | C_CONTIGUOUS | WRITEABLE;
    if (part != NULL && Py_IS_TYPE(part, K.numpys) && size_of(part) && type_of((Numpys *)part) != TYPES
        && (((Numpys *)part)->flags & regular) == regular)
        return sliced(args[0], part);
    PyErr_Clear();  /* it comes again */
    Py_XDECREF(part);
    return NULL;
}

typedef struct {
    PyObject_HEAD
    PyObject *x;
    Py_ssize_t at;
} Entries;

static PyObject *next_entry(PyObject *object)
{
    Entries *self = (Entries *)object;
    if (self->x == NULL) return NULL;
    Numpys *array = there(self->x);
    if (self->at >= PyObject_Length(self->x)) {
        Py_CLEAR(self->x);
        return NULL;
    }
    if (array != NULL && array->nd == 1 && !has_objects((PyObject *)array) && !is_pending(self->x))
        return PySequence_GetItem((PyObject *)array, self->at++);
    PyObject *key = PyLong_FromSsize_t(self->at++), *x = Py_NewRef(self->x);  /* others may end it meanwhile */
    PyObject *found = key == NULL ? NULL : PyObject_GetItem(x, key);
    Py_XDECREF(key);
    Py_DECREF(x);
    return found;
}

static PyObject *left(PyObject *object, PyObject *unused)
{
    Entries *self = (Entries *)object;
    return PyLong_FromSsize_t(self->x == NULL ? 0 : PyObject_Length(self->x) - self->at);
}

static void drop_entries(PyObject *object)
{
    Py_XDECREF(((Entries *)object)->x);
    PyObject_Free(object);
}

static PyMethodDef METHODS[] = {{"__length_hint__", left, METH_NOARGS, NULL}, {NULL}};

static PyTypeObject ENTRIES = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfuser._numpy.Entries", .tp_basicsize = sizeof(Entries),
    .tp_flags = Py_TPFLAGS_DEFAULT, .tp_dealloc = drop_entries, .tp_iter = PyObject_SelfIter, .tp_iternext = next_entry,
    .tp_methods = METHODS,
};

/* An iterator; NULL, without an error: Python's `__iter__` sees to it. */
PyObject *entries_of(PyObject *x)
{
    Numpys *array = there(x);
    if (array == NULL || !array->nd || PyType_Ready(&ENTRIES) < 0) return NULL;
    Entries *found = PyObject_New(Entries, &ENTRIES);
    if (found == NULL) return NULL;
    found->x = Py_NewRef(x);
    found->at = 0;
    return (PyObject *)found;
}
