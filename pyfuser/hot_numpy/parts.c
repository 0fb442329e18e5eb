/* Basic subscripts of an array, whether it has memory yet or not: what NumPy makes of shape and strides. */
#include "array.h"

enum { AXES = 32 };

typedef struct {
    Py_ssize_t offset, extents[AXES], strides[AXES];
    int rank;
} Part;

static int put_axis(Part *part, Py_ssize_t extent, Py_ssize_t stride)
{
    if (part->rank == AXES || !extent) return 0;
    part->extents[part->rank] = extent;
    part->strides[part->rank++] = stride;
    return 1;
}

/* Whether a part of a slice is no object that would be asked for its number, which NumPy does once. */
static int is_number(PyObject *x) { return x == Py_None || PyLong_CheckExact(x) || PyObject_TypeCheck(x, K.integer); }

/* One entry of a key on an axis; 0: it is Python's to see to, or an error. */
static int put_entry(Part *part, PyObject *entry, Py_ssize_t extent, Py_ssize_t stride)
{
    if (PySlice_Check(entry)) {
        Py_ssize_t start, stop, step;
        const PySliceObject *slice = (PySliceObject *)entry;
        if (!is_number(slice->start) || !is_number(slice->stop) || !is_number(slice->step)) return 0;
        if (PySlice_Unpack(entry, &start, &stop, &step) < 0) return 0;
        Py_ssize_t count = PySlice_AdjustIndices(extent, &start, &stop, step);
        part->offset += start * stride;
        return put_axis(part, count, stride * step);
    }
    Py_ssize_t at;
    if (!put_index(entry, &at)) return 0;
    at += at < 0 ? extent : 0;
    part->offset += at * stride;
    return at >= 0 && at < extent;
}

/* The part that a key selects of an array; 0: as for one entry. */
static int put_all(Part *part, PyObject *key, int rank, const Py_ssize_t *extents, const Py_ssize_t *strides)
{
    const int tuple = PyTuple_CheckExact(key);
    PyObject *const *entries = tuple ? &PyTuple_GET_ITEM(key, 0) : &key;
    Py_ssize_t count = tuple ? PyTuple_GET_SIZE(key) : 1, axis = 0, given = 0;
    int dots = 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        given += entries[n] != Py_None && entries[n] != Py_Ellipsis;
        dots += entries[n] == Py_Ellipsis;
    }
    if (given > rank || dots > 1) return 0;
    for (Py_ssize_t n = 0; n <= count; n++) {
        int end = n == count;
        Py_ssize_t skipped = (end && !dots) || (!end && entries[n] == Py_Ellipsis) ? rank - given : 0;
        for (; skipped > 0; skipped--, axis++)
            if (!put_axis(part, extents[axis], strides[axis])) return 0;
        if (end || entries[n] == Py_Ellipsis) continue;
        if (entries[n] == Py_None) {
            if (!put_axis(part, 1, 0)) return 0;
            continue;
        }
        if (!put_entry(part, entries[n], extents[axis], strides[axis])) return 0;
        axis++;
    }
    return 1;
}

PyObject *tuple_of(const Py_ssize_t *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int n = 0; tuple != NULL && n < count; n++) {
        PyObject *number = PyLong_FromSsize_t(numbers[n]);
        if (number == NULL) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, n, number);
    }
    return tuple;
}

/* As wrap.view: our array of a part that lies in the region of another; NULL without an error: not by this. */
static PyObject *view_of(PyObject *x, const Part *part)
{
    PyObject *region = SLOT(x, K.x.region), *owner = SLOT(x, K.x.owner);
    PyObject *shape = tuple_of(part->extents, part->rank), *strides = tuple_of(part->strides, part->rank);
    PyObject *lies = shape == NULL || strides == NULL
        ? NULL : new_region(PyTuple_GET_ITEM(region, 0), part->offset, strides, shape, PyTuple_GET_ITEM(region, 4));
    PyObject *found = lies == NULL ? NULL : K.ours->tp_alloc(K.ours, 0);
    if (found != NULL) {
        PyObject *base = SLOT(x, K.x.base), *writeable = SLOT(x, K.x.writeable);
        SLOT(found, K.x.array) = Py_NewRef(Py_None);
        SLOT(found, K.x.base) = Py_NewRef(base == NULL || base == Py_None ? x : base);
        SLOT(found, K.x.owner) = Py_NewRef(owner);
        SLOT(found, K.x.region) = Py_NewRef(lies);
        SLOT(found, K.x.writeable) = Py_NewRef(writeable == NULL ? Py_True : writeable);
    }
    Py_XDECREF(lies);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    PyErr_Clear();
    return found;
}

/* Where an array lies in its buffer, if that is known and somebody owns it (borrowed). */
static PyObject *owned_region(PyObject *x)
{
    PyObject *region = SLOT(x, K.x.region), *owner = SLOT(x, K.x.owner);
    return region == NULL || region == Py_None || owner == NULL || owner == Py_None ? NULL : region;
}

