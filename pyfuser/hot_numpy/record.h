/* What the files that record operations share. See frontends/numpy/known.py. */
#include "array.h"
#include "../hot/api.h"
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif
#include <stdint.h>

enum { OPERANDS = 3, INTEGERS = 8 };

extern const HotApi *hot;

/* What Python tells, see `bind_recording`. */
typedef struct {
    PyTypeObject *recorded, *allocation, *region, *numpys_float, *numpys_single;
    PyObject *plan, *number, *region_of, *flush;  /* functions of Python's */
    PyObject *why_read, *why_loop;
    PyObject *state, *state_default, *sites, *float64, *float32, *pattern, *kinds;  /* kinds: in the order of `few`'s types */
    long long lost, kind;
    struct { PyObject *dtype; PyTypeObject *scalars; long long least, most; } integers[INTEGERS];
    PyObject *costly_name, *divides_name;
    struct { Py_ssize_t arguments, at, code, label, pattern, position, result, space, workunit, caller, errors, recipe, ripe; } call;
    struct { Py_ssize_t exports, handle, address, external, image, lent, nbytes, pending, root, seen; } buffer;
    struct { Py_ssize_t after, eager, exact, small; } limits;
    PyObject *space;  /* spaces.SPACE */
    Py_ssize_t device;
} Recording;

extern Recording P;

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
    Py_ssize_t size, weight, itemsize, bytes;  /* weight: see weight_of; bytes: that it moves */
    long long moved;  /* bytes that such operations moved at once */
    int costly, ripe; /* ripe: whether those of the function have moved enough */
} Plan;

/* Where an operand lies: `region` or, in a buffer that has memory, `array`; buffer NULL: of an array that
   nobody shares, so it has none yet. */
typedef struct {
    PyObject *x, *region, *buffer;  /* borrowed; x NULL: a number */
    Numpys *array;
    Py_ssize_t offset;
} Place;

/* places.c */
int locate(PyObject *x, Place *found);
int settle(Place *place);
int is_away(const Place *place);
PyObject *formed(const Place *place, PyObject *strides, PyObject *shape, PyObject *form_strides, PyObject *form_shape, PyObject *dtype);
int independent(const Plan *plan, const Operand *operand, const Place *place, const Place *target);

/* numbers.c */
PyObject *number_of(PyObject *operation, int place, PyObject *value, PyObject *dtype);

/* record.c */
int for_device(void);  /* whether operations are recorded for a device */

/* plans.c */
PyObject *forget_layouts(PyObject *module, PyObject *unused);
PyObject *forget_plans(PyObject *module, PyObject *unused);
PyObject *count_plans(PyObject *module, PyObject *unused);
int read_plan(Plan *plan, PyObject *told);
PyObject *ask(PyObject *operation, PyObject *const *operands, int given, PyObject *out);
Plan *plan_for(PyObject *operation, int given, PyObject *const *operands, const Place *places, PyObject *out, const Place *target);

/* frames.c */
int last_instruction(PyFrameObject *frame);
PyFrameObject *program_frame(void);
int is_lost(PyObject *code, PyObject *at, PyObject *shape);
PyObject *caller_of(PyFrameObject *frame);
int end_trip(PyObject *code, PyObject *at, PyObject *caller, int strided);
