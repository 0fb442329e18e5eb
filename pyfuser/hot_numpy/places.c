/* Where operands lie: buffers, and regions of them. */
#include "record.h"

static PyObject *array_of(PyObject *x)
{
    PyObject *array = SLOT(x, K.x.array);
    return array == NULL || array == Py_None ? NULL : array;
}

/* 0: it has no place that the extension knows. */
int locate(PyObject *x, Place *found)
{
    PyObject *region = SLOT(x, K.x.region), *owner = SLOT(x, K.x.owner), *array = array_of(x);
    found->x = x;
    found->array = (Numpys *)array;
    if (region == NULL || region == Py_None) {
        PyObject *buffer = owner != NULL && Py_IS_TYPE(owner, K.owner) ? SLOT(owner, K.o.buffer) : NULL;
        if (buffer != NULL && buffer != Py_None && SLOT(buffer, P.buffer.root) != Py_None && array != NULL) {
            found->region = NULL;
            found->buffer = buffer;
            found->offset = (Py_ssize_t)(found->array->data - (char *)PyLong_AsVoidPtr(SLOT(buffer, P.buffer.address)));
            return !PyErr_Occurred();
        }
        found->region = found->buffer = NULL;
        return owner != Py_None && array != NULL;  /* else foreign */
    }
    found->region = region;
    found->buffer = PyTuple_GET_ITEM(region, 0);
    found->offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(region, 1));
    return 1;
}

/* The region of an array that has memory, in the buffer of its owner (a new reference); NULL, without an error:
   Python is to make it. */
static PyObject *region_in_buffer(const Numpys *array, PyObject *owner)
{
    PyObject *buffer = owner != NULL && Py_IS_TYPE(owner, K.owner) ? SLOT(owner, K.o.buffer) : NULL;
    int type = buffer == NULL || buffer == Py_None || !size_of((PyObject *)array) ? TYPES : type_of(array);
    if (type == TYPES || SLOT(buffer, P.buffer.root) == Py_None) return NULL;
    PyObject *shape = tuple_of(array->dimensions, array->nd), *strides = tuple_of(array->strides, array->nd);
    Py_ssize_t offset = array->data - (char *)PyLong_AsVoidPtr(SLOT(buffer, P.buffer.address));
    PyObject *region = shape == NULL || strides == NULL || PyErr_Occurred()
        ? NULL : new_region(buffer, offset, strides, shape, PyTuple_GET_ITEM(P.kinds, type));
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return region;
}

/* The region of an array, made if there is none (borrowed); NULL: Python is to see to it. */
static PyObject *region_of(PyObject *x)
{
    PyObject *region = SLOT(x, K.x.region), *array = array_of(x);
    if (region != NULL && region != Py_None) return region;
    PyObject *made = array == NULL ? NULL : region_in_buffer((Numpys *)array, SLOT(x, K.x.owner));
    if (made != NULL) Py_XSETREF(SLOT(x, K.x.region), Py_NewRef(made));
    else made = PyObject_CallOneArg(P.region_of, x);  /* it keeps it */
    Py_XDECREF(made);
    PyErr_Clear();
    region = SLOT(x, K.x.region);
    return region == Py_None ? NULL : region;
}

/* Give an array that has no buffer one; 0: Python is to see to it. */
int settle(Place *place)
{
    return place->x == NULL || place->buffer != NULL || (region_of(place->x) != NULL && locate(place->x, place));
}

/* As memory.is_away. */
int is_away(const Place *place)
{
    if (place->buffer == NULL) return 0;
    if (PyLong_AsLongLong(SLOT(place->buffer, P.buffer.pending)) > 0) return 1;
    return SLOT(place->buffer, P.buffer.root) == Py_None && SLOT(place->buffer, P.buffer.image) != Py_None;
}

PyObject *new_region(PyObject *buffer, Py_ssize_t offset, PyObject *strides, PyObject *shape, PyObject *dtype)
{
    if (hot == NULL) return NULL;
    PyObject *region = P.region->tp_alloc(P.region, 5), *number = PyLong_FromSsize_t(offset);
    if (region == NULL || number == NULL) {
        Py_XDECREF(region);
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SET_ITEM(region, 0, Py_NewRef(buffer));
    PyTuple_SET_ITEM(region, 1, number);
    PyTuple_SET_ITEM(region, 2, Py_NewRef(strides));
    PyTuple_SET_ITEM(region, 3, Py_NewRef(shape));
    PyTuple_SET_ITEM(region, 4, Py_NewRef(dtype));
    return region;
}

/* The region that a call has for an operand or the result. */
PyObject *formed(const Place *place, PyObject *strides, PyObject *shape, PyObject *form_strides, PyObject *form_shape, PyObject *dtype)
{
    if (strides != form_strides || shape != form_shape) return new_region(place->buffer, place->offset, form_strides, form_shape, dtype);
    if (place->region != NULL) return Py_NewRef(place->region);
    PyObject *region = new_region(place->buffer, place->offset, strides, shape, dtype);
    if (region != NULL) Py_XSETREF(SLOT(place->x, K.x.region), Py_NewRef(region));
    return region;
}

static void bounds(Py_ssize_t offset, PyObject *strides, PyObject *shape, Py_ssize_t size, Py_ssize_t *low, Py_ssize_t *high)
{
    *low = *high = offset;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(shape); n++) {
        Py_ssize_t span = (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, n)) - 1) * PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, n));
        *(span < 0 ? low : high) += span;
    }
    *high += size;
}

