/* New Views of usual arguments, and slices of Views: `usual_views.init_usual`, `views.Subview`. */
#include "hot.h"

/* What Views of a shape and type have in common, in the order of what `usual_views.common_of` gives. */
enum { OF_DTYPE, OF_LAYOUT, OF_SPACE, OF_CODE, OF_PLAIN, OF_SIZE, OF_NBYTES, OF_STRIDES, OF_HELD, OF_ELEMENT, OF_SHAPE, OF_NDIM, COMMON };

/* Attributes of a View, in the order in which they are set: what refers to memory goes before the region when a View
   dies, so that the buffer is alone with it (see `ViewMemory._attach`). The last three a slice of a View has. */
enum {
    A_DTYPE, A_LAYOUT, A_SPACE, A_PLAIN, A_TRAIT, A_CODE, A_SIZE, A_HANDLE, A_MEMORY, A_ARRAY, A_GIVEN, A_LAST_ROW, A_REGION, A_SHAPE, A_NDIM,
    OF_VIEW, A_PARENT = OF_VIEW, A_BASE, A_SLICE, ATTRIBUTES
};
enum { TAKEN_OVER = A_TRAIT + 1 };  /* so many a slice has from its View */
static const char *const NAMES[ATTRIBUTES] = {
    "dtype", "layout", "space", "_plain", "trait", "_code", "size", "_handle", "_memory", "_array", "_given", "_last_row",
    "_region", "shape", "ndim", "parent_view", "base_view", "parent_slice",
};
enum { FLAGS = 3 << 16 };  /* `view_memory.FLAGS` */

enum { KNOWN = 256 };

static struct {
    PyObject *names[ATTRIBUTES];
    PyObject *defaults, *space_name, *uvm_name;
    PyObject *python, *known_of;          /* functions of `usual_views` */
    PyObject *real, *space, *layout, *trait, *no_row;
} V;

static struct {
    PyObject *dtype, *space, *uvm, *common;  /* of Defaults: space and uvm */
    Py_ssize_t rank;
    Py_ssize_t extents[MAX_RANK];
} known[KNOWN];

void forget_views(void)
{
    for (int n = 0; n < KNOWN; n++) {
        known[n].rank = 0;
        Py_CLEAR(known[n].dtype);
        Py_CLEAR(known[n].space);
        Py_CLEAR(known[n].uvm);
        Py_CLEAR(known[n].common);
    }
}

/* The extents of a list or a tuple of plain integers; the rank, or 0: they are something else. */
static Py_ssize_t extents_of(PyObject *shape, Py_ssize_t *extents)
{
    if (!PyList_CheckExact(shape) && !PyTuple_CheckExact(shape)) return 0;
    Py_ssize_t rank = Py_SIZE(shape);
    if (rank > MAX_RANK) return 0;
    PyObject *const *items = PySequence_Fast_ITEMS(shape);
    for (Py_ssize_t axis = 0; axis < rank; axis++) {
        int overflow;
        if (!PyLong_CheckExact(items[axis])) return 0;
        extents[axis] = PyLong_AsLongLongAndOverflow(items[axis], &overflow);
        if (overflow) return 0;
    }
    return rank;
}

