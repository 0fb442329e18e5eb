/* Captured steps: what a function did with calls is done again without its Python.

A `Capture` is callable; `entries` has what it knows, each a `Captured`: for arguments of some kinds,
lying in memory in some way, the launches to run. Its law is in `runtime/captured.py`. Between the
look at the memory and the end of the last kernel nothing of Python runs.
*/
#include "capture.h"

#include <time.h>

typedef struct {
    PyObject_HEAD
    PyObject *entries;
    vectorcallfunc vectorcall;
} Capture;

static const int64_t SLICE = 5000000;  /* nanoseconds that `repeat` runs before Python sees to signals */

/* ------------------------------------------------------------------ running */

static int address_of(PyObject *region, int64_t *address)
{
    PyObject *buffer = PyTuple_GET_ITEM(region, BUFFER);
    int overflow, offset;
    if (SLOT(buffer, L.buffer.root) == Py_None) return 0;
    *address = PyLong_AsLongLongAndOverflow(SLOT(buffer, L.buffer.address), &overflow) +
               PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(region, OFFSET), &offset);
    return !overflow && !offset;
}

/* Addresses and numbers, with the GIL and before anything runs. 0: something is unusual. */
static int fill_in(Captured *self, PyObject *const *values, PyObject *const *regions, PyObject *views, int threads)
{
    int64_t *address = self->address;
    for (Py_ssize_t n = 0; n < self->count; n++, address++)
        if (self->wanted[n].kind == VIEW && !address_of(regions[n], address)) return 0;
    for (Py_ssize_t n = 0; n < self->frozen_count; n++)
        if (!address_of(PyTuple_GET_ITEM(self->frozen, n), address++)) return 0;
    Py_ssize_t kept = self->made_count - self->fresh;
    for (Py_ssize_t n = 0; n < self->made_count; n++)
        if (!address_of(n < kept ? PyTuple_GET_ITEM(self->made, n) : PyTuple_GET_ITEM(views, n - kept), address++))
            return 0;
    for (Py_ssize_t n = 0; n < self->steps; n++) {
        Step *step = &self->step[n];
        for (Py_ssize_t k = 0; k < step->patches; k++) {
            const Patch *patch = &step->patch[k];
            if (patch->kind == THREADS_SLOT) step->slots[patch->slot] = threads;
            if (patch->kind == SCALAR_SLOT && patch->place >= 0 &&
                !scalar_of(values[patch->place], patch->dtype, &step->slots[patch->slot]))
                return 0;
        }
    }
    return 1;
}

static void zero(const Captured *self)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(self->zeroed); n++) {
        PyObject *buffer = PyTuple_GET_ITEM(PyTuple_GET_ITEM(self->zeroed, n), BUFFER);
        memset((void *)PyLong_AsLongLong(SLOT(buffer, L.buffer.address)), 0, PyLong_AsSsize_t(SLOT(buffer, L.buffer.nbytes)));
    }
}

/* One step, without the GIL; *done: how many launches ran. The status of the last. */
static int run_step(Captured *self, Py_ssize_t *done)
{
    char *results = self->result;
    for (*done = 0; *done < self->steps;) {
        Step *step = &self->step[*done];
        for (Py_ssize_t k = 0; k < step->patches; k++) {
            const Patch *patch = &step->patch[k];
            if (patch->kind == POINTER_SLOT)
                step->slots[patch->slot] = self->address[patch->place] + patch->call;
            else if (patch->kind == SCALAR_SLOT && patch->place < 0)
                memcpy(&step->slots[patch->slot], self->result + ~patch->place * RESULT_BYTES,
                       patch->dtype == COMPLEX128 ? 16 : 8);
        }
        memset(results, 0, step->results * RESULT_BYTES);
        ++*done;
        note_launch(step->entry);
        int status = step->results ? ((int (*)(const void *, void *))step->entry)(step->slots, results)
                                   : ((int (*)(const void *))step->entry)(step->slots);
        if (status) return status;
        results += step->results * RESULT_BYTES;
    }
    return 0;
}

static int64_t nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

typedef struct {
    long long wanted, steps;     /* how many steps, and how many were done */
    const int *swaps;
    Py_ssize_t pairs, launches;  /* launches: of the last step */
    int until, reached, status, order;  /* order: how many steps bring everything back */
    double limit;                /* it ends when its result is below, if `until` */
} Loop;

