/* Arithmetic of few elements, without what NumPy does to find out how. The law: types, shapes, bits,
   strides and warnings are NumPy's. So only its commonest cases are here: arrays of float64, float32 or
   int64, all of one type, and numbers that it takes for that type; elements in C's order. Whatever raises
   a floating-point flag is NumPy's to compute once more, and to warn of. */
#include "array.h"
#include <math.h>
#include <stdint.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

enum { AXES = 4, MOST_ELEMENTS = 2048, WIDEST = 8 };

/* One operand, or the result: of an axis along which it has one element, the stride is 0. */
typedef struct {
    char *data;
    Py_ssize_t strides[AXES];
} Operand;

typedef struct {
    int rank;
    Py_ssize_t extents[AXES];
    Operand a, b;
} Loops;

typedef void (*Row)(const char *a, Py_ssize_t sa, const char *b, Py_ssize_t sb, char *out, Py_ssize_t count);

/* f: of an element of each operand; of one operand, that is both. */
#define ROW(name, type, made, f) \
    CLONES static void name(const char *a, Py_ssize_t sa, const char *b, Py_ssize_t sb, char *out, Py_ssize_t count) \
    { \
        const Py_ssize_t step = sizeof(type); \
        const type *x = (const type *)a, *y = (const type *)b; \
        made *restrict z = (made *)out; \
        if (sa == step && sb == step) { \
            for (Py_ssize_t n = 0; n < count; n++) z[n] = (made)f(x[n], y[n]); \
        } else if (sa == step && sb == 0) { \
            for (Py_ssize_t n = 0; n < count; n++) z[n] = (made)f(x[n], y[0]); \
        } else if (sa == 0 && sb == step) { \
            for (Py_ssize_t n = 0; n < count; n++) z[n] = (made)f(x[0], y[n]); \
        } else { \
            for (Py_ssize_t n = 0; n < count; n++, a += sa, b += sb) \
                z[n] = (made)f(*(const type *)a, *(const type *)b); \
        } \
    }
#define ADD(x, y) (x + y)
#define SUB(x, y) (x - y)
#define MUL(x, y) (x * y)
#define DIV(x, y) (x / y)
#define COPY(x, y) (x)
#define NEG(x, y) (-x)
#define SQUARE(x, y) (x * x)
#define ABS(x, y) (fabs(x))
#define ABS_F(x, y) (fabsf(x))
#define SQRT(x, y) (sqrt(x))
#define SQRT_F(x, y) (sqrtf(x))
#define LT(x, y) (x < y)
#define LE(x, y) (x <= y)
#define EQ(x, y) (x == y)
#define NE(x, y) (x != y)
#define GT(x, y) (x > y)
#define GE(x, y) (x >= y)
#define ARITHMETIC(name, f) ROW(name##_f8, double, double, f) ROW(name##_f4, float, float, f) ROW(name##_i8, uint64_t, uint64_t, f)
#define COMPARISON(name, f) ROW(name##_f8, double, char, f) ROW(name##_f4, float, char, f) ROW(name##_i8, int64_t, char, f)
ARITHMETIC(add, ADD)  /* integers wrap, so without a sign */
ARITHMETIC(sub, SUB)
ARITHMETIC(mul, MUL)
ARITHMETIC(copy, COPY)
ARITHMETIC(neg, NEG)
ARITHMETIC(square, SQUARE)
ROW(div_f8, double, double, DIV)
ROW(div_f4, float, float, DIV)
ROW(abs_f8, double, double, ABS)
ROW(abs_f4, float, float, ABS_F)
ROW(sqrt_f8, double, double, SQRT)
ROW(sqrt_f4, float, float, SQRT_F)
COMPARISON(lt, LT)
COMPARISON(le, LE)
COMPARISON(eq, EQ)
COMPARISON(ne, NE)
COMPARISON(gt, GT)
COMPARISON(ge, GE)

#define THREE(name) {name##_f8, name##_f4, name##_i8}
static const Row ROW_OF[FEW_OPERATIONS][TYPES] = {
    [FEW_ADD] = THREE(add), [FEW_SUB] = THREE(sub), [FEW_MUL] = THREE(mul), [FEW_DIV] = {div_f8, div_f4, NULL},
    [FEW_COPY] = THREE(copy), [FEW_NEG] = THREE(neg), [FEW_SQUARE] = THREE(square), [FEW_ABS] = {abs_f8, abs_f4, NULL}, [FEW_SQRT] = {sqrt_f8, sqrt_f4, NULL},
    [FEW_LT] = THREE(lt), [FEW_LE] = THREE(le), [FEW_EQ] = THREE(eq), [FEW_NE] = THREE(ne), [FEW_GT] = THREE(gt), [FEW_GE] = THREE(ge),
};
const Py_ssize_t BYTES[TYPES + 1] = {8, 4, 8, 1};

static PyObject *descrs[TYPES + 1];  /* NumPy's one object for each type */
static PyObject *ufuncs[FEW_OPERATIONS];
static PyTypeObject *float64;    /* its scalars */
static PyObject *(*new_array)(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);

