/* Recording a call: `frontends/embedded/dispatch.py` for the usual kinds of calls.

A `Dispatcher` stands for one of the parallel patterns. What it knows of a workunit and the types of
its arguments is a `Site`, kept with the workunit's state; whatever is unusual is left to the Python
function, which does all of the call, before anything was changed.
*/
#include "hot.h"

Recorder R;

enum { MAX_SITES = 16 };

static void site_clear_entries(Site *site)
{
    for (int n = 0; n < ALONE; n++) {
        PyMem_Free(site->alone[n].words);
        site->alone[n].words = NULL;
        Py_CLEAR(site->alone[n].prepared);
        Py_CLEAR(site->alone[n].space);
        Py_CLEAR(site->alone[n].launchable);
    }
}

static int site_clear(Site *self)
{
    Py_CLEAR(self->next);
    Py_CLEAR(self->names);
    Py_CLEAR(self->workunit);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->free);
    site_clear_entries(self);
    return 0;
}

static int site_traverse(Site *self, visitproc visit, void *arg)
{
    Py_VISIT(self->next);
    Py_VISIT(self->names);
    Py_VISIT(self->workunit);
    Py_VISIT(self->dtype);
    Py_VISIT(self->free);
    for (int n = 0; n < ALONE; n++) Py_VISIT(self->alone[n].launchable);
    return 0;
}

static void site_dealloc(Site *self)
{
    PyObject_GC_UnTrack(self);
    site_clear(self);
    PyMem_Free(self->codes);
    PyMem_Free(self->order);
    PyMem_Free(self->ranges);
    PyObject_GC_Del(self);
}

PyTypeObject SiteType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Site",
    .tp_basicsize = sizeof(Site),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What is known of a workunit called with arguments of some types.",
    .tp_dealloc = (destructor)site_dealloc,
    .tp_traverse = (traverseproc)site_traverse,
    .tp_clear = (inquiry)site_clear,
};

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

/* Policies by the very objects that they are made of: what `KNOWN_POLICIES` said of them. */
enum { POLICIES = 64 };
static struct {
    PyObject *begin, *end, *space, *found;
    PyTypeObject *type;
} policies[POLICIES];

void forget_policies(void)
{
    for (int n = 0; n < POLICIES; n++) {
        Py_CLEAR(policies[n].found);
        Py_CLEAR(policies[n].begin);
        Py_CLEAR(policies[n].end);
        Py_CLEAR(policies[n].space);
    }
}

/* What is known of begin, end and space of a policy, borrowed. */
static PyObject *known_policy(PyTypeObject *type, PyObject *begin, PyObject *end, PyObject *space)
{
    size_t hash = ((uintptr_t)begin >> 4) + 31 * ((uintptr_t)end >> 4) + 7 * ((uintptr_t)space >> 4);
    size_t at = hash * 0x9E3779B97F4A7C15ull >> 32 & (POLICIES - 1);
    if (policies[at].found != NULL && policies[at].begin == begin && policies[at].end == end &&
        policies[at].space == space && policies[at].type == type)
        return policies[at].found;
    PyObject *key = PyTuple_Pack(3, begin, end, space);
    PyObject *found = key == NULL ? NULL : PyDict_GetItemWithError(R.policies, key);
    Py_XDECREF(key);
    if (found == NULL) return NULL;
    policies[at].type = type;
    Py_XSETREF(policies[at].begin, Py_NewRef(begin));
    Py_XSETREF(policies[at].end, Py_NewRef(end));
    Py_XSETREF(policies[at].space, Py_NewRef(space));
    Py_XSETREF(policies[at].found, Py_NewRef(found));
    return policies[at].found;
}

/* Space and head of a policy that was used before: (Space, head), borrowed; NULL if it was not. */
static PyObject *space_of(PyObject *policy)
{
    PyObject *found = NULL;
    PyTypeObject *type = Py_TYPE(policy);
    if (PyLong_CheckExact(policy)) {
        found = PyDict_GetItemWithError(R.policies, policy);
    } else {
        if ((PyObject *)type != R.range && (PyObject *)type != R.md_range) return NULL;
        PyObject *begin = PyObject_GetAttr(policy, R.begin), *end = PyObject_GetAttr(policy, R.end);
        PyObject *space = PyObject_GetAttr(policy, R.space);
        if (begin != NULL && end != NULL && space != NULL) found = known_policy(type, begin, end, space);
        Py_XDECREF(begin);
        Py_XDECREF(end);
        Py_XDECREF(space);
    }
    if (found == NULL) PyErr_Clear();
    return found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2 ? found : NULL;
}

