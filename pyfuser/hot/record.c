/* Recording a call: `frontends/embedded/dispatch.py` for the usual kinds of calls.

A `Dispatcher` stands for one of the parallel patterns. What it knows of a workunit and the types of
its arguments is a `Site`, kept with the workunit's state; whatever is unusual is left to the Python
function, which does all of the call, before anything was changed.
*/
#include "api.h"
#include "hot.h"

Recorder R;

/* ------------------------------------------------------------------ whether and where it is recorded */

/* `frontends.modes.traced`: 1, 0, or -1 for Python to find out. marked: what counts outside of blocks;
   in_block: whether a block says so. */
int fuses_here(PyObject *marked, int *in_block)
{
    *in_block = 0;
    if (SLOT(R.switches, R.allowed) == Py_False) return 0;
    if (SLOT(R.switches, R.allowed) != Py_True || PyDict_GET_SIZE(R.owned) != 0) return -1;
    PyObject *entry;
    if (PyContextVar_Get(R.block, NULL, &entry) < 0) return -1;
    PyObject *mode = Py_None;
    if (entry != NULL && entry != Py_None) {
        mode = SLOT(entry, R.mode);
        Py_DECREF(entry);
        if (mode == Py_None) return -1;
        *in_block = 1;
    } else {
        Py_XDECREF(entry);
        mode = SLOT(R.switches, R.everywhere);
        if (mode == Py_None) mode = marked;
    }
    return mode == Py_True ? 1 : mode == Py_False ? 0 : -1;
}

/* ------------------------------------------------------------------ calls */

PyObject *new_call(const Site *site, PyObject *pattern, PyObject *space, PyObject *const *values, PyObject *label,
                   PyObject *result)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *call = L.Call->tp_alloc(L.Call, 0), *arguments = PyTuple_New(site->params);
    if (call == NULL || arguments == NULL || frame == NULL) {
        Py_XDECREF(call);
        Py_XDECREF(arguments);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "no frame");
        return NULL;
    }
    for (Py_ssize_t n = 0; n < site->params; n++)
        PyTuple_SET_ITEM(arguments, n, Py_NewRef(values[site->order[n]]));
#if PY_VERSION_HEX >= 0x030B0000
    int instruction = PyFrame_GetLasti(frame);
#else
    int instruction = frame->f_lasti < 0 ? -1 : 2 * frame->f_lasti;
#endif
    SLOT(call, L.call.arguments) = arguments;
    SLOT(call, L.call.at) = PyLong_FromLong(~(long)instruction);
    SLOT(call, L.call.code) = (PyObject *)PyFrame_GetCode(frame);
    SLOT(call, L.call.label) = Py_NewRef(label);
    SLOT(call, L.call.pattern) = Py_NewRef(pattern);
    SLOT(call, L.call.position) = PyLong_FromLong(-1);
    SLOT(call, L.call.result) = Py_NewRef(result);
    SLOT(call, L.call.space) = Py_NewRef(space);
    SLOT(call, L.call.workunit) = Py_NewRef(site->workunit);
    if (SLOT(call, L.call.at) == NULL) Py_CLEAR(call);
    if (call != NULL) {  /* no cycle leads through them but that of the tracer itself */
        PyObject_GC_UnTrack(call);
        PyObject_GC_UnTrack(arguments);
    }
    return call;
}

PyObject *new_future(const Site *site, PyObject *value)
{
    PyObject *future = L.Future->tp_alloc(L.Future, 0);
    if (future == NULL) return NULL;
    SLOT(future, L.future.dtype) = Py_NewRef(site->dtype);
    SLOT(future, L.future.value) = Py_NewRef(value);
    SLOT(future, L.future.error) = Py_NewRef(Py_None);
    SLOT(future, L.future.deferred) = Py_NewRef(Py_None);
    SLOT(future, L.future.force) = Py_NewRef(R.compute);
    return future;
}

/* Whether this thread may change the tracer: 1, 2 if it has to release it afterwards, 0 if not. */
int enter(void)
{
    if (SLOT(R.tracer, L.tracer.gate) != Py_None) return 0;  /* a flush runs */
    if (is_only_thread()) return 1;
    PyObject *got = PyObject_CallOneArg(R.acquire, Py_False);
    if (got == NULL) PyErr_Clear();
    Py_XDECREF(got);
    return got == Py_True ? 2 : 0;
}

