/* Recording an operation on operands of types and places that were seen before: what
   frontends/numpy/record.py does, without a line of Python. See frontends/numpy/known.py. */
#include "array.h"
#include "../hot/api.h"
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { OPERANDS = 3, MOST_WORDS = 64, ROOM = 4096, SLOTS = 16384, MOST_AXES = 8, LOOP_CALLS = 16, MOST_CALLS = 48, SMALL_CALLS = 8, INTEGERS = 8 };

static const HotApi *hot;

static struct {
    PyTypeObject *recorded, *allocation, *region, *numpys_float, *numpys_single;
    PyObject *plan, *number, *region_of, *flush;  /* functions of Python's */
    PyObject *why_read, *why_loop;
    PyObject *state, *state_default, *sites, *float64, *float32, *pattern, *kinds;  /* kinds: in the order of `few`'s types */
    long long lost, kind;
    struct { PyObject *dtype; PyTypeObject *scalars; long long least, most; } integers[INTEGERS];
    PyObject *costly_name, *divides_name;
    struct { Py_ssize_t arguments, at, code, label, pattern, position, result, space, workunit, caller, errors, recipe, ripe; } call;
    struct { Py_ssize_t exports, handle, address, external, image, lent, nbytes, pending, root; } buffer;
    struct { Py_ssize_t after, eager, exact, small; } limits;
} P;

/* What `known.plan` tells of a number or an array; borrowed from the plan. */
typedef struct {
    PyObject *dtype;                       /* of a number, or of the array */
    PyObject *strides, *shape;             /* of the array, NULL for a number */
    PyObject *form_strides, *form_shape;   /* as kernels have it */
    int aligned;
    Py_ssize_t itemsize;
} Operand;

typedef struct {
    uint64_t hash, *words;
    Py_ssize_t count;
    int looked;      /* whether `known.plan` was asked: only once it may be recorded */
    PyObject *plan;  /* NULL: Python sees to it */
    PyObject *recipe, *workunit, *space, *shape, *strides, *dtype, *nbytes;
    PyObject *form_shape, *form_strides;
    Operand operands[OPERANDS];
    Py_ssize_t size, itemsize, bytes;  /* bytes: that it moves */
    long long moved;  /* bytes that such operations moved at once */
    int costly, ripe; /* ripe: whether those of the function have moved enough */
} Plan;

static Plan *plans[SLOTS];
static Py_ssize_t plan_count;

static void drop_plan(Plan *plan)
{
    Py_XDECREF(plan->plan);
    PyMem_Free(plan->words);
    PyMem_Free(plan);
}

static void forget(void)
{
    for (int n = 0; n < SLOTS; n++)
        if (plans[n] != NULL) {
            Plan *plan = plans[n];
            plans[n] = NULL;
            drop_plan(plan);
        }
    plan_count = 0;
}

static PyObject *forget_plans(PyObject *module, PyObject *unused)
{
    forget();
    forget_functions();
    Py_RETURN_NONE;
}

static PyObject *count_plans(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(plan_count); }

/* ------------------------------------------------------------------ operands */

/* Where an operand lies: `region` or, in a buffer that has memory, `array`; buffer NULL: of an array that
   nobody shares, so it has none yet. */
typedef struct {
    PyObject *x, *region, *buffer;  /* borrowed; x NULL: a number */
    Numpys *array;
    Py_ssize_t offset;
} Place;

static PyObject *array_of(PyObject *x)
{
    PyObject *array = SLOT(x, K.x.array);
    return array == NULL || array == Py_None ? NULL : array;
}

/* 0: it has no place that the extension knows. */
static int locate(PyObject *x, Place *found)
{
    PyObject *region = SLOT(x, K.x.region), *owner = SLOT(x, K.x.owner), *array = array_of(x);
    found->x = x;
    found->array = (Numpys *)array;
    if (region == NULL || region == Py_None) {
        PyObject *buffer = owner != NULL && Py_IS_TYPE(owner, K.owner) ? SLOT(owner, K.o.buffer) : NULL;
        if (buffer != NULL && buffer != Py_None && SLOT(buffer, P.buffer.root) != Py_None && array != NULL) {
            found->region = NULL;
            found->buffer = buffer;
            found->offset = (Py_ssize_t)(found->array->data - (char *)PyLong_AsVoidPtr(SLOT(buffer, P.buffer.address)));
            return !PyErr_Occurred();
        }
        found->region = found->buffer = NULL;
        return owner != Py_None && array != NULL;  /* else foreign */
    }
    found->region = region;
    found->buffer = PyTuple_GET_ITEM(region, 0);
    found->offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(region, 1));
    return 1;
}

/* The region of an array that has memory, in the buffer of its owner (a new reference); NULL, without an error:
   Python is to make it. */
