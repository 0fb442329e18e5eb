/* Steps: what a launch is made of, and numbers as its slots and results have them. */
#include "hot.h"

void steps_end(Step *steps, Py_ssize_t count)
{
    for (Py_ssize_t n = 0; n < count; n++) {
        Step *step = &steps[n];
        for (Py_ssize_t k = 0; step->patch != NULL && k < step->patches; k++) Py_XDECREF(step->patch[k].box);
        PyMem_Free(step->slots);
        PyMem_Free(step->patch);
        PyMem_Free(step->result);
        if (step->grid != NULL) {
            PyMem_Free(step->grid->where);
            Py_XDECREF(step->grid->room);
        }
        PyMem_Free(step->grid);
        Py_XDECREF(step->timing);
    }
    PyMem_Free(steps);
}

/* The grid (shape, device, where, room) of a step. */
static int grid_of(Step *step, PyObject *given)
{
    PyObject *where;
    Grid *grid = step->grid = PyMem_Calloc(1, sizeof *grid);
    if (grid == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    unsigned *to = grid->shape;
    if (!PyArg_ParseTuple(given, "(IIIIII)iO!O", to, to + 1, to + 2, to + 3, to + 4, to + 5, &grid->device,
                          &PyTuple_Type, &where, &grid->room)) {
        grid->room = NULL;
        return -1;
    }
    Py_INCREF(grid->room);
    grid->count = PyTuple_GET_SIZE(where);
    grid->where = PyMem_Malloc((grid->count + 1) * sizeof *grid->where);
    if (grid->where == NULL) PyErr_NoMemory();
    for (Py_ssize_t n = 0; n < grid->count && grid->where != NULL; n++) {
        grid->where[n] = PyLong_AsSsize_t(PyTuple_GET_ITEM(where, n));
        if (grid->where[n] < 0 || grid->where[n] >= step->count || grid->count > MAX_PARAMETERS)
            PyErr_SetString(PyExc_ValueError, "a parameter outside of its words");
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int step_of(Step *step, PyObject *given)
{
    PyObject *slots, *patches, *results, *timing, *grid = NULL;
    unsigned long long entry;
    if (!PyArg_ParseTuple(given, "KSO!O!O|O!", &entry, &slots, &PyTuple_Type, &patches, &PyTuple_Type, &results, &timing,
                          &PyTuple_Type, &grid))
        return -1;
    step->entry = (void *)(uintptr_t)entry;
    step->timing = Py_NewRef(timing);
    step->count = PyBytes_GET_SIZE(slots) / 8;
    step->slots = PyMem_Malloc(step->count * 8 + 8);
    step->patch = PyMem_Calloc(PyTuple_GET_SIZE(patches) + 1, sizeof *step->patch);
    step->result = PyMem_Calloc(PyTuple_GET_SIZE(results) + 1, sizeof *step->result);
    if (!step->slots || !step->patch || !step->result) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(step->slots, PyBytes_AS_STRING(slots), step->count * 8);
    if (grid != NULL && grid_of(step, grid) < 0) return -1;
    for (step->patches = 0; step->patches < PyTuple_GET_SIZE(patches); step->patches++) {
        Patch *patch = &step->patch[step->patches];
        PyObject *box;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(patches, step->patches), "inniiOii", &patch->kind, &patch->slot,
                              &patch->call, &patch->place, &patch->dtype, &box, &patch->heir_call, &patch->heir_place))
            return -1;
        patch->box = Py_NewRef(box);
        Py_ssize_t words = 1 + ((patch->kind == SCALAR_SLOT && patch->dtype == COMPLEX128) || patch->kind == NUMBER_SLOT);
        if (patch->slot < 0 || patch->slot + words > step->count) {
            PyErr_SetString(PyExc_ValueError, "a patch outside of its slots");
            return -1;
        }
    }
    for (step->results = 0; step->results < PyTuple_GET_SIZE(results); step->results++) {
        Result *result = &step->result[step->results];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(results, step->results), "ii", &result->call, &result->dtype))
            return -1;
    }
    return 0;
}

