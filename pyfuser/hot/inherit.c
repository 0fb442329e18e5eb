/* Memory that goes from one launch to a later one, inside a flush: see `runtime.lifetimes`.

It changes hands right before the kernel that needs it: what was there has no reader then, and nothing
of Python runs before that kernel does. What the kernel does not overwrite is zeroed, as in
`trace.memory.Region.allocate`.
*/
#include "hot.h"

/* A strided box of elements. */
typedef struct {
    int64_t low[MAX_RANK], high[MAX_RANK], stride[MAX_RANK];
    Py_ssize_t rank;
    int64_t size;  /* of an element */
} Cells;

/* The same elements of many rows: of the edges of a grid, that is one of each. */
static void zero_rows(char *at, int64_t rows, int64_t stride, int64_t bytes)
{
    for (int64_t n = 0; n < rows; n++, at += stride) {
        __builtin_prefetch(at + 16 * stride, 1);
        if (bytes == 8)
            memset(at, 0, 8);  /* a store, where the size is a constant */
        else if (bytes == 4)
            memset(at, 0, 4);
        else
            memset(at, 0, bytes);
    }
}

static void zero(const Cells *cells, Py_ssize_t axis, char *at)
{
    if (axis == cells->rank) {
        memset(at, 0, cells->size);
        return;
    }
    int64_t low = cells->low[axis], high = cells->high[axis], stride = cells->stride[axis];
    if (low >= high) return;
    if (axis == cells->rank - 1 && stride == cells->size) {
        memset(at + low * stride, 0, (high - low) * stride);
        return;
    }
    Py_ssize_t last = cells->rank - 1;
    int64_t bytes = (cells->high[last] - cells->low[last]) * cells->size;
    if (axis == last - 1 && cells->stride[last] == cells->size && bytes > 0) {
        zero_rows(at + low * stride + cells->low[last] * cells->size, high - low, stride, bytes);
        return;
    }
    for (int64_t n = low; n < high; n++) zero(cells, axis + 1, at + n * stride);
}

/* Zeroes all elements outside of a box: slabs of one axis after the other. */
static void zero_around(Cells *cells, const int64_t *begin, const int64_t *end, char *at)
{
    for (Py_ssize_t axis = 0; axis < cells->rank; axis++) {
        int64_t extent = cells->high[axis];
        cells->high[axis] = begin[axis];
        if (begin[axis] > cells->low[axis]) zero(cells, 0, at);  /* else it would walk along all axes before this one */
        cells->low[axis] = end[axis];
        cells->high[axis] = extent;
        if (extent > end[axis]) zero(cells, 0, at);
        cells->low[axis] = begin[axis];
        cells->high[axis] = end[axis];
    }
}

/* Numbers of a tuple. */
static int numbers_of(PyObject *tuple, Py_ssize_t count, int64_t *numbers)
{
    int overflow = 0, any = 0;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) return 0;
    for (Py_ssize_t n = 0; n < count; n++, any |= overflow)
        numbers[n] = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(tuple, n), &overflow);
    return !any;
}

/* The elements of a region, and the box of it that is overwritten; 0: all has to be zeroed. */
static int parts(PyObject *region, PyObject *box, int64_t bytes, Cells *cells, int64_t *begin, int64_t *end)
{
    PyObject *shape = PyTuple_GET_ITEM(region, SHAPE);
    int dtype = dtype_number(PyTuple_GET_ITEM(region, DTYPE));
    cells->rank = PyTuple_GET_SIZE(shape);
    if (!PyTuple_Check(box) || dtype < 0 || cells->rank > MAX_RANK ||
        !numbers_of(shape, cells->rank, cells->high) ||
        !numbers_of(PyTuple_GET_ITEM(region, STRIDES), cells->rank, cells->stride) ||
        !numbers_of(PyTuple_GET_ITEM(box, 0), cells->rank, begin) ||
        !numbers_of(PyTuple_GET_ITEM(box, 1), cells->rank, end))
        return 0;
    cells->size = L.sizes[dtype];
    int64_t whole = cells->size;
    for (Py_ssize_t axis = 0; axis < cells->rank; axis++) {
        int64_t extent = cells->high[axis];
        if (begin[axis] < 0 || end[axis] < begin[axis] || end[axis] > extent) return 0;
        whole *= extent;
        cells->low[axis] = 0;
    }
    return whole == bytes;
}

