/* Prepared launches: what differs from flush to flush is patched, then the kernels are called.

A launch's slots (see `codegen.cpu.unit`) are a template; pointers, scalars and the number of threads
are filled in. Memory that is missing is made first, by Python; from then on until the kernels have
run nothing of Python runs, so no signal handler comes in between a kernel and the note that it ran.
The GIL is released around each kernel, as ctypes does it.
*/
#include "hot.h"

enum { WARM = 1, TURNS = 7 };

enum { REMEMBERED = 8 };

static void prepared_dealloc(Prepared *self)
{
    steps_end(self->steps, self->count);
    bands_end(self->bands, self->band_count);
    if (self->graphs != NULL) device_graphs_end(self->graphs);
    PyMem_Free(self->graphs);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

int is_on_device(const Prepared *self)
{
    return self->graphs != NULL;
}

/* Prepared(((entry, slots, patches, results, timing[, grid]), ...), (bands, ...), either): either: whether any number
   of threads gives the same bits. All of them have a grid, or none. */
static PyObject *prepared_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *steps, *bands = NULL;
    int either = 0;
    if (!PyArg_ParseTuple(args, "O!|O!p", &PyTuple_Type, &steps, &PyTuple_Type, &bands, &either)) return NULL;
    Prepared *self = (Prepared *)type->tp_alloc(type, 0);
    if (self != NULL) team_begin(&self->team, either);
    if (self != NULL && (steps_of(steps, &self->steps, &self->count) < 0 ||
                         (bands != NULL && bands_of(bands, self->steps, self->count, &self->bands, &self->band_count) < 0)))
        Py_CLEAR(self);
    Py_ssize_t grids = 0;
    for (Py_ssize_t n = 0; self != NULL && n < self->count; n++) grids += self->steps[n].grid != NULL;
    if (grids == 0) return (PyObject *)self;
    self->graphs = PyMem_Calloc(1, sizeof *self->graphs);
    if (grids != self->count || self->graphs == NULL) {
        PyErr_SetString(PyExc_ValueError, "Prepared: launches of the host and of a device");
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* ------------------------------------------------------------------ running */

static int fill(const Step *step, const Data *data, int threads, uint64_t *slots)
{
    memcpy(slots, step->slots, step->count * 8);
    for (Py_ssize_t k = 0; k < step->patches; k++) {
        const Patch *patch = &step->patch[k];
        if (patch->kind == THREADS_SLOT) {
            slots[patch->slot] = threads;
            continue;
        }
        if (patch->kind == BEGIN_SLOT || patch->kind == END_SLOT) {
            PyObject *ends = PyTuple_GET_ITEM(data->space, patch->kind == END_SLOT);
            slots[patch->slot] = PyLong_AsLongLong(PyTuple_GET_ITEM(ends, patch->place));
            continue;
        }
        PyObject *argument = argument_of(data, patch->call, patch->place);
        if (patch->kind == SCALAR_SLOT) {
            if (!scalar_of(argument, patch->dtype, &slots[patch->slot])) return 0;
            continue;
        }
        PyObject *buffer = PyTuple_GET_ITEM(argument, BUFFER);
        int overflow;
        if (SLOT(buffer, L.buffer.root) == Py_None) return 0;
        slots[patch->slot] =
            PyLong_AsLongLongAndOverflow(SLOT(buffer, L.buffer.address), &overflow) +
            PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(argument, OFFSET), &overflow);
    }
    return 1;
}

/* `runtime.launch.Timing.add`. */
static void note_time(PyObject *timing, double seconds)
{
    if (timing == Py_None) return;
    PyObject *latest = PyFloat_FromDouble(seconds), *count = SLOT(timing, L.timing.runs);
    long long runs = PyLong_AsLongLong(count) + 1;
    double mean = PyFloat_AsDouble(SLOT(timing, L.timing.mean));
    long long weight = runs - 1 < REMEMBERED ? runs - 1 : REMEMBERED;
    PyObject *new = PyFloat_FromDouble(mean + (seconds - mean) / (weight ? weight : 1));
    PyObject *more = PyLong_FromLongLong(runs);
    if (latest == NULL || new == NULL || more == NULL) {
        Py_XDECREF(latest);
        Py_XDECREF(new);
        Py_XDECREF(more);
        PyErr_Clear();
        return;
    }
    Py_XSETREF(SLOT(timing, L.timing.latest), latest);
    Py_XSETREF(SLOT(timing, L.timing.mean), new);
    Py_XSETREF(SLOT(timing, L.timing.runs), more);
}

/* `Future.set` for the futures of a step. */
static int give(const Step *step, const Data *data, const char *results)
{
    for (Py_ssize_t k = 0; k < step->results; k++) {
        PyObject *future = SLOT(PyList_GET_ITEM(data->calls, step->result[k].call), L.call.result);
        PyObject *value = place_result(results + k * RESULT_BYTES, step->result[k].dtype);
        if (value == NULL) return -1;
        Py_XSETREF(SLOT(future, L.future.value), value);
        PyObject *none = Py_NewRef(Py_None);
        Py_XSETREF(SLOT(future, L.future.error), none);
    }
    return 0;
}

static int add_to(PyObject **slot, long long change)
{
    PyObject *changed = PyLong_FromLongLong(PyLong_AsLongLong(*slot) + change);
    if (changed == NULL) return -1;
    Py_XSETREF(*slot, changed);
    return 0;
}

/* What a launch took, if this run is timed, or that there was one. */
static void note_run(const Step *step, int timed, double seconds)
{
    if (timed) note_time(step->timing, seconds);
    else if (step->timing != Py_None) add_to(&SLOT(step->timing, L.timing.runs), 1);
}

static int call_kernel(const Step *step, const uint64_t *slots, char *results)
{
    int status;
    note_launch(step->entry);
    Py_BEGIN_ALLOW_THREADS
    status = step->results ? ((int (*)(const void *, void *))step->entry)(slots, results)
                           : ((int (*)(const void *))step->entry)(slots);
    Py_END_ALLOW_THREADS
    return status;
}

/* Appends what ran to `ran`: (status, results) of each step. No finalizer may come in between. */
int tell(const Prepared *self, PyObject *ran, const Outcome *outcome)
{
    int collects = PyGC_Disable(), failed = 0;
    const char *results = outcome->results;
    for (Py_ssize_t n = 0; n < outcome->done; results += self->steps[n].results * RESULT_BYTES, n++) {
        PyObject *made = outcome->made == NULL ? NULL : PyTuple_GET_ITEM(outcome->made, n);
        PyObject *entry = made != NULL ? Py_BuildValue("(iO)", 0, PyTuple_GET_ITEM(made, 0))
                                       : Py_BuildValue("(iy#)", n == outcome->done - 1 ? outcome->status : 0, results,
                                                       self->steps[n].results * (Py_ssize_t)RESULT_BYTES);
        failed |= entry == NULL || PyList_Append(ran, entry) < 0;
        Py_XDECREF(entry);
    }
    if (collects) PyGC_Enable();
    return failed ? -1 : 0;
}

void outcome_end(Outcome *outcome)
{
    if (outcome->results != (char *)outcome->some) PyMem_Free(outcome->results);
    Py_XDECREF(outcome->made);
}

/* Whether this run is timed: the first ones are, then each sixteenth, as that takes as long as a launch. */
static int is_timed(const Prepared *self)
{
    if (self->count == 0 || self->steps[0].timing == Py_None) return 0;
    Prepared *counted = (Prepared *)self;
    return counted->runs++ < 2 * REMEMBERED || counted->runs % 16 == 0;
}

/* Whether this run is in bands. */
static int in_bands(const Prepared *self)
{
    if (self->band_count == 0) return 0;
    if (self->turns < TURNS) return (self->turns + WARM) % 2;
    return self->took[1] <= self->took[0];
}

/* What a run took: turns end as soon as one way is clearly faster. */
static void note_turn(const Prepared *given, int banded, double seconds)
{
    Prepared *self = (Prepared *)given;
    int turn = self->turns++ - WARM;
    if (turn < 0) return;
    if (turn < 2 || seconds < self->took[banded]) self->took[banded] = seconds;
    if (turn % 2 && (self->took[0] * 1.25 < self->took[1] || self->took[1] * 1.25 < self->took[0])) self->turns = TURNS;
}

/* Runs steps until one cannot be filled in, fails, or the gate is closed. 0, or -1 with MemoryError. */
int run_all(const Prepared *self, const Data *data, PyObject *gate, int threads, Outcome *outcome)
{
    Py_ssize_t words = 1, values = 0;
    for (Py_ssize_t n = 0; n < self->count; n++) {
        if (self->steps[n].count > words) words = self->steps[n].count;
        values += self->steps[n].results;
    }
    uint64_t some[128], *slots = words <= 128 ? some : PyMem_Malloc(words * 8);
    outcome->done = outcome->status = outcome->replayed = 0;
    outcome->count = self->count;
    outcome->made = Py_XNewRef(data->made);
    outcome->results = values <= 32 ? (char *)outcome->some : PyMem_Malloc(values * RESULT_BYTES);
    if (slots == NULL || outcome->results == NULL) {
        if (slots != some) PyMem_Free(slots);
        PyErr_NoMemory();
        return -1;
    }
    if (is_on_device(self)) {
        if (PyList_GET_SIZE(gate) > 0)
            device_run(self->steps, self->count, self->graphs, data, SLOT(R.tracer, L.tracer.place), outcome);
        if (slots != some) PyMem_Free(slots);
        return 0;
    }
    char *results = outcome->results;
    int timed = is_timed(self);
    double before = timed ? seconds_of(CLOCK_MONOTONIC) : 0.0;
    const int banded = in_bands(self), turn = self->band_count && self->turns < TURNS;
    const Band *band = self->bands, *last = band + (banded ? self->band_count : 0);
    const int all = threads, tried = team_tries(&self->team, all);
    const double start = turn || tried ? seconds_of(CLOCK_MONOTONIC) : 0.0;
    threads = team_threads(&self->team, all);
    while (outcome->done < self->count && outcome->status == 0) {
        const Step *step = &self->steps[outcome->done];
        if (band < last && band->first == outcome->done) {
            int ran = PyList_GET_SIZE(gate) == 0 ? 0 : run_band(self->steps, band, data, threads, fill);
            if (ran < 0) PyErr_Clear();
            if (ran <= 0) break;  /* Python runs the launches one after the other */
            double after = timed ? seconds_of(CLOCK_MONOTONIC) : 0.0;
            for (; outcome->done < band->last; outcome->done++)
                note_run(&self->steps[outcome->done], timed, (after - before) / (band->last - band->first));
            before = after;
            band++;
            continue;
        }
        if (PyList_GET_SIZE(gate) == 0 || !inherit(step, data) || !fill(step, data, threads, slots)) break;
        memset(results, 0, step->results * RESULT_BYTES);
        outcome->status = call_kernel(step, slots, results);
        outcome->done++;
        double after = timed ? seconds_of(CLOCK_MONOTONIC) : 0.0;
        if (outcome->status == 0) {
            if (give(step, data, results) < 0) PyErr_Clear();  /* `_settle` sees to it */
            note_run(step, timed, after - before);
        }
        before = after;
        results += step->results * RESULT_BYTES;
    }
    if (slots != some) PyMem_Free(slots);
    if (turn && outcome->done == self->count) note_turn(self, banded, seconds_of(CLOCK_MONOTONIC) - start);
    team_note(&((Prepared *)self)->team, all, tried ? seconds_of(CLOCK_MONOTONIC) - start : 0.0);
    return 0;
}

/* ------------------------------------------------------------------ after a flush */

/* `Tracer._uncount` of all calls, after `calls` was replaced. What runs Python comes last. */
static int uncount(PyObject *tracer, PyObject *calls)
{
    long long raw = 0, bytes = 0;
    PyObject *withdrawn = NULL;
    int failed = 0;
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(calls); n++) {
        PyObject *arguments = SLOT(PyList_GET_ITEM(calls, n), L.call.arguments);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(arguments); k++) {
            PyObject *argument = PyTuple_GET_ITEM(arguments, k);
            if (Py_TYPE(argument) != L.Region) continue;
            PyObject *buffer = PyTuple_GET_ITEM(argument, BUFFER);
            long long left = PyLong_AsLongLong(SLOT(buffer, L.buffer.pending)) - 1;
            PyObject *fewer = PyLong_FromLongLong(left);
            if (fewer == NULL) return -1;
            Py_XSETREF(SLOT(buffer, L.buffer.pending), fewer);
            int external = SLOT(buffer, L.buffer.external) == Py_True;
            raw += external;
            if (left) continue;
            bytes += PyLong_AsLongLong(SLOT(buffer, L.buffer.nbytes));
            if (external && SLOT(buffer, L.buffer.lent) != Py_True) {
                if (withdrawn == NULL) withdrawn = PyList_New(0);
                failed |= withdrawn == NULL || PyList_Append(withdrawn, buffer) < 0;
            }
        }
    }
    failed |= add_to(&SLOT(tracer, L.tracer.raw), -raw) | add_to(&SLOT(tracer, L.tracer.bytes), -bytes);
    for (Py_ssize_t n = 0; withdrawn != NULL && n < PyList_GET_SIZE(withdrawn); n++) {
        PyObject *done = PyObject_CallMethodNoArgs(PyList_GET_ITEM(withdrawn, n), L.withdraw);
        failed |= done == NULL;
        Py_XDECREF(done);
    }
    Py_XDECREF(withdrawn);
    return failed ? -1 : 0;
}