static PyObject *region_in_buffer(const Numpys *array, PyObject *owner)
{
    PyObject *buffer = owner != NULL && Py_IS_TYPE(owner, K.owner) ? SLOT(owner, K.o.buffer) : NULL;
    int type = buffer == NULL || buffer == Py_None || !size_of((PyObject *)array) ? TYPES : type_of(array);
    if (type == TYPES || SLOT(buffer, P.buffer.root) == Py_None) return NULL;
    PyObject *shape = tuple_of(array->dimensions, array->nd), *strides = tuple_of(array->strides, array->nd);
    Py_ssize_t offset = array->data - (char *)PyLong_AsVoidPtr(SLOT(buffer, P.buffer.address));
    PyObject *region = shape == NULL || strides == NULL || PyErr_Occurred()
        ? NULL : new_region(buffer, offset, strides, shape, PyTuple_GET_ITEM(P.kinds, type));
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return region;
}

/* The region of an array, made if there is none (borrowed); NULL: Python is to see to it. */
static PyObject *region_of(PyObject *x)
{
    PyObject *region = SLOT(x, K.x.region), *array = array_of(x);
    if (region != NULL && region != Py_None) return region;
    PyObject *made = array == NULL ? NULL : region_in_buffer((Numpys *)array, SLOT(x, K.x.owner));
    if (made != NULL) Py_XSETREF(SLOT(x, K.x.region), Py_NewRef(made));
    else made = PyObject_CallOneArg(P.region_of, x);  /* it keeps it */
    Py_XDECREF(made);
    PyErr_Clear();
    region = SLOT(x, K.x.region);
    return region == Py_None ? NULL : region;
}

/* Give an array that has no buffer one; 0: Python is to see to it. */
static int settle(Place *place)
{
    return place->x == NULL || place->buffer != NULL || (region_of(place->x) != NULL && locate(place->x, place));
}

static int put_tuple(PyObject *tuple, uint64_t *words, int at)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    if (at + count > MOST_WORDS) return -1;
    for (Py_ssize_t n = 0; n < count; n++) words[at++] = (uint64_t)PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, n));
    return at;
}

/* Put type, shape and strides into the key; the next place in it, or -1. */
static int put_place(const Place *place, uint64_t *words, int at)
{
    Numpys *array = place->array;
    if (at + 2 > MOST_WORDS) return -1;
    if (array != NULL) {
        if (!array->nd || at + 2 + 2 * array->nd > MOST_WORDS) return -1;
        words[at++] = (uint64_t)(uintptr_t)array->descr;
        words[at++] = (uint64_t)array->nd;
        for (int n = 0; n < array->nd; n++) words[at++] = (uint64_t)array->dimensions[n];
        for (int n = 0; n < array->nd; n++) words[at++] = (uint64_t)array->strides[n];
        return at;
    }
    PyObject *region = place->region, *shape = PyTuple_GET_ITEM(region, 3);
    if (!PyTuple_GET_SIZE(shape)) return -1;
    words[at++] = (uint64_t)(uintptr_t)PyTuple_GET_ITEM(region, 4);
    words[at++] = (uint64_t)PyTuple_GET_SIZE(shape);
    at = put_tuple(shape, words, at);
    return at < 0 ? -1 : put_tuple(PyTuple_GET_ITEM(region, 2), words, at);
}

/* ------------------------------------------------------------------ plans */

/* As known._operand has it. */
static int read_operand(PyObject *given, Operand *operand)
{
    memset(operand, 0, sizeof *operand);
    if (!PyTuple_CheckExact(given)) {
        operand->dtype = given;
        return 1;
    }
    PyObject *form = PyTuple_GET_ITEM(given, 3);
    operand->form_shape = operand->shape = PyTuple_GET_ITEM(given, 0);
    operand->form_strides = operand->strides = PyTuple_GET_ITEM(given, 1);
    operand->dtype = PyTuple_GET_ITEM(given, 2);
    operand->aligned = PyObject_IsTrue(PyTuple_GET_ITEM(given, 4));
    operand->itemsize = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, 5));
    if (form != Py_None) {
        operand->form_shape = PyTuple_GET_ITEM(form, 0);
        operand->form_strides = PyTuple_GET_ITEM(form, 1);
    }
    return 1;
}

static int read_plan(Plan *plan, PyObject *told)  /* steals */
{
    plan->plan = told;
    plan->recipe = PyTuple_GET_ITEM(told, 0);
    plan->workunit = PyTuple_GET_ITEM(told, 1);
    plan->space = PyTuple_GET_ITEM(told, 2);
    plan->form_shape = plan->shape = PyTuple_GET_ITEM(told, 3);
    plan->form_strides = plan->strides = PyTuple_GET_ITEM(told, 4);
    plan->dtype = PyTuple_GET_ITEM(told, 5);
    plan->nbytes = PyTuple_GET_ITEM(told, 6);
    plan->size = PyLong_AsSsize_t(PyTuple_GET_ITEM(told, 7));
    plan->itemsize = PyLong_AsSsize_t(plan->nbytes) / plan->size;
    PyObject *form = PyTuple_GET_ITEM(told, 8), *operands = PyTuple_GET_ITEM(told, 9);
    if (form != Py_None) {
        plan->form_shape = PyTuple_GET_ITEM(form, 0);
        plan->form_strides = PyTuple_GET_ITEM(form, 1);
    }
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(operands); n++) read_operand(PyTuple_GET_ITEM(operands, n), &plan->operands[n]);
    plan->costly = (int)PyLong_AsLong(PyTuple_GET_ITEM(told, 10));
    return 0;
}

