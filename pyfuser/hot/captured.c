/* What is known of a captured step: the kinds of its arguments, how their memory lies, its launches. */
#include "capture.h"

/* ------------------------------------------------------------------ what is known */

static int captured_clear(Captured *self)
{
    for (Py_ssize_t n = 0; n < self->count; n++) Py_CLEAR(self->wanted[n].object);
    Py_CLEAR(self->names);
    Py_CLEAR(self->outside);
    Py_CLEAR(self->frozen);
    Py_CLEAR(self->made);
    Py_CLEAR(self->zeroed);
    Py_CLEAR(self->make);
    Py_CLEAR(self->build);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->flush);
    Py_CLEAR(self->futures);
    return 0;
}

static int captured_traverse(Captured *self, visitproc visit, void *arg)
{
    for (Py_ssize_t n = 0; n < self->count; n++) Py_VISIT(self->wanted[n].object);
    Py_VISIT(self->outside);
    Py_VISIT(self->frozen);
    Py_VISIT(self->made);
    Py_VISIT(self->make);
    Py_VISIT(self->build);
    Py_VISIT(self->failed);
    Py_VISIT(self->flush);
    return 0;
}

static void captured_dealloc(Captured *self)
{
    PyObject_GC_UnTrack(self);
    captured_clear(self);
    if (self->step != NULL) steps_end(self->step, self->steps);
    PyMem_Free(self->wanted);
    PyMem_Free(self->word);
    PyMem_Free(self->result);
    PyMem_Free(self->address);
    PyObject_GC_Del(self);
}

static int is_region_place(const Captured *self, Py_ssize_t place)
{
    return place >= self->count ? place < self->places : place >= 0 && self->wanted[place].kind == VIEW;
}

/* Whether every patch refers to what there is, and results to those of earlier launches. */
static int check_patches(Captured *self)
{
    int dtypes[MAX_ARGUMENTS];
    for (Py_ssize_t n = 0; n < self->steps; n++) {
        const Step *step = &self->step[n];
        for (Py_ssize_t k = 0; k < step->patches; k++) {
            const Patch *patch = &step->patch[k];
            int fine = patch->kind == THREADS_SLOT;
            if (patch->kind == POINTER_SLOT) fine = is_region_place(self, patch->place);
            if (patch->kind == SCALAR_SLOT && patch->place < 0)
                fine = ~patch->place < self->results && dtypes[~patch->place] == patch->dtype;
            else if (patch->kind == SCALAR_SLOT)
                fine = patch->place < self->count && self->wanted[patch->place].kind == FLOAT;
            if (!fine) return 0;
        }
        for (Py_ssize_t k = 0; k < step->results; k++) {
            if (self->results == MAX_ARGUMENTS) return 0;
            dtypes[self->results++] = step->result[k].dtype;
        }
    }
    for (Py_ssize_t n = 0; n < self->wanted_results; n++)
        if (PyLong_AsLong(PyTuple_GET_ITEM(PyTuple_GET_ITEM(self->futures, n), 0)) >= self->results) return 0;
    return !PyErr_Occurred();
}

/* The key of regions: see `key.c`. The words of numbers, and of others, are none. */
static int key_regions(Key *key, const Captured *self, PyObject *const *regions)
{
    PyObject *some[2 * MAX_ARGUMENTS];
    Py_ssize_t count = 0;
    for (Py_ssize_t n = 0; n < self->count; n++)
        if (self->wanted[n].kind == VIEW) some[count++] = regions[n];
    for (Py_ssize_t n = 0; n < self->frozen_count; n++) some[count++] = PyTuple_GET_ITEM(self->frozen, n);
    key_begin(key);
    key->placed = 1;
    int failed = key_call(key, NULL, NULL, 0, some, count, 0, NULL);
    return failed ? failed : key_facts(key, 1);
}

