/* The module `pyfuser._hot`: `bind` tells it the classes it works on. */
#include "api.h"
#include "hot.h"

Layout L;

static int places(PyObject *given)
{
    PyObject *call = PyTuple_GET_ITEM(given, 0), *future = PyTuple_GET_ITEM(given, 1);
    PyObject *buffer = PyTuple_GET_ITEM(given, 3), *tracer = PyTuple_GET_ITEM(given, 4);
    PyObject *timing = PyTuple_GET_ITEM(given, 5);
#define PLACE(of, name) if (place(of, #name, &L.of.name) < 0) return -1;
#define PRIVATE(of, name) if (place(of, "_" #name, &L.of.name) < 0) return -1;
    PLACE(call, arguments) PLACE(call, at) PLACE(call, code) PLACE(call, label) PLACE(call, pattern)
    PLACE(call, position) PLACE(call, result) PLACE(call, space) PLACE(call, workunit)
    PRIVATE(future, error) PRIVATE(future, force) PRIVATE(future, value)
    PLACE(future, deferred) PLACE(future, dtype)
    PRIVATE(buffer, exports) PRIVATE(buffer, handle) PLACE(buffer, address) PLACE(buffer, external) PLACE(buffer, image)
    PLACE(buffer, lent) PLACE(buffer, nbytes) PLACE(buffer, pending) PLACE(buffer, root) PLACE(buffer, seen)
    PLACE(tracer, calls) PLACE(tracer, recorded) PLACE(tracer, raw) PLACE(tracer, gate)
    PLACE(tracer, settle) PLACE(tracer, watch) PRIVATE(tracer, bytes) PRIVATE(tracer, look_at) PLACE(tracer, postponed)
    PLACE(tracer, place) PLACE(tracer, postponing) PLACE(tracer, fast)
    PLACE(timing, latest) PLACE(timing, mean) PLACE(timing, runs)
#undef PLACE
#undef PRIVATE
    return 0;
}

/* bind((Call, Future, Region, Buffer, Tracer, Timing), dtypes, structural, nothing_to_settle) */
static PyObject *bind(PyObject *module, PyObject *args)
{
    PyObject *types, *dtypes, *structural, *nothing;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyTuple_Type, &types, &PyTuple_Type, &dtypes, &structural, &nothing))
        return NULL;
    if (PyTuple_GET_SIZE(types) != 6 || PyTuple_GET_SIZE(dtypes) != DTYPES || places(types) < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "bind: other classes or types");
        return NULL;
    }
    for (int n = 0; n < DTYPES; n++) {
        PyObject *dtype = PyTuple_GET_ITEM(dtypes, n), *size = PyObject_GetAttrString(dtype, "size");
        if (size == NULL) return NULL;
        L.sizes[n] = PyLong_AsSsize_t(size);
        Py_DECREF(size);
        Py_INCREF(dtype);
        Py_XSETREF(L.dtypes[n], dtype);
    }
    Py_INCREF(types);  /* for good: the module outlives nothing that it refers to */
    L.Call = (PyTypeObject *)PyTuple_GET_ITEM(types, 0);
    L.Future = (PyTypeObject *)PyTuple_GET_ITEM(types, 1);
    L.Region = (PyTypeObject *)PyTuple_GET_ITEM(types, 2);
    L.Buffer = (PyTypeObject *)PyTuple_GET_ITEM(types, 3);
    Py_XSETREF(L.structural, Py_NewRef(structural));
    Py_XSETREF(L.nothing_to_settle, Py_NewRef(nothing));
    if (L.allocate == NULL) L.allocate = PyUnicode_InternFromString("allocate");
    if (L.withdraw == NULL) L.withdraw = PyUnicode_InternFromString("withdraw");
    L.bound = 1;
    Py_RETURN_NONE;
}