/* What such Views have in common, borrowed; NULL: none were made. */
static PyObject *common_of(PyObject *dtype, Py_ssize_t rank, const Py_ssize_t *extents)
{
    PyObject *space = PyObject_GetAttr(V.defaults, V.space_name), *uvm = PyObject_GetAttr(V.defaults, V.uvm_name);
    PyObject *common = NULL, *shape = NULL;
    if (space == NULL || uvm == NULL) goto end;
    uint64_t hash = (uintptr_t)dtype >> 4;
    for (Py_ssize_t axis = 0; axis < rank; axis++) hash = (hash ^ extents[axis]) * 0x9E3779B97F4A7C15u;
    hash = (hash >> 32) & (KNOWN - 1);
    if (known[hash].rank == rank && known[hash].dtype == dtype && known[hash].space == space && known[hash].uvm == uvm &&
        memcmp(known[hash].extents, extents, rank * sizeof *extents) == 0) {
        common = known[hash].common;
        goto end;
    }
    shape = tuple_of(extents, rank);
    PyObject *found = shape == NULL ? NULL : PyObject_CallFunctionObjArgs(V.known_of, shape, dtype, NULL);
    if (found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == COMMON) {
        known[hash].rank = rank;
        memcpy(known[hash].extents, extents, rank * sizeof *extents);
        Py_XSETREF(known[hash].dtype, Py_NewRef(dtype));
        Py_XSETREF(known[hash].space, Py_NewRef(space));
        Py_XSETREF(known[hash].uvm, Py_NewRef(uvm));
        Py_XSETREF(known[hash].common, Py_NewRef(found));
        common = found;
    }
    Py_XDECREF(found);
end:
    Py_XDECREF(space);
    Py_XDECREF(uvm);
    Py_XDECREF(shape);
    return common;
}

static int set_all(PyObject *view, PyObject *const *values, int count)
{
    for (int n = 0; n < count; n++)
        if (PyObject_SetAttr(view, V.names[n], values[n]) < 0) return -1;
    return 0;
}

/* Sets what a View has, new memory included. */
static int fill(PyObject *view, PyObject *common)
{
#define COMMON_(which) PyTuple_GET_ITEM(common, which)
    PyObject *handle, *buffer = new_buffer(COMMON_(OF_NBYTES), &handle);
    PyObject *region = buffer == NULL ? NULL : new_region(buffer, PyLong_FromLong(0), Py_NewRef(COMMON_(OF_STRIDES)), Py_NewRef(COMMON_(OF_HELD)), COMMON_(OF_ELEMENT));
    PyObject *const values[OF_VIEW] = {
        [A_DTYPE] = COMMON_(OF_DTYPE), [A_LAYOUT] = COMMON_(OF_LAYOUT), [A_SPACE] = COMMON_(OF_SPACE), [A_CODE] = COMMON_(OF_CODE),
        [A_PLAIN] = COMMON_(OF_PLAIN), [A_SIZE] = COMMON_(OF_SIZE), [A_TRAIT] = V.trait, [A_HANDLE] = handle, [A_MEMORY] = Py_None,
        [A_ARRAY] = Py_None, [A_GIVEN] = Py_None, [A_LAST_ROW] = V.no_row, [A_REGION] = region, [A_SHAPE] = COMMON_(OF_SHAPE),
        [A_NDIM] = COMMON_(OF_NDIM),
    };
#undef COMMON_
    int failed = region == NULL || set_all(view, values, OF_VIEW) < 0;
    Py_XDECREF(handle);
    Py_XDECREF(buffer);
    Py_XDECREF(region);
    return failed ? -1 : 0;
}

/* init_usual(view, shape, dtype, space, layout, trait, array): whether the View is made; see `usual_views`. */
PyObject *init_usual(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t extents[MAX_RANK];
    if (count != 7 || V.python == NULL || !R.ready) {
        PyErr_SetString(PyExc_TypeError, "init_usual: other arguments");
        return NULL;
    }
    PyObject *dtype = args[2];
    Py_ssize_t rank = args[6] == Py_None && args[3] == V.space && args[4] == V.layout && args[5] == V.trait &&
                      Py_IS_TYPE(dtype, &PyType_Type) && dtype != V.real ? extents_of(args[1], extents) : 0;
    if (rank == 0) Py_RETURN_FALSE;
    if (SLOT(R.tracer, L.tracer.watch) == Py_None) {
        PyObject *common = common_of(dtype, rank, extents);
        if (common == NULL && PyErr_Occurred()) return NULL;
        if (common != NULL) {
            Py_INCREF(common);  /* a finalizer may forget it */
            int failed = fill(args[0], common);
            Py_DECREF(common);
            if (failed) return NULL;
            Py_RETURN_TRUE;
        }
    }
    return PyObject_Vectorcall(V.python, args, count, NULL);
}

