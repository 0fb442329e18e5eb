/* Arithmetic of few elements, without what NumPy does to find out how. The law: types, shapes, bits,
   strides and warnings are NumPy's. So only its commonest cases are here: arrays of one of eight types, and
   numbers that it takes for that type; elements in C's order. Whatever raises a floating-point flag is
   NumPy's to compute once more, and to warn of. */
#include "array.h"
#include <math.h>
#include <stdint.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

enum { AXES = 4, MOST_ELEMENTS = 65536 };

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

/* Whether an element is NumPy's to decide: see EXTREME. */
typedef int (*Row)(const char *a, Py_ssize_t sa, const char *b, Py_ssize_t sb, char *out, Py_ssize_t count);

/* f: of an element of each operand; of one operand, that is both. odd: whether it is NumPy's to decide. */
#define ROW_OR(name, type, made, f, odd) \
    CLONES static int name(const char *a, Py_ssize_t sa, const char *b, Py_ssize_t sb, char *out, Py_ssize_t count) \
    { \
        const Py_ssize_t step = sizeof(type); \
        const type *x = (const type *)a, *y = (const type *)b; \
        made *restrict z = (made *)out; \
        int found = 0; \
        if (sa == step && sb == step) { \
            for (Py_ssize_t n = 0; n < count; n++) z[n] = (made)f(x[n], y[n]), found |= odd(x[n], y[n]); \
        } else if (sa == step && sb == 0) { \
            for (Py_ssize_t n = 0; n < count; n++) z[n] = (made)f(x[n], y[0]), found |= odd(x[n], y[0]); \
        } else if (sa == 0 && sb == step) { \
            for (Py_ssize_t n = 0; n < count; n++) z[n] = (made)f(x[0], y[n]), found |= odd(x[0], y[n]); \
        } else { \
            for (Py_ssize_t n = 0; n < count; n++, a += sa, b += sb) { \
                const type u = *(const type *)a, v = *(const type *)b; \
                z[n] = (made)f(u, v), found |= odd(u, v); \
            } \
        } \
        return found; \
    }
#define NEVER(x, y) 0
#define ROW(name, type, made, f) ROW_OR(name, type, made, f, NEVER)
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
#define AND(x, y) (x & y)
#define OR(x, y) (x | y)
#define XOR(x, y) (x ^ y)
#define INVERT(x, y) (~x)
#define NOT(x, y) (!x)
#define BITS(x) (8 * sizeof(x))
#define SHL(x, y) ((uint64_t)y < BITS(x) ? x << y : 0)
#define SHR(x, y) ((uint64_t)y < BITS(x) ? x >> y : 0)
#define SHR_S(x, y) ((uint64_t)y < BITS(x) ? x >> y : x < 0 ? -1 : 0)
#define MAX(x, y) (x > y ? x : y)
#define MIN(x, y) (x < y ? x : y)
#define LT(x, y) (x < y)
#define LE(x, y) (x <= y)
#define EQ(x, y) (x == y)
#define NE(x, y) (x != y)
#define GT(x, y) (x > y)
#define GE(x, y) (x >= y)

/* NaNs and zeros of either sign, of which NumPy's vectors and the rest of a loop give one or the other. */
static inline int differ_f8(double x, double y) { return memcmp(&x, &y, sizeof x) != 0; }
static inline int differ_f4(float x, float y) { return memcmp(&x, &y, sizeof x) != 0; }
#define UNLIKE_F8(x, y) (!(x < y) & !(x > y) & differ_f8(x, y))
#define UNLIKE_F4(x, y) (!(x < y) & !(x > y) & differ_f4(x, y))

