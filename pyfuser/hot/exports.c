/* Memory of ours in the hands of others: `trace.exports.Export`, and what `View.data` returns of the usual kind.

Python does what is not usual, and all of it where there are other threads: what it looks at under
`exports.LOCK` nobody may change in between.
*/
#include "hot.h"

typedef struct {
    PyObject_HEAD
    PyObject *owner, *buffer;      /* an array; a weak reference, or None */
    PyObject *address, *on_tuple;  /* of `as_data`, or NULL */
    char *memory;
    Py_ssize_t nbytes;
} Export;

static struct {
    PyObject *python, *why;  /* the getter of `ViewMemory.data`, and the reason of its flushes */
    PyObject *descrs;        /* NumPy's, of each dtype */
    PyObject *array, *given;  /* names */
    PyObject *(*new_array)(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
    int (*set_base)(PyObject *, PyObject *);
} X;

/* PyArray_NewFromDescr and PyArray_SetBaseObject, by their places in the table of NumPy's C API, which never change. */
enum { NEW_FROM_DESCR = 94, SET_BASE = 282, ALIGNED = 0x100, WRITEABLE = 0x400 };

static void set_bool(PyObject *buffer, Py_ssize_t where, PyObject *value)
{
    Py_XSETREF(SLOT(buffer, where), Py_NewRef(value));
}

/* ------------------------------------------------------------------ exports */

/* Takes over the weak reference. */
static PyObject *new_export(PyTypeObject *type, PyObject *owner, PyObject *reference)
{
    Py_buffer view;
    Export *export = (Export *)type->tp_alloc(type, 0);
    if (export == NULL || PyObject_GetBuffer(owner, &view, PyBUF_WRITABLE) < 0) {
        Py_XDECREF((PyObject *)export);
        Py_XDECREF(reference);
        return NULL;
    }
    export->owner = Py_NewRef(owner);
    export->buffer = reference;
    export->memory = view.buf;
    export->nbytes = view.len;
    PyBuffer_Release(&view);
    return (PyObject *)export;
}

/* `Buffer.withdraw`. */
static void withdraw(PyObject *buffer, PyObject *export)
{
    PyObject *key = PyLong_FromVoidPtr(export), *exports = SLOT(buffer, L.buffer.exports), *done = NULL;
    if (key != NULL && L.bound && exports != NULL && PyAnySet_CheckExact(exports) && is_only_thread()) {
        int found = PySet_Discard(exports, key);
        if (found >= 0 && PySet_GET_SIZE(exports) == 0 && SLOT(buffer, L.buffer.lent) == Py_False &&
            PyLong_AsLongLong(SLOT(buffer, L.buffer.pending)) == 0)
            set_bool(buffer, L.buffer.external, Py_False);
    } else if (key != NULL) {
        done = PyObject_CallMethod(buffer, "withdraw", "O", key);
    }
    Py_XDECREF(done);
    Py_XDECREF(key);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(buffer);
}

static void export_dealloc(Export *self)
{
    PyObject *buffer = at_exit() ? NULL : referent(self->buffer);
    if (buffer != NULL) {
        PyObject *kind, *error, *traceback;
        PyErr_Fetch(&kind, &error, &traceback);
        withdraw(buffer, (PyObject *)self);
        Py_DECREF(buffer);
        PyErr_Restore(kind, error, traceback);
    }
    Py_XDECREF(self->buffer);
    Py_XDECREF(self->address);
    Py_XDECREF(self->on_tuple);
    Py_XDECREF(self->owner);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* of(memory, buffer) */
static PyObject *export_of(PyObject *type, PyObject *args)
{
    PyObject *owner, *reference;
    if (!PyArg_ParseTuple(args, "OO", &owner, &reference)) return NULL;
    return new_export((PyTypeObject *)type, owner, Py_NewRef(reference));
}

/* as_data(address, on_tuple) */
static PyObject *export_as_data(Export *self, PyObject *args)
{
    PyObject *address, *on_tuple;
    if (!PyArg_ParseTuple(args, "OO", &address, &on_tuple)) return NULL;
    Py_XSETREF(self->address, Py_NewRef(address));
    Py_XSETREF(self->on_tuple, Py_NewRef(on_tuple));
    return Py_NewRef((PyObject *)self);
}

static int export_buffer(Export *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)self, self->memory, self->nbytes, 0, flags);
}