/* ------------------------------------------------------------------ slices */

/* What a key selects of a region. */
typedef struct {
    Py_ssize_t offset, rank, size, extents[MAX_RANK], strides[MAX_RANK];
} Part;

/* One entry of a key, on an axis of that extent and stride: `indexing.full_key` and `basic_index` where it is a plain
   integer or a slice of such. NULL: something else, without an exception; or an error. */
static PyObject *take_axis(PyObject *entry, Py_ssize_t extent, Py_ssize_t stride, Part *part)
{
    if (PyLong_CheckExact(entry)) {
        int overflow;
        long long index = PyLong_AsLongLongAndOverflow(entry, &overflow);
        if (overflow || index >= extent || index < -extent) return NULL;  /* Python raises */
        index += index < 0 ? extent : 0;
        part->offset += index * stride;
        return PyLong_FromLongLong(index);
    }
    if (!PySlice_Check(entry)) return NULL;
    PySliceObject *slice = (PySliceObject *)entry;
    PyObject *const given[3] = {slice->start, slice->stop, slice->step};
    for (int n = 0; n < 3; n++)
        if (given[n] != Py_None && !PyLong_CheckExact(given[n])) return NULL;
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(entry, &start, &stop, &step) < 0 || step < -PY_SSIZE_T_MAX) {
        PyErr_Clear();
        return NULL;
    }
    Py_ssize_t length = PySlice_AdjustIndices(extent, &start, &stop, step);
    part->offset += length ? start * stride : 0;
    part->extents[part->rank] = length;
    part->strides[part->rank++] = stride * step;
    part->size *= length;
    PyObject *made = NULL, *ends[3] = {PyLong_FromSsize_t(start), PyLong_FromSsize_t(stop), PyLong_FromSsize_t(step)};
    if (ends[0] != NULL && ends[1] != NULL && ends[2] != NULL) made = PySlice_New(ends[0], ends[1], ends[2]);
    for (int n = 0; n < 3; n++) Py_XDECREF(ends[n]);
    return made;
}

/* `full_key(key, shape)`, and what it selects; NULL: unusual, or an error. */
static PyObject *take_all(PyObject *key, PyObject *region, Part *part)
{
    PyObject *shape = PyTuple_GET_ITEM(region, SHAPE), *strides = PyTuple_GET_ITEM(region, STRIDES);
    Py_ssize_t rank = PyTuple_GET_SIZE(shape);
    int several = PyTuple_CheckExact(key);
    if (rank == 0 || rank > MAX_RANK || (several ? PyTuple_GET_SIZE(key) : 1) != rank) return NULL;
    PyObject *full = PyTuple_New(rank);
    part->offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(region, OFFSET));
    part->rank = 0;
    part->size = 1;
    for (Py_ssize_t axis = 0; full != NULL && axis < rank; axis++) {
        PyObject *entry = several ? PyTuple_GET_ITEM(key, axis) : key;
        PyObject *made = take_axis(entry, PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis)), PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, axis)), part);
        if (made == NULL)
            Py_CLEAR(full);
        else
            PyTuple_SET_ITEM(full, axis, made);
    }
    if (part->size == 0) part->offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(region, OFFSET));
    return full;
}