/* bind_recording(objects, classes, functions, names, codes): see `frontends.embedded.hot`. */
static PyObject *bind_recording(PyObject *module, PyObject *args)
{
    PyObject *entry_class;
    PyObject **objects[] = {&R.tracer, &R.switches, &R.block, &R.owned, &R.policies, &R.team, &R.use, &R.counters, &R.session, &R.harmless, &R.hosts};
    PyObject **classes[] = {&R.view, &R.subview, &R.range, &R.md_range, &R.team_policy, &R.state, &entry_class, &R.ndarray, &R.space_class, &R.numpys_float};
    PyObject **functions[] = {&R.classify, &R.describe, &R.prepare_alone, &R.divided, &R.compute, &R.acquire, &R.release, &R.run_eagerly, &R.looked_at};
    PyObject **groups[] = {(PyObject **)objects, (PyObject **)classes, (PyObject **)functions};
    Py_ssize_t sizes[] = {11, 10, 9};
    PyObject *given[3];
    R.ready = 0;
    if (!PyArg_ParseTuple(args, "O!O!O!(llllli)", &PyTuple_Type, &given[0], &PyTuple_Type, &given[1], &PyTuple_Type, &given[2],
                          &R.float64, &R.int32, &R.int64, &R.future, &R.on_device, &R.divided_status))
        return NULL;
    for (int k = 0; k < 3; k++) {
        if (PyTuple_GET_SIZE(given[k]) != sizes[k]) {
            PyErr_SetString(PyExc_TypeError, "bind_recording: other objects");
            return NULL;
        }
        Py_INCREF(given[k]);  /* for good, as in `bind` */
        for (Py_ssize_t n = 0; n < sizes[k]; n++) *((PyObject ***)groups[k])[n] = PyTuple_GET_ITEM(given[k], n);
    }
    PyObject *switches = (PyObject *)Py_TYPE(R.switches), *tracer = (PyObject *)Py_TYPE(R.tracer);
    PyObject *team = (PyObject *)Py_TYPE(R.team), *counters = (PyObject *)Py_TYPE(R.counters);
    if (place(switches, "allowed", &R.allowed) < 0 || place(switches, "careful", &R.careful) < 0 ||
        place(switches, "watched", &R.watched) < 0 ||
        place(switches, "everywhere", &R.everywhere) < 0 || place(entry_class, "mode", &R.mode) < 0 ||
        place(R.state, "marked_by_fuse", &R.marked) < 0 || place(R.state, "sites", &R.sites) < 0 ||
        place(tracer, "limit", &R.limit) < 0 || place(team, "count", &R.count) < 0 ||
        place(counters, "launches", &R.launches) < 0 || place(counters, "flushes", &R.flushes_count) < 0 ||
        place(counters, "replays", &R.replays_count) < 0 || place(counters, "graph_launches", &R.graphs_count) < 0)
        return NULL;
    static const struct { PyObject **where; const char *text; } names[] = {
        {&R.begin, "begin"}, {&R.end, "end"}, {&R.league_size, "league_size"}, {&R.team_size, "team_size"},
        {&R.space, "space"}, {&R.code_name, "_code"}, {&R.region_name, "_region"}, {&R.state_name, "__pyfuser__"}, {&R.record, "record"}, {&R.devices, "devices"}, {&R.run_name, "run"}, {&R.keep, "keep"}, {&R.stream, "stream"},
    };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        Py_XSETREF(*names[n].where, PyUnicode_InternFromString(names[n].text));
        if (*names[n].where == NULL) return NULL;
    }
    R.ready = L.bound;
    Py_RETURN_NONE;
}

static PyObject *forget(PyObject *module, PyObject *nothing)
{
    forget_workunits();
    forget_policies();
    forget_alone();
    forget_views();
    turns_reset();
    Py_RETURN_NONE;
}

static PyObject *known(PyObject *module, PyObject *nothing)
{
    return PyLong_FromLong(known_workunits());
}

/* The buffer protocol of a class that has `__buffer__`, as Python has it from 3.12 on. */
static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    PyObject *memory = PyObject_CallMethod(self, "__buffer__", "i", flags);
    if (memory == NULL) return -1;
    int done = PyObject_GetBuffer(memory, view, flags);
    Py_DECREF(memory);
    return done;
}

/* Nothing: `view` belongs to the memoryview. NumPy's frombuffer keeps what it reads of a class without this one,
   and the memory alone of one with it. */
static void release_buffer(PyObject *self, Py_buffer *view) {}

/* give_buffer(type): before the class has subclasses, which take it over. */
static PyObject *give_buffer(PyObject *module, PyObject *type)
{
    if (!PyType_Check(type) || !PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "give_buffer: no class of Python's");
        return NULL;
    }
    ((PyTypeObject *)type)->tp_as_buffer->bf_getbuffer = get_buffer;
    ((PyTypeObject *)type)->tp_as_buffer->bf_releasebuffer = release_buffer;
    return Py_NewRef(type);
}

