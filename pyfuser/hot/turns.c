/* Turns: whether the tiny calls of a steady program are recorded, or run at once, as measured.

A program that reads after a few tiny calls may lose more by recording them than fusing gains. Once it
has made so many calls without one of a new kind, SPAN calls are recorded and SPAN run at once, in turns, PAIRS
times, and timed by this thread's processor time. What else the machine does slows both of a pair, most often,
so it is the median of their ratios that decides. After a while both are tried again, as the program may have
changed. What the calls of other modes take is left out. See `runtime/turns.py`.
*/
#include "hot.h"

#include <time.h>

enum {
    SEVERAL = 1 << 12, /* iterations for which a call counts as one more */
    CHECK = 64,        /* calls, without one of a new kind, until what an earlier process found is read */
    WAIT = 1 << 13,    /* ... until there is a trial */
    SPAN = 1 << 9,     /* calls of a turn; it ends where it began in the program's loop */
    PAIRS = 15,
    FEWEST = 4,        /* pairs until what is hopeless ends */
    REST = 32,         /* lengths of a trial between two trials, at first; it doubles */
    LONGEST = 1 << 26, /* calls between two trials */
};

static const double MARGIN = 0.98, HOPELESS = 2.0;

static struct {
    PyObject *ready, *known, *decided;  /* see `bind_turns` */
    int alone, stage, turn, paused, found;  /* found: by the latest trial */
    long calls, limit, rest;
    unsigned long thread;
    const void *site;   /* of the first call of a turn, and its space: never followed */
    const void *space;
    double start, spent, each[2], ratios[PAIRS];
} T;

enum { OFF, CHECKING, WAITING, TRIAL, RESTING };

static double now(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

/* bind_turns(ready, known, decided): functions of Python; None three times: there are no turns. */
PyObject *bind_turns(PyObject *module, PyObject *args)
{
    PyObject *given[3];
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2])) return NULL;
    for (int n = 0; n < 3; n++) Py_INCREF(given[n]);
    Py_XSETREF(T.ready, given[0]);
    Py_XSETREF(T.known, given[1]);
    Py_XSETREF(T.decided, given[2]);
    T.stage = given[0] == Py_None ? OFF : CHECKING;
    turns_reset();
    Py_RETURN_NONE;
}

/* There is a call of a new kind: all is measured anew. */
void turns_reset(void)
{
    if (T.stage == OFF) return;
    T.alone = 0;
    T.calls = T.rest = 0;
    T.limit = CHECK;
    T.stage = CHECKING;
}

/* A call of another mode: it, and what follows, is not measured. */
void turns_pause(void)
{
    if (T.stage != TRIAL || T.paused) return;
    T.spent += now() - T.start;
    T.paused = 1;
}

static void begin_turn(const void *site, const void *space)
{
    T.alone = (T.turn + 1) / 2 & 1;  /* recorded, at once, at once, recorded, ... */
    T.site = site;
    T.space = space;
    T.calls = T.paused = 0;
    T.limit = SPAN;
    T.spent = 0.0;
    T.thread = PyThread_get_thread_ident();
    T.start = now();
}

static void begin_trial(const void *site, const void *space)
{
    T.stage = TRIAL;
    T.turn = 0;
    T.each[0] = T.each[1] = 1.0;
    begin_turn(site, space);
}

/* What a function of Python answers, a number; -1 if it fails. */
static long asked(PyObject *function, PyObject *argument)
{
    PyObject *answer = PyObject_CallOneArg(function, argument);
    long number = answer == NULL ? -1 : PyLong_AsLong(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred()) PyErr_Clear();
    return number;
}

static void rest(int alone)
{
    long trial = 2L * PAIRS * SPAN * REST;
    T.rest = T.rest && alone == T.found ? (T.rest < LONGEST ? 2 * T.rest : LONGEST) : trial;
    T.alone = T.found = alone;
    T.stage = RESTING;
    T.calls = 0;
    T.limit = T.rest;
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What a call takes at once, over what it takes recorded: the median of pairs. */
static double ratio(int pairs)
{
    double sorted[PAIRS];
    memcpy(sorted, T.ratios, pairs * sizeof *sorted);
    qsort(sorted, pairs, sizeof *sorted, in_order);
    return sorted[pairs / 2];
}

/* A turn is over: the next one, or what was found. */
static void end_turn(const void *site, const void *space)
{
    if (!T.paused) T.spent += now() - T.start;
    if (T.thread == PyThread_get_thread_ident()) T.each[T.alone] = T.spent / T.calls;
    int pairs = ++T.turn / 2;
    if (T.turn % 2 == 0) T.ratios[pairs - 1] = T.each[1] / T.each[0];
    int hopeless = T.turn % 2 == 0 && pairs >= FEWEST && ratio(pairs) > HOPELESS;
    if (pairs < PAIRS && !hopeless) {
        begin_turn(site, space);
        return;
    }
    int alone = ratio(pairs) < MARGIN;
    rest(alone);
    asked(T.decided, alone ? Py_True : Py_False);
}

/* Nothing is pending, and a stage has had its calls. */
static void go_on(const void *site, const void *space)
{
    long more;
    switch (T.stage) {
    case CHECKING:
        T.stage = WAITING;
        T.limit = WAIT;
        if (asked(T.known, Py_None) > 0) rest(1);
        break;
    case WAITING:
        T.limit = T.calls + (1L << 20);  /* should Python record a call meanwhile */
        more = asked(T.ready, Py_None);
        if (more == 0)
            begin_trial(site, space);
        else if (more > 0)
            T.limit = T.calls + more;
        break;
    case RESTING:
        begin_trial(site, space);
        break;
    case TRIAL:
        if ((site == T.site && space == T.space) || T.calls >= 4 * SPAN) end_turn(site, space);
        break;
    }
}

/* One more call that may be recorded: whether it runs at once if nothing is pending. */
int turns_call(const void *site, const void *space, double iterations)
{
    if (T.stage == OFF) return 0;
    if (T.paused && T.stage == TRIAL) {
        T.start = now();
        T.paused = 0;
    }
    if (T.calls >= T.limit && PyList_GET_SIZE(SLOT(R.tracer, L.tracer.calls)) == 0) go_on(site, space);
    T.calls += 1 + (long)(iterations * (1.0 / SEVERAL));
    return T.alone;
}