static Py_ssize_t step_of(Py_ssize_t step, PyObject *strides)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(strides); n++) {
        Py_ssize_t other = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, n));
        other = other < 0 ? -other : other;
        while (other) {
            Py_ssize_t rest = step % other;
            step = other;
            other = rest;
        }
    }
    return step;
}

/* As record.independent: whether no iteration writes what another one reads of an operand. */
int independent(const Plan *plan, const Operand *operand, const Place *place, const Place *target)
{
    if (place->buffer != target->buffer) return 1;
    if (operand->aligned && place->offset == target->offset) return 1;
    Py_ssize_t low, high, least, most;
    bounds(place->offset, operand->form_strides, operand->form_shape, operand->itemsize, &low, &high);
    bounds(target->offset, plan->form_strides, plan->form_shape, plan->itemsize, &least, &most);
    if (high <= least || most <= low) return 1;
    Py_ssize_t step = step_of(step_of(0, operand->form_strides), plan->form_strides);
    if (!step) return 0;
    Py_ssize_t apart = ((target->offset - place->offset) % step + step) % step;
    return apart >= operand->itemsize && step - apart >= plan->itemsize;
}

static PyObject *new_buffer(PyObject *nbytes, PyObject *owner)
{
    PyObject *buffer = P.allocation->tp_alloc(P.allocation, 0);
    if (buffer == NULL) return NULL;
    SLOT(buffer, P.buffer.exports) = Py_NewRef(Py_None);
    SLOT(buffer, P.buffer.address) = PyLong_FromLong(0);
    SLOT(buffer, P.buffer.external) = Py_NewRef(Py_False);
    SLOT(buffer, P.buffer.image) = Py_NewRef(Py_None);
    SLOT(buffer, P.buffer.lent) = Py_NewRef(Py_False);
    SLOT(buffer, P.buffer.nbytes) = Py_NewRef(nbytes);
    SLOT(buffer, P.buffer.pending) = PyLong_FromLong(0);
    SLOT(buffer, P.buffer.root) = Py_NewRef(Py_None);
    SLOT(buffer, P.buffer.seen) = Py_NewRef(Py_False);
    SLOT(buffer, P.buffer.handle) = PyWeakref_NewRef(owner, NULL);
    if (SLOT(buffer, P.buffer.handle) == NULL) Py_CLEAR(buffer);
    return buffer;
}

PyObject *unmade_array(PyObject *strides, PyObject *shape, PyObject *dtype, PyObject *nbytes)
{
    PyObject *owner = K.owner->tp_alloc(K.owner, 0), *buffer = owner == NULL ? NULL : new_buffer(nbytes, owner);
    PyObject *region = buffer == NULL ? NULL : new_region(buffer, 0, strides, shape, dtype);
    PyObject *x = region == NULL ? NULL : K.ours->tp_alloc(K.ours, 0);
    if (x != NULL) {
        SLOT(owner, K.o.buffer) = Py_NewRef(buffer);
        SLOT(x, K.x.array) = Py_NewRef(Py_None);
        SLOT(x, K.x.base) = Py_NewRef(Py_None);
        SLOT(x, K.x.owner) = Py_NewRef(owner);
        SLOT(x, K.x.region) = Py_NewRef(region);
        SLOT(x, K.x.writeable) = Py_NewRef(Py_True);
    }
    Py_XDECREF(region);
    Py_XDECREF(buffer);
    Py_XDECREF(owner);
    return x;
}

/* Where an array lies in a buffer that nobody else reaches (borrowed); NULL, without an error: nowhere. */
PyObject *recordable(PyObject *x)
{
    PyObject *region = hot == NULL ? NULL : region_of(x);
    return region == NULL || SLOT(PyTuple_GET_ITEM(region, 0), P.buffer.external) != Py_False ? NULL : region;
}
