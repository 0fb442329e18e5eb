/* What NumPy computes at once, without a line of Python. See docs/numpy.md, "Small arrays". */
#include "../hot/slots.h"

typedef struct {
    PyTypeObject *ours, *numpys;  /* the classes of arrays */
    PyTypeObject *owner, *integer, *dtype;
    PyObject *fresh, *scalars, *tracer, *use, *limits;
    PyObject *view, *host, *taken;  /* Python's wrap.view, memory.host and apply.taken */
    struct { Py_ssize_t array, base, owner, region, writeable; } x;  /* slots of our arrays */
    struct { Py_ssize_t buffer; } o;  /* of an Owner */
    struct { Py_ssize_t pending, external; } b;  /* of a Buffer */
    struct { Py_ssize_t calls, raw; } t;  /* of the Tracer */
    struct { Py_ssize_t devices; } u;
    struct { Py_ssize_t most, costly, sure; } l;
    Py_ssize_t middle;  /* elements from which operations that come often are recorded */
    Py_ssize_t strided;  /* how many side by side take as long as one of `are_strided` */
} Known;

extern Known K;

#define IS_OURS(x) Py_IS_TYPE(x, K.ours)

/* The start of NumPy's arrays, which its ABI keeps; `bind` looks whether it fits. */
typedef struct {
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
} Numpys;

/* The start of NumPy's types. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *scalars;
    char kind;
} Descr;

static inline int has_objects(PyObject *array) { return ((Descr *)((Numpys *)array)->descr)->kind == 'O'; }

enum { WRITEABLE = 0x400, ALIGNED = 0x100, C_CONTIGUOUS = 1 };  /* of the flags */

/* Whether NumPy writes to it without a word: what it broadcasts has the sign bit, and it warns. */
static inline int is_writeable(const Numpys *array) { return array->flags & WRITEABLE && array->flags >= 0; }

/* Clones for wider vectors; GCC chooses one when the module is loaded. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define CLONES __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define CLONES
#endif

/* Elements below which nothing is recorded whatever the limits are, but by Python. */
#define MIDDLE (K.middle < lazy_from(0) ? K.middle : lazy_from(0))

static inline Py_ssize_t size_of(PyObject *array)
{
    Numpys *a = (Numpys *)array;
    Py_ssize_t size = 1;
    for (int n = 0; n < a->nd; n++) size *= a->dimensions[n];
    return size;
}

enum { LINE = 64 };  /* bytes that processors fetch at once */

/* Whether each element lies in a cache line of its own, as those of a matrix' column do. */
static inline int are_strided(PyObject *array)
{
    Numpys *a = (Numpys *)array;
    int strided = 0;
    for (int n = 0; n < a->nd; n++) {
        if (a->dimensions[n] < 2) continue;
        if (a->strides[n] < LINE && a->strides[n] > -LINE) return 0;
        strided = 1;
    }
    return strided;
}

/* As many elements side by side as take NumPy as long. */
static inline Py_ssize_t weight_of(PyObject *array) { return size_of(array) * (are_strided(array) ? K.strided : 1); }

/* From how many elements something may be recorded. */
static inline Py_ssize_t lazy_from(int costly)
{
    return PyLong_AsSsize_t(SLOT(K.limits, costly ? K.l.costly : K.l.most));
}

/* Whether operations on so many elements may be recorded. */
static inline int is_middling(PyObject *array) {
    return array != NULL && Py_IS_TYPE(array, K.numpys) && weight_of(array) >= MIDDLE;
}

/* As LIMITS.first. */
static inline Py_ssize_t limit(int costly)
{
    Py_ssize_t least = lazy_from(costly), sure = PyLong_AsSsize_t(SLOT(K.limits, K.l.sure));
    return least < sure ? sure : least;
}

/* What `few` computes. */
enum {
    FEW_ADD, FEW_SUB, FEW_MUL, FEW_DIV, FEW_COPY, FEW_NEG, FEW_SQUARE, FEW_ABS, FEW_SQRT,
    FEW_AND, FEW_OR, FEW_XOR, FEW_INVERT, FEW_SHL, FEW_SHR, FEW_MAX, FEW_MIN,
    FEW_LT, FEW_LE, FEW_EQ, FEW_NE, FEW_GT, FEW_GE, FEW_OPERATIONS
};