void leave(int entered)
{
    if (entered != 2) return;
    PyObject *kind, *error, *traceback;
    PyErr_Fetch(&kind, &error, &traceback);
    PyObject *done = PyObject_CallNoArgs(R.release);
    Py_XDECREF(done);
    PyErr_Restore(kind, error, traceback);
}

long long number_of(PyObject *number)
{
    return PyLong_AsLongLong(number);
}

int put(PyObject **slot, long long value)
{
    PyObject *number = PyLong_FromLongLong(value);
    if (number == NULL) return -1;
    Py_XSETREF(*slot, number);
    return 0;
}

/* `Tracer.record`. */
static int record(PyObject *call)
{
    PyObject *tracer = R.tracer;
    int entered = enter();
    PyObject *calls = SLOT(tracer, L.tracer.calls);
    long long bytes = number_of(SLOT(tracer, L.tracer.bytes));
    if (!entered || !PyList_CheckExact(calls) ||
        PyList_GET_SIZE(calls) + 1 >= number_of(SLOT(tracer, R.limit)) ||
        bytes > number_of(SLOT(tracer, L.tracer.look_at))) {
        leave(entered);
        PyObject *done = PyObject_CallMethodOneArg(tracer, R.record, call);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    PyObject *arguments = SLOT(call, L.call.arguments), *position = SLOT(tracer, L.tracer.recorded);
    Py_XSETREF(SLOT(call, L.call.position), Py_NewRef(position));
    int failed = put(&SLOT(tracer, L.tracer.recorded), number_of(position) + 1);
    long long raw = 0, more = 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(arguments); n++) {
        PyObject *argument = PyTuple_GET_ITEM(arguments, n);
        if (Py_TYPE(argument) != L.Region) continue;
        PyObject *buffer = PyTuple_GET_ITEM(argument, BUFFER);
        long long pending = number_of(SLOT(buffer, L.buffer.pending));
        raw += SLOT(buffer, L.buffer.external) == Py_True;
        if (!pending) more += number_of(SLOT(buffer, L.buffer.nbytes));
        failed |= put(&SLOT(buffer, L.buffer.pending), pending + 1);
    }
    if (raw) failed |= put(&SLOT(tracer, L.tracer.raw), number_of(SLOT(tracer, L.tracer.raw)) + raw);
    if (more) failed |= put(&SLOT(tracer, L.tracer.bytes), bytes + more);
    failed |= PyList_Append(calls, call);
    leave(entered);
    return failed ? -1 : 0;
}

static int records(void)
{
    int in_block;
    if (!R.ready || SLOT(R.tracer, L.tracer.gate) != Py_None || SLOT(R.tracer, L.tracer.watch) != Py_None) return 0;
    return fuses_here(Py_True, &in_block) == 1;
}

static int is_here(void) { return device_is_here(SLOT(R.tracer, L.tracer.place)); }

const HotApi api = {records, record, is_here};

/* ------------------------------------------------------------------ the dispatcher */

typedef struct {
    PyObject_HEAD
    PyObject *fallback, *pattern;
    int watched;  /* code calls it that looks after arrays */
    vectorcallfunc vectorcall;
} Dispatcher;

static PyObject *record_call(const Dispatcher *self, const Site *site, PyObject *space, PyObject *const *values, PyObject *label)
{
    PyObject *result = *(char *)PyUnicode_DATA(self->pattern) == 'f' ? Py_NewRef(Py_None) : new_future(site, Py_None);
    if (result == NULL) return NULL;
    PyObject *call = new_call(site, self->pattern, space, values, label, result);
    if (call == NULL || record(call) < 0) {
        Py_XDECREF(call);
        Py_DECREF(result);
        return NULL;
    }
    Py_DECREF(call);
    return result;
}

/* Iterations: recording such a call takes a part of its time that matters. What runs apart anyway, or was measured to
   gain by it, may be larger. */
enum { TINY = 1 << 14, LIGHT = 1 << 18 };

