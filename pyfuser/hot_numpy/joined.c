/* Arrays joined along an axis, each part a copy that is recorded: what frontends/numpy/rearranged.py does. */
#include "array.h"
#include <string.h>

enum { AXES = 8, MOST_PARTS = 32 };

/* A result: the extents along each axis, and which one the parts are joined along; stacked: whether that is new. */
typedef struct {
    Py_ssize_t extents[AXES];
    int rank, axis, stacked;
} Whole;

static Py_ssize_t extent_at(PyObject *region, Py_ssize_t axis) { return PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(region, 3), axis)); }

static Py_ssize_t rank_of(PyObject *region) { return PyTuple_GET_SIZE(PyTuple_GET_ITEM(region, 3)); }

/* As layout.is_c_order. */
static int is_row_major(PyObject *region)
{
    Py_ssize_t step = 0;
    for (Py_ssize_t n = rank_of(region) - 1; n >= 0; n--) {
        Py_ssize_t extent = extent_at(region, n), stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(region, 2), n));
        if (extent <= 1) continue;
        if (stride < step || stride <= 0) return 0;
        step = stride * extent;
    }
    return 1;
}

/* Whether such a call is recorded, as record.is_due has it. */
static int is_due(PyObject *const *parts, Py_ssize_t count)
{
    Py_ssize_t size = 0, most = lazy_from(0);
    int pending = 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        if (!IS_OURS(parts[n])) return 0;
        pending |= is_pending(parts[n]);
        size += elements_of(parts[n]);
    }
    return pending || size >= limit(0) || (size >= most && is_caller_ripe(size));
}

/* Which axis of the result the parts are joined along, which have `rank` axes; -1: Python sees to it. */
static int axis_of(const char *how, PyObject *given, Py_ssize_t rank, int *stacked)
{
    *stacked = strcmp(how, "stack") == 0 || (rank == 1 && (strcmp(how, "vstack") == 0 || strcmp(how, "column_stack") == 0));
    if (strcmp(how, "vstack") == 0) return given == NULL ? 0 : -1;
    if (strcmp(how, "column_stack") == 0) return given == NULL ? 1 : -1;
    if (strcmp(how, "hstack") == 0) return given != NULL ? -1 : rank > 1;
    Py_ssize_t axis = given == NULL ? 0 : PyLong_CheckExact(given) ? PyLong_AsSsize_t(given) : -AXES - 1;
    rank += *stacked;
    axis += axis < 0 ? rank : 0;
    return axis < 0 || axis >= rank ? -1 : (int)axis;
}

/* Find what is made of parts; 0: Python sees to it. */
static int measure(Whole *whole, const char *how, PyObject *axis, PyObject *const *parts, PyObject **regions, Py_ssize_t count)
{
    for (Py_ssize_t n = 0; n < count; n++) {
        regions[n] = recordable(parts[n]);
        if (regions[n] == NULL || PyTuple_GET_ITEM(regions[n], 4) != PyTuple_GET_ITEM(regions[0], 4)) return 0;
        if (rank_of(regions[n]) != rank_of(regions[0]) || !is_row_major(regions[n])) return 0;
    }
    Py_ssize_t rank = rank_of(regions[0]), own = 0;
    if (!rank || rank >= AXES) return 0;
    whole->axis = axis_of(how, axis, rank, &whole->stacked);
    whole->rank = (int)rank + whole->stacked;
    if (whole->axis < 0) return 0;
    for (int n = 0; n < whole->rank; n++) {
        whole->extents[n] = whole->stacked && n == whole->axis ? count : extent_at(regions[0], own++);
        if (whole->extents[n] < 1) return 0;
    }
    for (Py_ssize_t n = 1; n < count; n++)
        for (int at = 0, in = 0; at < whole->rank; at++) {
            if (whole->stacked && at == whole->axis) continue;
            Py_ssize_t extent = extent_at(regions[n], in++);
            if (at == whole->axis) whole->extents[at] += extent;
            if (extent < 1 || (at != whole->axis && extent != whole->extents[at])) return 0;
        }
    return 1;
}