/* PyArray_NewFromDescr, by its place in the table of NumPy's C API, which never changes. */
enum { NEW_FROM_DESCR = 94 };

PyObject *bind_few(PyObject *module, PyObject *args)
{
    PyObject *api, *known, *scalars, *functions;
    if (!PyArg_ParseTuple(args, "OOOO", &api, &known, &scalars, &functions)) return NULL;
    void **table = PyCapsule_GetPointer(api, NULL);
    if (table == NULL) return NULL;
    for (int n = 0; n <= TYPES; n++) descrs[n] = Py_NewRef(PyTuple_GET_ITEM(known, n));
    for (int n = 0; n < FEW_OPERATIONS; n++) ufuncs[n] = Py_NewRef(PyTuple_GET_ITEM(functions, n));
    float64 = (PyTypeObject *)Py_NewRef(scalars);
    *(void **)&new_array = table[NEW_FROM_DESCR];
    Py_RETURN_NONE;
}

/* What computes what a ufunc (or the method `copy`) does; FEW_OPERATIONS: nothing. */
int few_of(PyObject *ufunc)
{
    int n = 0;
    while (n < FEW_OPERATIONS && ufuncs[n] != ufunc) n++;
    return n;
}

int type_of(const Numpys *array)
{
    int n = 0;
    while (n <= TYPES && array->descr != descrs[n]) n++;
    return n;
}

/* A number as an element of an array's type, if that is what NumPy makes of it and it is exact. */
static int put_number(PyObject *x, int type, char *to)
{
    if (PyFloat_CheckExact(x) || Py_IS_TYPE(x, float64)) {
        double value = PyFloat_AS_DOUBLE(x);
        if (type == REAL32 && PyFloat_CheckExact(x)) {
            float rounded = (float)value;
            *(float *)to = rounded;
            return rounded == rounded && rounded - rounded == 0 && (fabsf(rounded) >= 1e-37f || value == 0);
        }
        *(double *)to = value;
        return type == REAL64;
    }
    if (!PyLong_CheckExact(x)) return 0;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(x, &overflow), most = type == REAL32 ? 1 << 24 : 1LL << 53;
    if (overflow) return 0;
    if (type == INTEGER64)
        *(int64_t *)to = value;
    else if (value < -most || value > most)
        return 0;
    else if (type == REAL64)
        *(double *)to = (double)value;
    else
        *(float *)to = (float)value;
    return 1;
}

/* Lay an array along the axes of the result; 0: NumPy has to, or its elements are in another order. */
static int lay(Operand *operand, const Numpys *array, const Loops *loops)
{
    int skipped = loops->rank - array->nd;
    Py_ssize_t least = PY_SSIZE_T_MAX;
    operand->data = array->data;
    for (int n = 0; n < loops->rank; n++) {
        Py_ssize_t extent = n < skipped ? 1 : array->dimensions[n - skipped];
        Py_ssize_t stride = extent == 1 ? 0 : array->strides[n - skipped];
        if (extent != loops->extents[n] && extent != 1) return 0;
        operand->strides[n] = stride;
        if (extent == 1) continue;
        if (stride <= 0 || stride >= least) return 0;
        least = stride;
    }
    return 1;
}

/* Put neighbouring axes together that are like one. */
static void coalesce(Loops *loops)
{
    int rank = 0;  /* of what is done, its last axis at `rank` */
    for (int n = 1; n < loops->rank; n++) {
        Py_ssize_t extent = loops->extents[n];
        Operand *a = &loops->a, *b = &loops->b;
        if (a->strides[rank] == a->strides[n] * extent && b->strides[rank] == b->strides[n] * extent)
            loops->extents[rank] *= extent;
        else
            loops->extents[++rank] = extent;
        a->strides[rank] = a->strides[n];
        b->strides[rank] = b->strides[n];
    }
    loops->rank = rank + 1;
}

static void run_axis(const Loops *loops, int axis, Row row, const char *a, const char *b, char **out, Py_ssize_t size)
{
    Py_ssize_t extent = loops->extents[axis], sa = loops->a.strides[axis], sb = loops->b.strides[axis];
    if (axis == loops->rank - 1) {
        row(a, sa, b, sb, *out, extent);
        *out += extent * size;
        return;
    }
    for (Py_ssize_t n = 0; n < extent; n++, a += sa, b += sb) run_axis(loops, axis + 1, row, a, b, out, size);
}

/* Compute all elements, row after row. Whether no flag was raised but that of inexact results. */
static int run(const Loops *loops, Row row, char *out, Py_ssize_t size)
{
#ifdef __SSE2__
    unsigned before = _mm_getcsr();
    _mm_setcsr(before & ~_MM_EXCEPT_MASK);
    run_axis(loops, 0, row, loops->a.data, loops->b.data, &out, size);
    return !(_mm_getcsr() & (_MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW));
#else
    feclearexcept(FE_ALL_EXCEPT);
    run_axis(loops, 0, row, loops->a.data, loops->b.data, &out, size);
    return !fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
#endif
}

/* Prepare the loops over two operands, an array and a number among them at most; the type, or TYPES:
   that is NumPy's to compute. number: memory for the number. */
