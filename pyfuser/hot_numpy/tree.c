/* The sum of many numbers, with the bits of a kernel's: see `pf_tiling` and `pf_sum` in
   codegen/cpu/runtime/sum.h, and `tree_sum` in frontends/numpy/sums.py. */
#include "array.h"
#include <stdint.h>

enum { LANES = 32, VECTOR = LANES / 4 };

/* The sum of a tile: one running sum a lane, which are added up as in a tree. */
#define TILE(name, type) \
    CLONES static double name(const char *data, Py_ssize_t count) \
    { \
        const type *x = (const type *)data; \
        double sums[LANES] = {0}; \
        Py_ssize_t n = 0; \
        for (; n + LANES <= count; n += LANES) \
            for (int lane = 0; lane < LANES; lane++) sums[lane] += (double)x[n + lane]; \
        for (int lane = 0; n < count; lane++, n++) sums[lane] += (double)x[n]; \
        double *quarters = sums; \
        for (int lane = 0; lane < VECTOR; lane++) \
            quarters[lane] = (sums[lane] + sums[2 * VECTOR + lane]) + (sums[VECTOR + lane] + sums[3 * VECTOR + lane]); \
        for (int half = VECTOR / 2; half; half /= 2) \
            for (int lane = 0; lane < half; lane++) quarters[lane] += quarters[half + lane]; \
        return quarters[0]; \
    }
TILE(tile_f8, double)
TILE(tile_f4, float)
TILE(tile_i8, int64_t)
TILE(tile_b1, int8_t)

static double (*const TILE_OF[TYPES])(const char *, Py_ssize_t) = {
    [REAL64] = tile_f8, [REAL32] = tile_f4, [INTEGER64] = tile_i8, [BOOLEAN] = tile_b1,
};

/* tree_sum(array, tile): as doubles, of an array in one row without gaps; None: of elements of other types. */
PyObject *tree_sum(PyObject *module, PyObject *args)
{
    PyObject *given;
    Py_ssize_t tile;
    if (!PyArg_ParseTuple(args, "On", &given, &tile)) return NULL;
    const Numpys *array = (Numpys *)given;
    if (!Py_IS_TYPE(given, K.numpys) || array->nd != 1 || !(array->flags & ALIGNED) || tile < 1) Py_RETURN_NONE;
    const int type = type_of(array);
    if (type == TYPES || TILE_OF[type] == NULL) Py_RETURN_NONE;
    const Py_ssize_t size = BYTES[type], count = array->dimensions[0];
    if (array->strides[0] != size && count > 1) Py_RETURN_NONE;
    double (*add)(const char *, Py_ssize_t) = TILE_OF[type], total = 0.0;
    const char *data = array->data;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t start = 0; start < count; start += tile)
        total += add(data + start * size, count - start < tile ? count - start : tile);
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(total);
}