/* Ask Python how the operation is recorded. It may forget plans: the answer is for those that are there. */
static PyObject *ask(PyObject *operation, PyObject *const *operands, int given, PyObject *out)
{
    PyObject *tuple = PyTuple_New(given);
    for (int n = 0; tuple != NULL && n < given; n++) PyTuple_SET_ITEM(tuple, n, Py_NewRef(operands[n]));
    PyObject *told = tuple == NULL ? NULL : PyObject_CallFunctionObjArgs(P.plan, operation, tuple, out == NULL ? Py_None : out, NULL);
    Py_XDECREF(tuple);
    return told;
}

/* A plan that Python was not asked for yet. */
static Plan *new_plan(uint64_t hash, const uint64_t *words, int count, PyObject *operation)
{
    PyObject *costly = PyObject_GetAttr(operation, P.costly_name);
    Plan *plan = costly == NULL ? NULL : PyMem_Calloc(1, sizeof *plan);
    if (plan != NULL) plan->words = PyMem_Malloc(count * sizeof *words);
    if (plan == NULL || plan->words == NULL) {
        Py_XDECREF(costly);
        PyMem_Free(plan);
        return NULL;
    }
    memcpy(plan->words, words, count * sizeof *words);
    plan->count = count;
    plan->hash = hash;
    plan->costly = costly == Py_True;
    Py_DECREF(costly);
    return plan;
}

static Py_ssize_t extent_of(const Place *place, int axis)
{
    return place->array != NULL ? place->array->dimensions[axis] : PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(place->region, 3), axis));
}

static int rank_of(const Place *place)
{
    return place->array != NULL ? place->array->nd : (int)PyTuple_GET_SIZE(PyTuple_GET_ITEM(place->region, 3));
}

/* Find the number of elements of the result and, roughly, the bytes that it moves; 0: it has none. */
static int measure(Plan *plan, const Place *places, int given, const Place *target)
{
    Py_ssize_t extents[MOST_AXES] = {0}, size = 1;
    int rank = 0;
    Py_ssize_t itemsize = 0, widest = 0;  /* of all operands; and of the result, as far as is known */
    for (int n = 0; n <= given; n++) {
        const Place *place = n < given ? &places[n] : target;
        if (place->x == NULL) continue;
        int own = rank_of(place);
        if (own > MOST_AXES) return 0;
        rank = own > rank ? own : rank;
        const int type = place->array == NULL ? TYPES : type_of(place->array);
        const Py_ssize_t own_bytes = type < TYPES ? BYTES[type] : 8;
        itemsize += n < given ? own_bytes : 0;
        widest = own_bytes > widest ? own_bytes : widest;
        for (int axis = 0; axis < own; axis++) {
            Py_ssize_t extent = extent_of(place, own - 1 - axis), *most = &extents[axis];
            if (*most > 1 && extent > 1 && extent != *most) return 0;
            if (extent == 0) return 0;
            *most = extent > *most ? extent : *most;
        }
    }
    for (int axis = 0; axis < rank; axis++)
        if (__builtin_mul_overflow(size, extents[axis], &size)) return 0;
    plan->size = size;
    plan->bytes = size * (itemsize + widest) * (plan->costly ? 4 : 1);  /* such a function takes NumPy that much longer */
    return rank > 0;
}