/* The whole of a region; 0: it has too many axes, or no elements. */
static int put_whole(Part *part, PyObject *region)
{
    PyObject *shape = PyTuple_GET_ITEM(region, 3), *strides = PyTuple_GET_ITEM(region, 2);
    part->offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(region, 1));
    part->rank = 0;
    for (Py_ssize_t axis = 0; axis < PyTuple_GET_SIZE(shape); axis++)
        if (!put_axis(part, PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis)), PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, axis)))) return 0;
    return part->rank > 0;
}

/* As wrap.view of a part that is no element and not empty: ours (a new reference), or NULL without an
   error. */
PyObject *part_of_region(PyObject *x, PyObject *key)
{
    PyObject *region = owned_region(x);
    Part whole, part;
    if (region == NULL || !put_whole(&whole, region)) return NULL;
    part.offset = whole.offset;
    part.rank = 0;
    if (!put_all(&part, key, whole.rank, whole.extents, whole.strides) || !part.rank) {
        PyErr_Clear();  /* it comes again */
        return NULL;
    }
    return view_of(x, &part);
}

/* The part of an array of NumPy's that is no element and not empty, as NumPy's subscript gives it (a new
   reference); NULL, without an error: NumPy is to find it, or it has more than `most` elements. */
PyObject *part_of_array(PyObject *array, PyObject *key, Py_ssize_t most)
{
    const Numpys *whole = (Numpys *)array;
    Part part;  /* its axes are set as they are found */
    part.offset = part.rank = 0;
    if (!Py_IS_TYPE(array, K.numpys) || new_numpys == NULL) return NULL;
    if (!put_all(&part, key, whole->nd, whole->dimensions, whole->strides) || !part.rank) {
        PyErr_Clear();  /* it comes again */
        return NULL;
    }
    for (int n = 0; n < part.rank; n++) most /= part.extents[n];
    if (!most) return NULL;
    Py_INCREF(whole->descr);  /* stolen, as the array is next */
    PyObject *made = new_numpys(K.numpys, whole->descr, part.rank, part.extents, part.strides, whole->data + part.offset, whole->flags, NULL);
    if (made != NULL && set_base((Numpys *)made, Py_NewRef(array)) < 0) Py_CLEAR(made);
    return made;
}

/* Give axes of `extents` elements to a part whose elements lie one after the other; 0: it cannot have them. */
static int put_extents(Part *part, PyObject *const *extents, Py_ssize_t count)
{
    Py_ssize_t step = part->strides[part->rank - 1], size = 1, known = 1, free = -1, wide = step;
    for (int axis = part->rank - 1; axis >= 0; axis--) {
        if (part->extents[axis] > 1 && part->strides[axis] != wide) return 0;
        size *= part->extents[axis];
        wide *= part->extents[axis];
    }
    if (!count || count > AXES || part->extents[part->rank - 1] == 1) return 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        if (!PyLong_CheckExact(extents[n])) return 0;
        Py_ssize_t extent = part->extents[n] = PyLong_AsSsize_t(extents[n]);
        if (extent == -1 && free < 0) free = n;
        else if (extent < 1 || __builtin_mul_overflow(known, extent, &known)) return 0;
    }
    if (free >= 0) part->extents[free] = size / known;
    if (free >= 0 ? size % known : size != known) return 0;
    part->rank = (int)count;
    for (int axis = part->rank - 1; axis >= 0; axis--) {
        part->strides[axis] = step;
        step *= part->extents[axis];
    }
    return 1;
}

/* `x.reshape(extents)` that copies nothing. */
PyObject *reshaped(PyObject *x, PyObject *const *args, Py_ssize_t count)
{
    PyObject *region = owned_region(x);
    int tuple = count == 1 && PyTuple_CheckExact(args[0]);
    Part part;
    if (region == NULL || !put_whole(&part, region)
        || !put_extents(&part, tuple ? &PyTuple_GET_ITEM(args[0], 0) : args, tuple ? PyTuple_GET_SIZE(args[0]) : count)) {
        PyErr_Clear();  /* it comes again */
        return NULL;
    }
    return view_of(x, &part);
}

/* `x.T`. */
PyObject *reversed(PyObject *x)
{
    PyObject *region = owned_region(x);
    Part part;
    if (region == NULL || !put_whole(&part, region)) {
        PyErr_Clear();
        return NULL;
    }
    for (int one = 0, other = part.rank - 1; one < other; one++, other--) {
        Py_ssize_t extent = part.extents[one], stride = part.strides[one];
        part.extents[one] = part.extents[other], part.strides[one] = part.strides[other];
        part.extents[other] = extent, part.strides[other] = stride;
    }
    return view_of(x, &part);
}