static PyMethodDef functions[] = {
    {"give_buffer", give_buffer, METH_O, "give_buffer(type): the type, with the buffer protocol by its `__buffer__`."},
    {"bind", bind, METH_VARARGS, "bind(types, dtypes, structural, nothing_to_settle)"},
    {"bind_recording", bind_recording, METH_VARARGS, "bind_recording(objects, classes, functions, numbers)"},
    {"bind_flush", bind_flush, METH_VARARGS, "bind_flush(objects, classes, functions, package)"},
    {"bind_device", bind_device, METH_VARARGS, "bind_device(classes, functions, addresses, repeats): see device.c."},
    {"capture_on", capture_on, METH_O, "capture_on(handle): the stream that launches are captured on; 0: they are not."},
    {"bind_memory", bind_memory, METH_VARARGS, "bind_memory(classes, lists, numbers): see memory.c."},
    {"bind_views", bind_views, METH_VARARGS, "bind_views(names, objects): see views.c."},
    {"init_usual", (PyCFunction)(void (*)(void))init_usual, METH_FASTCALL, "init_usual(view, ...): see `usual_views`."},
    {"part_of", (PyCFunction)(void (*)(void))part_of, METH_FASTCALL, "part_of(view, key): a slice of a View, or None."},
    {"bind_exports", bind_exports, METH_VARARGS, "bind_exports(python, why, descrs, api): see exports.c."},
    {"data_of", data_of, METH_O, "data_of(view): `View.data`."},
    {"bind_policies", bind_policies, METH_VARARGS, "bind_policies(Defaults, ExecutionSpace, default, hosts, hint): see policies.c."},
    {"bind_number", bind_number, METH_VARARGS, "bind_number(reason, large): Futures as numbers."},
    {"bind_turns", bind_turns, METH_VARARGS, "bind_turns(ready, known, decided): see turns.c."},
    {"bind_blocks", bind_blocks, METH_VARARGS, "bind_blocks(objects, functions): see `frontends.modes`."},
    {"flush", (PyCFunction)(void (*)(void))hot_flush, METH_FASTCALL, "flush(why): whether all is done."},
    {"forget", forget, METH_NOARGS, "Forget what is known of workunits, and of calls that run alone."},
    {"known", known, METH_NOARGS, "How many workunits something is known of."},
    {"spare", spare, METH_VARARGS, "spare(workunit, count): how many more of its calls run at once."},
    {"lend", lend, METH_VARARGS, "lend(workunit, count): that so many of its calls run at once, as they run alone anyway."},
    {"watch_faults", watch_faults, METH_VARARGS, "watch_faults(descriptor, also): see `engine.faults`."},
    {"name_kernel", name_kernel, METH_VARARGS, "name_kernel(entry, text): what is said of it if the process dies."},
    {"launching", launching, METH_O, "launching(entry): a kernel is going to be launched."},
    {"key_of", key_of, METH_O, "key_of(calls): (words, facts) as bytes, or None; see `trace.key`."},
    {"zero_around", hot_zero_around, METH_VARARGS, "zero_around(memory, region, box): whether it did it; see `trace.memory`."},
    {"rounds", rounds, METH_VARARGS, "rounds(calls, first, steps): see `trace.runs`."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "pyfuser._hot", "The compiled hot path; see docs/hot.md.", -1, functions,
};

extern const HotApi api;

PyMODINIT_FUNC PyInit__hot(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    PyObject *capsule = PyCapsule_New((void *)&api, HOT_API, NULL);
    int added = capsule == NULL ? -1 : PyModule_AddObjectRef(module, "API", capsule);
    Py_XDECREF(capsule);
    if (added < 0 || PyModule_AddType(module, &PreparedType) < 0 || PyModule_AddType(module, &DispatcherType) < 0 ||
        PyModule_AddType(module, &SiteType) < 0 || PyModule_AddType(module, &CapturedType) < 0 ||
        PyModule_AddType(module, &CaptureType) < 0 || PyModule_AddType(module, &BlockType) < 0 || PyModule_AddType(module, &ExportType) < 0 || PyModule_AddType(module, &InitType) < 0 || PyModule_AddIntConstant(module, "INTERFACE", 27) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