/* A new array in row-major order of the parts' type. */
static PyObject *made(const Whole *whole, PyObject *dtype)
{
    PyObject *width = PyObject_GetAttrString(dtype, "size");
    Py_ssize_t step = width == NULL ? 0 : PyLong_AsSsize_t(width);
    Py_XDECREF(width);
    PyObject *shape = PyTuple_New(whole->rank), *strides = PyTuple_New(whole->rank);
    for (int n = whole->rank - 1; n >= 0 && shape != NULL && strides != NULL; n--) {
        PyTuple_SET_ITEM(shape, n, PyLong_FromSsize_t(whole->extents[n]));
        PyTuple_SET_ITEM(strides, n, PyLong_FromSsize_t(step));
        if (__builtin_mul_overflow(step, whole->extents[n], &step)) Py_CLEAR(shape);
    }
    PyObject *nbytes = shape == NULL || strides == NULL ? NULL : PyLong_FromSsize_t(step);
    PyObject *found = nbytes == NULL || PyErr_Occurred() ? NULL : unmade_array(strides, shape, dtype, nbytes);
    Py_XDECREF(nbytes);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return found;
}

/* Where a part goes: our view of the result. */
static PyObject *room_for(const Whole *whole, PyObject *result, Py_ssize_t at, Py_ssize_t extent)
{
    PyObject *key = PyTuple_New(whole->axis + 1), *all = PySlice_New(NULL, NULL, NULL);
    for (int n = 0; key != NULL && all != NULL && n < whole->axis; n++) PyTuple_SET_ITEM(key, n, Py_NewRef(all));
    PyObject *from = PyLong_FromSsize_t(at), *until = PyLong_FromSsize_t(at + extent);
    PyObject *entry = from == NULL || until == NULL ? NULL : whole->stacked ? Py_NewRef(from) : PySlice_New(from, until, NULL);
    PyObject *found = NULL;
    if (key != NULL && all != NULL && entry != NULL) {
        PyTuple_SET_ITEM(key, whole->axis, Py_NewRef(entry));
        found = part_of_region(result, key);
    }
    Py_XDECREF(entry);
    Py_XDECREF(from);
    Py_XDECREF(until);
    Py_XDECREF(key);
    Py_XDECREF(all);
    return found;
}

/* `np.concatenate(arrays, axis)` and the like, recorded (a new reference); NULL, without an error: not by this.
   *due: whether Python is to record it then. */
PyObject *joined(const char *how, PyObject *arrays, PyObject *axis, int *due)
{
    *due = 0;
    if (!PyList_CheckExact(arrays) && !PyTuple_CheckExact(arrays)) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(arrays);
    if (!count || count > MOST_PARTS || SLOT(K.use, K.u.devices) == Py_True) return NULL;
    PyObject *parts[MOST_PARTS], *regions[MOST_PARTS] = {NULL}, *result = NULL;
    for (Py_ssize_t n = 0; n < count; n++) parts[n] = Py_NewRef(PySequence_Fast_GET_ITEM(arrays, n));
    Whole whole;
    *due = is_due(parts, count);
    if (*due && measure(&whole, how, axis, parts, regions, count)) result = made(&whole, PyTuple_GET_ITEM(regions[0], 4));
    for (Py_ssize_t n = 0, at = 0; result != NULL && n < count; n++) {
        Py_ssize_t extent = whole.stacked ? 1 : extent_at(SLOT(parts[n], K.x.region), whole.axis);
        PyObject *room = room_for(&whole, result, at, extent);
        if (room == NULL || record_part(parts[n], room) < 0) Py_CLEAR(result);
        Py_XDECREF(room);
        at += extent;
    }
    for (Py_ssize_t n = 0; n < count; n++) Py_DECREF(parts[n]);
    return result;
}