/* Steps from a tuple of (entry, slots, patches, results, timing[, grid]); what is made stays after an error, too. */
int steps_of(PyObject *given, Step **steps, Py_ssize_t *count)
{
    Py_ssize_t size = PyTuple_GET_SIZE(given);
    *steps = PyMem_Calloc(size + 1, sizeof **steps);
    *count = 0;
    if (*steps == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    while (*count < size) {
        Py_ssize_t at = (*count)++;
        if (step_of(&(*steps)[at], PyTuple_GET_ITEM(given, at)) < 0) return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------ numbers, as struct.pack has them */

static int real_of(PyObject *number, double *value)
{
    if (PyFloat_Check(number)) {  /* NumPy's doubles, too */
        *value = PyFloat_AS_DOUBLE(number);
        return 1;
    }
    if (!PyLong_Check(number)) return 0;
    *value = PyLong_AsDouble(number);
    if (*value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static int single_of(double value, uint64_t *word)
{
    float single = (float)value;
    if (__builtin_isinf(single) && !__builtin_isinf(value)) return 0;
    memcpy(word, &single, 4);
    return 1;
}

static int integer_of(PyObject *number, int dtype, uint64_t *word)
{
    int overflow = 0;
    if (!PyLong_Check(number)) return 0;
    if (dtype == UINT64) {
        unsigned long long wide = PyLong_AsUnsignedLongLong(number);
        if (wide == (unsigned long long)-1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        *word = wide;
        return 1;
    }
    int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow) return 0;
    int bits = dtype == INT64 ? 64 : 8 << ((dtype - 1) & 3);
    if (dtype >= UINT8) {
        if (value < 0 || value >> bits) return 0;
    } else if (bits < 64 && (value < -(1ll << (bits - 1)) || value >> (bits - 1) > 0))
        return 0;
    *word = bits == 64 ? (uint64_t)value : (uint64_t)value & ((1ull << bits) - 1);
    return 1;
}

/* Whether a number fits its slot; else Python says what is wrong with it, or converts it. */
int scalar_of(PyObject *number, int dtype, uint64_t *word)
{
    double value, imag = 0.0;
    if (Py_TYPE(number) == L.Future) {
        number = SLOT(number, L.future.value);
        if (number == NULL || number == Py_None) return 0;
    }
    *word = 0;
    if (dtype == BOOL) {
        if (!PyLong_Check(number) && !PyFloat_CheckExact(number)) return 0;
        *word = PyObject_IsTrue(number) == 1;
        return 1;
    }
    if (dtype < FLOAT32) return integer_of(number, dtype, word);
    if (dtype >= COMPLEX64 && PyComplex_CheckExact(number)) {
        value = ((PyComplexObject *)number)->cval.real;
        imag = ((PyComplexObject *)number)->cval.imag;
    } else if (!real_of(number, &value))
        return 0;
    if (dtype == FLOAT32) return single_of(value, word);
    if (dtype == COMPLEX64) {
        uint64_t second;
        if (!single_of(value, word) || !single_of(imag, &second)) return 0;
        memcpy((char *)word + 4, &second, 4);
        return 1;
    }
    memcpy(word, &value, 8);
    if (dtype == COMPLEX128) memcpy(word + 1, &imag, 8);
    return 1;
}

/* The number that a kernel has put into its results. */
PyObject *place_result(const char *result, int dtype)
{
#define AS(type, make) { type value; memcpy(&value, result, sizeof value); return make(value); }
    switch (dtype) {
    case BOOL: return PyLong_FromLong(*result != 0);
    case INT8: AS(int8_t, PyLong_FromLong)
    case INT16: AS(int16_t, PyLong_FromLong)
    case INT32: AS(int32_t, PyLong_FromLong)
    case INT64: AS(int64_t, PyLong_FromLongLong)
    case UINT8: AS(uint8_t, PyLong_FromLong)
    case UINT16: AS(uint16_t, PyLong_FromLong)
    case UINT32: AS(uint32_t, PyLong_FromUnsignedLong)
    case UINT64: AS(uint64_t, PyLong_FromUnsignedLongLong)
    case FLOAT32: AS(float, PyFloat_FromDouble)
    case FLOAT64: AS(double, PyFloat_FromDouble)
    }
    if (dtype == COMPLEX64) {
        float part[2];
        memcpy(part, result, sizeof part);
        return PyComplex_FromDoubles(part[0], part[1]);
    }
    double part[2];
    memcpy(part, result, sizeof part);
    return PyComplex_FromDoubles(part[0], part[1]);
#undef AS
}