/* f of all integers, by their width: they wrap, so without a sign. */
#define WRAPPING(name, f) \
    ROW(name##_u8, uint64_t, uint64_t, f) ROW(name##_u4, uint32_t, uint32_t, f) ROW(name##_u1, uint8_t, uint8_t, f)
#define INTEGERS(name, made8, made4, made1, f) \
    ROW(name##_i8, int64_t, made8, f) ROW(name##_i4, int32_t, made4, f) \
    ROW(name##_u8, uint64_t, u##made8, f) ROW(name##_u4, uint32_t, u##made4, f) ROW(name##_u1, uint8_t, u##made1, f)
#define FLOATS(name, f) ROW(name##_f8, double, double, f) ROW(name##_f4, float, float, f)
typedef unsigned char uchar;
#define COMPARISON(name, f) INTEGERS(name, char, char, char, f) ROW(name##_f8, double, char, f) ROW(name##_f4, float, char, f)
FLOATS(add, ADD) WRAPPING(add, ADD)
FLOATS(sub, SUB) WRAPPING(sub, SUB)
FLOATS(mul, MUL) WRAPPING(mul, MUL)
FLOATS(copy, COPY) WRAPPING(copy, COPY)
FLOATS(neg, NEG) WRAPPING(neg, NEG)
FLOATS(square, SQUARE) WRAPPING(square, SQUARE)
FLOATS(div, DIV)
ROW(abs_f8, double, double, ABS)
ROW(abs_f4, float, float, ABS_F)
ROW(sqrt_f8, double, double, SQRT)
ROW(sqrt_f4, float, float, SQRT_F)
WRAPPING(and, AND)
WRAPPING(or, OR)
WRAPPING(xor, XOR)
WRAPPING(invert, INVERT)
ROW(not_b1, uint8_t, uint8_t, NOT)
WRAPPING(shl, SHL)
WRAPPING(shr, SHR)
ROW(shr_i8, int64_t, int64_t, SHR_S)
ROW(shr_i4, int32_t, int32_t, SHR_S)
INTEGERS(max, int64_t, int32_t, int8_t, MAX)
INTEGERS(min, int64_t, int32_t, int8_t, MIN)
ROW_OR(max_f8, double, double, MAX, UNLIKE_F8)
ROW_OR(max_f4, float, float, MAX, UNLIKE_F4)
ROW_OR(min_f8, double, double, MIN, UNLIKE_F8)
ROW_OR(min_f4, float, float, MIN, UNLIKE_F4)
COMPARISON(lt, LT)
COMPARISON(le, LE)
COMPARISON(eq, EQ)
COMPARISON(ne, NE)
COMPARISON(gt, GT)
COMPARISON(ge, GE)

/* In the order of the types: float64, float32, int64, int32, uint64, uint32, uint8, bool. */
#define WIDTHS(name) name##_u8, name##_u4, name##_u8, name##_u4, name##_u1
#define OWN(name) name##_i8, name##_i4, name##_u8, name##_u4, name##_u1
#define ALL(name) {name##_f8, name##_f4, WIDTHS(name), NULL}
#define COMPARED(name) {name##_f8, name##_f4, OWN(name), name##_u1}
static const Row ROW_OF[FEW_OPERATIONS][TYPES] = {
    [FEW_ADD] = ALL(add), [FEW_SUB] = ALL(sub), [FEW_MUL] = ALL(mul), [FEW_DIV] = {div_f8, div_f4},
    [FEW_COPY] = {copy_f8, copy_f4, WIDTHS(copy), copy_u1}, [FEW_NEG] = ALL(neg), [FEW_SQUARE] = ALL(square),
    [FEW_ABS] = {abs_f8, abs_f4}, [FEW_SQRT] = {sqrt_f8, sqrt_f4},
    [FEW_AND] = {NULL, NULL, WIDTHS(and), and_u1}, [FEW_OR] = {NULL, NULL, WIDTHS(or), or_u1},
    [FEW_XOR] = {NULL, NULL, WIDTHS(xor), xor_u1}, [FEW_INVERT] = {NULL, NULL, WIDTHS(invert), not_b1},
    [FEW_SHL] = {NULL, NULL, WIDTHS(shl)}, [FEW_SHR] = {NULL, NULL, OWN(shr)},
    [FEW_MAX] = {max_f8, max_f4, OWN(max)}, [FEW_MIN] = {min_f8, min_f4, OWN(min)},
    [FEW_LT] = COMPARED(lt), [FEW_LE] = COMPARED(le), [FEW_EQ] = COMPARED(eq), [FEW_NE] = COMPARED(ne),
    [FEW_GT] = COMPARED(gt), [FEW_GE] = COMPARED(ge),
};
const Py_ssize_t BYTES[ALL_TYPES] = {8, 4, 8, 4, 8, 4, 1, 1, 16, 8, 2, 2, 1};

PyObject *descrs[ALL_TYPES];
static PyObject *ufuncs[FEW_OPERATIONS], *where;
PyObject *(*new_numpys)(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
int (*set_base)(Numpys *, PyObject *);

PyObject *bind_few(PyObject *module, PyObject *args)
{
    PyObject *api, *known, *functions;
    if (!PyArg_ParseTuple(args, "OOOO", &api, &known, &functions, &where)) return NULL;
    Py_INCREF(where);
    void **table = PyCapsule_GetPointer(api, NULL);
    if (table == NULL) return NULL;
    for (int n = 0; n < ALL_TYPES; n++) descrs[n] = Py_NewRef(PyTuple_GET_ITEM(known, n));
    for (int n = 0; n < FEW_OPERATIONS; n++) ufuncs[n] = Py_NewRef(PyTuple_GET_ITEM(functions, n));
    *(void **)&new_numpys = table[NEW_FROM_DESCR];
    *(void **)&set_base = table[SET_BASE_OBJECT];
    Py_RETURN_NONE;
}

/* What computes what a ufunc (or the method `copy`) does; FEW_OPERATIONS: nothing. */
int few_of(PyObject *ufunc)
{
    int n = 0;
    while (n < FEW_OPERATIONS && ufuncs[n] != ufunc) n++;
    return n;
}

int type_among(const Numpys *array, int count)
{
    int n = 0;
    while (n < count && array->descr != descrs[n]) n++;
    return n;
}

int type_of(const Numpys *array) { return type_among(array, TYPES); }

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

static int run_axis(const Loops *loops, int axis, Row row, const char *a, const char *b, char **out, Py_ssize_t size)
{
    Py_ssize_t extent = loops->extents[axis], sa = loops->a.strides[axis], sb = loops->b.strides[axis];
    int odd = 0;
    if (axis == loops->rank - 1) {
        odd = row(a, sa, b, sb, *out, extent);
        *out += extent * size;
        return odd;
    }
    for (Py_ssize_t n = 0; n < extent; n++, a += sa, b += sb) odd |= run_axis(loops, axis + 1, row, a, b, out, size);
    return odd;
}

/* Compute all elements, row after row. Whether none is NumPy's to decide, and no flag was raised but that of
   inexact results. */
static int run(const Loops *loops, Row row, char *out, Py_ssize_t size)
{
#ifdef __SSE2__
    unsigned before = _mm_getcsr();
    _mm_setcsr(before & ~_MM_EXCEPT_MASK);
    int odd = run_axis(loops, 0, row, loops->a.data, loops->b.data, &out, size);
    return !odd && !(_mm_getcsr() & (_MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW));
#else
    feclearexcept(FE_ALL_EXCEPT);
    int odd = run_axis(loops, 0, row, loops->a.data, loops->b.data, &out, size);
    return !odd && !fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
#endif
}

/* Prepare the loops over two operands, an array and a number among them at most; the type, or TYPES:
   that is NumPy's to compute. number: memory for the number. */
static int prepare(Loops *loops, PyObject *one, PyObject *other, char *number, Py_ssize_t *size, Py_ssize_t most)
{
    const Numpys *a = Py_IS_TYPE(one, K.numpys) ? (Numpys *)one : NULL;
    const Numpys *b = Py_IS_TYPE(other, K.numpys) ? (Numpys *)other : NULL;
    const Numpys *first = a != NULL ? a : b, *wider = a != NULL && b != NULL && b->nd > a->nd ? b : first;
    if (new_numpys == NULL || first == NULL || wider->nd < 1 || wider->nd > AXES) return TYPES;
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
        if (extent > most) return TYPES;
        loops->extents[n] = extent;
        *size *= extent;
        if (*size > most) return TYPES;
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
    int type = prepare(&loops, one, other, number, &size, MOST_ELEMENTS);
    Row row = type == TYPES ? NULL : ROW_OF[operation][type];
    if (row == NULL) return NULL;
    int made_of = operation >= FEW_LT ? BOOLEAN : type;
    Py_INCREF(descrs[made_of]);  /* stolen */
    PyObject *made = new_numpys(K.numpys, descrs[made_of], loops.rank, loops.extents, NULL, NULL, 0, NULL);
    if (made == NULL) return NULL;
    coalesce(&loops);
    if (run(&loops, row, ((Numpys *)made)->data, BYTES[made_of])) return made;
    Py_DECREF(made);
    return NULL;
}

/* Whether elements lie one after the other in the shape of another array. */
static int is_along(const Numpys *array, const Numpys *other)
{
    const int behaved = ALIGNED | C_CONTIGUOUS;
    return array->nd == other->nd && (array->flags & behaved) == behaved
        && memcmp(array->dimensions, other->dimensions, array->nd * sizeof *array->dimensions) == 0;
}

/* By bytes: what is chosen is copied. */
#define CHOOSE(name, type) \
    CLONES static void name(const char *mask, const char *a, Py_ssize_t sa, const char *b, Py_ssize_t sb, char *out, Py_ssize_t count) \
    { \
        const type *x = (const type *)a, *y = (const type *)b; \
        type *restrict z = (type *)out; \
        if (sa && sb) for (Py_ssize_t n = 0; n < count; n++) z[n] = mask[n] ? x[n] : y[n]; \
        else if (sa) for (Py_ssize_t n = 0; n < count; n++) z[n] = mask[n] ? x[n] : y[0]; \
        else if (sb) for (Py_ssize_t n = 0; n < count; n++) z[n] = mask[n] ? x[0] : y[n]; \
    }
CHOOSE(choose_8, uint64_t)
CHOOSE(choose_4, uint32_t)
CHOOSE(choose_1, uint8_t)

int is_where(PyObject *function) { return function == where; }

/* `where(mask, one, other)`: of arrays of one shape and type, or a number; NULL, without an error: NumPy's. */
PyObject *few_where(PyObject *mask, PyObject *one, PyObject *other)
{
    char number[WIDEST] __attribute__((aligned(WIDEST)));
    if (new_numpys == NULL || !Py_IS_TYPE(mask, K.numpys)) return NULL;
    const Numpys *chosen = (Numpys *)mask;
    const Numpys *a = Py_IS_TYPE(one, K.numpys) ? (Numpys *)one : NULL, *b = Py_IS_TYPE(other, K.numpys) ? (Numpys *)other : NULL;
    const Numpys *first = a != NULL ? a : b;
    const Py_ssize_t size = size_of(mask);
    if (first == NULL || type_of(chosen) != BOOLEAN || !chosen->nd || size > MOST_ELEMENTS || !is_along(chosen, chosen)) return NULL;
    const int type = type_of(first);
    if (type == TYPES || !is_along(first, chosen)) return NULL;
    if (a != NULL && b != NULL && (a->descr != b->descr || !is_along(b, chosen))) return NULL;
    if ((a == NULL || b == NULL) && !put_number(a == NULL ? one : other, type, number)) return NULL;
    Py_INCREF(descrs[type]);  /* stolen */
    PyObject *made = new_numpys(K.numpys, descrs[type], chosen->nd, chosen->dimensions, NULL, NULL, 0, NULL);
    if (made == NULL) return NULL;
    void (*choose)(const char *, const char *, Py_ssize_t, const char *, Py_ssize_t, char *, Py_ssize_t)
        = BYTES[type] == 8 ? choose_8 : BYTES[type] == 4 ? choose_4 : choose_1;
    choose(chosen->data, a != NULL ? a->data : number, a != NULL, b != NULL ? b->data : number, b != NULL, ((Numpys *)made)->data, size);
    return made;
}

PyObject *few_for_tests(PyObject *module, PyObject *args)
{
    PyObject *ufunc, *one, *other, *third = NULL;
    if (!PyArg_ParseTuple(args, "OOO|O", &ufunc, &one, &other, &third)) return NULL;
    int operation = few_of(ufunc);
    PyObject *made = third != NULL ? few_where(one, other, third) : operation == FEW_OPERATIONS ? NULL : few(operation, one, other);
    return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

#define SCATTER(type) \
    for (Py_ssize_t n = 0; n < extent; n++, data += stride) memcpy(data, from + n * step, sizeof(type));
static void scatter(char *data, Py_ssize_t extent, Py_ssize_t stride, const char *from, Py_ssize_t step, Py_ssize_t size)
{
    if (size == 8) SCATTER(uint64_t)
    else if (size == 4) SCATTER(uint32_t)
    else SCATTER(uint8_t)
}

/* Give all elements the value of a number. */
static void fill(const Numpys *to, int axis, char *data, Row copy, const char *number, Py_ssize_t size)
{
    Py_ssize_t extent = to->dimensions[axis], stride = to->strides[axis];
    if (axis < to->nd - 1)
        for (Py_ssize_t n = 0; n < extent; n++, data += stride) fill(to, axis + 1, data, copy, number, size);
    else if (stride == size) copy(number, 0, data, size, data, extent);
    else scatter(data, extent, stride, number, 0, size);
}

static void store(const Numpys *to, int axis, char *data, const char **from, Py_ssize_t size)
{
    Py_ssize_t extent = to->dimensions[axis], stride = to->strides[axis];
    if (axis < to->nd - 1) {
        for (Py_ssize_t n = 0; n < extent; n++, data += stride) store(to, axis + 1, data, from, size);
        return;
    }
    if (stride == size) memcpy(data, *from, extent * size);
    else scatter(data, extent, stride, *from, size, size);
    *from += extent * size;
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

/* Into the first operand, an array (FEW_COPY: of the other one): 1; 0: NumPy is to. Its elements change once
   all are computed, as where NumPy computes with operands that overlap; copies it makes one by one. */
int few_into(int operation, PyObject *one, PyObject *other)
{
    Loops loops;
    Py_ssize_t size;
    char number[WIDEST] __attribute__((aligned(WIDEST))), room[MOST_APART * WIDEST] __attribute__((aligned(64)));
    const char *from = room;
    const Numpys *to = (Numpys *)one;
    if (!Py_IS_TYPE(one, K.numpys) || !is_writeable(to)) return 0;
    const int copies = operation == FEW_COPY, fills = copies && !Py_IS_TYPE(other, K.numpys);
    int type = prepare(&loops, copies ? other : one, copies ? one : other, number, &size, fills ? MOST_ELEMENTS : MOST_APART);
    Row row = type == TYPES ? NULL : ROW_OF[operation][type];
    if (row == NULL || loops.rank != to->nd || memcmp(loops.extents, to->dimensions, to->nd * sizeof *to->dimensions)) return 0;
    if (!is_apart(to, BYTES[type]) || (copies && !fills && may_overlap(to, (Numpys *)other))) return 0;
    if (fills) {
        fill(to, 0, to->data, row, number, BYTES[type]);
        return 1;
    }
    coalesce(&loops);
    if (!run(&loops, row, room, BYTES[type])) return 0;
    store(to, 0, to->data, &from, BYTES[type]);
    return 1;
}