/* ------------------------------------------------------------------ arguments */

/* The type that a format of the buffer protocol stands for, -1 for all that is unusual. */
static int type_of_format(const char *format)
{
    static const char codes[] = {[BOOL] = '?', [INT8] = 'b', [INT16] = 'h', [INT32] = 'i', [INT64] = 'l', [UINT8] = 'B',
                                 [UINT16] = 'H', [UINT32] = 'I', [UINT64] = 'L', [FLOAT32] = 'f', [FLOAT64] = 'd'};
    if (format == NULL) return -1;
    if (format[0] == 'Z') return format[1] == 0 || format[2] != 0 ? -1 : format[1] == 'f' ? COMPLEX64 : format[1] == 'd' ? COMPLEX128 : -1;
    if (format[0] == 0 || format[1] != 0) return -1;
    for (int n = 0; n < (int)sizeof codes; n++)
        if (codes[n] == format[0]) return n;
    return -1;
}

/* `trace.memory.region_of` for memory that is described; NULL without an exception if it is unusual. */
static PyObject *region_of(PyObject *array, const Py_buffer *view, int kind)
{
    PyObject *buffer = L.Buffer->tp_alloc(L.Buffer, 0), *region = L.Region->tp_alloc(L.Region, 5);
    PyObject *shape = PyTuple_New(view->ndim), *strides = PyTuple_New(view->ndim);
    PyObject *size = PyLong_FromSsize_t(view->len), *address = PyLong_FromVoidPtr(view->buf);
    int failed = buffer == NULL || region == NULL || shape == NULL || strides == NULL || size == NULL || address == NULL;
    for (int axis = 0; axis < view->ndim && !failed; axis++) {
        PyTuple_SET_ITEM(shape, axis, PyLong_FromSsize_t(view->shape[axis]));
        PyTuple_SET_ITEM(strides, axis, PyLong_FromSsize_t(view->strides[axis]));
        failed = PyTuple_GET_ITEM(shape, axis) == NULL || PyTuple_GET_ITEM(strides, axis) == NULL;
    }
    if (failed) {
        Py_XDECREF(buffer);
        Py_XDECREF(region);
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        Py_XDECREF(size);
        Py_XDECREF(address);
        return NULL;
    }
    SLOT(buffer, L.buffer.nbytes) = size;
    SLOT(buffer, L.buffer.root) = Py_NewRef(array);
    SLOT(buffer, L.buffer.address) = address;
    SLOT(buffer, L.buffer.image) = Py_NewRef(Py_None);
    SLOT(buffer, L.buffer.external) = Py_NewRef(Py_True);
    SLOT(buffer, L.buffer.lent) = Py_NewRef(Py_True);
    SLOT(buffer, L.buffer.pending) = PyLong_FromLong(0);
    SLOT(buffer, L.buffer.exports) = Py_NewRef(Py_None);
    SLOT(buffer, L.buffer.handle) = Py_NewRef(Py_None);
    PyTuple_SET_ITEM(region, BUFFER, buffer);
    PyTuple_SET_ITEM(region, OFFSET, PyLong_FromLong(0));
    PyTuple_SET_ITEM(region, STRIDES, strides);
    PyTuple_SET_ITEM(region, SHAPE, shape);
    PyTuple_SET_ITEM(region, DTYPE, Py_NewRef(L.dtypes[kind]));
    return region;
}