/* `runtime.execute._settle` where all has run and nothing was recorded meanwhile. */
int settle(PyObject *tracer, PyObject *calls, PyObject *empty)
{
    PyObject *old = SLOT(tracer, L.tracer.calls), *settled = SLOT(tracer, L.tracer.settle);
    SLOT(tracer, L.tracer.calls) = Py_NewRef(empty);
    SLOT(tracer, L.tracer.settle) = Py_NewRef(L.nothing_to_settle);
    int failed = uncount(tracer, calls);
    Py_DECREF(settled);
    Py_DECREF(old);
    return failed;
}

/* Whether `calls` are all that the tracer has. */
static int is_all(PyObject *tracer, PyObject *calls)
{
    PyObject *pending = SLOT(tracer, L.tracer.calls);
    Py_ssize_t count = PyList_GET_SIZE(calls);
    if (!PyList_CheckExact(pending) || PyList_GET_SIZE(pending) != count) return 0;
    return memcmp(((PyListObject *)pending)->ob_item, ((PyListObject *)calls)->ob_item, count * sizeof(PyObject *)) == 0;
}

/* run(tracer, calls, ran, threads): whether all ran and is settled.

   If not, `ran` has what did; the rest, and what failed, is for `runtime.execute`. */
static PyObject *prepared_run(Prepared *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyList_CheckExact(args[1]) || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "run(tracer, calls, ran, threads)");
        return NULL;
    }
    PyObject *tracer = args[0], *calls = args[1], *ran = args[2], *gate = SLOT(tracer, L.tracer.gate);
    int threads = (int)PyLong_AsLong(args[3]);
    if (!PyList_CheckExact(gate)) Py_RETURN_FALSE;
    Data data = {.calls = calls};
    Fresh fresh = {0};
    Outcome outcome;
    PyObject *answer = NULL, *empty = PyList_New(0);  /* now: it may run finalizers, which may flush */
    if (empty == NULL) return NULL;
    Py_INCREF(gate);
    if (allocate(self, &data, &fresh) < 0) {
        undo(&fresh, 0, gate);
        if (PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_Clear();  /* it comes again where Python says which argument it was */
            answer = Py_NewRef(Py_False);
        }
    } else if (run_all(self, &data, gate, threads, &outcome) < 0) {
        undo(&fresh, 0, gate);
    } else {
        if (outcome.done == self->count && outcome.status == 0 && is_all(tracer, calls))
            answer = settle(tracer, calls, empty) < 0 ? NULL : Py_NewRef(Py_True);
        else
            answer = tell(self, ran, &outcome) < 0 ? NULL : Py_NewRef(Py_False);
        undo(&fresh, outcome.done, gate);
        outcome_end(&outcome);
    }
    Py_DECREF(gate);
    Py_DECREF(empty);
    return answer;
}

