/* What is known of workunits: the scalars that matter to keys, and how many of their calls run at once.

How many do Python says: see `runtime/budget.py`.
*/
#include "hot.h"

enum { KNOWN = 1024 };
static struct {
    PyObject *workunit;
    uint64_t matters;
    long spare, given;  /* calls that run at once, and how many were given last */
    double ran;         /* iterations of these */
    int lone;           /* flushes in a row, about, of one tiny call, which was one of these */
    int due, lent;      /* how often it is left to Python to look at that; whether `spare` was given for it */
} known[KNOWN];

void forget_workunits(void)
{
    for (int n = 0; n < KNOWN; n++) Py_CLEAR(known[n].workunit);
}

long known_workunits(void)
{
    long count = 0;
    for (int n = 0; n < KNOWN; n++) count += known[n].workunit != NULL;
    return count;
}

static size_t place_of(PyObject *workunit)
{
    return ((uintptr_t)workunit >> 4) * 0x9E3779B97F4A7C15ull >> 32 & (KNOWN - 1);
}

/* Whether one more call of a workunit, of so many iterations, runs at once though it could be recorded. */
int take_spare(PyObject *workunit, double iterations)
{
    size_t at = place_of(workunit);
    if (known[at].workunit != workunit || known[at].spare <= 0) return 0;
    known[at].spare--;
    known[at].ran += iterations;
    return 1;
}

static void give(size_t at, long count)
{
    known[at].spare = known[at].given = count;
    known[at].ran = 0.0;
    known[at].lent = 0;
}

/* spare(workunit, count): how many more of its calls run at once; returns how many did of the last, and
   their iterations. */
PyObject *spare(PyObject *module, PyObject *args)
{
    PyObject *workunit;
    long count;
    if (!PyArg_ParseTuple(args, "Ol", &workunit, &count)) return NULL;
    size_t at = place_of(workunit);
    if (known[at].workunit != workunit) return Py_BuildValue("(ld)", 0L, 0.0);
    long used = known[at].lent ? 0 : known[at].given - known[at].spare;
    double ran = known[at].lent ? 0.0 : known[at].ran;
    give(at, count);
    return Py_BuildValue("(ld)", used, ran);
}

/* LOOK: flushes of one call of a workunit until Python looks at it. ASKED: how often it is left to Python then. */
enum { LOOK = 32, ASKED = 4 };

/* Of pending calls that are going to run: whether Python is to look, as there is but one, and has been for long. */
int is_lone(PyObject *calls)
{
    Py_ssize_t count = PyList_GET_SIZE(calls);
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *call = PyList_GET_ITEM(calls, n), *workunit = SLOT(call, L.call.workunit);
        size_t at = place_of(workunit);
        if (known[at].workunit != workunit) continue;
        if (count == 1) {
            if (known[at].due > 0) return --known[at].due > 0;  /* the same flush is asked for by several */
            if (!is_tiny(SLOT(call, L.call.space)) || ++known[at].lone < LOOK) return 0;
            known[at].lone = 0;
            return known[at].due = ASKED;
        }
        known[at].lone = known[at].due = 0;
        if (known[at].lent) give(at, 0);
    }
    return 0;
}

/* lend(workunit, count): so many of its calls run at once, as `is_lone` said; whether it did. */
PyObject *lend(PyObject *module, PyObject *args)
{
    PyObject *workunit;
    long count;
    if (!PyArg_ParseTuple(args, "Ol", &workunit, &count)) return NULL;
    size_t at = place_of(workunit);
    if (known[at].workunit != workunit || !known[at].due || known[at].spare > 0) Py_RETURN_FALSE;
    known[at].due = 0;
    known[at].lone = count ? LOOK - 1 : 0;  /* the next flush of one is looked at, too */
    if (count) give(at, count);
    known[at].lent = count != 0;
    Py_RETURN_TRUE;
}

int matters_of(PyObject *workunit, uint64_t *matters)
{
    size_t at = place_of(workunit);
    if (known[at].workunit == workunit) {
        *matters = known[at].matters;
        return KEYED;
    }
    PyObject *places = PyObject_CallOneArg(L.structural, workunit);
    if (places == NULL) return FAILED;
    PyObject *iterator = PyObject_GetIter(places), *place;
    Py_DECREF(places);
    if (iterator == NULL) return FAILED;
    uint64_t mask = 0;
    int bad = KEYED;
    while ((place = PyIter_Next(iterator)) != NULL) {
        Py_ssize_t number = PyLong_AsSsize_t(place);
        Py_DECREF(place);
        if (number < 0 || number >= MAX_ARGUMENTS) bad = UNKEYABLE;
        else mask |= 1ull << number;
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred()) return FAILED;
    if (bad) return bad;
    Py_INCREF(workunit);
    Py_XSETREF(known[at].workunit, workunit);
    known[at].matters = mask;
    known[at].lone = known[at].due = 0;
    give(at, 0);
    *matters = mask;
    return KEYED;
}