static Plan *plan_for(PyObject *operation, int given, PyObject *const *operands, const Place *places, PyObject *out, const Place *target)
{
    uint64_t words[MOST_WORDS], hash = 1469598103934665603u;
    int at = 0;
    words[at++] = (uint64_t)(uintptr_t)operation;
    words[at++] = (uint64_t)given << 2 | (uint64_t)(out != NULL) << 1 | (SLOT(K.limits, P.limits.exact) == Py_True);
    for (int n = 0; n < given; n++) {
        if (places[n].x == NULL) {
            if (at >= MOST_WORDS) return NULL;
            words[at++] = (uint64_t)(uintptr_t)Py_TYPE(operands[n]);
        } else {
            at = put_place(&places[n], words, at);
            if (at < 0) return NULL;
        }
    }
    if (out != NULL && (at = put_place(target, words, at)) < 0) return NULL;
    for (int n = 0; n < at; n++) {
        hash = (hash ^ words[n]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    Py_ssize_t slot = (Py_ssize_t)(hash % SLOTS);
    for (; plans[slot] != NULL; slot = (slot + 1) % SLOTS) {
        Plan *plan = plans[slot];
        if (plan->hash == hash && plan->count == at && memcmp(plan->words, words, at * sizeof *words) == 0) return plan;
    }
    Plan *plan = new_plan(hash, words, at, operation);
    if (plan == NULL) return NULL;
    if (!measure(plan, places, given, target)) {
        drop_plan(plan);
        return NULL;
    }
    if (plan_count >= ROOM) forget();
    for (slot = (Py_ssize_t)(hash % SLOTS); plans[slot] != NULL; slot = (slot + 1) % SLOTS);
    plans[slot] = plan;
    plan_count++;
    return plan;
}

/* ------------------------------------------------------------------ the call */

static int last_instruction(PyFrameObject *frame)
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
static PyFrameObject *program_frame(void)
{
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame != NULL && !is_programs(frame)) Py_SETREF(frame, PyFrame_GetBack(frame));
    return frame;
}

/* As first_tier.is_lost. */
static int is_lost(PyObject *code, PyObject *at, PyObject *shape)
{
    PyObject *site = PyTuple_Pack(3, code, at, shape);
    PyObject *bytes = site == NULL ? NULL : PyDict_GetItemWithError(P.sites, site);
    Py_XDECREF(site);
    return bytes != NULL && PyLong_AsLongLong(bytes) >= P.lost;
}

static PyObject *caller_of(PyFrameObject *frame)
{
    PyFrameObject *back = PyFrame_GetBack(frame);
    if (back == NULL) return Py_BuildValue("(ii)", 0, 0);
    PyObject *code = (PyObject *)PyFrame_GetCode(back);
    PyObject *found = Py_BuildValue("(Ni)", PyLong_FromVoidPtr(code), last_instruction(back));
    Py_DECREF(code);
    Py_DECREF(back);
    return found;
}

/* As record.end_trip; -1: an error. */
static int end_trip(PyObject *code, PyObject *at, PyObject *caller)
{
    PyObject *calls = SLOT(K.tracer, K.t.calls);
    Py_ssize_t count = PyList_GET_SIZE(calls);
    long place = PyLong_AsLong(at);
    if (count < LOOP_CALLS) return 0;
    PyObject *last = PyList_GET_ITEM(calls, count - 1);
    if (count < MOST_CALLS && SLOT(last, P.call.code) == code && PyLong_AsLong(SLOT(last, P.call.at)) > place) return 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *call = PyList_GET_ITEM(calls, n);
        if (SLOT(call, P.call.code) != code || PyLong_AsLong(SLOT(call, P.call.at)) != place) continue;
        int same = !Py_IS_TYPE(call, P.recorded) || PyObject_RichCompareBool(SLOT(call, P.call.caller), caller, Py_EQ);
        if (same < 0) return -1;
        if (!same) continue;
        PyObject *done = PyObject_CallOneArg(P.flush, P.why_loop);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    return 0;
}

PyObject *new_region(PyObject *buffer, Py_ssize_t offset, PyObject *strides, PyObject *shape, PyObject *dtype)
{
    if (hot == NULL) return NULL;
    PyObject *region = P.region->tp_alloc(P.region, 5), *number = PyLong_FromSsize_t(offset);
    if (region == NULL || number == NULL) {
        Py_XDECREF(region);
        Py_XDECREF(number);
        return NULL;
    }
    PyTuple_SET_ITEM(region, 0, Py_NewRef(buffer));
    PyTuple_SET_ITEM(region, 1, number);
    PyTuple_SET_ITEM(region, 2, Py_NewRef(strides));
    PyTuple_SET_ITEM(region, 3, Py_NewRef(shape));
    PyTuple_SET_ITEM(region, 4, Py_NewRef(dtype));
    return region;
}

/* The region that a call has for an operand or the result. */
static PyObject *formed(const Place *place, PyObject *strides, PyObject *shape, PyObject *form_strides, PyObject *form_shape, PyObject *dtype)
{
    if (strides != form_strides || shape != form_shape) return new_region(place->buffer, place->offset, form_strides, form_shape, dtype);
    if (place->region != NULL) return Py_NewRef(place->region);
    PyObject *region = new_region(place->buffer, place->offset, strides, shape, dtype);
    if (region != NULL) Py_XSETREF(SLOT(place->x, K.x.region), Py_NewRef(region));
    return region;
}

/* Whether an operation divides by its second operand. */
static int divides(PyObject *operation)
{
    PyObject *told = PyObject_GetAttr(operation, P.divides_name);
    Py_XDECREF(told);
    return told != Py_False;
}

static PyObject *plain_real(PyObject *value, PyObject *dtype)
{
    if (dtype == P.float32 && Py_IS_TYPE(value, P.numpys_single)) {
        PyObject *number = PyNumber_Float(value);
        if (number != NULL && PyFloat_AS_DOUBLE(number) != PyFloat_AS_DOUBLE(number)) Py_CLEAR(number);
        return number;
    }
    int exact = PyFloat_CheckExact(value);
    if (!exact && !Py_IS_TYPE(value, P.numpys_float)) return NULL;
    double number = PyFloat_AS_DOUBLE(value);
    if (number != number) return NULL;
    if (dtype == P.float64) return exact ? Py_NewRef(value) : PyFloat_FromDouble(number);
    return exact && dtype == P.float32 && fabs(number) < FLT_MAX ? PyFloat_FromDouble((float)number) : NULL;
}

/* A number for which resolution.number asks nothing else; NULL, without an error: another one, or a NaN. */
static PyObject *plain_number(PyObject *operation, int place, PyObject *value, PyObject *dtype)
{
    if (!PyLong_CheckExact(value)) {
        for (int n = 0; n < INTEGERS; n++)
            if (P.integers[n].dtype == dtype && Py_IS_TYPE(value, P.integers[n].scalars) && !(place == 1 && divides(operation)))
                return PyNumber_Index(value);
        return plain_real(value, dtype);
    }
    int beyond;
    long long number = PyLong_AsLongLongAndOverflow(value, &beyond);
    if (beyond) return NULL;
    if (dtype == P.float64) return llabs(number) < 1LL << 53 ? PyFloat_FromDouble((double)number) : NULL;
    for (int n = 0; n < INTEGERS; n++) {
        if (P.integers[n].dtype != dtype) continue;
        if (number < P.integers[n].least || number > P.integers[n].most) return NULL;
        return place == 1 && (number == 0 || number == -1) && divides(operation) ? NULL : Py_NewRef(value);
    }
    return NULL;
}

/* A number as the loop has it: a new reference, or NULL without an error: it is Python's to see to. */
static PyObject *number_of(PyObject *operation, int place, PyObject *value, PyObject *dtype)
{
    PyObject *found = plain_number(operation, place, value, dtype);
    if (found != NULL || PyErr_Occurred()) return found;
    found = PyObject_CallFunction(P.number, "OiOO", operation, place, value, dtype);
    if (found == Py_None) Py_CLEAR(found);
    return found;
}

static void bounds(Py_ssize_t offset, PyObject *strides, PyObject *shape, Py_ssize_t size, Py_ssize_t *low, Py_ssize_t *high)
{
    *low = *high = offset;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(shape); n++) {
        Py_ssize_t span = (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, n)) - 1) * PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, n));
        *(span < 0 ? low : high) += span;
    }
    *high += size;
}

