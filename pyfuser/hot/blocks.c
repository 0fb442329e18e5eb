/* `with` blocks that say whether calls are recorded: `frontends/modes.py`, whose law this is.

What no generator or coroutine has entered, as most blocks, is done here; Python does all else.
*/
#include "hot.h"

typedef struct {
    PyObject_HEAD
    PyObject *mode, *begins, *ends;  /* begins, ends: why what is pending runs there; None: it does not */
    PyObject *entries;
    int entered;
} Block;

static struct {
    PyObject *tracer, *variable, *entry;  /* variable: the innermost block */
    PyObject *enter, *leave, *own, *dropped, *flush;
    Py_ssize_t mode, outer, owner, thread;
} B;

/* bind_blocks(objects, functions): see `frontends.modes`. */
PyObject *bind_blocks(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "(OOO)(OOOO)", &B.tracer, &B.variable, &B.entry, &B.enter, &B.leave, &B.own, &B.dropped) ||
        place(B.entry, "mode", &B.mode) < 0 || place(B.entry, "outer", &B.outer) < 0 ||
        place(B.entry, "owner", &B.owner) < 0 || place(B.entry, "thread", &B.thread) < 0)
        return NULL;
    B.flush = PyUnicode_InternFromString("flush");
    if (B.flush == NULL) return NULL;
    Py_INCREF(args);  /* for good, as in `bind` */
    Py_RETURN_NONE;
}

/* Whether nothing on the stack can be suspended. */
static int is_plain_stack(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    int plain = 1;
    while (frame != NULL && plain) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        plain = (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) == 0;
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return plain;
}

static int set_block(PyObject *entry)
{
    PyObject *token = PyContextVar_Set(B.variable, entry);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

/* The entry of a block, which is the innermost one now. */
static PyObject *entry_of(PyObject *mode)
{
    PyObject *outer, *thread = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    if (thread == NULL) return NULL;
    PyObject *entry = PyContextVar_Get(B.variable, Py_None, &outer) < 0 ? NULL : ((PyTypeObject *)B.entry)->tp_alloc((PyTypeObject *)B.entry, 0);
    if (entry == NULL) {
        Py_DECREF(thread);
        return NULL;
    }
    SLOT(entry, B.mode) = Py_NewRef(mode);
    SLOT(entry, B.outer) = outer;
    SLOT(entry, B.owner) = Py_NewRef(Py_None);
    SLOT(entry, B.thread) = thread;
    if (set_block(entry) < 0) Py_CLEAR(entry);
    return entry;
}

/* Ends the entry of a block. 1: it was the innermost one; 0: nothing was done. */
static int end_entry(PyObject *entry)
{
    PyObject *inner;
    if ((PyObject *)Py_TYPE(entry) != B.entry || SLOT(entry, B.owner) != Py_None) return 0;
    if (PyContextVar_Get(B.variable, Py_None, &inner) < 0) return -1;
    Py_DECREF(inner);
    PyObject *outer = SLOT(entry, B.outer);
    if (inner != entry || (outer != Py_None && SLOT(outer, B.mode) == Py_None)) return 0;
    Py_SETREF(SLOT(entry, B.mode), Py_NewRef(Py_None));
    return set_block(outer) < 0 ? -1 : 1;
}

static int run_pending(PyObject *why)
{
    if (why == Py_None) return 0;
    if (L.bound && SLOT(B.tracer, L.tracer.watch) == Py_None) {
        PyObject *calls = SLOT(B.tracer, L.tracer.calls);
        if (PyList_CheckExact(calls) && PyList_GET_SIZE(calls) == 0) return 0;
    }
    PyObject *done = PyObject_CallMethodOneArg(B.tracer, B.flush, why);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *block_enter(Block *self, PyObject *nothing)
{
    if (run_pending(self->begins) < 0) return NULL;
    PyObject *entry = is_plain_stack() ? entry_of(self->mode) : PyObject_CallOneArg(B.enter, self->mode);
    if (entry == NULL) return NULL;
    self->entered = 1;
    int added = PyList_Append(self->entries, entry);
    Py_DECREF(entry);
    if (added < 0) return NULL;
    Py_RETURN_NONE;
}

/* The latest entry of what leaves the block, removed. */
static PyObject *taken(Block *self)
{
    if (PyList_GET_SIZE(self->entries) != 1) return PyObject_CallOneArg(B.own, self->entries);
    PyObject *entry = Py_NewRef(PyList_GET_ITEM(self->entries, 0));
    if (PyList_SetSlice(self->entries, 0, 1, NULL) < 0) Py_CLEAR(entry);
    return entry;
}

static PyObject *block_exit(Block *self, PyObject *const *error, Py_ssize_t count)
{
    PyObject *entry = taken(self);
    if (entry == NULL) return NULL;
    int ended = end_entry(entry);
    if (ended == 0) {
        PyObject *done = PyObject_CallOneArg(B.leave, entry);
        Py_XDECREF(done);
        ended = done == NULL ? -1 : 1;
    }
    Py_DECREF(entry);
    if (ended < 0 || run_pending(self->ends) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *block_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *mode, *begins = Py_None, *ends = Py_None;
    if (!PyArg_ParseTuple(args, "O!|OO", &PyBool_Type, &mode, &begins, &ends)) return NULL;
    if (B.flush == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "Block: not bound");
        return NULL;
    }
    Block *self = (Block *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->mode = Py_NewRef(mode);
    self->begins = Py_NewRef(begins);
    self->ends = Py_NewRef(ends);
    self->entries = PyList_New(0);
    if (self->entries == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

static int block_traverse(Block *self, visitproc visit, void *arg)
{
    Py_VISIT(self->entries);
    return 0;
}

static int block_clear(Block *self)
{
    Py_CLEAR(self->entries);
    return 0;
}

/* A line that makes a block and drops it: Python warns. */
static void block_finalize(Block *self)
{
    if (self->entered) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *done = PyObject_CallNoArgs(B.dropped);
    if (done == NULL) PyErr_WriteUnraisable(B.dropped);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

static void block_dealloc(Block *self)
{
    if (PyObject_CallFinalizerFromDealloc((PyObject *)self) < 0) return;
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->entries);
    Py_CLEAR(self->mode);
    Py_CLEAR(self->begins);
    Py_CLEAR(self->ends);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef block_methods[] = {
    {"__enter__", (PyCFunction)block_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))block_exit, METH_FASTCALL, NULL},
    {NULL},
};

PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Block",
    .tp_doc = "Block(mode, begins=None, ends=None): see `frontends.modes.Block`.",
    .tp_basicsize = sizeof(Block),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = block_new,
    .tp_dealloc = (destructor)block_dealloc,
    .tp_finalize = (destructor)block_finalize,
    .tp_traverse = (traverseproc)block_traverse,
    .tp_clear = (inquiry)block_clear,
    .tp_methods = block_methods,
};