static int read_wanted(Captured *self, PyObject *kinds)
{
    for (Py_ssize_t n = 0; n < self->count; n++) {
        Wanted *wanted = &self->wanted[n];
        PyObject *object;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(kinds, n), "ilO", &wanted->kind, &wanted->code, &object)) return -1;
        wanted->object = Py_NewRef(object);
    }
    return 0;
}

/* Captured(kinds, names, outside, regions, frozen, made, fresh, zeroed, steps, futures, make, build, failed, flush)

   kinds: of the arguments, (kind, code, object). names: of the last ones. outside: (dict or cell, name,
   value) of what has to be as it is. regions: of those that are
   Views now, None for others. made: regions, the last of which (`fresh`) have only a place here, and
   are what `make` gives. futures: (place among the results, dtype) of those that are wanted. Raises
   ValueError for what it cannot run. */
static PyObject *captured_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *kinds, *names, *outside, *regions, *frozen, *made, *zeroed, *steps, *futures, *make, *build, *failed, *flush;
    Py_ssize_t fresh;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!nO!O!O!OOOO", &PyTuple_Type, &kinds, &PyTuple_Type, &names, &PyTuple_Type,
                          &outside, &PyTuple_Type, &regions, &PyTuple_Type, &frozen, &PyTuple_Type, &made, &fresh, &PyTuple_Type, &zeroed,
                          &PyTuple_Type, &steps, &PyTuple_Type, &futures, &make, &build, &failed, &flush))
        return NULL;
    Captured *self = PyObject_GC_New(Captured, type);
    if (self == NULL) return NULL;
    memset((char *)self + offsetof(Captured, count), 0, sizeof *self - offsetof(Captured, count));
    Py_ssize_t count = PyTuple_GET_SIZE(kinds);
    self->wanted = PyMem_Calloc(count + 1, sizeof *self->wanted);
    self->count = self->wanted == NULL ? 0 : count;
    self->frozen_count = PyTuple_GET_SIZE(frozen);
    self->made_count = PyTuple_GET_SIZE(made);
    self->fresh = fresh;
    self->places = count + self->frozen_count + self->made_count;
    self->wanted_results = PyTuple_GET_SIZE(futures);
    self->names = Py_NewRef(names);
    self->outside = Py_NewRef(outside);
    self->frozen = Py_NewRef(frozen);
    self->made = Py_NewRef(made);
    self->zeroed = Py_NewRef(zeroed);
    self->futures = Py_NewRef(futures);
    self->make = Py_NewRef(make);
    self->build = Py_NewRef(build);
    self->failed = Py_NewRef(failed);
    self->flush = Py_NewRef(flush);
    self->address = PyMem_Calloc(self->places + 1, sizeof *self->address);
    PyObject_GC_Track((PyObject *)self);
    int fine = self->wanted != NULL && self->address != NULL && count <= MAX_ARGUMENTS &&
               self->frozen_count <= MAX_ARGUMENTS && PyTuple_GET_SIZE(names) <= count &&
               PyTuple_GET_SIZE(regions) == count && fresh <= self->made_count && read_wanted(self, kinds) == 0 &&
               steps_of(steps, &self->step, &self->steps) == 0 && check_patches(self);
    self->result = fine ? PyMem_Calloc(self->results + 1, RESULT_BYTES) : NULL;
    Key key;
    if (self->result != NULL) {
        if (key_regions(&key, self, ((PyTupleObject *)regions)->ob_item) == KEYED) {
            self->word = PyMem_Malloc((key.count + 1) * sizeof *self->word);
            if (self->word != NULL) memcpy(self->word, key.words, (self->words = key.count) * sizeof *self->word);
        }
        key_end(&key);
    }
    if (self->word == NULL) {
        Py_DECREF(self);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a step that cannot be run by itself");
        return NULL;
    }
    return (PyObject *)self;
}

/* ------------------------------------------------------------------ whether it is this one */

