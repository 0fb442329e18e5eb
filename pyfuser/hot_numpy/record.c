/* Recording an operation on operands of types and places that were seen before: what
   frontends/numpy/record.py does, without a line of Python. See frontends/numpy/known.py. */
#include "record.h"

enum { SMALL_CALLS = 8 };

const HotApi *hot;
Recording P;

int for_device(void) { return SLOT(P.space, P.device) == Py_True; }

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

/* A new array for a result. */
static PyObject *new_array(const Plan *plan, Place *target)
{
    PyObject *x = unmade_array(plan->strides, plan->shape, plan->dtype, plan->nbytes);
    if (x == NULL) return NULL;
    PyObject *region = SLOT(x, K.x.region);
    *target = (Place){x, region, PyTuple_GET_ITEM(region, 0), NULL, 0};
    return x;
}

/* As memory.usable, of steps from element to element that a plan was made for. */
static int is_usable(const Place *place, Py_ssize_t itemsize)
{
    return SLOT(place->buffer, P.buffer.external) == Py_False && (!for_device() || place->offset % itemsize == 0);
}

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
    if (for_device()) return pending || plan->size >= lazy_from(plan->costly);
    if (plan->size >= least) return follows_none();
    /* An operation on bytes takes NumPy as long as one on an eighth as many numbers of eight bytes. */
    Py_ssize_t moved = plan->bytes / 16, size = plan->costly || moved > plan->weight ? plan->weight : moved;
    if (size < middle && size < lazy_from(plan->costly)) return pending && may_follow();
    plan->moved += plan->bytes;
    plan->ripe = is_ripe(code, plan->bytes);
    if (pending) return follows_none();
    return plan->moved >= P.kind && (plan->ripe || PyList_GET_SIZE(SLOT(K.tracer, K.t.calls)));
}

static PyObject *made_of(Plan *found, PyObject *operation, PyObject *const *operands, int given, Place *places, PyObject *out, Place *target,
                         PyFrameObject *frame, PyObject *code, PyObject *at, int pending, int part)
{
    const Plan known = *found, *plan = &known;  /* Python may forget plans */
    if (!part && !pending && !for_device() && is_lost(code, at, plan->form_shape)) return NULL;
    int settled = out == NULL || settle(target);
    for (int n = 0; n < given; n++) settled = settled && settle(&places[n]);
    if (!settled) return NULL;
    PyObject *caller = caller_of(frame);
    if (caller == NULL || (!part && end_trip(code, at, caller, plan->weight > plan->size) < 0) || !hot->records()) {
        Py_XDECREF(caller);
        return NULL;
    }
    PyObject *result = out == NULL ? new_array(plan, target) : Py_NewRef(out);
    PyObject *arguments = result == NULL ? NULL : arguments_of(plan, operation, operands, given, places, target);
    PyObject *call = arguments == NULL ? NULL : new_call(plan, arguments, code, at, caller);
    Py_DECREF(caller);
    int fine = call != NULL && is_usable(target, plan->itemsize);
    for (int n = 0; n < given && fine; n++) {
        const Operand *operand = &plan->operands[n];
        fine = places[n].x == NULL || (is_usable(&places[n], operand->itemsize) && (out == NULL || independent(plan, operand, &places[n], target)));
    }
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
    if (SLOT(K.limits, P.limits.eager) == Py_True || !hot->records() || !is_usual_state()) return NULL;
    if (SLOT(K.use, K.u.devices) == Py_True && !(for_device() && hot->device_is_here())) return NULL;
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
    int pending = is_away(&target);
    for (int n = 0; n < given && !pending; n++) pending = is_away(&places[n]);
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
    PLACE(buffer, lent) PLACE(buffer, nbytes) PLACE(buffer, pending) PLACE(buffer, root) PLACE(buffer, seen)
#undef PLACE
#undef CALL
#undef PRIVATE
    PyObject *limits = (PyObject *)Py_TYPE(K.limits);
    return place((PyObject *)Py_TYPE(P.space), "device", &P.device) < 0 || place(limits, "after", &P.limits.after) < 0 || place(limits, "eager", &P.limits.eager) < 0
        || place(limits, "exact", &P.limits.exact) < 0 || place(limits, "small", &P.limits.small) < 0 ? -1 : 0;
}

/* bind_recording(api, Recorded, Owner, Unmade, Region, operations, those by ufunc, state, its default, sites, space, functions,
   numbers, (DType.FLOAT64, DType.FLOAT32, numpy.float64, numpy.float32, known._INTEGERS, those of `few`)) */
static PyObject *bind_recording(PyObject *module, PyObject *args)
{
    PyObject *api, *owner, *operations, *numpys_float, *integers;
    hot = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO!O!OOOO(OOOO)(OO)(LnnLL)(OOOOO!O!)", &api, &P.recorded, &owner, &P.allocation, &P.region, &PyDict_Type, &operations, &PyDict_Type, &recorded_for,
                          &P.state, &P.state_default, &P.sites, &P.space, &P.plan, &P.number, &P.region_of, &P.flush, &P.why_read, &P.why_loop, &P.lost, &K.middle, &K.strided, &ripe_from, &P.kind,
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
    if (slots() < 0 || bind_operations(operations) < 0) return NULL;
    hot = PyCapsule_GetPointer(api, HOT_API);
    if (hot == NULL) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef RECORDING[] = {
    {"bind_recording", bind_recording, METH_VARARGS, "Tell the module what it needs to record operations."},
    {"plans", count_plans, METH_NOARGS, "How many kinds of operands are known."},
    {"ripe", ripe, METH_VARARGS, "ripe(code, bytes): count bytes that moved in a function; whether they are many."},
    {"forget_layouts", forget_layouts, METH_NOARGS, "Forget how operands are walked."},
    {"forget_plans", forget_plans, METH_NOARGS, "Forget them."},
    {NULL},
};