static Py_ssize_t export_length(PyObject *self)
{
    return 2;
}

/* (address, whether it is read-only), which can be kept without this object. */
static PyObject *told(Export *self)
{
    PyObject *done = self->on_tuple == NULL ? Py_NewRef(Py_None) : PyObject_CallNoArgs(self->on_tuple);
    if (done == NULL) return NULL;
    Py_DECREF(done);
    PyObject *address = self->address == NULL ? PyLong_FromVoidPtr(self->memory) : Py_NewRef(self->address);
    return address == NULL ? NULL : Py_BuildValue("(NO)", address, Py_False);
}

static PyObject *export_item(Export *self, PyObject *key)
{
    PyObject *both = told(self), *item = both == NULL ? NULL : PyObject_GetItem(both, key);
    Py_XDECREF(both);
    return item;
}

static PyObject *export_iter(Export *self)
{
    PyObject *both = told(self), *iterator = both == NULL ? NULL : PyObject_GetIter(both);
    Py_XDECREF(both);
    return iterator;
}

static PyMethodDef export_methods[] = {
    {"of", export_of, METH_VARARGS | METH_CLASS, "of(memory, buffer): of a buffer that has the memory."},
    {"as_data", (PyCFunction)export_as_data, METH_VARARGS, "as_data(address, on_tuple): as `data` of the array interface."},
    {NULL},
};

static PyMemberDef export_members[] = {
    {"owner", T_OBJECT, offsetof(Export, owner), READONLY, "The array whose memory it is."},
    {NULL},
};

static PyBufferProcs export_as_buffer = {(getbufferproc)export_buffer, NULL};
static PyMappingMethods export_as_mapping = {export_length, (binaryfunc)export_item, NULL};

PyTypeObject ExportType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Export",
    .tp_basicsize = sizeof(Export),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The bytes of a buffer, as the base of an array that is handed out; see `trace.exports`.",
    .tp_dealloc = (destructor)export_dealloc,
    .tp_as_buffer = &export_as_buffer,
    .tp_as_mapping = &export_as_mapping,
    .tp_iter = (getiterfunc)export_iter,
    .tp_methods = export_methods,
    .tp_members = export_members,
};

/* ------------------------------------------------------------------ View.data */

/* Runs what is pending on a buffer, if the flush is of a kind that the extension knows. */
static int flushed(PyObject *buffer)
{
    PyObject *calls = SLOT(R.tracer, L.tracer.calls), *fast = SLOT(R.tracer, L.tracer.fast);
    if (!PyList_CheckExact(calls)) return 0;
    if (PyList_GET_SIZE(calls) == 0) return 1;
    int touched = PyLong_AsLongLong(SLOT(buffer, L.buffer.pending)) > 0 ||
                  (SLOT(buffer, L.buffer.external) == Py_True && PyLong_AsLongLong(SLOT(R.tracer, L.tracer.raw)) > 0);
    if (!touched) return 1;
    if (SLOT(R.tracer, L.tracer.gate) != Py_None || fast == NULL || fast == Py_None) return 0;
    PyObject *done = hot_flush(NULL, &X.why, 1);
    Py_XDECREF(done);
    return done == NULL ? -1 : done == Py_True;
}

/* The array of a region, whose base is an export. */
static PyObject *array_of(PyObject *region, PyObject *buffer)
{
    PyObject *shape = PyTuple_GET_ITEM(region, SHAPE), *strides = PyTuple_GET_ITEM(region, STRIDES);
    Py_ssize_t rank = PyTuple_GET_SIZE(shape), extents[MAX_RANK], steps[MAX_RANK];
    int kind = dtype_number(PyTuple_GET_ITEM(region, DTYPE));
    if (kind < 0 || rank > MAX_RANK || PyTuple_GET_SIZE(strides) != rank) return NULL;
    for (Py_ssize_t axis = 0; axis < rank; axis++) {
        extents[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis));
        steps[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, axis));
    }
    char *at = (char *)PyLong_AsVoidPtr(SLOT(buffer, L.buffer.address)) + PyLong_AsSsize_t(PyTuple_GET_ITEM(region, OFFSET));
    if (PyErr_Occurred()) return NULL;
    PyObject *reference = PyWeakref_NewRef(buffer, NULL);
    PyObject *export = reference == NULL ? NULL : new_export(&ExportType, SLOT(buffer, L.buffer.root), reference);
    PyObject *key = export == NULL ? NULL : PyLong_FromVoidPtr(export), *array = NULL;
    if (key != NULL && PySet_Add(SLOT(buffer, L.buffer.exports), key) == 0) {
        set_bool(buffer, L.buffer.seen, Py_True);
        set_bool(buffer, L.buffer.external, Py_True);
        PyObject *descr = Py_NewRef(PyTuple_GET_ITEM(X.descrs, kind));
        array = X.new_array((PyTypeObject *)R.ndarray, descr, rank, extents, steps, at, ALIGNED | WRITEABLE, NULL);
        if (array != NULL && X.set_base(array, Py_NewRef(export)) < 0) Py_CLEAR(array);
    }
    Py_XDECREF(key);
    Py_XDECREF(export);  /* if nobody has it, it is withdrawn */
    return array;
}

