/* Where the program calls, and when a trace ends as a loop begins again. */
#include "record.h"
#include <string.h>

enum { LOOP_CALLS = 16, MOST_CALLS = 48, TRIPS_STRIDED = 4 };

int last_instruction(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti < 0 ? -1 : 2 * frame->f_lasti;
#endif
}

/* Whether a frame is of the program, not of ours. */
static int is_programs(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *globals = PyFrame_GetGlobals(frame);
#else
    PyObject *globals = Py_XNewRef(frame->f_globals);
#endif
    PyObject *name = globals == NULL ? NULL : PyDict_GetItemString(globals, "__name__");
    const char *text = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : "";
    static const char ours[] = "pyfuser.frontends.numpy";
    int found = text == NULL || strncmp(text, ours, sizeof ours - 1) != 0;
    Py_XDECREF(globals);
    return found;
}

/* As record.program_frame: the innermost frame of the program (a new reference), or NULL. */
PyFrameObject *program_frame(void)
{
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame != NULL && !is_programs(frame)) Py_SETREF(frame, PyFrame_GetBack(frame));
    return frame;
}

/* As first_tier.is_lost. shape: as the kernel has it. */
int is_lost(PyObject *code, PyObject *at, PyObject *shape)
{
    PyObject *site = PyTuple_Pack(3, code, at, shape);
    PyObject *bytes = site == NULL ? NULL : PyDict_GetItemWithError(P.sites, site);
    Py_XDECREF(site);
    return bytes != NULL && PyLong_AsLongLong(bytes) >= P.lost;
}

/* Whether what the program does there is given up, for results of this shape. */
int is_caller_lost(const Py_ssize_t *extents, int rank)
{
    PyFrameObject *frame = P.sites == NULL ? NULL : program_frame();
    if (frame == NULL) return 0;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame), *at = PyLong_FromLong(~(long)last_instruction(frame));
    PyObject *shape = tuple_of(extents, rank);
    const int found = at != NULL && shape != NULL && is_lost(code, at, shape);
    PyErr_Clear();  /* it is asked again */
    Py_DECREF(code);
    Py_XDECREF(at);
    Py_XDECREF(shape);
    Py_DECREF(frame);
    return found;
}

PyObject *caller_of(PyFrameObject *frame)
{
    PyFrameObject *back = PyFrame_GetBack(frame);
    if (back == NULL) return Py_BuildValue("(ii)", 0, 0);
    PyObject *code = (PyObject *)PyFrame_GetCode(back);
    PyObject *found = Py_BuildValue("(Ni)", PyLong_FromVoidPtr(code), last_instruction(back));
    Py_DECREF(code);
    Py_DECREF(back);
    return found;
}

/* As record.end_trip; -1: an error. strided: see are_strided. */
int end_trip(PyObject *code, PyObject *at, PyObject *caller, int strided)
{
    PyObject *calls = SLOT(K.tracer, K.t.calls);
    Py_ssize_t count = PyList_GET_SIZE(calls);
    long place = PyLong_AsLong(at);
    int trips = 0;
    if (count < LOOP_CALLS) return 0;
    PyObject *last = PyList_GET_ITEM(calls, count - 1);
    if (count < MOST_CALLS && SLOT(last, P.call.code) == code && PyLong_AsLong(SLOT(last, P.call.at)) > place) return 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *call = PyList_GET_ITEM(calls, n);
        if (SLOT(call, P.call.code) != code || PyLong_AsLong(SLOT(call, P.call.at)) != place) continue;
        int same = !Py_IS_TYPE(call, P.recorded) || PyObject_RichCompareBool(SLOT(call, P.call.caller), caller, Py_EQ);
        if (same < 0) return -1;
        trips += same;
        if (trips && !strided) break;
    }
    /* Another trip, if there is room for all of it: traces of parts of trips would not come again. */
    if (!trips || (strided && trips < TRIPS_STRIDED && count + count / trips <= MOST_CALLS)) return 0;
    PyObject *done = PyObject_CallOneArg(P.flush, P.why_loop);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}
