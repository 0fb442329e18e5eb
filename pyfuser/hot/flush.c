/* A flush that only does again what one before did: `runtime.flush` and `runtime.replay` for a hit.

Whatever else it finds it leaves to Python, before anything has changed. What fails after kernels ran
goes on in Python, which is told what ran before any of its code runs.
*/
#include "hot.h"

static struct {
    PyObject *programs, *replays, *flushes;
    PyObject *Replay, *Flush, *Ran;
    PyObject *flush, *listening, *resume, *settle, *partial, *package;
    PyObject *name, *logging, *no_calls, *copied, *look_at;
    Py_ssize_t following, given, left, prepared, program, ran_gate;
    Py_ssize_t function;
    struct { Py_ssize_t at, code, copied, made, program, why; } note;
    Py_ssize_t limit;
    int ready;
} F;

/* bind_flush(objects, classes, functions, package, limit): see `runtime.flush`. */
PyObject *bind_flush(PyObject *module, PyObject *args)
{
    PyObject *objects, *classes, *functions, *package;
    F.ready = 0;
    if (!PyArg_ParseTuple(args, "O!O!O!Un", &PyTuple_Type, &objects, &PyTuple_Type, &classes, &PyTuple_Type, &functions,
                          &package, &F.limit))
        return NULL;
    Py_INCREF(objects);  /* all of them for good */
    Py_INCREF(classes);
    Py_INCREF(functions);
    F.package = Py_NewRef(package);
    if (!PyArg_ParseTuple(objects, "OOOO", &F.programs, &F.replays, &F.flushes, &R.tracer) ||
        !PyArg_ParseTuple(classes, "OOO", &F.Replay, &F.Flush, &F.Ran) ||
        !PyArg_ParseTuple(functions, "OOOOO", &F.flush, &F.listening, &F.resume, &F.settle, &F.partial))
        return NULL;
    PyObject *tracer = (PyObject *)Py_TYPE(R.tracer);
    if (place(F.Replay, "following", &F.following) < 0 || place(F.Replay, "given", &F.given) < 0 || place(F.Replay, "left", &F.left) < 0 ||
        place(F.Replay, "prepared", &F.prepared) < 0 ||
        place(F.Replay, "program", &F.program) < 0 || place(F.Ran, "gate", &F.ran_gate) < 0 ||
        place(tracer, "flush_function", &F.function) < 0 ||
        place(F.Flush, "at", &F.note.at) < 0 ||
        place(F.Flush, "code", &F.note.code) < 0 || place(F.Flush, "copied", &F.note.copied) < 0 ||
        place(F.Flush, "made", &F.note.made) < 0 || place(F.Flush, "program", &F.note.program) < 0 ||
        place(F.Flush, "why", &F.note.why) < 0)
        return NULL;
    F.name = PyUnicode_InternFromString("flush");
    F.logging = PyUnicode_InternFromString("logging");
    F.no_calls = PyTuple_New(0);
    F.copied = Py_BuildValue("(ii)", 0, 0);
    F.look_at = Py_NewRef(SLOT(R.tracer, L.tracer.look_at));
    F.ready = F.name && F.logging && F.no_calls && F.copied && L.bound;
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ notes for `explain` */

static int is_ours(PyCodeObject *code)
{
    PyObject *file = code->co_filename;
    if (PyUnicode_KIND(file) != PyUnicode_KIND(F.package)) return 0;
    Py_ssize_t length = PyUnicode_GET_LENGTH(F.package);
    return PyUnicode_GET_LENGTH(file) >= length &&
           memcmp(PyUnicode_DATA(file), PyUnicode_DATA(F.package), length * PyUnicode_KIND(file)) == 0;
}

/* `trace.reason.asked`: the code (None: there is none) and the instruction that asked for the flush. */
static int place_of(PyObject *why, PyObject **code, PyObject **at)
{
    long instruction = -1;
    *code = Py_NewRef(Py_None);
    if (PyObject_IsTrue(PyTuple_GET_ITEM(why, 2)) || PyTuple_GET_ITEM(why, 3) != Py_True) {
        *at = PyLong_FromLong(0);
        return *at == NULL ? -1 : 0;
    }
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame != NULL) {
        PyCodeObject *here = PyFrame_GetCode(frame);
        if (!is_ours(here)) {
            Py_XSETREF(*code, (PyObject *)here);
#if PY_VERSION_HEX >= 0x030B0000
            instruction = PyFrame_GetLasti(frame);
#else
            instruction = frame->f_lasti < 0 ? -1 : 2 * frame->f_lasti;
#endif
            break;
        }
        Py_DECREF(here);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    *at = PyLong_FromLong(~instruction);
    return *at == NULL ? -1 : 0;
}

/* A flush as the latest. */
int note_again(PyObject *flush)
{
    if (PyList_Append(F.flushes, flush) < 0) return -1;
    Py_ssize_t size = PyList_GET_SIZE(F.flushes);
    return size > F.limit ? PyList_SetSlice(F.flushes, 0, size - F.limit, NULL) : 0;
}

/* `runtime.program.remember`. */
static int note(PyObject *program, PyObject *calls, PyObject *why)
{
    Py_ssize_t count = PyList_GET_SIZE(calls);
    PyObject *flush = ((PyTypeObject *)F.Flush)->tp_alloc((PyTypeObject *)F.Flush, 0);
    PyObject *made = PyTuple_New(3 * count);
    if (flush == NULL || made == NULL || PyList_GET_SIZE(calls) != count) {
        Py_XDECREF(flush);
        Py_XDECREF(made);
        return -1;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *call = PyList_GET_ITEM(calls, n);
        PyTuple_SET_ITEM(made, 3 * n, Py_NewRef(SLOT(call, L.call.label)));
        PyTuple_SET_ITEM(made, 3 * n + 1, Py_NewRef(SLOT(call, L.call.code)));
        PyTuple_SET_ITEM(made, 3 * n + 2, Py_NewRef(SLOT(call, L.call.at)));
    }
    SLOT(flush, F.note.made) = made;
    SLOT(flush, F.note.program) = Py_NewRef(program);
    SLOT(flush, F.note.copied) = Py_NewRef(F.copied);
    SLOT(flush, F.note.why) = Py_NewRef(why);
    int failed = place_of(why, &SLOT(flush, F.note.code), &SLOT(flush, F.note.at)) < 0 || note_again(flush) < 0;
    Py_DECREF(flush);
    return failed ? -1 : 0;
}

/* ------------------------------------------------------------------ what is known */

/* What runs for pending calls, a new reference; NULL: Python has to look. */
static PyObject *find(PyObject *calls)
{
    Key key;
    PyObject *replay = NULL, *words = NULL, *facts = NULL;
    key_begin(&key);
    Py_ssize_t count = PyList_GET_SIZE(calls);
    if (key_calls(&key, calls) == KEYED && PyList_GET_SIZE(calls) == count) {
        Py_ssize_t length = key.count;
        if (key_facts(&key, 1) == KEYED) {
            words = PyBytes_FromStringAndSize((char *)key.words, length * 8);
            facts = PyBytes_FromStringAndSize((char *)(key.words + length), (key.count - length) * 8);
        }
    }
    PyObject *known = words && facts ? PyDict_GetItemWithError(F.replays, words) : NULL;
    if (known != NULL && PyDict_Check(known)) replay = Py_XNewRef(PyDict_GetItemWithError(known, facts));
    Py_XDECREF(words);
    Py_XDECREF(facts);
    if (replay != NULL) {
        PyObject *given = SLOT(replay, F.given);
        int fine = (PyObject *)Py_TYPE(replay) == F.Replay && SLOT(replay, F.following) == Py_None && Py_TYPE(SLOT(replay, F.prepared)) == &PreparedType &&
                   is_on_device((Prepared *)SLOT(replay, F.prepared)) == devices_in_use() &&
                   PyDict_GetItemWithError(F.programs, given) == SLOT(replay, F.program);
        long long left = fine ? PyLong_AsLongLong(SLOT(replay, F.left)) : 0;  /* until a referee is asked */
        if (left > 0 && put(&SLOT(replay, F.left), left - 1) < 0) left = 0;
        if (left == 0) Py_CLEAR(replay);
    }
    key_end(&key);
    return replay;
}

/* Whether this flush is of the usual kind: nothing else is under way or postponed, nobody looks. */
static int is_usual(PyObject *tracer)
{
    if (SLOT(tracer, L.tracer.gate) != Py_None || SLOT(tracer, L.tracer.settle) != L.nothing_to_settle ||
        SLOT(tracer, F.function) != F.flush ||
        PyLong_AsLong(SLOT(tracer, L.tracer.postponed)) != 0)
        return 0;
    PyObject *where = SLOT(tracer, L.tracer.place);
    if (devices_in_use() ? !device_is_here(where) : where != Py_None) return 0;
    PyObject *modules = PyImport_GetModuleDict();  /* nobody listens without `logging` */
    if (PyDict_GetItemWithError(modules, F.logging) == NULL) return !PyErr_Occurred();
    PyObject *log = PyObject_CallOneArg(F.listening, F.name);
    Py_XDECREF(log);
    return log == Py_None;
}

/* Whether a step may run by itself: nothing is pending or under way, nobody looks. */
int idle(void)
{
    if (!F.ready || !R.ready || SLOT(R.tracer, L.tracer.watch) != Py_None || devices_in_use()) return 0;
    PyObject *calls = SLOT(R.tracer, L.tracer.calls);
    return PyList_CheckExact(calls) && PyList_GET_SIZE(calls) == 0 && is_usual(R.tracer);
}

/* ------------------------------------------------------------------ running */

/* Tells the tracer and Python what ran, in one step, and has Python go on. */
static int go_on(const Prepared *prepared, PyObject *program, PyObject *tracer, PyObject *calls, PyObject *gate,
                 const Outcome *outcome)
{
    int collects = PyGC_Disable();  /* no finalizer comes in between */
    PyObject *all = PyList_GetSlice(calls, 0, PyList_GET_SIZE(calls)), *settle = NULL;
    PyObject *ran = ((PyTypeObject *)F.Ran)->tp_new((PyTypeObject *)F.Ran, F.no_calls, NULL);
    if (ran != NULL) {
        Py_XSETREF(SLOT(ran, F.ran_gate), Py_NewRef(gate));
        if (all != NULL && tell(prepared, ran, outcome) == 0)
            settle = PyObject_CallFunctionObjArgs(F.partial, F.settle, program, all, ran, tracer, NULL);
    }
    if (settle != NULL) Py_XSETREF(SLOT(tracer, L.tracer.settle), settle);
    if (collects) PyGC_Enable();
    PyObject *done = settle == NULL ? NULL : PyObject_CallFunctionObjArgs(F.resume, program, all, tracer, ran, NULL);
    Py_XDECREF(done);
    Py_XDECREF(all);
    Py_XDECREF(ran);
    return done == NULL ? -1 : 1;
}

static int add_to_counter(Py_ssize_t where, long long more)
{
    return put(&SLOT(R.counters, where), PyLong_AsLongLong(SLOT(R.counters, where)) + more);
}

int count_replays(long long replays, long long launches)
{
    return add_to_counter(R.flushes_count, replays) | add_to_counter(R.replays_count, replays) |
           add_to_counter(R.launches, launches);
}

/* 1: it is done; 0: Python has to do it; -1: it failed. */
static int run(PyObject *tracer, PyObject *calls, PyObject *replay, PyObject *gate, PyObject *empty, PyObject *why)
{
    const Prepared *prepared = (const Prepared *)SLOT(replay, F.prepared);
    PyObject *program = SLOT(replay, F.program);
    Py_ssize_t count = PyList_GET_SIZE(calls);
    Data data = {.calls = calls};
    Fresh fresh = {0};
    Outcome outcome;
    int answer = 0;
    if (allocate(prepared, &data, &fresh) < 0) {
        undo(&fresh, 0, gate);
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
        PyErr_Clear();
        return 0;
    }
    /* Python may have run: a signal handler may have recorded calls, or run these. */
    if (PyList_GET_SIZE(gate) == 0 || SLOT(tracer, L.tracer.calls) != calls || PyList_GET_SIZE(calls) != count ||
        note(program, calls, why) < 0 || PyList_GET_SIZE(gate) == 0 || SLOT(tracer, L.tracer.calls) != calls ||
        PyList_GET_SIZE(calls) != count) {
        undo(&fresh, 0, gate);
        return PyErr_Occurred() ? -1 : 0;
    }
    add_to_counter(R.flushes_count, 1);
    add_to_counter(R.replays_count, 1);
    if (run_all(prepared, &data, gate, (int)PyLong_AsLong(SLOT(R.team, R.count)), &outcome) < 0) {
        undo(&fresh, 0, gate);
        return -1;
    }
    add_to_counter(R.launches, outcome.done - (outcome.status != 0));
    if (outcome.replayed) add_to_counter(R.graphs_count, 1);
    if (outcome.done == outcome.count && outcome.status == 0) {
        answer = settle(tracer, calls, empty) < 0 ? -1 : 1;
        undo(&fresh, outcome.done, gate);
    } else {
        undo(&fresh, outcome.done, gate);
        answer = go_on(prepared, program, tracer, calls, gate, &outcome);
    }
    outcome_end(&outcome);
    return answer;
}

PyObject *hot_flush(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 1 || !F.ready || !R.ready) Py_RETURN_FALSE;
    PyObject *tracer = R.tracer, *replay = NULL, *got = PyObject_CallOneArg(R.acquire, Py_False);
    if (got == NULL) return NULL;
    Py_DECREF(got);
    if (got != Py_True) Py_RETURN_FALSE;
    int answer = 0;
    PyObject *gate = NULL, *empty = NULL;
    /* Whether work arrays are read after a flush Python has to see. */
    if (is_usual(tracer) && SLOT(tracer, L.tracer.postponing) == Py_None) {
        PyObject *calls = Py_NewRef(SLOT(tracer, L.tracer.calls));
        gate = PyList_New(1);
        empty = PyList_New(0);
        if (gate != NULL) PyList_SET_ITEM(gate, 0, Py_NewRef(Py_True));
        if (gate != NULL && empty != NULL && PyList_CheckExact(calls)) replay = find(calls);
        if (replay != NULL && SLOT(tracer, L.tracer.gate) == Py_None && SLOT(tracer, L.tracer.calls) == calls && !is_lone(calls)) {
            Py_XSETREF(SLOT(tracer, L.tracer.gate), Py_NewRef(gate));
            answer = run(tracer, calls, replay, gate, empty, args[0]);
            if (answer == 1) Py_XSETREF(SLOT(tracer, L.tracer.look_at), Py_NewRef(F.look_at));
            Py_XSETREF(SLOT(tracer, L.tracer.gate), Py_NewRef(Py_None));
        }
        Py_DECREF(calls);
    }
    Py_XDECREF(gate);
    Py_XDECREF(empty);
    Py_XDECREF(replay);
    if (PyErr_Occurred() && answer == 0) {
        if (PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear();  /* Python looks again */
        else
            answer = -1;
    }
    leave(2);
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}
