/* Launches on a GPU: its driver is called in place of a function of ours.

What a kernel is given are its parameters, one behind the other in words of 8 bytes. They are filled in as slots of
the host's kernels are, but that memory is an image's (`trace/images.py`): on the device, with current values, for
use on the stream that the tracer's place stands for. Whatever has to be copied, or waited for, is Python's.

Launches that come with the same words again and again are captured as a graph of the driver's, as
`engine/gpu/graphs.py` does it.
*/
#include "hot.h"

typedef int (*LaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static struct {
    PyTypeObject *Place, *Image, *Number;
    struct { Py_ssize_t device, stream, asked, number, handles; } place;
    struct { Py_ssize_t address, current, foreign, spent, stream; } image;
    struct { Py_ssize_t dtype, place, results; } number;
    struct { Py_ssize_t address, stream; } results;
    PyObject *get_device, *get_stream, *make, *read;
    LaunchKernel launch;
    struct {
        int (*begin)(void *, int), (*end)(void *, void **), (*instantiate)(void **, void *, unsigned long long);
        int (*launch)(void *, void *), (*destroy)(void *), (*destroy_graph)(void *);
    } graph;
    void *capturing;    /* a stream of ours; NULL: nothing is captured */
    long long repeats;  /* of launches, before they are captured */
} D;

/* What `Grid.room` makes. */
enum { OWNER, NUMBERS, RESULTS, WORKSPACE };

/* bind_device((Place, Image, Number, Results), (get_device, get_stream, make), (launch, addresses of functions of graphs ...), repeats) */
PyObject *bind_device(PyObject *module, PyObject *args)
{
    PyObject *get_device, *get_stream, *make, *Place, *Image, *Number, *Results;
    unsigned long long to[7];
    D.launch = NULL;
    if (!PyArg_ParseTuple(args, "(OOOO)(OOO)(KKKKKKK)L", &Place, &Image, &Number, &Results, &get_device, &get_stream, &make, &to[0], &to[1],
                          &to[2], &to[3], &to[4], &to[5], &to[6], &D.repeats))
        return NULL;
    if (place(Place, "device", &D.place.device) < 0 || place(Place, "stream", &D.place.stream) < 0 ||
        place(Place, "asked", &D.place.asked) < 0 || place(Place, "number", &D.place.number) < 0 ||
        place(Place, "handles", &D.place.handles) < 0 || place(Image, "address", &D.image.address) < 0 ||
        place(Image, "current", &D.image.current) < 0 || place(Image, "foreign", &D.image.foreign) < 0 ||
        place(Image, "spent", &D.image.spent) < 0 || place(Image, "stream", &D.image.stream) < 0 ||
        place(Number, "dtype", &D.number.dtype) < 0 || place(Number, "_place", &D.number.place) < 0 ||
        place(Number, "results", &D.number.results) < 0 || place(Results, "address", &D.results.address) < 0 ||
        place(Results, "stream", &D.results.stream) < 0)
        return NULL;
    Py_XSETREF(D.Place, (PyTypeObject *)Py_NewRef(Place));
    Py_XSETREF(D.Image, (PyTypeObject *)Py_NewRef(Image));
    Py_XSETREF(D.Number, (PyTypeObject *)Py_NewRef(Number));
    Py_XSETREF(D.read, PyUnicode_InternFromString("read"));
    Py_XSETREF(D.get_device, Py_NewRef(get_device));
    Py_XSETREF(D.get_stream, Py_NewRef(get_stream));
    Py_XSETREF(D.make, Py_NewRef(make));
    D.capturing = NULL;
    D.graph.begin = (void *)(uintptr_t)to[1];
    D.graph.end = (void *)(uintptr_t)to[2];
    D.graph.instantiate = (void *)(uintptr_t)to[3];
    D.graph.launch = (void *)(uintptr_t)to[4];
    D.graph.destroy = (void *)(uintptr_t)to[5];
    D.graph.destroy_graph = (void *)(uintptr_t)to[6];
    D.launch = (LaunchKernel)(uintptr_t)to[0];
    Py_RETURN_NONE;
}

/* capture_on(handle): the stream that launches are captured on; 0: they are not. */
PyObject *capture_on(PyObject *module, PyObject *handle)
{
    D.capturing = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(handle);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ where launches go */

/* Whether calls of the current stream may be recorded, and launched, beside what is pending: whether a place is that
   stream, of the current device, which no call asked for. */
int device_is_here(PyObject *place)
{
    if (D.launch == NULL || Py_TYPE(place) != D.Place || SLOT(place, D.place.asked) != Py_False) return 0;
    PyObject *device = PyObject_CallNoArgs(D.get_device);
    int same = device != NULL && PyObject_RichCompareBool(device, SLOT(place, D.place.device), Py_EQ) == 1;
    Py_XDECREF(device);
    PyObject *stream = same ? PyObject_CallNoArgs(D.get_stream) : NULL;
    same = stream != NULL && stream == SLOT(place, D.place.stream);
    Py_XDECREF(stream);
    PyErr_Clear();
    return same;
}

/* What CUDA calls the stream of a place, which others wait for; -1: Python has to see to it. */
static long long handle_of(PyObject *place, int device)
{
    if (D.launch == NULL || Py_TYPE(place) != D.Place) return -1;
    if (PyLong_AsLong(SLOT(place, D.place.device)) != device) return -1;
    PyObject *handle = PyDict_GetItemWithError(SLOT(place, D.place.handles), SLOT(place, D.place.number));
    return handle == NULL ? -1 : PyLong_AsLongLong(handle);
}

/* Whether this process has used a device. */
int devices_in_use(void)
{
    PyObject *devices = PyObject_GetAttr(R.use, R.devices);
    Py_XDECREF(devices);
    return devices != Py_False;
}

/* Whether an argument may be given to a kernel of a device: no memory of the host that others reach. */
int device_takes(PyObject *value)
{
    if (Py_TYPE(value) != L.Region) return 1;
    PyObject *buffer = PyTuple_GET_ITEM(value, BUFFER), *image = SLOT(buffer, L.buffer.image);
    if (SLOT(buffer, L.buffer.external) == Py_False) return 1;
    return Py_TYPE(image) == D.Image && SLOT(image, D.image.foreign) == Py_True;
}

/* Makes memory on the device that a step overwrites or needs zeroed. -1: it failed, with an exception. */
int device_allocate(const Patch *patch, PyObject *region)
{
    PyObject *done = PyObject_CallFunctionObjArgs(D.make, region, patch->box, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* The value that the one launch of a call has computed: waits for it. */
PyObject *device_value(const Data *data)
{
    PyObject *numbers = PyTuple_GET_ITEM(PyTuple_GET_ITEM(data->made, 0), NUMBERS);
    return PyObject_CallMethodNoArgs(PyTuple_GET_ITEM(numbers, 0), D.read);
}

/* ------------------------------------------------------------------ filling in */

/* Where on the device the value of a Future is, or will be when what comes before has run; 0: it is not there for a
   launch on this stream, or has another type. */
static uint64_t address_of(PyObject *future, int dtype, PyObject *stream)
{
    PyObject *number = Py_TYPE(future) == L.Future ? SLOT(future, L.future.deferred) : Py_None;
    if (Py_TYPE(number) != D.Number || SLOT(number, D.number.dtype) != L.dtypes[dtype]) return 0;
    PyObject *results = SLOT(number, D.number.results);
    if (PyObject_RichCompareBool(SLOT(results, D.results.stream), stream, Py_EQ) != 1) return 0;
    return PyLong_AsUnsignedLongLong(SLOT(results, D.results.address)) +
           RESULT_BYTES * PyLong_AsLongLong(SLOT(number, D.number.place));
}

/* Whether a launch on a stream may use an image as it is. */
static int is_ready(PyObject *buffer, int written, PyObject *number)
{
    PyObject *image = SLOT(buffer, L.buffer.image);
    if (Py_TYPE(image) != D.Image || SLOT(image, D.image.current) != Py_True) return 0;
    int foreign = SLOT(image, D.image.foreign) == Py_True;
    if (!foreign && SLOT(buffer, L.buffer.external) != Py_False) return 0;
    PyObject *stream = SLOT(image, D.image.stream);
    if (PyObject_RichCompareBool(stream, number, Py_EQ) != 1) {
        if (!foreign || PyLong_AsLongLong(stream) != -1) return 0;
        Py_XSETREF(SLOT(image, D.image.stream), Py_NewRef(number));  /* nobody used it yet */
    }
    if (!written) return 1;
    return SLOT(buffer, L.buffer.root) == Py_None && PyLong_AsLongLong(SLOT(image, D.image.spent)) == 0;
}

static int fill(const Step *step, const Data *data, PyObject *made, PyObject *number, uint64_t *words)
{
    memcpy(words, step->slots, step->count * 8);
    for (Py_ssize_t k = 0; k < step->patches; k++) {
        const Patch *patch = &step->patch[k];
        if (patch->kind == RESULTS_SLOT || patch->kind == WORKSPACE_SLOT) {
            words[patch->slot] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(made, patch->kind == RESULTS_SLOT ? RESULTS : WORKSPACE));
            continue;
        }
        PyObject *argument = argument_of(data, patch->call, patch->place);
        if (patch->kind == SCALAR_SLOT || patch->kind == NUMBER_SLOT) {
            uint64_t where = patch->kind == NUMBER_SLOT ? address_of(argument, patch->dtype, number) : 0;
            if (where) words[patch->slot + 1] = where;
            else if (!scalar_of(argument, patch->dtype, &words[patch->slot])) return 0;
            continue;
        }
        PyObject *buffer = PyTuple_GET_ITEM(argument, BUFFER);
        if (!is_ready(buffer, patch->kind == WRITTEN_SLOT, number)) return 0;
        PyObject *address = SLOT(SLOT(buffer, L.buffer.image), D.image.address);
        words[patch->slot] = PyLong_AsUnsignedLongLong(address) + PyLong_AsLongLong(PyTuple_GET_ITEM(argument, OFFSET));
    }
    return !PyErr_Occurred();
}

/* ------------------------------------------------------------------ launching */

static int launch(const Step *step, uint64_t *words, void *stream)
{
    const Grid *grid = step->grid;
    void *parameters[MAX_PARAMETERS];
    for (Py_ssize_t n = 0; n < grid->count; n++) parameters[n] = words + grid->where[n];
    const unsigned *of = grid->shape;
    return D.launch(step->entry, of[0], of[1], of[2], of[3], of[4], of[5], 0, stream, parameters, NULL);
}

static void forget_graph(Graph *graph)
{
    PyMem_Free(graph->words);
    if (graph->exec != NULL && !at_exit())  /* where the driver may be gone */
         D.graph.destroy(graph->exec);
    memset(graph, 0, sizeof *graph);
}

void device_graphs_end(Graphs *graphs)
{
    for (int n = 0; n < GRAPHS; n++) forget_graph(&graphs->known[n]);
}

/* What is known of launches with these words, which may have no graph; NULL: there is no memory. */
static Graph *graph_of(Graphs *graphs, const uint64_t *words, Py_ssize_t count, void *stream)
{
    for (int n = 0; n < GRAPHS; n++) {
        Graph *known = &graphs->known[n];
        if (known->words != NULL && known->stream == stream && memcmp(known->words, words, count * 8) == 0) return known;
    }
    Graph *graph = &graphs->known[graphs->next];
    graphs->next = (graphs->next + 1) % GRAPHS;
    forget_graph(graph);
    graph->words = PyMem_Malloc(count * 8);
    if (graph->words == NULL) return NULL;
    memcpy(graph->words, words, count * 8);
    graph->stream = stream;
    return graph;
}

/* Makes the graph of launches; if that fails nothing is captured any more. */
static void capture(Graph *graph, const Step *steps, Py_ssize_t count, uint64_t *words)
{
    void *made = NULL, *stream = D.capturing;
    int failed = D.graph.begin(stream, 1);  /* what other threads do is no part of it */
    for (Py_ssize_t n = 0; n < count && !failed; words += steps[n++].count) failed = launch(&steps[n], words, stream);
    failed |= D.graph.end(stream, &made) | (made == NULL);
    failed = failed || D.graph.instantiate(&graph->exec, made, 0);
    if (made != NULL) D.graph.destroy_graph(made);
    if (!failed) return;
    graph->exec = NULL;
    D.capturing = NULL;
}

/* Tells the Futures of steps [first, last) where their values will be; numbers: or that they are nowhere. */
static void give(const Step *steps, Py_ssize_t first, Py_ssize_t last, const Data *data, int numbers)
{
    if (data->made == NULL || data->calls == NULL) return;
    for (Py_ssize_t n = first; n < last; n++)
        for (Py_ssize_t k = 0; k < steps[n].results; k++) {
            PyObject *future = SLOT(PyList_GET_ITEM(data->calls, steps[n].result[k].call), L.call.result);
            PyObject *made = PyTuple_GET_ITEM(data->made, n);
            PyObject *number = numbers ? PyTuple_GET_ITEM(PyTuple_GET_ITEM(made, NUMBERS), k) : Py_None;
            Py_XSETREF(SLOT(future, L.future.deferred), Py_NewRef(number));
        }
}

/* Runs steps until one cannot be filled in or fails, which Python does again and says why. */
void device_run(const Step *steps, Py_ssize_t count, Graphs *graphs, const Data *data, PyObject *place, Outcome *outcome)
{
    uint64_t some[512], *words = some, *at;
    Py_ssize_t size = 0, filled = 0;
    long long handle = count ? handle_of(place, steps[0].grid->device) : -1;
    for (Py_ssize_t n = 0; n < count; n++) size += steps[n].count;
    if (size > (Py_ssize_t)(sizeof some / 8)) words = PyMem_Malloc(size * 8);
    if (handle < 0 || words == NULL) {
        if (words != some) PyMem_Free(words);
        PyErr_Clear();
        return;
    }
    PyObject *number = SLOT(place, D.place.number);
    void *stream = (void *)(uintptr_t)handle;
    for (at = words; filled < count; at += steps[filled++].count) {
        PyObject *made = data->made == NULL ? NULL : PyTuple_GET_ITEM(data->made, filled);
        if (!fill(&steps[filled], data, made, number, at)) break;
        give(steps, filled, filled + 1, data, 1);  /* a later step may read it from there */
    }
    PyErr_Clear();
    Graph *graph = NULL;
    if (filled == count && count > 1 && D.capturing != NULL) graph = graph_of(graphs, words, size, stream);
    if (graph != NULL && graph->exec == NULL && graph->times++ >= D.repeats) capture(graph, steps, count, words);
    Py_BEGIN_ALLOW_THREADS
    if (graph != NULL && graph->exec != NULL) {
        outcome->replayed = D.graph.launch(graph->exec, stream) == 0;
        outcome->done = outcome->replayed ? count : 0;
    } else {
        for (at = words; outcome->done < filled; at += steps[outcome->done++].count)
            if (launch(&steps[outcome->done], at, stream)) break;
    }
    Py_END_ALLOW_THREADS
    give(steps, outcome->done, filled, data, 0);
    if (words != some) PyMem_Free(words);
}
