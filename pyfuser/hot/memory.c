/* Memory of Views that is small: made, taken and given without Python. See `trace.memory` and `trace.pool`.

What it keeps is in a dictionary of the pool, which Python takes from and gives to as well.
*/
#include "hot.h"

static struct {
    PyTypeObject *Handle, *Allocation, *Unmade, *ndarray;
    PyObject *small, *give;  /* `pool.SMALL`; `POOL.give` for larger blocks */
    PyObject *zero;
    Py_ssize_t smallest, sizes, count, each;
} M;

/* The blocks of a size, borrowed, or NULL. */
static PyObject *blocks_of(PyObject *nbytes)
{
    PyObject *blocks = PyDict_GetItemWithError(M.small, nbytes);
    if (blocks == NULL) PyErr_Clear();
    return blocks;
}

/* A buffer that gets memory has a finalizer from then on. */
void has_memory(PyObject *buffer)
{
    if (M.small == NULL || Py_TYPE(buffer) != M.Unmade) return;
    Py_SET_TYPE(buffer, (PyTypeObject *)Py_NewRef(M.Allocation));
    Py_DECREF(M.Unmade);
}

/* Whether a buffer is one of ours that has got memory. */
int is_allocation(PyObject *buffer)
{
    return M.small != NULL && Py_TYPE(buffer) == M.Allocation;
}

/* `Region.allocate(box)` of a buffer without memory, from a block that is kept. 0: left to Python. */
int take_block(PyObject *region, PyObject *box)
{
    PyObject *buffer = PyTuple_GET_ITEM(region, BUFFER), *nbytes = SLOT(buffer, L.buffer.nbytes);
    if (M.small == NULL || SLOT(buffer, L.buffer.image) != Py_None) return 0;
    if (Py_TYPE(buffer) != M.Allocation && Py_TYPE(buffer) != M.Unmade) return 0;
    PyObject *blocks = blocks_of(nbytes);
    Py_ssize_t last = blocks == NULL ? 0 : PyList_GET_SIZE(blocks);
    if (last == 0) return 0;
    PyObject *block = Py_NewRef(PyList_GET_ITEM(blocks, last - 1)), *address = NULL;
    Py_buffer view;
    int done = PyList_SetSlice(blocks, last - 1, last, NULL) == 0 &&
               PyObject_GetBuffer(block, &view, PyBUF_WRITABLE) == 0;
    if (done) {
        if (view.len == PyLong_AsLongLong(nbytes)) address = PyLong_FromVoidPtr(view.buf);
        if (address != NULL) zero_rest(region, box, view.len, view.buf);
        PyBuffer_Release(&view);
    }
    if (address == NULL) {
        PyErr_Clear();
        Py_DECREF(block);
        return 0;
    }
    has_memory(buffer);
    Py_XSETREF(SLOT(buffer, L.buffer.address), address);
    Py_XSETREF(SLOT(buffer, L.buffer.root), block);
    return 1;
}

/* `pool.keep`. */
static int keep(PyObject *block, PyObject *nbytes)
{
    PyObject *blocks = blocks_of(nbytes);
    if (blocks == NULL) {
        if (PyDict_GET_SIZE(M.small) >= M.sizes) PyDict_Clear(M.small);
        blocks = PyList_New(0);
        if (blocks == NULL || PyDict_SetItem(M.small, nbytes, blocks) < 0) {
            Py_XDECREF(blocks);
            return -1;
        }
        Py_DECREF(blocks);
    }
    Py_ssize_t count = PyList_GET_SIZE(blocks);
    return count < M.count && count * PyLong_AsSsize_t(nbytes) < M.each ? PyList_Append(blocks, block) : 0;
}

/* `Allocation.__del__`. */
static void died(PyObject *buffer)
{
    PyObject *root = SLOT(buffer, L.buffer.root), *nbytes = SLOT(buffer, L.buffer.nbytes);
    if (root == NULL || root == Py_None || Py_REFCNT(root) != 1 || nbytes == NULL || at_exit()) return;
    if (SLOT(buffer, L.buffer.external) != Py_False || SLOT(buffer, L.buffer.lent) != Py_False) return;
    if (Py_TYPE(root) != M.ndarray) return;
    PyObject *kind, *error, *traceback, *done = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    Py_ssize_t size = PyObject_Size(root);
    if (size >= M.smallest)
        done = PyObject_CallOneArg(M.give, root);
    else if (size == PyLong_AsSsize_t(nbytes))
        keep(root, nbytes);
    Py_XDECREF(done);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(buffer);
    PyErr_Restore(kind, error, traceback);
}