enum { MOST_APART = 2048 };  /* elements that `few_into` computes apart first: from there NumPy is as fast */
int few_of(PyObject *ufunc);
/* Types of elements. */
enum { REAL64, REAL32, INTEGER64, INTEGER32, UNSIGNED64, UNSIGNED32, UNSIGNED8, BOOLEAN, TYPES };
/* Others, of which nothing but single elements is looked at here. */
enum { COMPLEX128 = TYPES, COMPLEX64, INTEGER16, UNSIGNED16, INTEGER8, ALL_TYPES };
enum { WIDEST = 16 };  /* bytes */

extern const Py_ssize_t BYTES[ALL_TYPES];
extern PyObject *descrs[ALL_TYPES];  /* NumPy's one object for each type */
int type_of(const Numpys *array);  /* TYPES: another one */
int type_among(const Numpys *array, int count);  /* of the first so many; count: another one */
int put_number(PyObject *x, int type, char *to);
int put_index(PyObject *x, Py_ssize_t *to);
PyObject *get_element(PyObject *array, PyObject *key);
int share_base(PyObject *array, PyObject *other);
int is_same(PyObject *one, PyObject *other);
int may_overlap(const Numpys *one, const Numpys *other);
int set_element(PyObject *array, PyObject *key, PyObject *value);
int is_where(PyObject *function);
PyObject *few_where(PyObject *mask, PyObject *one, PyObject *other);
PyObject *tree_sum(PyObject *module, PyObject *args);
PyObject *are_below(PyObject *module, PyObject *args);

PyObject *few(int operation, PyObject *one, PyObject *other);
int few_into(int operation, PyObject *one, PyObject *other);
PyObject *bind_few(PyObject *module, PyObject *args);
PyObject *few_for_tests(PyObject *module, PyObject *args);
extern long long ripe_from;  /* bytes */
void forget_functions(void);
int is_ripe(PyObject *code, long long bytes);  /* count bytes; whether the function is ripe */
int is_caller_ripe(Py_ssize_t elements);
int is_caller_lost(const Py_ssize_t *extents, int rank);
PyObject *ripe(PyObject *module, PyObject *args);
int is_pending(PyObject *x);
Py_ssize_t elements_of(PyObject *x);
PyObject *at_once(PyObject *x, Py_ssize_t least);  /* borrowed; NULL, without an error: it is not */
PyObject *settled(PyObject *x);
int is_list_of_numbers(PyObject *x);
int is_alone(PyObject *base);
int is_scalar(PyObject *x);
PyObject *adopt(PyObject *array);   /* steals */
PyObject *finish(PyObject *value);  /* steals: our array of a new one of NumPy's; else the value */
PyObject *sliced(PyObject *x, PyObject *part);  /* steals part */
PyObject *make_fast(PyObject *module, PyObject *plain);
int add_functions(PyObject *module);
PyObject *recorded(PyObject *operation, PyObject *const *operands, int given, PyObject *out);
/* PyArray_NewFromDescr (NULL until it is bound) and PyArray_SetBaseObject, by their place in the table of
   NumPy's C API, which never changes. */
enum { NEW_FROM_DESCR = 94, SET_BASE_OBJECT = 282 };
extern PyObject *(*new_numpys)(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
extern int (*set_base)(Numpys *, PyObject *);
PyObject *part_of_array(PyObject *array, PyObject *key, Py_ssize_t most);
PyObject *part_of_region(PyObject *x, PyObject *key);
PyObject *reshaped(PyObject *x, PyObject *const *args, Py_ssize_t count);
PyObject *reversed(PyObject *x);
PyObject *tuple_of(const Py_ssize_t *numbers, int count);
PyObject *new_region(PyObject *buffer, Py_ssize_t offset, PyObject *strides, PyObject *shape, PyObject *dtype);
PyObject *unmade_array(PyObject *strides, PyObject *shape, PyObject *dtype, PyObject *nbytes);  /* that has no memory yet */
PyObject *recordable(PyObject *x);
int record_part(PyObject *x, PyObject *out);
extern PyObject *copies;  /* the operation */
PyObject *field_of(PyObject *x, PyObject *name);
PyObject *viewed(PyObject *const *args, Py_ssize_t count);
PyObject *entries_of(PyObject *x);
PyObject *joined(const char *how, PyObject *arrays, PyObject *axis, int *due);
int bind_operations(PyObject *operations);
extern PyObject *recorded_for;  /* operations by NumPy's ufuncs */
extern PyObject *no_entries;  /* () */
PyObject *operand(PyObject *x, Py_ssize_t least);  /* borrowed, as NumPy takes it; NULL: it does not */
PyObject *of_few(int operation, PyObject *one, PyObject *other);
extern PyMethodDef RECORDING[], CLASSES[];