static double iterations_of(PyObject *space)
{
    PyObject *begin = PyTuple_GET_ITEM(space, 0), *end = PyTuple_GET_ITEM(space, 1);
    double size = 1.0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(begin); n++)
        size *= PyLong_AsDouble(PyTuple_GET_ITEM(end, n)) - PyLong_AsDouble(PyTuple_GET_ITEM(begin, n));
    return size;
}

int is_tiny(PyObject *space)
{
    return iterations_of(space) <= TINY;
}

static int is_raw(PyObject *value)
{
    return Py_TYPE(value) == L.Region && SLOT(PyTuple_GET_ITEM(value, BUFFER), L.buffer.external) == Py_True;
}

/* Whether a call that may be recorded runs at once; nothing is pending. */
static int is_direct(const Dispatcher *self, const Site *site, double iterations, PyObject *const *values, int careful)
{
    const char pattern = *(char *)PyUnicode_DATA(self->pattern);
    /* `careful.record`: numbers, and arrays that nobody looks after. Others may run with a sum that takes long
       (`runtime.following`): Python sees to it. */
    if (careful && pattern != 'f') return iterations <= LIGHT;
    for (Py_ssize_t n = 0; careful && !self->watched && n < site->count; n++)
        if (is_raw(values[n])) return 1;
    return iterations <= LIGHT && take_spare(site->workunit, iterations);
}

/* Why a call that may be recorded runs at once; 0 if it does not. */
static int runs_at_once(const Dispatcher *self, const Site *site, PyObject *space, PyObject *const *values, int careful)
{
    const double iterations = iterations_of(space);
    int turn = turns_call(site, space, iterations) && !(careful && site->pattern != 'f');
    if (PyList_GET_SIZE(SLOT(R.tracer, L.tracer.calls)) != 0) return 0;
    if (turn && site->takes_turns && iterations <= LIGHT) return AT_ONCE;
    return !is_direct(self, site, iterations, values, careful) ? 0 : careful ? CAREFUL : AT_ONCE;
}

/* Whether a call of a device runs where those that are pending do: on the current stream, as it asks for none. */
static int is_at_place(PyObject *policy)
{
    PyObject *asked = PyLong_CheckExact(policy) ? Py_NewRef(Py_None) : PyObject_GetAttr(policy, R.stream);
    Py_XDECREF(asked);
    return asked == Py_None && device_is_here(SLOT(R.tracer, L.tracer.place));
}

/* One call, if it is of a usual kind: *usual is set then. */
static PyObject *dispatch(Dispatcher *self, PyObject *const *args, Py_ssize_t count, PyObject *names, int *usual)
{
    PyObject *label = Py_None, *values[MAX_ARGUMENTS], *answer = NULL;
    long codes[MAX_ARGUMENTS];
    Py_ssize_t given = names == NULL ? 0 : PyTuple_GET_SIZE(names), made = 0;
    *usual = 0;
    if (count == 3 && (args[0] == Py_None || PyUnicode_CheckExact(args[0]))) {
        label = *args++;
        count--;
    }
    if (count != 2 || given > MAX_ARGUMENTS || !PyFunction_Check(args[1])) return NULL;
    PyObject *policy = args[0], *attributes = ((PyFunctionObject *)args[1])->func_dict;
    if (attributes == NULL) return NULL;
    PyObject *state = PyDict_GetItemWithError(attributes, R.state_name);
    if (state == NULL || (PyObject *)Py_TYPE(state) != R.state) return NULL;
    if (SLOT(R.tracer, L.tracer.watch) != Py_None) return NULL;
    int in_block, mode = fuses_here(SLOT(state, R.marked), &in_block), idle = PyList_GET_SIZE(SLOT(R.tracer, L.tracer.calls)) == 0;
    int careful = mode == 1 && !in_block && SLOT(R.switches, R.careful) != Py_False;
    if (mode < 0 || (mode == 0 && !idle)) return NULL;
    if (careful && SLOT(R.switches, R.watched) != Py_False) return NULL;
    PyObject *found = space_of(policy);
    if (found == NULL) return NULL;
    long head = PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    const int on_device = head >= 0 && head & R.on_device;
    if (head < 0 || (on_device && (careful || !is_at_place(policy)))) return NULL;
    Py_INCREF(found);
    Py_INCREF(state);
    const char pattern = *(char *)PyUnicode_DATA(self->pattern);
    int fine = 1;
    for (; made < given && fine; made++)
        fine = classify(PyTuple_GET_ITEM(names, made), args[2 + made], &codes[made], &values[made]);
    made -= !fine;
    for (Py_ssize_t n = 0; on_device && n < made && fine; n++) fine = device_takes(values[n]);
    Site *site = fine ? site_of(state, pattern, self->pattern, head, PyTuple_GET_ITEM(found, 1), names, codes, given) : NULL;
    Py_XINCREF(site);
    if (site != NULL && !is_unchanged(site->free)) {
        forget_site(state);
        Py_CLEAR(site);
    }
    if (site != NULL && in_ranges(site, values)) {
        PyObject *space = PyTuple_GET_ITEM(found, 0);
        int direct = mode == 1 && !on_device ? runs_at_once(self, site, space, values, careful) : 0;
        if (mode == 1 && !direct) {
            *usual = !careful || may_wait(site, space, values, self->watched);
            if (*usual) answer = record_call(self, site, space, values, label);
        } else {
            if (mode != 1) turns_pause();
            answer = run_alone(site, self->pattern, space, values, label, direct, usual);
        }
    }
    Py_XDECREF(site);
    while (made > 0) Py_DECREF(values[--made]);
    Py_DECREF(state);
    Py_DECREF(found);
    return answer;
}