/* `arguments._array` for a plain array of NumPy's: 1, or 0 for all that is unusual. */
static int array_of(PyObject *array, long *code, PyObject **value)
{
    Py_buffer view;
    PyObject *devices = PyObject_GetAttr(R.use, R.devices);
    Py_XDECREF(devices);
    if (devices != Py_False) return 0;
    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    int kind = type_of_format(view.format);
    /* Of axes with one index NumPy tells any stride here. */
    int usual = kind >= 0 && !view.readonly && view.ndim > 0 && view.itemsize == L.sizes[kind] &&
                (uintptr_t)view.buf % view.itemsize == 0;
    for (int axis = 0; usual && axis < view.ndim; axis++)
        usual = view.shape[axis] > 1 && view.strides[axis] % view.itemsize == 0;
    *value = usual ? region_of(array, &view, kind) : NULL;
    *code = (long)view.ndim << 5 | kind;  /* `view_memory.view_code` */
    PyBuffer_Release(&view);
    return *value != NULL;
}

/* Code and value (a new reference) of an argument; 0: Python has to say what is wrong with it. */
static int classify(PyObject *name, PyObject *argument, long *code, PyObject **value)
{
    PyTypeObject *kind = Py_TYPE(argument);
    if ((PyObject *)kind == R.view || (PyObject *)kind == R.subview) {
        PyObject *number = PyObject_GetAttr(argument, R.code_name);
        if (number == NULL) return 0;
        *code = PyLong_AsLong(number);
        Py_DECREF(number);
        *value = PyObject_GetAttr(argument, R.region_name);
        return *value != NULL;
    }
    if (kind == &PyFloat_Type) {
        *code = R.float64;
        *value = Py_NewRef(argument);
        return 1;
    }
    if (kind == &PyLong_Type) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(argument, &overflow);
        *code = !overflow && -(1ll << 31) < number && number < (1ll << 31) ? R.int32 : R.int64;
        *value = Py_NewRef(argument);
        return 1;
    }
    if ((PyObject *)kind == R.ndarray && array_of(argument, code, value)) return 1;
    if (PyErr_Occurred()) return 0;
    PyObject *both = PyObject_CallFunctionObjArgs(R.classify, name, argument, NULL);
    if (both == NULL) return 0;
    *code = PyLong_AsLong(PyTuple_GET_ITEM(both, 0));
    *value = Py_NewRef(PyTuple_GET_ITEM(both, 1));
    Py_DECREF(both);
    return 1;
}

int same_names(PyObject *known, PyObject *names)
{
    if (known == names) return 1;
    if (names == NULL || PyTuple_GET_SIZE(known) != PyTuple_GET_SIZE(names)) return 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(known); n++) {
        PyObject *one = PyTuple_GET_ITEM(known, n), *other = PyTuple_GET_ITEM(names, n);
        if (one != other && PyUnicode_Compare(one, other) != 0) return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------ sites */

/* `lower.free._same_number`, but for NaNs and the like. */
static int same_value(PyObject *now, PyObject *before)
{
    if (now == before) return 1;
    if (now == NULL || Py_TYPE(now) != Py_TYPE(before)) return 0;
    if (PyFloat_CheckExact(now))
        return memcmp(&((PyFloatObject *)now)->ob_fval, &((PyFloatObject *)before)->ob_fval, sizeof(double)) == 0;
    return PyLong_CheckExact(now) && PyObject_RichCompareBool(now, before, Py_EQ) == 1;
}

/* Whether what a workunit took from outside is still so, as far as that is easy to tell. */
static int is_unchanged(PyObject *free)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(free); n++) {
        PyObject *one = PyTuple_GET_ITEM(free, n), *owner = PyTuple_GET_ITEM(one, 0);
        PyObject *name = PyTuple_GET_ITEM(one, 1), *value = PyTuple_GET_ITEM(one, 2);
        PyObject *now = PyCell_Check(owner)   ? PyCell_GET(owner)
                        : PyDict_Check(owner) ? PyDict_GetItemWithError(owner, name)
                                              : NULL;
        if (!same_value(now, value)) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

static Site *site_new(PyObject *described, char pattern, long head, PyObject *names, const long *codes, Py_ssize_t count)
{
    PyObject *workunit, *dtype, *order, *ranges, *free;
    if (!PyArg_ParseTuple(described, "OOO!O!O!", &workunit, &dtype, &PyTuple_Type, &order, &PyTuple_Type, &ranges,
                          &PyTuple_Type, &free))
        return NULL;
    Site *site = PyObject_GC_New(Site, &SiteType);
    if (site == NULL) return NULL;
    memset((char *)site + offsetof(Site, next), 0, sizeof *site - offsetof(Site, next));
    site->pattern = pattern;
    site->head = head;
    site->count = count;
    site->params = PyTuple_GET_SIZE(order);
    site->range_count = PyTuple_GET_SIZE(ranges);
    site->codes = PyMem_Malloc((count + 1) * sizeof *site->codes);
    site->order = PyMem_Malloc((site->params + 1) * sizeof *site->order);
    site->ranges = PyMem_Malloc((site->range_count + 1) * sizeof *site->ranges);
    site->names = names == NULL ? PyTuple_New(0) : Py_NewRef(names);
    site->workunit = Py_NewRef(workunit);
    site->dtype = Py_NewRef(dtype);
    site->free = Py_NewRef(free);
    PyObject_GC_Track((PyObject *)site);
    if (!site->codes || !site->order || !site->ranges || !site->names) {
        PyErr_NoMemory();
        Py_DECREF(site);
        return NULL;
    }
    memcpy(site->codes, codes, count * sizeof *codes);
    for (Py_ssize_t n = 0; n < site->params; n++) {
        site->order[n] = PyLong_AsLong(PyTuple_GET_ITEM(order, n));
        if (site->order[n] < 0 || site->order[n] >= count) PyErr_SetString(PyExc_ValueError, "no such argument");
    }
    for (Py_ssize_t n = 0; n < site->range_count; n++) {
        Range *range = &site->ranges[n];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(ranges, n), "nLL", &range->place, &range->least, &range->greatest))
            break;
    }
    if (PyErr_Occurred() || matters_of(workunit, &site->matters) < 0) {
        Py_DECREF(site);
        return NULL;
    }
    return site;
}