static Py_ssize_t step_of(Py_ssize_t step, PyObject *strides)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(strides); n++) {
        Py_ssize_t other = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, n));
        other = other < 0 ? -other : other;
        while (other) {
            Py_ssize_t rest = step % other;
            step = other;
            other = rest;
        }
    }
    return step;
}

/* As record.independent: whether no iteration writes what another one reads of an operand. */
static int independent(const Plan *plan, const Operand *operand, const Place *place, const Place *target)
{
    if (place->buffer != target->buffer) return 1;
    if (operand->aligned && place->offset == target->offset) return 1;
    Py_ssize_t low, high, least, most;
    bounds(place->offset, operand->form_strides, operand->form_shape, operand->itemsize, &low, &high);
    bounds(target->offset, plan->form_strides, plan->form_shape, plan->itemsize, &least, &most);
    if (high <= least || most <= low) return 1;
    Py_ssize_t step = step_of(step_of(0, operand->form_strides), plan->form_strides);
    if (!step) return 0;
    Py_ssize_t apart = ((target->offset - place->offset) % step + step) % step;
    return apart >= operand->itemsize && step - apart >= plan->itemsize;
}

static PyObject *new_call(const Plan *plan, PyObject *arguments, PyObject *code, PyObject *at, PyObject *caller)  /* steals arguments */
{
    PyObject *call = P.recorded->tp_alloc(P.recorded, 0);
    if (call == NULL) {
        Py_DECREF(arguments);
        return NULL;
    }
    SLOT(call, P.call.arguments) = arguments;
    SLOT(call, P.call.at) = Py_NewRef(at);
    SLOT(call, P.call.code) = Py_NewRef(code);
    SLOT(call, P.call.label) = Py_NewRef(Py_None);
    SLOT(call, P.call.pattern) = Py_NewRef(P.pattern);
    SLOT(call, P.call.position) = PyLong_FromLong(-1);
    SLOT(call, P.call.result) = Py_NewRef(Py_None);
    SLOT(call, P.call.space) = Py_NewRef(plan->space);
    SLOT(call, P.call.workunit) = Py_NewRef(plan->workunit);
    SLOT(call, P.call.caller) = Py_NewRef(caller);
    SLOT(call, P.call.errors) = Py_NewRef(Py_None);
    SLOT(call, P.call.recipe) = Py_NewRef(plan->recipe);
    SLOT(call, P.call.ripe) = Py_NewRef(plan->ripe ? Py_True : Py_False);
    PyObject_GC_UnTrack(call);  /* no cycle leads through them but that of the tracer itself */
    PyObject_GC_UnTrack(arguments);
    return call;
}