static double first_result(const Captured *self)
{
    PyObject *both = PyTuple_GET_ITEM(self->futures, 0);  /* of a float or double: see `repeat` */
    const char *result = self->result + PyLong_AsSsize_t(PyTuple_GET_ITEM(both, 0)) * RESULT_BYTES;
    float single;
    double value;
    memcpy(&single, result, sizeof single);
    memcpy(&value, result, sizeof value);
    return PyTuple_GET_ITEM(both, 1) == L.dtypes[FLOAT32] ? single : value;
}

/* Steps until there are enough, one fails, the result is small enough, or time is over. */
static void run_steps(Captured *self, Loop *loop)
{
    int64_t begin = loop->wanted > 1 ? nanoseconds() : 0;
    while (loop->steps < loop->wanted) {
        loop->status = run_step(self, &loop->launches);
        if (loop->status) return;
        loop->steps++;
        for (Py_ssize_t n = 0; n < loop->pairs; n++) {
            int64_t *one = &self->address[loop->swaps[2 * n]], *other = &self->address[loop->swaps[2 * n + 1]];
            int64_t address = *one;
            *one = *other;
            *other = address;
        }
        if (loop->until && first_result(self) < loop->limit) {
            loop->reached = 1;
            return;
        }
        if (loop->wanted > 1 && nanoseconds() - begin > SLICE) return;
    }
}

/* What a launch that failed raises: `failed(arguments, ran)`. */
static PyObject *raise_failed(const Captured *self, PyObject *const *values, const Loop *loop)
{
    PyObject *ran = PyList_New(0), *given = PyTuple_New(self->count);
    const char *results = self->result;
    for (Py_ssize_t n = 0; given != NULL && n < self->count; n++) PyTuple_SET_ITEM(given, n, Py_NewRef(values[n]));
    for (Py_ssize_t n = 0; ran != NULL && n < loop->launches; results += self->step[n++].results * RESULT_BYTES) {
        PyObject *entry = Py_BuildValue("(iy#)", n == loop->launches - 1 ? loop->status : 0, results,
                                        self->step[n].results * (Py_ssize_t)RESULT_BYTES);
        if (entry == NULL || PyList_Append(ran, entry) < 0) Py_CLEAR(ran);
        Py_XDECREF(entry);
    }
    if (ran != NULL && given != NULL) Py_XDECREF(PyObject_CallFunctionObjArgs(self->failed, given, ran, NULL));
    Py_XDECREF(ran);
    Py_XDECREF(given);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a kernel failed");
    return NULL;
}

static PyObject *future_of(const Captured *self, Py_ssize_t n)
{
    PyObject *both = PyTuple_GET_ITEM(self->futures, n), *dtype = PyTuple_GET_ITEM(both, 1);
    const char *result = self->result + PyLong_AsSsize_t(PyTuple_GET_ITEM(both, 0)) * RESULT_BYTES;
    PyObject *value = place_result(result, dtype_number(dtype)), *future = value == NULL ? NULL : L.Future->tp_alloc(L.Future, 0);
    if (future == NULL) {
        Py_XDECREF(value);
        return NULL;
    }
    SLOT(future, L.future.dtype) = Py_NewRef(dtype);
    SLOT(future, L.future.value) = value;
    SLOT(future, L.future.error) = Py_NewRef(Py_None);
    SLOT(future, L.future.deferred) = Py_NewRef(Py_None);
    SLOT(future, L.future.force) = Py_NewRef(R.compute);
    return future;
}

/* What the step returns: nothing, its one Future, or `build(arguments, futures, views)`. */
static PyObject *answer_of(const Captured *self, PyObject *const *values, PyObject *views)
{
    if (self->build == Py_None) return self->wanted_results ? future_of(self, 0) : Py_NewRef(Py_None);
    PyObject *given = PyTuple_New(self->count), *futures = PyTuple_New(self->wanted_results), *answer = NULL;
    int fine = given != NULL && futures != NULL;
    for (Py_ssize_t n = 0; fine && n < self->count; n++) PyTuple_SET_ITEM(given, n, Py_NewRef(values[n]));
    for (Py_ssize_t n = 0; fine && n < self->wanted_results; n++) {
        PyObject *future = future_of(self, n);
        fine = future != NULL;
        PyTuple_SET_ITEM(futures, n, future);
    }
    if (fine) answer = PyObject_CallFunctionObjArgs(self->build, given, futures, views, NULL);
    Py_XDECREF(given);
    Py_XDECREF(futures);
    return answer;
}