static int prepare(Loops *loops, PyObject *one, PyObject *other, char *number, Py_ssize_t *size)
{
    const Numpys *a = Py_IS_TYPE(one, K.numpys) ? (Numpys *)one : NULL;
    const Numpys *b = Py_IS_TYPE(other, K.numpys) ? (Numpys *)other : NULL;
    const Numpys *first = a != NULL ? a : b, *wider = a != NULL && b != NULL && b->nd > a->nd ? b : first;
    if (new_array == NULL || first == NULL || wider->nd < 1 || wider->nd > AXES) return TYPES;
    int type = type_of(first);
    if (type >= TYPES || (a != NULL && b != NULL && a->descr != b->descr)) return TYPES;
    if ((a != NULL && !(a->flags & ALIGNED)) || (b != NULL && !(b->flags & ALIGNED))) return TYPES;
    loops->rank = wider->nd;
    *size = 1;
    for (int n = 0; n < wider->nd; n++) {
        Py_ssize_t extent = wider->dimensions[n];
        const Numpys *narrow = a == NULL || b == NULL ? NULL : wider == a ? b : a;
        int at = narrow == NULL ? -1 : n - (wider->nd - narrow->nd);
        if (at >= 0 && extent == 1) extent = narrow->dimensions[at];
        if (extent > MOST_ELEMENTS) return TYPES;
        loops->extents[n] = extent;
        *size *= extent;
        if (*size > MOST_ELEMENTS) return TYPES;
    }
    loops->a = loops->b = (Operand){number, {0}};
    if (*size == 0 || (a != NULL && !lay(&loops->a, a, loops)) || (b != NULL && !lay(&loops->b, b, loops))) return TYPES;
    if (a == NULL || b == NULL) return put_number(a == NULL ? one : other, type, number) ? type : TYPES;
    return type;
}

/* A new array of NumPy's; NULL, without an error: NumPy is to compute it. other: of one operand, that. */
PyObject *few(int operation, PyObject *one, PyObject *other)
{
    Loops loops;
    Py_ssize_t size;
    char number[WIDEST] __attribute__((aligned(WIDEST)));
    int type = prepare(&loops, one, other, number, &size);
    Row row = type == TYPES ? NULL : ROW_OF[operation][type];
    if (row == NULL) return NULL;
    int made_of = operation >= FEW_LT ? TYPES : type;
    Py_INCREF(descrs[made_of]);  /* stolen */
    PyObject *made = new_array(K.numpys, descrs[made_of], loops.rank, loops.extents, NULL, NULL, 0, NULL);
    if (made == NULL) return NULL;
    coalesce(&loops);
    if (run(&loops, row, ((Numpys *)made)->data, BYTES[made_of])) return made;
    Py_DECREF(made);
    return NULL;
}

PyObject *few_for_tests(PyObject *module, PyObject *args)
{
    PyObject *ufunc, *one, *other;
    if (!PyArg_ParseTuple(args, "OOO", &ufunc, &one, &other)) return NULL;
    int operation = few_of(ufunc);
    PyObject *made = operation == FEW_OPERATIONS ? NULL : few(operation, one, other);
    return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

static void store(const Numpys *to, int axis, char *data, const char **from, Py_ssize_t size)
{
    Py_ssize_t extent = to->dimensions[axis], stride = to->strides[axis];
    int last = axis == to->nd - 1;
    if (last && stride == size) {
        memcpy(data, *from, extent * size);
        *from += extent * size;
        return;
    }
    for (Py_ssize_t n = 0; n < extent; n++, data += stride) {
        if (!last) {
            store(to, axis + 1, data, from, size);
            continue;
        }
        memcpy(data, *from, size);
        *from += size;
    }
}

/* Whether no element of an array that was laid lies on another one. */
static int is_apart(const Numpys *array, Py_ssize_t size)
{
    for (int n = array->nd - 1; n >= 0; n--) {
        if (array->dimensions[n] == 1) continue;
        if (array->strides[n] < size) return 0;
        size = array->strides[n] * array->dimensions[n];
    }
    return 1;
}

/* Into the first operand, an array: 1; 0: NumPy is to. Its elements change once all are computed, so the
   other one may share memory with it. */
int few_into(int operation, PyObject *one, PyObject *other)
{
    Loops loops;
    Py_ssize_t size;
    char number[WIDEST] __attribute__((aligned(WIDEST))), room[MOST_ELEMENTS * WIDEST] __attribute__((aligned(64)));
    const char *from = room;
    const Numpys *to = (Numpys *)one;
    if (!Py_IS_TYPE(one, K.numpys) || !(to->flags & WRITEABLE)) return 0;
    int type = prepare(&loops, one, other, number, &size);
    Row row = type == TYPES ? NULL : ROW_OF[operation][type];
    if (row == NULL || loops.rank != to->nd || memcmp(loops.extents, to->dimensions, to->nd * sizeof *to->dimensions)) return 0;
    if (!is_apart(to, BYTES[type])) return 0;
    coalesce(&loops);
    if (!run(&loops, row, room, BYTES[type])) return 0;
    store(to, 0, to->data, &from, BYTES[type]);
    return 1;
}