int run_one(const Prepared *self, PyObject *space, PyObject *const *arguments, int threads, int *status, PyObject **answer)
{
    Data data = {.arguments = arguments, .space = space};
    Fresh fresh = {0};
    const Step *step = &self->steps[0];
    if (allocate(self, &data, &fresh) < 0) {
        undo(&fresh, 0, NULL);
        return -1;
    }
    if (is_on_device(self)) {
        Outcome outcome = {0};
        device_run(step, 1, self->graphs, &data, SLOT(R.tracer, L.tracer.place), &outcome);
        if (outcome.done) *answer = data.made == NULL ? Py_NewRef(Py_None) : device_value(&data);
        undo(&fresh, outcome.done, NULL);
        *status = 0;
        return (int)outcome.done;
    }
    uint64_t some[64], result[2] = {0, 0};
    uint64_t *slots = step->count <= 64 ? some : PyMem_Malloc(step->count * 8);
    int ran = slots != NULL && fill(step, &data, threads, slots);
    if (ran) *status = call_kernel(step, slots, (char *)result);
    undo(&fresh, ran && (*status == 0 || *status == R.divided_status), NULL);
    if (slots != some) PyMem_Free(slots);
    if (ran && *status == 0)
        *answer = step->results ? place_result((char *)result, step->result[0].dtype) : Py_NewRef(Py_None);
    return ran;
}

static PyMethodDef prepared_methods[] = {
    {"run", (PyCFunction)(void (*)(void))prepared_run, METH_FASTCALL, "run(tracer, calls, ran, threads)"},
    {NULL},
};

PyTypeObject PreparedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Prepared",
    .tp_basicsize = sizeof(Prepared),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The launches of a program, ready for other data.",
    .tp_new = prepared_new,
    .tp_dealloc = (destructor)prepared_dealloc,
    .tp_methods = prepared_methods,
};