/* Views exchange what they are, all of their attributes, as often as there were steps. */
static int exchange(PyObject *const *values, const Loop *loop)
{
    PyObject *name = PyUnicode_InternFromString("__dict__");
    int failed = name == NULL;
    for (int turn = loop->steps % loop->order; turn > 0 && !failed; turn--)
        for (Py_ssize_t n = 0; n < loop->pairs && !failed; n++) {
            PyObject *one = values[loop->swaps[2 * n]], *other = values[loop->swaps[2 * n + 1]];
            PyObject *first = PyObject_GetAttr(one, name), *second = PyObject_GetAttr(other, name);
            failed = first == NULL || second == NULL || PyObject_SetAttr(one, name, second) < 0 ||
                     PyObject_SetAttr(other, name, first) < 0;
            Py_XDECREF(first);
            Py_XDECREF(second);
        }
    Py_XDECREF(name);
    return failed ? -1 : 0;
}

/* Runs a loop of steps. 1: it ran, and *answer is what comes back, NULL with an exception. 0: it did not. */
static int run(Captured *self, PyObject *const *values, PyObject **regions, Loop *loop, PyObject **answer)
{
    PyObject *both = NULL, *views = Py_None;  /* both: (regions, Views) of what is new each time */
    if (self->fresh) {
        both = PyObject_CallNoArgs(self->make);
        if (both == NULL) return -1;
        views = PyTuple_GET_ITEM(both, 0);
    }
    int ran = 0, again = 1;
    PyObject *got = PyObject_CallOneArg(R.acquire, Py_False);
    Py_XDECREF(got);
    if (got == Py_True) {
        if (self->fresh) {  /* Python ran */
            PyObject *now[MAX_ARGUMENTS] = {NULL};
            again = takes(self, values, self->count, PyTuple_GET_SIZE(self->names) ? self->names : NULL, now);
            for (Py_ssize_t n = 0; n < self->count; n++) again = again && now[n] == regions[n];
            drop(self, now);
        }
        if (again && idle() && (loop->order = lies_well(self, regions, loop->swaps, loop->pairs)) &&
            fill_in(self, values, regions, views, (int)PyLong_AsLong(SLOT(R.team, R.count)))) {
            zero(self);
            Py_BEGIN_ALLOW_THREADS
            run_steps(self, loop);
            Py_END_ALLOW_THREADS
            ran = 1;
            if (loop->pairs && exchange(values, loop) < 0) loop->status = 0;
            *answer = PyErr_Occurred() ? NULL : loop->status ? raise_failed(self, values, loop)
                                   : answer_of(self, values, both == NULL ? Py_None : PyTuple_GET_ITEM(both, 1));
            PyObject *kind, *error, *traceback;
            PyErr_Fetch(&kind, &error, &traceback);
            if (count_replays(loop->steps, loop->steps * self->steps) || note_again(self->flush) < 0) PyErr_Clear();
            PyErr_Restore(kind, error, traceback);
        }
        leave(2);
    }
    Py_XDECREF(both);
    if (!ran && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
        PyErr_Clear();
    }
    return ran;
}

/* ------------------------------------------------------------------ the callable */

/* Whether a step returns one Future of a floating-point number. */
static int gives_number(const Captured *self)
{
    if (self->build != Py_None || self->wanted_results != 1) return 0;
    PyObject *dtype = PyTuple_GET_ITEM(PyTuple_GET_ITEM(self->futures, 0), 1);
    return dtype == L.dtypes[FLOAT32] || dtype == L.dtypes[FLOAT64];
}

/* Runs what is known for arguments: as `run`. */
static int run_known(Capture *self, PyObject *const *values, Py_ssize_t count, PyObject *names, Loop *loop, PyObject **answer)
{
    if (!R.ready || count > MAX_ARGUMENTS || !PyList_CheckExact(self->entries)) return 0;
    int in_block;
    if (SLOT(R.switches, R.careful) != Py_False || fuses_here(Py_True, &in_block) != 1) return 0;
    PyObject *regions[MAX_ARGUMENTS] = {NULL};
    int ran = 0;
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(self->entries) && !ran; n++) {
        Captured *entry = (Captured *)PyList_GET_ITEM(self->entries, n);
        if (Py_TYPE(entry) != &CapturedType || (loop->until && !gives_number(entry)) || !takes(entry, values, count, names, regions)) continue;
        Py_INCREF(entry);
        if (!entry->fresh || lies_well(entry, regions, loop->swaps, loop->pairs))
            ran = run(entry, values, regions, loop, answer);
        drop(entry, regions);
        Py_DECREF(entry);
    }
    return ran;
}