/* `Allocation(nbytes, Handle())`, and the handle: new references. */
PyObject *new_buffer(PyObject *nbytes, PyObject **handle)
{
    *handle = M.Handle->tp_alloc(M.Handle, 0);
    PyObject *watched = *handle == NULL ? NULL : PyWeakref_NewRef(*handle, NULL);
    PyObject *buffer = watched == NULL ? NULL : M.Unmade->tp_alloc(M.Unmade, 0);
    if (buffer == NULL) {
        Py_XDECREF(watched);
        Py_CLEAR(*handle);
        return NULL;
    }
    SLOT(buffer, L.buffer.handle) = watched;
    SLOT(buffer, L.buffer.nbytes) = Py_NewRef(nbytes);
    SLOT(buffer, L.buffer.address) = Py_NewRef(M.zero);
    SLOT(buffer, L.buffer.pending) = Py_NewRef(M.zero);
    SLOT(buffer, L.buffer.root) = Py_NewRef(Py_None);
    SLOT(buffer, L.buffer.image) = Py_NewRef(Py_None);
    SLOT(buffer, L.buffer.exports) = Py_NewRef(Py_None);
    SLOT(buffer, L.buffer.external) = Py_NewRef(Py_False);
    SLOT(buffer, L.buffer.lent) = Py_NewRef(Py_False);
    SLOT(buffer, L.buffer.seen) = Py_NewRef(Py_False);
    return buffer;
}

/* A tuple of numbers. */
PyObject *tuple_of(const Py_ssize_t *numbers, Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t n = 0; made != NULL && n < count; n++) {
        PyObject *number = PyLong_FromSsize_t(numbers[n]);
        if (number == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, n, number);
    }
    return made;
}

/* A region; takes over the offset, strides and shape. NULL with an exception, also if one of them is. */
PyObject *new_region(PyObject *buffer, PyObject *offset, PyObject *strides, PyObject *shape, PyObject *dtype)
{
    int known = offset != NULL && strides != NULL && shape != NULL;
    PyObject *region = known ? L.Region->tp_alloc(L.Region, 5) : NULL;
    if (region == NULL) {
        Py_XDECREF(offset);
        Py_XDECREF(strides);
        Py_XDECREF(shape);
        return NULL;
    }
    PyTuple_SET_ITEM(region, BUFFER, Py_NewRef(buffer));
    PyTuple_SET_ITEM(region, OFFSET, offset);
    PyTuple_SET_ITEM(region, STRIDES, strides);
    PyTuple_SET_ITEM(region, SHAPE, shape);
    PyTuple_SET_ITEM(region, DTYPE, Py_NewRef(dtype));
    return region;
}

/* bind_memory(Handle, Allocation, Unmade, ndarray, small, give, (smallest, sizes, count, each)) */
PyObject *bind_memory(PyObject *module, PyObject *args)
{
    PyTypeObject *Handle, *Allocation, *Unmade, *ndarray;
    PyObject *small, *give;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O(nnnn)", &PyType_Type, &Handle, &PyType_Type, &Allocation, &PyType_Type, &Unmade,
                          &PyType_Type, &ndarray, &PyDict_Type, &small, &give, &M.smallest, &M.sizes, &M.count, &M.each))
        return NULL;
    if (!L.bound) {
        PyErr_SetString(PyExc_RuntimeError, "bind_memory: before bind");
        return NULL;
    }
    if (M.small != NULL) Py_RETURN_NONE;
    M.zero = PyLong_FromLong(0);
    M.Handle = (PyTypeObject *)Py_NewRef(Handle);  /* for good, as in `bind` */
    M.Allocation = (PyTypeObject *)Py_NewRef(Allocation);
    M.Unmade = (PyTypeObject *)Py_NewRef(Unmade);
    M.ndarray = (PyTypeObject *)Py_NewRef(ndarray);
    M.give = Py_NewRef(give);
    M.small = Py_NewRef(small);
    Allocation->tp_finalize = died;
    Py_RETURN_NONE;
}