static PyObject *new_buffer(PyObject *nbytes, PyObject *owner)
{
    PyObject *buffer = P.allocation->tp_alloc(P.allocation, 0);
    if (buffer == NULL) return NULL;
    SLOT(buffer, P.buffer.exports) = Py_NewRef(Py_None);
    SLOT(buffer, P.buffer.address) = PyLong_FromLong(0);
    SLOT(buffer, P.buffer.external) = Py_NewRef(Py_False);
    SLOT(buffer, P.buffer.image) = Py_NewRef(Py_None);
    SLOT(buffer, P.buffer.lent) = Py_NewRef(Py_False);
    SLOT(buffer, P.buffer.nbytes) = Py_NewRef(nbytes);
    SLOT(buffer, P.buffer.pending) = PyLong_FromLong(0);
    SLOT(buffer, P.buffer.root) = Py_NewRef(Py_None);
    SLOT(buffer, P.buffer.handle) = PyWeakref_NewRef(owner, NULL);
    if (SLOT(buffer, P.buffer.handle) == NULL) Py_CLEAR(buffer);
    return buffer;
}

PyObject *unmade_array(PyObject *strides, PyObject *shape, PyObject *dtype, PyObject *nbytes)
{
    PyObject *owner = K.owner->tp_alloc(K.owner, 0), *buffer = owner == NULL ? NULL : new_buffer(nbytes, owner);
    PyObject *region = buffer == NULL ? NULL : new_region(buffer, 0, strides, shape, dtype);
    PyObject *x = region == NULL ? NULL : K.ours->tp_alloc(K.ours, 0);
    if (x != NULL) {
        SLOT(owner, K.o.buffer) = Py_NewRef(buffer);
        SLOT(x, K.x.array) = Py_NewRef(Py_None);
        SLOT(x, K.x.base) = Py_NewRef(Py_None);
        SLOT(x, K.x.owner) = Py_NewRef(owner);
        SLOT(x, K.x.region) = Py_NewRef(region);
        SLOT(x, K.x.writeable) = Py_NewRef(Py_True);
    }
    Py_XDECREF(region);
    Py_XDECREF(buffer);
    Py_XDECREF(owner);
    return x;
}

/* A new array for a result. */
static PyObject *new_array(const Plan *plan, Place *target)
{
    PyObject *x = unmade_array(plan->strides, plan->shape, plan->dtype, plan->nbytes);
    if (x == NULL) return NULL;
    PyObject *region = SLOT(x, K.x.region);
    *target = (Place){x, region, PyTuple_GET_ITEM(region, 0), NULL, 0};
    return x;
}

/* Where an array lies in a buffer that nobody else reaches (borrowed); NULL, without an error: nowhere. */
PyObject *recordable(PyObject *x)
{
    PyObject *region = hot == NULL ? NULL : region_of(x);
    return region == NULL || SLOT(PyTuple_GET_ITEM(region, 0), P.buffer.external) != Py_False ? NULL : region;
}

static int is_external(const Place *place) { return SLOT(place->buffer, P.buffer.external) != Py_False; }

static int is_touched(const Place *place) { return place->buffer != NULL && PyLong_AsLongLong(SLOT(place->buffer, P.buffer.pending)) > 0; }

/* The arguments of the call: the result and the operands; NULL, with or without an error: none. */
static PyObject *arguments_of(const Plan *plan, PyObject *operation, PyObject *const *operands, int given, const Place *places,
                              const Place *target)
{
    PyObject *arguments = PyTuple_New(given + 1);
    if (arguments == NULL) return NULL;
    PyObject *first = formed(target, plan->strides, plan->shape, plan->form_strides, plan->form_shape, plan->dtype);
    int fine = first != NULL;
    PyTuple_SET_ITEM(arguments, 0, first);
    for (int n = 0; n < given && fine; n++) {
        const Operand *operand = &plan->operands[n];
        PyObject *argument = places[n].x == NULL
            ? number_of(operation, n, operands[n], operand->dtype)
            : formed(&places[n], operand->strides, operand->shape, operand->form_strides, operand->form_shape, operand->dtype);
        PyTuple_SET_ITEM(arguments, n + 1, argument);
        fine = argument != NULL;
    }
    if (!fine) Py_CLEAR(arguments);
    return arguments;
}

/* As record.may_follow. */
static int may_follow(void)
{
    PyObject *calls = SLOT(K.tracer, K.t.calls), *first = NULL;
    if (PyList_GET_SIZE(calls)) first = SLOT(PyList_GET_ITEM(calls, 0), P.call.position);
    long long start = first == NULL ? 0 : PyLong_AsLongLong(first);
    long long small = PyLong_AsLongLong(SLOT(K.limits, P.limits.after)) == start ? PyLong_AsLongLong(SLOT(K.limits, P.limits.small)) : 0;
    PyObject *count = PyLong_FromLongLong(small + 1), *after = PyLong_FromLongLong(start);
    if (count == NULL || after == NULL) {
        PyErr_Clear();
        return 0;
    }
    Py_XSETREF(SLOT(K.limits, P.limits.small), count);
    Py_XSETREF(SLOT(K.limits, P.limits.after), after);
    return small < SMALL_CALLS;
}