/* The site of these types, borrowed; made if Python knows their binding already. NULL: it does not. */
static Site *site_of(PyObject *state, char pattern, PyObject *pattern_name, long head, PyObject *head_object,
                     PyObject *names, const long *codes, Py_ssize_t count)
{
    PyObject *first = SLOT(state, R.sites);
    int length = 0;
    for (Site *site = first == Py_None || first == NULL ? NULL : (Site *)first; site != NULL; site = (Site *)site->next) {
        length++;
        if (site->pattern == pattern && site->head == head && site->count == count &&
            memcmp(site->codes, codes, count * sizeof *codes) == 0 && (count == 0 || same_names(site->names, names)))
            return site;
    }
    PyObject *key = PyTuple_New(2 + 2 * count);
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(pattern_name));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(head_object));
    for (Py_ssize_t n = 0; n < count; n++) {
        PyTuple_SET_ITEM(key, 2 + 2 * n, Py_NewRef(PyTuple_GET_ITEM(names, n)));
        PyTuple_SET_ITEM(key, 3 + 2 * n, PyLong_FromLong(codes[n]));
    }
    PyObject *described = PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(R.describe, state, key, NULL);
    Py_DECREF(key);
    if (described == NULL || described == Py_None) {
        Py_XDECREF(described);
        return NULL;
    }
    Site *site = site_new(described, pattern, head, names, codes, count);
    Py_DECREF(described);
    if (site == NULL) return NULL;
    first = SLOT(state, R.sites);  /* Python ran */
    if (length < MAX_SITES && first != NULL && first != Py_None) site->next = Py_NewRef(first);
    Py_XSETREF(SLOT(state, R.sites), (PyObject *)site);
    return site;
}

static void forget_site(PyObject *state)
{
    Py_XSETREF(SLOT(state, R.sites), Py_NewRef(Py_None));
}

/* Whether numbers are within the ranges of their parameters, as far as types do not tell. */
static int in_ranges(const Site *site, PyObject *const *values)
{
    for (Py_ssize_t n = 0; n < site->range_count; n++) {
        int overflow;
        PyObject *number = values[site->ranges[n].place];
        if (!PyLong_Check(number)) return 0;
        long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow || value < site->ranges[n].least || value > site->ranges[n].greatest) return 0;
    }
    return 1;
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

