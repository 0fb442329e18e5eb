/* Sites: what is known of a workunit called with arguments of some types; kept with its state. */
#include "hot.h"

enum { MAX_SITES = 16 };

static void site_clear_entries(Site *site)
{
    for (int n = 0; n < ALONE; n++) {
        PyMem_Free(site->alone[n].words);
        site->alone[n].words = NULL;
        PyMem_Free(site->alone[n].rows);
        site->alone[n].rows = NULL;
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
    Py_CLEAR(self->looked_at);
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
    Py_VISIT(self->looked_at);
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

/* ------------------------------------------------------------------ sites */

/* `lower.free._same_number`, but for NaNs and the like. */
static int same_value(PyObject *now, PyObject *before)
{
    if (now == before) return 1;
    if (now == NULL || before == NULL || Py_TYPE(now) != Py_TYPE(before)) return 0;
    if (PyFloat_CheckExact(now))
        return memcmp(&((PyFloatObject *)now)->ob_fval, &((PyFloatObject *)before)->ob_fval, sizeof(double)) == 0;
    return PyLong_CheckExact(now) && PyObject_RichCompareBool(now, before, Py_EQ) == 1;
}

/* Whether what a workunit took from outside is still so, as far as that is easy to tell: places of
   `bindings.Place`. */
int is_unchanged(PyObject *free)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(free); n++) {
        PyObject *one = PyTuple_GET_ITEM(free, n), *owner = PyTuple_GET_ITEM(one, 0);
        PyObject *name = PyTuple_GET_ITEM(one, 1);
        PyObject *value = PyTuple_GET_SIZE(one) > 2 ? PyTuple_GET_ITEM(one, 2) : NULL;
        PyObject *now = PyCell_Check(owner)   ? PyCell_GET(owner)
                        : PyDict_Check(owner) ? PyDict_GetItemWithError(owner, name)
                        : PyType_Check(owner) ? _PyType_Lookup((PyTypeObject *)owner, name)
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
    int takes_turns, waits;
    if (!PyArg_ParseTuple(described, "OOO!O!O!pp", &workunit, &dtype, &PyTuple_Type, &order, &PyTuple_Type, &ranges,
                          &PyTuple_Type, &free, &takes_turns, &waits))
        return NULL;
    turns_reset();
    Site *site = PyObject_GC_New(Site, &SiteType);
    if (site == NULL) return NULL;
    memset((char *)site + offsetof(Site, next), 0, sizeof *site - offsetof(Site, next));
    site->pattern = pattern;
    site->takes_turns = takes_turns;
    site->may_wait = waits;
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
Site *site_of(PyObject *state, char pattern, PyObject *pattern_name, long head, PyObject *head_object,
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

void forget_site(PyObject *state)
{
    Py_XSETREF(SLOT(state, R.sites), Py_NewRef(Py_None));
}

/* Whether numbers are within the ranges of their parameters, as far as types do not tell. */
int in_ranges(const Site *site, PyObject *const *values)
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
