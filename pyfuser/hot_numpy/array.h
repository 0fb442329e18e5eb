/* What NumPy computes at once, without a line of Python. See docs/numpy.md, "Small arrays". */
#include "../hot/slots.h"

typedef struct {
    PyTypeObject *ours, *numpys;  /* the classes of arrays */
    PyTypeObject *owner, *integer, *dtype;
    PyObject *fresh, *scalars, *tracer, *use, *limits;
    PyObject *view;  /* Python's wrap.view */
    struct { Py_ssize_t array, base, owner, region, writeable; } x;  /* slots of our arrays */
    struct { Py_ssize_t buffer; } o;  /* of an Owner */
    struct { Py_ssize_t pending, external; } b;  /* of a Buffer */
    struct { Py_ssize_t calls, raw; } t;  /* of the Tracer */
    struct { Py_ssize_t devices; } u;
    struct { Py_ssize_t most, costly; } l;
    Py_ssize_t middle;  /* elements from which operations that come often are recorded */
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
} Descr;

enum { WRITEABLE = 0x400 };  /* of the flags */

/* Elements below which nothing is recorded whatever the limits are, but by Python. */
#define MIDDLE (K.middle < limit(0) ? K.middle : limit(0))

static inline Py_ssize_t size_of(PyObject *array)
{
    Numpys *a = (Numpys *)array;
    Py_ssize_t size = 1;
    for (int n = 0; n < a->nd; n++) size *= a->dimensions[n];
    return size;
}

static inline Py_ssize_t limit(int costly)
{
    return PyLong_AsSsize_t(SLOT(K.limits, costly ? K.l.costly : K.l.most));
}

/* What `few` computes. */
enum {
    FEW_ADD, FEW_SUB, FEW_MUL, FEW_DIV, FEW_COPY, FEW_NEG, FEW_SQUARE, FEW_ABS, FEW_SQRT,
    FEW_LT, FEW_LE, FEW_EQ, FEW_NE, FEW_GT, FEW_GE, FEW_OPERATIONS
};

int few_of(PyObject *ufunc);

PyObject *few(int operation, PyObject *one, PyObject *other);
int few_into(int operation, PyObject *one, PyObject *other);
PyObject *bind_few(PyObject *module, PyObject *args);
PyObject *few_for_tests(PyObject *module, PyObject *args);
int is_pending(PyObject *x);
PyObject *at_once(PyObject *x, Py_ssize_t least);  /* borrowed; NULL, without an error: it is not */
int is_scalar(PyObject *x);
PyObject *adopt(PyObject *array);   /* steals */
PyObject *finish(PyObject *value);  /* steals: our array of a new one of NumPy's; else the value */
PyObject *sliced(PyObject *x, PyObject *part);  /* steals part */
PyObject *make_fast(PyObject *module, PyObject *plain);
int add_functions(PyObject *module);
PyObject *recorded(PyObject *operation, PyObject *const *operands, int given, PyObject *out);
PyObject *part_of_region(PyObject *x, PyObject *key);
PyObject *new_region(PyObject *buffer, Py_ssize_t offset, PyObject *strides, PyObject *shape, PyObject *dtype);
int bind_operations(PyObject *operations, PyObject *by_ufunc);
extern PyMethodDef RECORDING[];