/* `ViewMemory.data` for memory of ours that arrays were made of before; NULL without an exception: Python does it. */
static PyObject *usual_data(PyObject *view)
{
    PyObject *region = PyObject_GetAttr(view, R.region_name), *theirs = NULL, *given = NULL, *array = NULL;
    if (region == NULL || Py_TYPE(region) != L.Region) goto end;
    PyObject *buffer = PyTuple_GET_ITEM(region, BUFFER), *exports = SLOT(buffer, L.buffer.exports);
    if (!is_allocation(buffer) || exports == NULL || !PyAnySet_CheckExact(exports) ||
        SLOT(buffer, L.buffer.lent) != Py_False || flushed(buffer) <= 0)
        goto end;
    /* Python may have run: now it looks at what there is. */
    theirs = PyObject_GetAttr(view, X.array);
    given = theirs == NULL ? NULL : PyObject_GetAttr(view, X.given);
    if (theirs != Py_None || given == NULL) goto end;
    array = referent(given);
    if (array != NULL) goto end;
    PyObject *root = SLOT(buffer, L.buffer.root);
    if (SLOT(buffer, L.buffer.image) != Py_None || root == NULL || (PyObject *)Py_TYPE(root) != R.ndarray || !is_only_thread()) goto end;
    array = array_of(region, buffer);
    PyObject *kept = array == NULL ? NULL : PyWeakref_NewRef(array, NULL);
    if (kept == NULL || PyObject_SetAttr(view, X.given, kept) < 0) Py_CLEAR(array);
    Py_XDECREF(kept);
end:
    Py_XDECREF(region);
    Py_XDECREF(theirs);
    Py_XDECREF(given);
    return array;
}

/* data_of(view): `View.data`. */
PyObject *data_of(PyObject *module, PyObject *view)
{
    PyObject *type = (PyObject *)Py_TYPE(view);
    if (X.python == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "data_of: before bind_exports");
        return NULL;
    }
    if (R.ready && (type == R.view || type == R.subview) && !devices_in_use() && SLOT(R.switches, R.careful) == Py_False &&
        SLOT(R.tracer, L.tracer.watch) == Py_None) {
        PyObject *array = usual_data(view);
        if (array != NULL || PyErr_Occurred()) return array;
    }
    return PyObject_CallOneArg(X.python, view);
}

/* bind_exports(python, why, descrs, api): see `view_memory`. */
PyObject *bind_exports(PyObject *module, PyObject *args)
{
    PyObject *python, *why, *descrs, *api;
    if (!PyArg_ParseTuple(args, "OOO!O", &python, &why, &PyTuple_Type, &descrs, &api)) return NULL;
    void **table = PyCapsule_GetPointer(api, NULL);
    if (table == NULL) return NULL;
    if (PyTuple_GET_SIZE(descrs) != DTYPES) {
        PyErr_SetString(PyExc_TypeError, "bind_exports: other dtypes");
        return NULL;
    }
    *(void **)&X.new_array = table[NEW_FROM_DESCR];
    *(void **)&X.set_base = table[SET_BASE];
    X.array = PyUnicode_InternFromString("_array");
    X.given = PyUnicode_InternFromString("_given");
    if (X.array == NULL || X.given == NULL) return NULL;
    Py_INCREF(args);  /* for good, as in `bind` */
    X.why = why;
    X.descrs = descrs;
    X.python = python;
    Py_RETURN_NONE;
}