static PyObject *dispatcher_call(PyObject *given, PyObject *const *args, size_t flags, PyObject *names)
{
    Dispatcher *self = (Dispatcher *)given;
    int usual = 0;
    if (R.ready) {
        PyObject *answer = dispatch(self, args, PyVectorcall_NARGS(flags), names, &usual);
        if (usual) return answer;
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;  /* Ctrl-C */
            PyErr_Clear();  /* the Python function raises it with its place */
        }
    }
    return PyObject_Vectorcall(self->fallback, args, flags, names);
}

static PyObject *dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *fallback, *pattern;
    int watched;
    if (!PyArg_ParseTuple(args, "OUp", &fallback, &pattern, &watched)) return NULL;
    Dispatcher *self = (Dispatcher *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->fallback = Py_NewRef(fallback);
    self->pattern = Py_NewRef(pattern);
    PyUnicode_InternInPlace(&self->pattern);
    self->watched = watched;
    self->vectorcall = dispatcher_call;
    return (PyObject *)self;
}

static void dispatcher_dealloc(Dispatcher *self)
{
    Py_XDECREF(self->fallback);
    Py_XDECREF(self->pattern);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Name, signature and documentation are those of the Python function. */
static PyObject *dispatcher_getattr(Dispatcher *self, PyObject *name)
{
    PyObject *found = NULL;
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL) return NULL;
    if (strcmp(text, "__wrapped__") == 0) return Py_NewRef(self->fallback);
    if (strcmp(text, "__doc__") != 0 && strcmp(text, "__module__") != 0) {
        found = PyObject_GenericGetAttr((PyObject *)self, name);
        if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
        PyErr_Clear();
    }
    return PyObject_GetAttr(self->fallback, name);
}

static PyObject *dispatcher_repr(Dispatcher *self)
{
    return PyObject_Repr(self->fallback);
}

static PyObject *dispatcher_reduce(Dispatcher *self, PyObject *nothing)
{
    return PyObject_GetAttrString(self->fallback, "__qualname__");
}

/* As of a function: in a class it is a method. */
static PyObject *dispatcher_get(PyObject *self, PyObject *object, PyObject *type)
{
    if (object == NULL || object == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, object);
}

static PyMethodDef dispatcher_methods[] = {
    {"__reduce__", (PyCFunction)dispatcher_reduce, METH_NOARGS, "By name."},
    {NULL},
};

PyTypeObject DispatcherType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Dispatcher",
    .tp_basicsize = sizeof(Dispatcher),
    .tp_vectorcall_offset = offsetof(Dispatcher, vectorcall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_call = PyVectorcall_Call,
    .tp_new = dispatcher_new,
    .tp_dealloc = (destructor)dispatcher_dealloc,
    .tp_getattro = (getattrofunc)dispatcher_getattr,
    .tp_descr_get = dispatcher_get,
    .tp_repr = (reprfunc)dispatcher_repr,
    .tp_methods = dispatcher_methods,
};