/* A slice of a View, of those attributes. */
static PyObject *new_part(PyObject *view, PyObject *const *of_view, PyObject *old, PyObject *full, const Part *part)
{
    PyTypeObject *type = (PyTypeObject *)R.subview;
    PyObject *region = new_region(PyTuple_GET_ITEM(old, BUFFER), PyLong_FromSsize_t(part->offset), tuple_of(part->strides, part->rank),
                                  tuple_of(part->extents, part->rank), PyTuple_GET_ITEM(old, DTYPE));
    long flags = PyLong_AsLong(of_view[A_CODE]);
    PyObject *code = PyLong_FromLong(part->rank << 5 | (flags & 31) | (flags & FLAGS)), *size = PyLong_FromSsize_t(part->size);
    PyObject *rank = PyLong_FromSsize_t(part->rank), *made = NULL;
    if (region != NULL && code != NULL && size != NULL && rank != NULL) made = type->tp_alloc(type, 0);
    if (made != NULL) {
        PyObject *values[ATTRIBUTES] = {
            [A_CODE] = code, [A_SIZE] = size, [A_HANDLE] = of_view[A_HANDLE], [A_MEMORY] = Py_None, [A_ARRAY] = Py_None,
            [A_GIVEN] = Py_None, [A_LAST_ROW] = V.no_row, [A_REGION] = region, [A_SHAPE] = PyTuple_GET_ITEM(region, SHAPE),
            [A_NDIM] = rank, [A_PARENT] = view, [A_BASE] = of_view[A_BASE], [A_SLICE] = full,
        };
        memcpy(values, of_view, TAKEN_OVER * sizeof *values);
        if (set_all(made, values, ATTRIBUTES) < 0) Py_CLEAR(made);
    }
    Py_XDECREF(region);
    Py_XDECREF(code);
    Py_XDECREF(size);
    Py_XDECREF(rank);
    return made;
}

/* part_of(view, key): `Subview(view, key)` for a View or a slice of one, whose memory is ours, and a key of plain integers
   and slices for all axes; None: it is not that, and Python has to see to it. */
PyObject *part_of(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || V.python == NULL || !R.ready) {
        PyErr_SetString(PyExc_TypeError, "part_of: other arguments");
        return NULL;
    }
    PyObject *view = args[0], *type = (PyObject *)Py_TYPE(view), *values[ATTRIBUTES] = {NULL}, *made = NULL, *full = NULL;
    if (type != R.view && type != R.subview) Py_RETURN_NONE;
    static const int wanted[] = {A_DTYPE, A_LAYOUT, A_SPACE, A_PLAIN, A_TRAIT, A_CODE, A_HANDLE, A_REGION, A_SHAPE, A_BASE};
    int known = 1;
    for (size_t n = 0; n < sizeof wanted / sizeof *wanted && known; n++) {
        PyObject **value = &values[wanted[n]];
        *value = wanted[n] == A_BASE && type == R.view ? Py_NewRef(view) : PyObject_GetAttr(view, V.names[wanted[n]]);
        known = *value != NULL;
    }
    known = known && values[A_HANDLE] != Py_None && Py_TYPE(values[A_REGION]) == L.Region && PyTuple_CheckExact(values[A_SHAPE]);
    if (known && PyTuple_GET_SIZE(values[A_SHAPE]) > 0) {  /* a 0-D View has one element of memory */
        Part part;
        full = take_all(args[1], values[A_REGION], &part);
        if (full != NULL && part.rank > 0) made = new_part(view, values, values[A_REGION], full, &part);
    }
    for (int n = 0; n < ATTRIBUTES; n++) Py_XDECREF(values[n]);
    Py_XDECREF(full);
    if (made == NULL && !PyErr_Occurred()) Py_RETURN_NONE;
    return made;
}

/* bind_views(Defaults, python, known_of, real, space, layout, trait, no_row) */
PyObject *bind_views(PyObject *module, PyObject *args)
{
    PyObject *defaults, *python, *known_of, *real, *space, *layout, *trait, *no_row;
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &defaults, &python, &known_of, &real, &space, &layout, &trait, &no_row)) return NULL;
    if (V.python != NULL) Py_RETURN_NONE;
    for (int n = 0; n < ATTRIBUTES; n++)
        if ((V.names[n] = PyUnicode_InternFromString(NAMES[n])) == NULL) return NULL;
    V.space_name = PyUnicode_InternFromString("space");
    V.uvm_name = PyUnicode_InternFromString("uvm");
    Py_INCREF(args);  /* for good, as in `bind` */
    V.defaults = defaults;
    V.known_of = known_of;
    V.real = real;
    V.space = space;
    V.layout = layout;
    V.trait = trait;
    V.no_row = no_row;
    V.python = python;
    Py_RETURN_NONE;
}