static PyObject *capture_call(PyObject *given, PyObject *const *args, size_t flags, PyObject *names)
{
    Capture *self = (Capture *)given;
    Py_ssize_t count = PyVectorcall_NARGS(flags) + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    Loop loop = {.wanted = 1};
    PyObject *answer = NULL;
    int ran = run_known(self, args, count, names, &loop, &answer);
    if (ran) return ran < 0 ? NULL : answer;
    PyObject *slow = PyObject_GetAttrString(given, "slow");
    if (slow == NULL) return NULL;
    answer = PyObject_Vectorcall(slow, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    Py_DECREF(slow);
    return answer;
}

static PyObject *capture_again(PyObject *given, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Loop loop = {.wanted = 1};
    PyObject *answer = NULL;
    int ran = run_known((Capture *)given, args, count + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), names, &loop, &answer);
    if (ran == 0) Py_RETURN_NOTIMPLEMENTED;
    return ran < 0 ? NULL : answer;
}

/* steps(wanted, swaps, until, arguments, names): (done, reached, what the last returned), or NotImplemented. */
static PyObject *capture_steps(PyObject *given, PyObject *args)
{
    PyObject *swaps, *until, *values, *names, *answer = NULL;
    Loop loop = {0};
    int places[2 * MAX_ARGUMENTS];
    if (!PyArg_ParseTuple(args, "LO!OO!O!", &loop.wanted, &PyTuple_Type, &swaps, &until, &PyTuple_Type, &values,
                          &PyTuple_Type, &names))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(swaps);
    if (count > 2 * MAX_ARGUMENTS || count % 2) Py_RETURN_NOTIMPLEMENTED;
    for (Py_ssize_t n = 0; n < count; n++) {
        places[n] = (int)PyLong_AsLong(PyTuple_GET_ITEM(swaps, n));
        if (places[n] < 0 || places[n] >= PyTuple_GET_SIZE(values)) {
            PyErr_SetString(PyExc_ValueError, "no such argument");
            return NULL;
        }
    }
    loop.swaps = places;
    loop.pairs = count / 2;
    loop.until = until != Py_None;
    loop.limit = loop.until ? PyFloat_AsDouble(until) : 0.0;
    if (PyErr_Occurred()) return NULL;
    int ran = run_known((Capture *)given, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values),
                        PyTuple_GET_SIZE(names) ? names : NULL, &loop, &answer);
    if (ran == 0) Py_RETURN_NOTIMPLEMENTED;
    return ran < 0 || answer == NULL ? NULL : Py_BuildValue("(LiN)", loop.steps, loop.reached, answer);
}

static PyObject *capture_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Capture *self = (Capture *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = capture_call;
    self->entries = PyList_New(0);
    if (self->entries == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

static int capture_traverse(Capture *self, visitproc visit, void *arg)
{
    Py_VISIT(self->entries);
    return 0;
}

static int capture_clear(Capture *self)
{
    Py_CLEAR(self->entries);
    return 0;
}

static void capture_dealloc(Capture *self)
{
    PyObject_GC_UnTrack(self);
    capture_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef capture_members[] = {
    {"entries", T_OBJECT_EX, offsetof(Capture, entries), READONLY, "What is known."},
    {NULL},
};

static PyMethodDef capture_methods[] = {
    {"again", (PyCFunction)(void (*)(void))capture_again, METH_FASTCALL | METH_KEYWORDS,
     "again(*arguments): what the step returns, or NotImplemented if it is not known."},
    {"steps", capture_steps, METH_VARARGS, "steps(wanted, swaps, until, arguments, names)"},
    {NULL},
};

PyTypeObject CaptureType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Capture",
    .tp_basicsize = sizeof(Capture),
    .tp_vectorcall_offset = offsetof(Capture, vectorcall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A callable that does what is known, and calls its method `slow` for all else.",
    .tp_call = PyVectorcall_Call,
    .tp_new = capture_new,
    .tp_dealloc = (destructor)capture_dealloc,
    .tp_traverse = (traverseproc)capture_traverse,
    .tp_clear = (inquiry)capture_clear,
    .tp_members = capture_members,
    .tp_methods = capture_methods,
};