/* A call that is worth it was recorded. */
static int follows_none(void)
{
    PyObject *none = PyLong_FromLong(0);
    if (none == NULL) PyErr_Clear();
    else Py_XSETREF(SLOT(K.limits, P.limits.small), none);
    return 1;
}

/* Whether it is recorded, as far as the numbers of elements and of calls decide it. */
static int is_worth(Plan *plan, int pending, PyObject *code)
{
    Py_ssize_t least = limit(plan->costly), middle = plan->costly ? K.middle / 4 : K.middle;
    plan->ripe = 0;
    if (plan->size >= least) return follows_none();
    if (plan->size < middle && plan->size < lazy_from(plan->costly)) return pending && may_follow();
    plan->moved += plan->bytes;
    plan->ripe = is_ripe(code, plan->bytes);
    if (pending) return follows_none();
    return plan->moved >= P.kind && (plan->ripe || PyList_GET_SIZE(SLOT(K.tracer, K.t.calls)));
}

static PyObject *made_of(Plan *found, PyObject *operation, PyObject *const *operands, int given, Place *places, PyObject *out, Place *target,
                         PyFrameObject *frame, PyObject *code, PyObject *at, int pending, int part)
{
    const Plan known = *found, *plan = &known;  /* Python may forget plans */
    if (!part && !pending && is_lost(code, at, plan->shape)) return NULL;
    int settled = out == NULL || settle(target);
    for (int n = 0; n < given; n++) settled = settled && settle(&places[n]);
    if (!settled) return NULL;
    PyObject *caller = caller_of(frame);
    if (caller == NULL || (!part && end_trip(code, at, caller) < 0) || !hot->records()) {
        Py_XDECREF(caller);
        return NULL;
    }
    PyObject *result = out == NULL ? new_array(plan, target) : Py_NewRef(out);
    PyObject *arguments = result == NULL ? NULL : arguments_of(plan, operation, operands, given, places, target);
    PyObject *call = arguments == NULL ? NULL : new_call(plan, arguments, code, at, caller);
    Py_DECREF(caller);
    int fine = call != NULL && !is_external(target);
    for (int n = 0; n < given && fine; n++)
        fine = places[n].x == NULL || (!is_external(&places[n]) && (out == NULL || independent(plan, &plan->operands[n], &places[n], target)));
    if (!fine || hot->record(call) < 0) Py_CLEAR(result);
    Py_XDECREF(call);
    return result;
}

static int is_usual_state(void)
{
    PyObject *state = NULL;
    if (PyContextVar_Get(P.state, Py_None, &state) < 0) return 0;
    Py_XDECREF(state);
    return state == P.state_default;
}

/* The result of an operation, recorded (a new reference); NULL without an error: not by this. part: whether
   that was decided before, as it is a part of what the program calls. */
static PyObject *recorded_as(PyObject *operation, PyObject *const *operands, int given, PyObject *out, int part)
{
    if (hot == NULL || operation == NULL || given > OPERANDS) return NULL;
    if (SLOT(K.use, K.u.devices) == Py_True || SLOT(K.limits, P.limits.eager) == Py_True || !hot->records() || !is_usual_state()) return NULL;
    Place places[OPERANDS], target = {NULL, NULL, NULL, NULL, 0};
    int arrays = out != NULL;
    for (int n = 0; n < given; n++) {
        places[n] = target;
        if (IS_OURS(operands[n])) {
            arrays++;
            if (!locate(operands[n], &places[n])) goto unknown;
        } else if (!is_scalar(operands[n]) || PyUnicode_Check(operands[n]) || PyBytes_Check(operands[n])) {
            goto unknown;
        }
    }
    if (!arrays || (out != NULL && (SLOT(out, K.x.writeable) == Py_False || !locate(out, &target)))) goto unknown;
    Plan *plan = plan_for(operation, given, operands, places, out, &target);
    if (plan == NULL || (plan->looked && plan->plan == NULL)) goto unknown;
    int pending = out != NULL && is_touched(&target);
    for (int n = 0; n < given && !pending; n++) pending = places[n].x != NULL && is_touched(&places[n]);
    PyFrameObject *frame = program_frame();
    if (frame == NULL) return NULL;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    if (!part && !is_worth(plan, pending, code)) {
        PyObject *done = pending ? PyObject_CallOneArg(P.flush, P.why_read) : NULL;  /* NumPy computes it now */
        Py_XDECREF(done);
        Py_DECREF(code);
        Py_DECREF(frame);
        return NULL;
    }
    if (!plan->looked) {
        PyObject *told = ask(operation, operands, given, out);
        plan = told == NULL ? NULL : plan_for(operation, given, operands, places, out, &target);
        if (plan == NULL || plan->looked || told == Py_None) {
            if (plan != NULL && told == Py_None) plan->looked = 1;
            Py_XDECREF(told);
            Py_DECREF(code);
            Py_DECREF(frame);
            goto unknown;
        }
        plan->looked = 1;
        read_plan(plan, told);
    }
    PyObject *kept = Py_NewRef(plan->plan), *at = PyLong_FromLong(~(long)last_instruction(frame));
    PyObject *result = at == NULL ? NULL : made_of(plan, operation, operands, given, places, out, &target, frame, code, at, pending, part);
    Py_DECREF(frame);
    Py_XDECREF(at);
    Py_DECREF(code);
    Py_DECREF(kept);
    return result;
unknown:
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();  /* it comes again */
    return NULL;
}

