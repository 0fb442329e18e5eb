/* How operations are recorded on operands of types and places that were seen before. */
#include "record.h"

enum { MOST_WORDS = 64, ROOM = 4096, SLOTS = 16384, MOST_AXES = 8 };

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

PyObject *forget_layouts(PyObject *module, PyObject *unused)
{
    forget();
    Py_RETURN_NONE;
}

PyObject *forget_plans(PyObject *module, PyObject *unused)
{
    forget();
    forget_functions();
    Py_RETURN_NONE;
}

PyObject *count_plans(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(plan_count); }

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

int read_plan(Plan *plan, PyObject *told)  /* steals */
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
PyObject *ask(PyObject *operation, PyObject *const *operands, int given, PyObject *out)
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

/* Whether each element lies in a cache line of its own. */
static int is_strided(const Place *place)
{
    if (place->array != NULL) return are_strided((PyObject *)place->array);
    PyObject *strides = PyTuple_GET_ITEM(place->region, 2);
    int strided = 0;
    for (int axis = 0; axis < rank_of(place); axis++) {
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(place->region, 3), axis)) < 2) continue;
        const Py_ssize_t stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, axis));
        if (stride < LINE && stride > -LINE) return 0;
        strided = 1;
    }
    return strided;
}

/* Find the number of elements of the result and, roughly, the bytes that it moves; 0: it has none. */
static int measure(Plan *plan, const Place *places, int given, const Place *target)
{
    Py_ssize_t extents[MOST_AXES] = {0}, size = 1;
    int rank = 0, strided = 0;
    Py_ssize_t itemsize = 0, widest = 0;  /* of all operands; and of the result, as far as is known */
    for (int n = 0; n <= given; n++) {
        const Place *place = n < given ? &places[n] : target;
        if (place->x == NULL) continue;
        int own = rank_of(place);
        if (own > MOST_AXES) return 0;
        rank = own > rank ? own : rank;
        const int type = place->array == NULL ? TYPES : type_of(place->array);
        const int alone = K.strided > 1 && is_strided(place);
        const Py_ssize_t own_bytes = alone ? LINE : type < TYPES ? BYTES[type] : 8;
        strided |= alone;
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
    plan->weight = strided ? K.strided * size : size;
    plan->bytes = size * (itemsize + widest) * (plan->costly ? 4 : 1);  /* such a function takes NumPy that much longer */
    return rank > 0;
}

Plan *plan_for(PyObject *operation, int given, PyObject *const *operands, const Place *places, PyObject *out, const Place *target)
{
    uint64_t words[MOST_WORDS], hash = 1469598103934665603u;
    int at = 0;
    words[at++] = (uint64_t)(uintptr_t)operation;
    words[at++] = (uint64_t)given << 3 | (uint64_t)for_device() << 2 | (uint64_t)(out != NULL) << 1 | (SLOT(K.limits, P.limits.exact) == Py_True);
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