static PyObject *new_future(const Site *site)
{
    PyObject *future = L.Future->tp_alloc(L.Future, 0);
    if (future == NULL) return NULL;
    SLOT(future, L.future.dtype) = Py_NewRef(site->dtype);
    SLOT(future, L.future.value) = Py_NewRef(Py_None);
    SLOT(future, L.future.error) = Py_NewRef(Py_None);
    SLOT(future, L.future.deferred) = Py_NewRef(Py_None);
    SLOT(future, L.future.force) = Py_NewRef(R.compute);
    return future;
}

/* Whether this thread may change the tracer: 1, 2 if it has to release it afterwards, 0 if not. */
int enter(void)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    if (SLOT(R.tracer, L.tracer.gate) != Py_None) return 0;  /* a flush runs */
    if (PyThreadState_Next(thread) == NULL) return 1;
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

static long long number_of(PyObject *number)
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

/* ------------------------------------------------------------------ the dispatcher */

typedef struct {
    PyObject_HEAD
    PyObject *fallback, *pattern;
    int watched;  /* code calls it that looks after arrays */
    vectorcallfunc vectorcall;
} Dispatcher;

static PyObject *record_call(const Dispatcher *self, const Site *site, PyObject *space, PyObject *const *values, PyObject *label)
{
    PyObject *result = *(char *)PyUnicode_DATA(self->pattern) == 'f' ? Py_NewRef(Py_None) : new_future(site);
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

enum { TINY = 1 << 14 };  /* iterations: recording such a call takes a part of its time that matters */

static int is_tiny(PyObject *space)
{
    PyObject *begin = PyTuple_GET_ITEM(space, 0), *end = PyTuple_GET_ITEM(space, 1);
    double size = 1.0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(begin); n++)
        size *= PyLong_AsDouble(PyTuple_GET_ITEM(end, n)) - PyLong_AsDouble(PyTuple_GET_ITEM(begin, n));
    return size <= TINY;
}

static int is_raw(PyObject *value)
{
    return Py_TYPE(value) == L.Region && SLOT(PyTuple_GET_ITEM(value, BUFFER), L.buffer.external) == Py_True;
}

/* Whether a call that may be recorded runs at once; nothing is pending. */
static int is_direct(const Dispatcher *self, const Site *site, PyObject *space, PyObject *const *values, int careful)
{
    const char pattern = *(char *)PyUnicode_DATA(self->pattern);
    if (careful && pattern != 'f') return 1;  /* `careful.record`: numbers, and arrays that nobody looks after */
    for (Py_ssize_t n = 0; careful && !self->watched && n < site->count; n++)
        if (is_raw(values[n])) return 1;
    return pattern == 'f' && is_tiny(space) && take_spare(site->workunit);
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
    int careful = mode == 1 && SLOT(R.switches, R.careful) != Py_False;
    if (mode < 0 || ((mode == 0 || careful) && !idle)) return NULL;
    if (careful && (in_block || SLOT(R.switches, R.watched) != Py_False)) return NULL;
    PyObject *found = space_of(policy);
    if (found == NULL) return NULL;
    long head = PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    if (head < 0 || head & R.on_device) return NULL;
    Py_INCREF(found);
    Py_INCREF(state);
    const char pattern = *(char *)PyUnicode_DATA(self->pattern);
    int fine = 1;
    for (; made < given && fine; made++)
        fine = classify(PyTuple_GET_ITEM(names, made), args[2 + made], &codes[made], &values[made]);
    made -= !fine;
    Site *site = fine ? site_of(state, pattern, self->pattern, head, PyTuple_GET_ITEM(found, 1), names, codes, given) : NULL;
    Py_XINCREF(site);
    if (site != NULL && !is_unchanged(site->free)) {
        forget_site(state);
        Py_CLEAR(site);
    }
    if (site != NULL && in_ranges(site, values)) {
        int direct = mode == 1 && idle && is_direct(self, site, PyTuple_GET_ITEM(found, 0), values, careful);
        if (mode == 1 && !direct) {
            *usual = !careful;
            if (*usual) answer = record_call(self, site, PyTuple_GET_ITEM(found, 0), values, label);
        } else
            answer = run_alone(site, self->pattern, PyTuple_GET_ITEM(found, 0), values, label, direct, usual);
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
