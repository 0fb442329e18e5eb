/* Calls of a program that knows nothing of us: which of them wait; `frontends/embedded/careful.py`. */
#include "hot.h"

enum { LARGE = 1 << 26 };  /* as `careful.LARGE` */

/* Whether nobody else may meet what a call touches before it has run, and there surely is memory for it. */
static int is_safe(const Site *site, PyObject *const *values, int watched)
{
    int ours = watched && is_only_thread();
    if (!ours && PyLong_AsLong(SLOT(R.tracer, L.tracer.raw)) != 0) return 0;
    for (Py_ssize_t n = 0; n < site->count; n++) {
        if (Py_TYPE(values[n]) != L.Region) continue;
        PyObject *buffer = PyTuple_GET_ITEM(values[n], BUFFER);
        if (!ours && SLOT(buffer, L.buffer.external) == Py_True) return 0;
        if (PyLong_AsLongLong(SLOT(buffer, L.buffer.nbytes)) > LARGE && SLOT(buffer, L.buffer.root) == Py_None &&
            SLOT(buffer, L.buffer.image) == Py_None)
            return 0;
    }
    return 1;
}

static int is_plain(PyObject *number)
{
    return PyLong_CheckExact(number) || PyFloat_CheckExact(number) || PyBool_Check(number);
}

/* Whether a call is as the latest that was looked at. */
static int is_known(const Site *site, PyObject *space, PyObject *const *values)
{
    PyObject *known = site->looked_at;
    if (known == NULL || PyTuple_GET_ITEM(known, 1) != space) return 0;
    for (Py_ssize_t n = 0, at = 2; n < site->params; n++) {
        PyObject *value = values[site->order[n]];
        int view = Py_TYPE(value) == L.Region;
        if (!view && !(site->matters >> n & 1)) continue;
        PyObject *now = view ? PyTuple_GET_ITEM(value, SHAPE) : value, *before = PyTuple_GET_ITEM(known, at++);
        if (now != before && (Py_TYPE(now) != Py_TYPE(before) || PyObject_RichCompareBool(now, before, Py_EQ) != 1)) return 0;
    }
    return 1;
}

/* Whether Python has looked for mistakes in a call of these sizes and numbers (`careful.looked_at`). */
static int is_looked_at(Site *site, PyObject *space, PyObject *const *values)
{
    for (Py_ssize_t n = 0; n < site->params; n++) {
        PyObject *value = values[site->order[n]];
        if (site->matters >> n & 1 && Py_TYPE(value) != L.Region && !is_plain(value)) return 0;
    }
    if (is_known(site, space, values)) return 1;
    PyObject *arguments = PyTuple_New(site->params);
    if (arguments == NULL) return 0;
    for (Py_ssize_t n = 0; n < site->params; n++)
        PyTuple_SET_ITEM(arguments, n, Py_NewRef(values[site->order[n]]));
    PyObject *key = PyObject_CallFunctionObjArgs(R.looked_at, site->workunit, space, arguments, NULL);
    Py_DECREF(arguments);
    if (key == NULL || key == Py_None) {
        Py_XDECREF(key);
        return 0;
    }
    Py_XSETREF(site->looked_at, key);
    return 1;
}

/* Whether a call is recorded; if not, or if Python has to see, that does all of it. watched: code made it that
   looks after arrays. */
int may_wait(Site *site, PyObject *space, PyObject *const *values, int watched)
{
    return site->pattern == 'f' && site->may_wait && is_safe(site, values, watched) && is_looked_at(site, space, values);
}