PyObject *recorded(PyObject *operation, PyObject *const *operands, int given, PyObject *out)
{
    return recorded_as(operation, operands, given, out, 0);
}

/* Copy an array into another one of its shape, as a part of what the program calls; -1: an error. */
int record_part(PyObject *x, PyObject *out)
{
    PyObject *found = recorded_as(copies, &x, 1, out, 1);
    if (found == NULL && !PyErr_Occurred()) return PyObject_SetItem(out, Py_Ellipsis, x);
    Py_XDECREF(found);
    return found == NULL ? -1 : 0;
}

/* ------------------------------------------------------------------ binding */

static int slots(void)
{
    PyObject *recorded = (PyObject *)P.recorded, *buffer = (PyObject *)P.allocation;
#define PLACE(of, name) if (place(of, #name, &P.of.name) < 0) return -1;
#define CALL(name) if (place(recorded, #name, &P.call.name) < 0) return -1;
#define PRIVATE(of, name) if (place(of, "_" #name, &P.of.name) < 0) return -1;
    CALL(arguments) CALL(at) CALL(code) CALL(label) CALL(pattern) CALL(position) CALL(result) CALL(space) CALL(workunit)
    CALL(caller) CALL(errors) CALL(recipe) CALL(ripe)
    PRIVATE(buffer, exports) PRIVATE(buffer, handle) PLACE(buffer, address) PLACE(buffer, external) PLACE(buffer, image)
    PLACE(buffer, lent) PLACE(buffer, nbytes) PLACE(buffer, pending) PLACE(buffer, root)
#undef PLACE
#undef CALL
#undef PRIVATE
    PyObject *limits = (PyObject *)Py_TYPE(K.limits);
    return place(limits, "after", &P.limits.after) < 0 || place(limits, "eager", &P.limits.eager) < 0
        || place(limits, "exact", &P.limits.exact) < 0 || place(limits, "small", &P.limits.small) < 0 ? -1 : 0;
}

/* bind_recording(api, Recorded, Owner, Unmade, Region, operations, those by ufunc, state, its default, sites, functions,
   numbers, (DType.FLOAT64, DType.FLOAT32, numpy.float64, numpy.float32, known._INTEGERS, those of `few`)) */
static PyObject *bind_recording(PyObject *module, PyObject *args)
{
    PyObject *api, *owner, *operations, *by_ufunc, *numpys_float, *integers;
    hot = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO!O!OOO(OOOO)(OO)(LnLL)(OOOOO!O!)", &api, &P.recorded, &owner, &P.allocation, &P.region, &PyDict_Type, &operations, &PyDict_Type, &by_ufunc,
                          &P.state, &P.state_default, &P.sites, &P.plan, &P.number, &P.region_of, &P.flush, &P.why_read, &P.why_loop, &P.lost, &K.middle, &ripe_from, &P.kind,
                          &P.float64, &P.float32, &numpys_float, &P.numpys_single, &PyTuple_Type, &integers, &PyTuple_Type, &P.kinds))
        return NULL;
    for (Py_ssize_t n = 0; n < INTEGERS && n < PyTuple_GET_SIZE(integers); n++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(integers, n), "OOLL", &P.integers[n].dtype, &P.integers[n].scalars, &P.integers[n].least, &P.integers[n].most)) return NULL;
    Py_INCREF(args);  /* for good */
    P.numpys_float = (PyTypeObject *)numpys_float;
    P.pattern = PyUnicode_InternFromString("for");
    P.costly_name = PyUnicode_InternFromString("costly");
    P.divides_name = PyUnicode_InternFromString("divides");
    forget_functions();
    if (slots() < 0 || bind_operations(operations, by_ufunc) < 0) return NULL;
    hot = PyCapsule_GetPointer(api, HOT_API);
    if (hot == NULL) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef RECORDING[] = {
    {"bind_recording", bind_recording, METH_VARARGS, "Tell the module what it needs to record operations."},
    {"plans", count_plans, METH_NOARGS, "How many kinds of operands are known."},
    {"ripe", ripe, METH_VARARGS, "ripe(code, bytes): count bytes that moved in a function; whether they are many."},
    {"forget_plans", forget_plans, METH_NOARGS, "Forget them."},
    {NULL},
};