/* `transform.overwrites.box_of`. */
PyObject *box_of(PyObject *axes, PyObject *space, PyObject *region)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(axes);
    PyObject *begin = PyTuple_New(rank), *end = PyTuple_New(rank), *box = NULL;
    for (Py_ssize_t k = 0; begin != NULL && end != NULL && k < rank; k++) {
        Py_ssize_t axis = PyLong_AsSsize_t(PyTuple_GET_ITEM(axes, k));
        PyObject *low = axis < 0 ? PyLong_FromLong(0) : Py_NewRef(PyTuple_GET_ITEM(PyTuple_GET_ITEM(space, 0), axis));
        PyObject *high = PyTuple_GET_ITEM(axis < 0 ? PyTuple_GET_ITEM(region, SHAPE) : PyTuple_GET_ITEM(space, 1),
                                          axis < 0 ? k : axis);
        PyTuple_SET_ITEM(begin, k, low);
        PyTuple_SET_ITEM(end, k, Py_NewRef(high));
    }
    if (begin != NULL && end != NULL) box = PyTuple_Pack(2, begin, end);
    Py_XDECREF(begin);
    Py_XDECREF(end);
    return box;
}

/* Zeroes what a box leaves of a region; all, where it is not known to be the whole buffer or there is no box. */
void zero_rest(PyObject *region, PyObject *box, int64_t bytes, char *at)
{
    int64_t begin[MAX_RANK], end[MAX_RANK];
    Cells cells;
    if (!parts(region, box, bytes, &cells, begin, end))
        memset(at, 0, bytes);
    else
        zero_around(&cells, begin, end, at + PyLong_AsLongLong(PyTuple_GET_ITEM(region, OFFSET)));
}

static PyObject *buffer_of(const Data *data, int call, int place)
{
    return PyTuple_GET_ITEM(argument_of(data, call, place), BUFFER);
}

/* Whether a buffer that has no memory will get that of another one. */
int inherits(const Patch *patch, const Data *data)
{
    if (patch->heir_call < 0) return 0;
    PyObject *buffer = buffer_of(data, patch->call, patch->place);
    PyObject *before = buffer_of(data, patch->heir_call, patch->heir_place);
    return before != buffer && SLOT(before, L.buffer.external) == Py_False &&
           SLOT(before, L.buffer.lent) == Py_False &&
           PyLong_AsLongLong(SLOT(buffer, L.buffer.nbytes)) == PyLong_AsLongLong(SLOT(before, L.buffer.nbytes));
}

/* Gives a step the memory that it inherits. 0: it is not there, and Python has to see to it. */
int inherit(const Step *step, const Data *data)
{
    for (int rest = 0; rest < 2; rest++)  /* first what the kernel overwrites, as in `allocate` */
        for (Py_ssize_t k = 0; k < step->patches; k++) {
            const Patch *patch = &step->patch[k];
            if (patch->kind != POINTER_SLOT || patch->heir_call < 0 || (patch->box == Py_None) != rest) continue;
            PyObject *region = argument_of(data, patch->call, patch->place);
            PyObject *buffer = PyTuple_GET_ITEM(region, BUFFER);
            if (SLOT(buffer, L.buffer.root) != Py_None) continue;
            PyObject *before = buffer_of(data, patch->heir_call, patch->heir_place);
            int64_t bytes = PyLong_AsLongLong(SLOT(buffer, L.buffer.nbytes));
            if (SLOT(before, L.buffer.root) == Py_None || !inherits(patch, data)) return 0;
            char *at = (char *)(intptr_t)PyLong_AsLongLong(SLOT(before, L.buffer.address));
            Py_XSETREF(SLOT(buffer, L.buffer.address), Py_NewRef(SLOT(before, L.buffer.address)));
            Py_XSETREF(SLOT(buffer, L.buffer.root), Py_NewRef(SLOT(before, L.buffer.root)));
            has_memory(buffer);
            zero_rest(region, patch->box, bytes, at);
        }
    return 1;
}

/* zero_around(memory, region, box): zeroes what a box leaves of a region, all of a buffer; False: left to Python. */
PyObject *hot_zero_around(PyObject *module, PyObject *args)
{
    PyObject *memory, *region, *box;
    Py_buffer view;
    Cells cells;
    int64_t begin[MAX_RANK], end[MAX_RANK];
    if (!PyArg_ParseTuple(args, "OO!O!", &memory, &PyTuple_Type, &region, &PyTuple_Type, &box)) return NULL;
    if (!L.bound || PyTuple_GET_SIZE(region) != 5 || PyTuple_GET_SIZE(box) != 2) Py_RETURN_FALSE;
    if (PyLong_AsLongLong(PyTuple_GET_ITEM(region, OFFSET)) != 0) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    if (PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE) < 0) return NULL;
    int known = parts(region, box, view.len, &cells, begin, end);
    int64_t room = cells.size;
    for (Py_ssize_t axis = 0; known && axis < cells.rank; axis++) {  /* from the first element to behind the last */
        known = cells.stride[axis] >= 0;
        room += (cells.high[axis] - 1) * cells.stride[axis];
    }
    if (known && view.len) known = room <= view.len;
    if (known) zero_around(&cells, begin, end, view.buf);
    PyBuffer_Release(&view);
    return PyBool_FromLong(known);
}
