/* New policies of usual arguments: what `RangePolicy.__init__` and `MDRangePolicy.__init__` do for plain integers and a
   space of the host, or the default. Whatever else there is the Python function does, before anything was set. */
#include "hot.h"

enum { RANGE, BOX, KINDS };

typedef struct {
    PyObject_HEAD
    PyObject *fallback;
    int kind;
    vectorcallfunc vectorcall;
} Init;

static struct {
    PyObject *defaults, *space_class, *by_default, *hosts, *hint;  /* by_default: `ExecutionSpace.Default`; hint: of loops */
    PyObject *space, *begin, *end, *tiling, *iter_outer, *iter_inner, *rank;  /* names */
} P;

/* The space of the host that is meant, a new reference; NULL: another one. */
static PyObject *host_of(PyObject *space)
{
    if ((PyObject *)Py_TYPE(space) != P.space_class) return NULL;
    PyObject *found = space == P.by_default ? PyObject_GetAttr(P.defaults, P.space) : Py_NewRef(space);
    if (found != NULL && found != Py_None && PyDict_GetItemWithError(P.hosts, found) == NULL) Py_CLEAR(found);
    return found;
}

static int set_three(PyObject *policy, PyObject *space, PyObject *begin, PyObject *end)
{
    return PyObject_SetAttr(policy, P.space, space) < 0 || PyObject_SetAttr(policy, P.begin, begin) < 0 ||
           PyObject_SetAttr(policy, P.end, end) < 0;
}

/* 1: it is done; 0: it is not usual; -1: an error. */
static int init_range(PyObject *policy, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (names != NULL || (count != 2 && count != 3)) return 0;
    PyObject *begin = args[count - 2], *end = args[count - 1];
    if (!PyLong_CheckExact(begin) || !PyLong_CheckExact(end)) return 0;
    PyObject *space = host_of(count == 3 ? args[0] : P.by_default);
    if (space == NULL) return 0;
    int failed = set_three(policy, space, begin, end);
    Py_DECREF(space);
    return failed ? -1 : 1;
}

/* A tuple of plain integers, of a list or tuple of such; NULL: something else, or an error. */
static PyObject *integers_of(PyObject *given)
{
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) return NULL;
    for (Py_ssize_t n = 0; n < Py_SIZE(given); n++)
        if (!PyLong_CheckExact(PySequence_Fast_ITEMS(given)[n])) return NULL;
    return PySequence_Tuple(given);
}

static int init_box(PyObject *policy, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (count != 2 || named > 1 || (named == 1 && PyTuple_GET_ITEM(names, 0) != P.space)) return 0;
    PyObject *space = host_of(named ? args[2] : P.by_default), *rank = NULL;
    PyObject *begin = space == NULL ? NULL : integers_of(args[0]), *end = begin == NULL ? NULL : integers_of(args[1]);
    int done = end != NULL && PyTuple_GET_SIZE(begin) == PyTuple_GET_SIZE(end);
    if (done && (rank = PyLong_FromSsize_t(PyTuple_GET_SIZE(begin))) != NULL) {
        int failed = set_three(policy, space, begin, end) || PyObject_SetAttr(policy, P.tiling, Py_None) < 0 ||
                     PyObject_SetAttr(policy, P.iter_outer, P.hint) < 0 || PyObject_SetAttr(policy, P.iter_inner, P.hint) < 0 ||
                     PyObject_SetAttr(policy, P.rank, rank) < 0;
        done = failed ? -1 : 1;
    }
    Py_XDECREF(space);
    Py_XDECREF(begin);
    Py_XDECREF(end);
    Py_XDECREF(rank);
    return done;
}

static int (*const INIT[KINDS])(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) = {init_range, init_box};

static PyObject *init_call(PyObject *given, PyObject *const *args, size_t flags, PyObject *names)
{
    const Init *self = (const Init *)given;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (P.hint != NULL && count > 0) {
        int done = INIT[self->kind](args[0], args + 1, count - 1, names);
        if (done > 0) Py_RETURN_NONE;
        if (done < 0) return NULL;
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
            PyErr_Clear();  /* Python comes to it, too */
        }
    }
    return PyObject_Vectorcall(self->fallback, args, flags, names);
}

/* Init(function, kind): in place of an `__init__`. */
static PyObject *init_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *fallback;
    int kind;
    if (!PyArg_ParseTuple(args, "Oi", &fallback, &kind)) return NULL;
    if (kind < 0 || kind >= KINDS) {
        PyErr_SetString(PyExc_ValueError, "Init: no such kind");
        return NULL;
    }
    Init *self = (Init *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->fallback = Py_NewRef(fallback);
    self->kind = kind;
    self->vectorcall = init_call;
    return (PyObject *)self;
}

static void init_dealloc(Init *self)
{
    Py_XDECREF(self->fallback);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Name, signature and documentation are those of the Python function. */
static PyObject *init_getattr(Init *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) return Py_NewRef(self->fallback);
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) return PyObject_GenericGetAttr((PyObject *)self, name);
    return PyObject_GetAttr(self->fallback, name);
}

static PyObject *init_get(PyObject *self, PyObject *object, PyObject *type)
{
    if (object == NULL || object == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, object);
}

PyTypeObject InitType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Init",
    .tp_basicsize = sizeof(Init),
    .tp_vectorcall_offset = offsetof(Init, vectorcall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_call = PyVectorcall_Call,
    .tp_doc = "An `__init__`; see policies.c.",
    .tp_new = init_new,
    .tp_dealloc = (destructor)init_dealloc,
    .tp_getattro = (getattrofunc)init_getattr,
    .tp_descr_get = init_get,
};

/* bind_policies(Defaults, ExecutionSpace, default, hosts, hint) */
PyObject *bind_policies(PyObject *module, PyObject *args)
{
    PyObject *hint;
    if (!PyArg_ParseTuple(args, "OOOO!O", &P.defaults, &P.space_class, &P.by_default, &PyDict_Type, &P.hosts, &hint)) return NULL;
    static const struct { PyObject **where; const char *text; } names[] = {
        {&P.space, "space"}, {&P.begin, "begin"}, {&P.end, "end"}, {&P.tiling, "tiling"},
        {&P.iter_outer, "iter_outer"}, {&P.iter_inner, "iter_inner"}, {&P.rank, "rank"},
    };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if ((*names[n].where = PyUnicode_InternFromString(names[n].text)) == NULL) return NULL;
    Py_INCREF(args);  /* for good, as in `bind` */
    P.hint = hint;
    Py_RETURN_NONE;
}