static int is_value(PyObject *value, PyObject *wanted)
{
    if (value == wanted) return 1;
    if (Py_TYPE(value) != Py_TYPE(wanted)) return 0;
    if (PyFloat_Check(value))
        return memcmp(&((PyFloatObject *)value)->ob_fval, &((PyFloatObject *)wanted)->ob_fval, sizeof(double)) == 0;
    return (PyLong_Check(value) || PyUnicode_Check(value)) && PyObject_RichCompareBool(value, wanted, Py_EQ) == 1;
}

/* Whether arguments are of the kinds, each object at one place only where it was; their regions. */
int takes(const Captured *self, PyObject *const *values, Py_ssize_t count, PyObject *names, PyObject **regions)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names), made = 0;
    if (count != self->count || named != PyTuple_GET_SIZE(self->names) || (named && !same_names(self->names, names)) ||
        !is_unchanged(self->outside))
        return 0;
    int fine = 1;
    for (Py_ssize_t n = 0; n < count && fine; n++) {
        const Wanted *wanted = &self->wanted[n];
        PyObject *value = values[n];
        if (wanted->kind == VIEW) {
            fine = (PyObject *)Py_TYPE(value) == R.view || (PyObject *)Py_TYPE(value) == R.subview;
            PyObject *code = fine ? PyObject_GetAttr(value, R.code_name) : NULL;
            PyObject *region = code == NULL ? NULL : PyObject_GetAttr(value, R.region_name);
            fine = region != NULL && PyLong_AsLong(code) == wanted->code;
            Py_XDECREF(code);
            if (fine) regions[n] = region, made = n + 1;
            else Py_XDECREF(region);
        } else if (wanted->kind == FLOAT)
            fine = PyFloat_Check(value) || (Py_TYPE(value) == L.Future && SLOT(value, L.future.value) != NULL &&
                                            PyFloat_CheckExact(SLOT(value, L.future.value)));
        else
            fine = wanted->kind == OBJECT ? value == wanted->object : is_value(value, wanted->object);
        for (Py_ssize_t k = 0; k < n && fine && wanted->kind == VIEW; k++)
            if (self->wanted[k].kind == VIEW) fine = (values[k] == value) == (wanted->object == self->wanted[k].object);
    }
    if (!fine) {
        for (Py_ssize_t n = 0; n < made; n++) Py_CLEAR(regions[n]);
        PyErr_Clear();
    }
    return fine;
}

void drop(const Captured *self, PyObject **regions)
{
    for (Py_ssize_t n = 0; n < self->count; n++) Py_CLEAR(regions[n]);
}

static int same_key(const Captured *self, PyObject *const *regions)
{
    Key key;
    int same = key_regions(&key, self, regions) == KEYED && key.count == self->words &&
               memcmp(key.words, self->word, key.count * sizeof *key.words) == 0;
    key_end(&key);
    PyErr_Clear();
    return same;
}

/* Whether memory lies as it has to, also with arguments exchanged (`swaps`: pairs of places): after how
   many exchanges all is as before, 0 if it does not. */
int lies_well(const Captured *self, PyObject *const *regions, const int *swaps, Py_ssize_t pairs)
{
    PyObject *now[MAX_ARGUMENTS];
    memcpy(now, regions, self->count * sizeof *now);
    for (int turn = 0; turn < 8; turn++) {
        if (!same_key(self, now)) return 0;
        for (Py_ssize_t n = 0; n < pairs; n++) {
            PyObject *one = now[swaps[2 * n]];
            now[swaps[2 * n]] = now[swaps[2 * n + 1]];
            now[swaps[2 * n + 1]] = one;
        }
        if (memcmp(now, regions, self->count * sizeof *now) == 0) return turn + 1;
    }
    return 0;
}

PyTypeObject CapturedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyfuser._hot.Captured",
    .tp_basicsize = sizeof(Captured),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What a step does, for arguments of some kinds.",
    .tp_new = captured_new,
    .tp_dealloc = (destructor)captured_dealloc,
    .tp_traverse = (traverseproc)captured_traverse,
    .tp_clear = (inquiry)captured_clear,
};
