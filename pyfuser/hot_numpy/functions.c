/* Functions and methods of NumPy's that keep nothing of what they are given. */
#include "array.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *numpys, *python;
    PyObject *operation;  /* what is recorded, or a table of that, or how arrays are joined, or NULL */
    PyObject *methods;    /* of a ufunc, once they were asked for, by name; or NULL */
    int costly;  /* as in names.h, and as below */
    int first;   /* whether the first argument is an array of ours */
    int ufunc;   /* whether it is a ufunc, whose last argument may take its result if that is one */
    int out;     /* whether an array may be named that takes the result */
    int arrays;  /* arguments that are arrays, at most: an array after these is one for the result */
    int few;     /* what `few` computes; -1: not looked for yet */
} Direct;

/* KEEPS: a result of objects may refer to arrays in lists. CREATES: the first argument is the shape of the result.
   NUMBERS: no argument is an array. RIPENS: Python may record it in functions of the program that are ripe.
   SUMS: likewise; of all elements, from that many on it adds up in an order of its own. STORES: it writes the
   first argument. PAIRS: the result has an element for each pair of theirs. RESHAPES: it is the first argument
   with other axes. JOINS: the first argument is a list of arrays; recorded as RIPENS. VIEWS: it is the first
   argument with elements of another type. SEARCHES: as RIPENS, of the larger one of two
   arrays, each element of which counts as many. */
enum { MOST = 16, KEEPS = 2, CREATES = 3, NUMBERS = 4, RIPENS = 5, SUMS = 6, STORES = 7, PAIRS = 8, RESHAPES = 9, JOINS = 10, VIEWS = 11, SEARCHES = 12, NESTED = 8,
       SHORT = 7, ROWS = 448, SEARCH = 8 };  /* as short_rows.py: LONGEST; fewer rows are NumPy's; lookup.py: SEARCH */

/* The arguments of a call: those by position, then those that are named. */
typedef struct {
    PyObject *const *all;
    Py_ssize_t count, named;
    PyObject *names;
} Arguments;

/* Whether NumPy may be given it as it is, as an argument that is named. */
static int is_plain(PyObject *value)
{
    if (PyTuple_CheckExact(value)) {
        for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(value); n++)
            if (!is_scalar(PyTuple_GET_ITEM(value, n))) return 0;
        return 1;
    }
    return value == Py_None || PyType_Check(value) || is_scalar(value) || PyObject_TypeCheck(value, K.dtype);
}

static int is_out(PyObject *name) { return PyUnicode_CompareWithASCIIString(name, "out") == 0; }

/* Of `reshape`, whose method of arrays has no such name. */
static int is_shape(PyObject *name) { return PyUnicode_CompareWithASCIIString(name, "shape") == 0; }

/* The array that takes the result of a ufunc (borrowed), if there is one and nothing else is named but a mask. */
static PyObject *out_of(Direct *self, const Arguments *given)
{
    PyObject *out = NULL;
    if (!self->out || given->count + given->named < self->arrays + 1) return NULL;
    if (self->ufunc && given->count == self->arrays + 1 && !given->named) out = given->all[self->arrays];
    if (given->count > self->arrays) return out != NULL && IS_OURS(out) && SLOT(out, K.x.writeable) != Py_False ? out : NULL;
    for (Py_ssize_t n = 0; n < given->named; n++) {
        PyObject *name = PyTuple_GET_ITEM(given->names, n);
        if (is_out(name)) out = given->all[given->count + n];
        else if (PyUnicode_CompareWithASCIIString(name, "where") != 0) return NULL;
    }
    return out != NULL && IS_OURS(out) && SLOT(out, K.x.writeable) != Py_False ? out : NULL;
}

/* Whether it has numbers, and lists and tuples of them, only. */
static int has_numbers(PyObject *x, int depth)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(x);
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *entry = PySequence_Fast_GET_ITEM(x, n);
        int nested = PyList_CheckExact(entry) || PyTuple_CheckExact(entry);
        if (nested ? depth == NESTED || !has_numbers(entry, depth + 1) : !is_scalar(entry)) return 0;
    }
    return 1;
}

int is_list_of_numbers(PyObject *x) { return PyList_CheckExact(x) && has_numbers(x, 0); }

/* What NumPy takes for an argument (a new reference); NULL, without an error: it is not to be called. */
static PyObject *given_for(PyObject *x, Py_ssize_t least, int any)
{
    if (IS_OURS(x)) return Py_XNewRef(at_once(x, least));
    if (is_scalar(x) || (any && is_plain(x))) return Py_NewRef(x);
    if (!PyList_CheckExact(x) && !PyTuple_CheckExact(x)) return NULL;
    if (has_numbers(x, 0)) return Py_NewRef(x);
    int is_list = PyList_CheckExact(x);  /* a tuple of indices selects other elements than a list of them */
    Py_ssize_t count = PySequence_Fast_GET_SIZE(x);
    PyObject *entries = is_list ? PyList_New(count) : PyTuple_New(count);
    for (Py_ssize_t n = 0; entries != NULL && n < count; n++) {
        PyObject *entry = PySequence_Fast_GET_ITEM(x, n);
        int numbers = is_scalar(entry) || ((PyList_CheckExact(entry) || PyTuple_CheckExact(entry)) && has_numbers(entry, 0));
        PyObject *array = IS_OURS(entry) ? at_once(entry, least) : numbers ? entry : NULL;
        if (array == NULL) Py_CLEAR(entries);
        else if (is_list) PyList_SET_ITEM(entries, n, Py_NewRef(array));
        else PyTuple_SET_ITEM(entries, n, Py_NewRef(array));
    }
    return entries;
}

/* Whether it is the shape of an array of few elements. */
static int is_small(PyObject *shape)
{
    Py_ssize_t size = 1, least = limit(0), count = PyTuple_CheckExact(shape) ? PyTuple_GET_SIZE(shape) : 1;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *entry = PyTuple_CheckExact(shape) ? PyTuple_GET_ITEM(shape, n) : shape;
        Py_ssize_t extent = PyLong_CheckExact(entry) ? PyLong_AsSsize_t(entry) : -1;
        if (extent < 0 || extent > least) {
            PyErr_Clear();
            return 0;
        }
        size *= extent;
        if (size >= least) return 0;
    }
    return 1;
}

/* Count what a call moves; whether the function that makes it is ripe. */
static int ripens(const Arguments *given)
{
    PyObject *x = given->count ? given->all[0] : NULL;
    if (x != NULL && (PyList_CheckExact(x) || PyTuple_CheckExact(x)) && PySequence_Fast_GET_SIZE(x)) x = PySequence_Fast_GET_ITEM(x, 0);
    PyObject *array = x != NULL && IS_OURS(x) ? SLOT(x, K.x.array) : NULL;
    if (array == NULL || array == Py_None) return 1;
    return size_of(array) >= lazy_from(0) && is_caller_ripe(size_of(array));
}

/* Likewise of a search for each element of an array. */
static int searches_ripen(const Arguments *given)
{
    Py_ssize_t most = 0;
    for (Py_ssize_t n = 0; n < given->count && n < 2; n++) {
        PyObject *array = IS_OURS(given->all[n]) ? SLOT(given->all[n], K.x.array) : NULL;
        if (array != NULL && array != Py_None && size_of(array) > most) most = size_of(array);
    }
    return SEARCH * most >= lazy_from(0) && is_caller_ripe(SEARCH * most);
}

/* Whether a reduction is told an axis. */
static int has_axis(const Arguments *given)
{
    int found = given->count > 1 && given->all[1] != Py_None;
    for (Py_ssize_t n = 0; n < given->named; n++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(given->names, n), "axis") == 0)
            found |= given->all[given->count + n] != Py_None;
    return found;
}

/* Whether a reduction may be of a few elements along the last axis each, which Python adds up side by side. */
static int has_short_rows(const Arguments *given)
{
    const Numpys *array = (Numpys *)(given->count && IS_OURS(given->all[0]) ? SLOT(given->all[0], K.x.array) : NULL);
    if (array == NULL || (PyObject *)array == Py_None || array->nd < 2 || array->dimensions[array->nd - 1] > SHORT) return 0;
    return size_of((PyObject *)array) >= array->dimensions[array->nd - 1] * ROWS && has_axis(given);
}

/* How many pairs of elements two arrays have. */
static Py_ssize_t pairs_of(const Arguments *given)
{
    Py_ssize_t pairs = 1;
    for (Py_ssize_t n = 0; n < given->count; n++) {
        PyObject *array = IS_OURS(given->all[n]) ? SLOT(given->all[n], K.x.array) : NULL;
        if (array != NULL && array != Py_None && __builtin_mul_overflow(pairs, size_of(array), &pairs)) return PY_SSIZE_T_MAX;
    }
    return pairs;
}

/* Below how many elements arrays are NumPy's. */
static Py_ssize_t least_of(const Direct *self, const Arguments *given)
{
    if (self->costly < 0 || self->costly == RESHAPES || self->costly == JOINS) return PY_SSIZE_T_MAX;
    if (self->costly == SEARCHES) return (searches_ripen(given) ? lazy_from(0) : limit(0)) / SEARCH;
    if (self->costly == PAIRS) return pairs_of(given) < lazy_from(0) ? PY_SSIZE_T_MAX : 0;
    if ((self->costly == RIPENS || self->costly == SUMS) && has_short_rows(given)) return 0;
    if (self->costly == SUMS && !has_axis(given)) return lazy_from(0);
    if ((self->costly == RIPENS || self->costly == SUMS) && ripens(given)) return lazy_from(0);
    return limit(self->costly == 1);
}

/* What NumPy takes for the argument at a place; NULL, without an error: it is not to be called. */
static PyObject *converted_one(Direct *self, const Arguments *given, Py_ssize_t at, Py_ssize_t least)
{
    PyObject *x = given->all[at];
    int named = at >= given->count;
    PyObject *name = named ? PyTuple_GET_ITEM(given->names, at - given->count) : NULL;
    if (named && (is_out(name) || (self->first && is_shape(name)))) return NULL;
    if (self->costly == CREATES || self->costly == NUMBERS || (!named && at >= self->arrays))
        return is_plain(x) || is_list_of_numbers(x) ? Py_NewRef(x) : NULL;
    return given_for(x, least, named || (at && (self->first || x == Py_None)));
}

/* NumPy's arguments (new references) for ours; 0: NumPy is not to be called. */
static int converted(Direct *self, const Arguments *given, PyObject **numpys)
{
    Py_ssize_t all = given->count + given->named;
    if (all > MOST || (self->first && (!given->count || !IS_OURS(given->all[0])))) return 0;
    if (self->costly == CREATES && (!given->count || !is_small(given->all[0]))) return 0;
    if (self->costly == STORES && SLOT(given->all[0], K.x.writeable) == Py_False) return 0;
    Py_ssize_t least = least_of(self, given);
    for (Py_ssize_t n = 0; n < all; n++) {
        numpys[n] = converted_one(self, given, n, least);
        if (numpys[n] == NULL) {
            while (n) Py_DECREF(numpys[--n]);
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* Whether only a view refers to the array that it is a view of. */
int is_alone(PyObject *base)
{
    return Py_IS_TYPE(base, K.numpys) && Py_REFCNT(base) == 1 && ((Numpys *)base)->base == NULL;
}

/* Ours for views of an array that nobody else has, as `nonzero` gives; NULL, without an error: they are something else. */
static PyObject *columns(PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    PyObject *base = NULL, *root = NULL, *found = NULL;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *entry = PyTuple_GET_ITEM(tuple, n);
        const Numpys *array = (Numpys *)entry;
        if (!Py_IS_TYPE(entry, K.numpys) || Py_REFCNT(entry) > 1 || array->base == NULL || !size_of(entry)) return NULL;
        if (n && array->base != base) return NULL;
        base = array->base;
    }
    if (base == NULL || !Py_IS_TYPE(base, K.numpys) || Py_REFCNT(base) != count || ((Numpys *)base)->base != NULL) return NULL;
    root = adopt(Py_NewRef(base));
    found = root == NULL ? NULL : PyTuple_New(count);
    for (Py_ssize_t n = 0; found != NULL && n < count; n++) {
        PyObject *entry = sliced(root, Py_NewRef(PyTuple_GET_ITEM(tuple, n)));
        if (entry == NULL) Py_CLEAR(found);
        else PyTuple_SET_ITEM(found, n, entry);
    }
    Py_XDECREF(root);
    return found;
}

/* Ours for each array of a tuple; NULL, without an error: somebody else has one. */
static PyObject *adopted_all(PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    int alone = 1;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *entry = PyTuple_GET_ITEM(tuple, n);
        const Numpys *array = (Numpys *)entry;
        alone &= Py_IS_TYPE(entry, K.numpys) ? Py_REFCNT(entry) == 1 && (array->base == NULL || is_alone(array->base)) : is_scalar(entry);
    }
    if (!alone) return columns(tuple);
    PyObject *found = PyTuple_New(count);
    for (Py_ssize_t n = 0; found != NULL && n < count; n++) {
        PyObject *entry = finish(Py_NewRef(PyTuple_GET_ITEM(tuple, n)));
        if (entry == NULL) Py_CLEAR(found);
        else PyTuple_SET_ITEM(found, n, entry);
    }
    return found;
}

/* A tuple as one of a class with names for the entries, as `linalg.svd` has it; steals. */
static PyObject *of_class(PyObject *class, PyObject *tuple)
{
    if (tuple == NULL || class == (PyObject *)&PyTuple_Type) return tuple;
    PyObject *found = PyObject_CallMethod(class, "_make", "(O)", tuple);
    Py_DECREF(tuple);
    return found;
}

static int is_view_of(const Numpys *made, PyObject *array)
{
    return made->base == array || (made->base != NULL && made->base == ((Numpys *)array)->base);
}

/* Ours for each view of the first argument in a list; NULL, without an error: there is something else. */
static PyObject *sliced_all(PyObject *list, PyObject *x, PyObject *array)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    int views = 1;
    for (Py_ssize_t n = 0; n < count; n++) {
        Numpys *entry = (Numpys *)PyList_GET_ITEM(list, n);
        views &= Py_IS_TYPE(entry, K.numpys) && is_view_of(entry, array) && entry->flags & WRITEABLE && size_of((PyObject *)entry) > 0;
    }
    PyObject *found = views ? PyList_New(count) : NULL;
    for (Py_ssize_t n = 0; found != NULL && n < count; n++) {
        PyObject *entry = sliced(x, Py_NewRef(PyList_GET_ITEM(list, n)));
        if (entry == NULL) Py_CLEAR(found);
        else PyList_SET_ITEM(found, n, entry);
    }
    return found;
}

/* Ours for a result that nobody else has, or that is a view of the first argument; NULL, without an error: neither. */
static PyObject *result(Direct *self, PyObject *value, const Arguments *given, PyObject *const *numpys)
{
    if (!Py_IS_TYPE(value, K.numpys)) {
        if (PyTuple_Check(value)) return of_class((PyObject *)Py_TYPE(value), adopted_all(value));
        if (PyList_CheckExact(value) && self->first) return sliced_all(value, given->all[0], numpys[0]);
        return PyList_Check(value) ? NULL : Py_NewRef(value);
    }
    Numpys *made = (Numpys *)value;
    if (Py_REFCNT(value) > 1 || (self->costly == KEEPS && has_objects(value))) return NULL;
    if (made->base == NULL || is_alone(made->base)) return adopt(Py_NewRef(value));
    if (self->first && is_view_of(made, numpys[0]) && made->flags & WRITEABLE) return sliced(given->all[0], Py_NewRef(value));
    return NULL;
}

static int note(PyObject *pairs, PyObject *x, PyObject *array)
{
    if (!IS_OURS(x)) return 0;
    PyObject *pair = PyTuple_Pack(2, x, array);
    int failed = pair == NULL || PyList_Append(pairs, pair) < 0;
    Py_XDECREF(pair);
    return failed;
}

/* Ours for any other result, which it steals: Python's `apply.taken` finds what that is. */
static PyObject *taken(PyObject *value, const Arguments *given, PyObject *const *numpys)
{
    PyObject *box = PyList_New(1), *pairs = PyList_New(0), *found = NULL;
    int failed = box == NULL || pairs == NULL;
    if (box == NULL) Py_DECREF(value);
    else PyList_SET_ITEM(box, 0, value);
    for (Py_ssize_t n = 0; !failed && n < given->count + given->named; n++) {
        PyObject *x = given->all[n];
        failed = note(pairs, x, numpys[n]);
        if (!PyList_CheckExact(x) && !PyTuple_CheckExact(x)) continue;
        for (Py_ssize_t k = 0; !failed && k < PySequence_Fast_GET_SIZE(x); k++)
            failed = note(pairs, PySequence_Fast_GET_ITEM(x, k), PySequence_Fast_GET_ITEM(numpys[n], k));
    }
    if (!failed) found = PyObject_CallFunctionObjArgs(K.taken, box, pairs, NULL);
    Py_XDECREF(box);
    Py_XDECREF(pairs);
    return found;
}

/* A ufunc into an array; NULL, without an error: not at once. */
static PyObject *call_into(Direct *self, const Arguments *given, PyObject *out)
{
    PyObject *numpys[MOST], *value = NULL;
    Py_ssize_t least = limit(self->costly > 0), all = given->count + given->named;
    if (all > MOST) return NULL;
    for (Py_ssize_t n = 0; n < all; n++) {
        PyObject *x = given->all[n];
        numpys[n] = IS_OURS(x) ? at_once(x, least) : is_scalar(x) ? x : NULL;
        if (numpys[n] == NULL) return NULL;
    }
    for (Py_ssize_t n = 0; n < all; n++) Py_INCREF(numpys[n]);
    value = PyObject_Vectorcall(self->numpys, numpys, given->count, given->names);  /* as the program: it may warn */
    for (Py_ssize_t n = 0; n < all; n++) Py_DECREF(numpys[n]);
    if (value == NULL) return NULL;
    Py_DECREF(value);
    return Py_NewRef(out);
}

static int may_be_recorded(PyObject *x, Py_ssize_t middle)
{
    PyObject *array = IS_OURS(x) ? SLOT(x, K.x.array) : NULL;
    return IS_OURS(x) && (array == NULL || array == Py_None || weight_of(array) >= middle || is_pending(x));
}

/* The operation, recorded; NULL, without an error: not by this. A table has one for each type that is asked for. */
static PyObject *record(Direct *self, const Arguments *given, PyObject *out)
{
    PyObject *operation = self->operation;
    int count = self->arrays, large = 0, table = operation != NULL && PyDict_CheckExact(operation);
    if (operation == NULL || count > 3 || given->count != count + table || given->named != (out != NULL)) return NULL;
    if (table) operation = PyDict_GetItemWithError(operation, given->all[count]);
    if (operation == NULL) {
        PyErr_Clear();  /* it comes again */
        return NULL;
    }
    const Py_ssize_t middle = self->costly == 1 ? MIDDLE / 4 : MIDDLE;
    for (int n = 0; n < count; n++) large |= may_be_recorded(given->all[n], middle);
    return large ? recorded(operation, given->all, count, out) : NULL;
}

/* A view with other axes of what has no memory yet; NULL, without an error: not by this. */
static PyObject *with_other_axes(Direct *self, const Arguments *given)
{
    if (self->costly != RESHAPES || given->named || !given->count || !IS_OURS(given->all[0])) return NULL;
    return reshaped(given->all[0], given->all + 1, given->count - 1);
}

/* NumPy's array of what `few` computes; NULL, without an error: it does not. */
static PyObject *by_few(Direct *self, const Arguments *given, PyObject *const *numpys)
{
    if (self->few < 0) self->few = few_of(self->numpys);
    if (self->few == FEW_OPERATIONS && given->count == 3 && !given->named && is_where(self->numpys))
        return few_where(numpys[0], numpys[1], numpys[2]);
    if (self->few == FEW_OPERATIONS || given->named || given->count != self->arrays) return NULL;
    return few(self->few, numpys[0], numpys[given->count - 1]);
}

/* Whether nothing is named but the axis. */
static int names_axis(const Arguments *given)
{
    return !given->named || (given->named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(given->names, 0), "axis") == 0);
}

/* Arrays joined by calls that are recorded; NULL, without an error: not by this. */
static PyObject *join(Direct *self, const Arguments *given, int *due)
{
    *due = 0;
    if (!given->count || given->count + given->named > 2 || !names_axis(given)) return NULL;
    return joined(PyUnicode_AsUTF8(self->operation), given->all[0], given->count + given->named == 2 ? given->all[1] : NULL, due);
}

static PyObject *call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    Direct *self = (Direct *)object;
    Arguments given = {args, PyVectorcall_NARGS(count), names == NULL ? 0 : PyTuple_GET_SIZE(names), names};
    PyObject *numpys[MOST], *out = out_of(self, &given), *made = NULL;
    int due = 0;
    if (self->costly == JOINS) made = join(self, &given, &due);
    else if (self->costly == VIEWS) made = viewed(args, given.named ? 0 : given.count);
    else made = record(self, &given, self->ufunc ? out : NULL);
    if (made != NULL || PyErr_Occurred()) return made;
    if (due || self->costly == VIEWS) return PyObject_Vectorcall(self->python, args, given.count, names);
    if (out != NULL) {
        PyObject *found = call_into(self, &given, out);
        if (found != NULL || PyErr_Occurred()) return found;
    } else if (converted(self, &given, numpys)) {
        PyObject *value = by_few(self, &given, numpys);
        if (value == NULL && !PyErr_Occurred()) value = PyObject_Vectorcall(self->numpys, numpys, given.count, names);
        PyObject *found = value == NULL ? NULL : result(self, value, &given, numpys);
        if (value != NULL && found == NULL && !PyErr_Occurred() && self->costly != KEEPS) found = taken(value, &given, numpys);
        else Py_XDECREF(value);
        for (Py_ssize_t n = 0; n < given.count + given.named; n++) Py_DECREF(numpys[n]);
        if (found != NULL || PyErr_Occurred()) return found;
    } else {
        PyObject *found = with_other_axes(self, &given);
        if (found != NULL) return found;
    }
    return PyObject_Vectorcall(self->python, args, given.count, names);
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Direct *self = (Direct *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    PyObject *operation = Py_None;
    if (!PyArg_ParseTuple(args, "OOiii|Oi", &self->numpys, &self->python, &self->costly, &self->first, &self->arrays, &operation, &self->out)) {
        self->numpys = self->python = NULL;
        Py_DECREF(self);
        return NULL;
    }
    self->vectorcall = call;
    self->few = -1;
    self->ufunc = !self->first && PyObject_HasAttrString(self->numpys, "nin");
    PyObject *results = self->ufunc ? PyObject_GetAttrString(self->numpys, "nout") : NULL;
    self->out |= results != NULL && PyLong_AsLong(results) == 1;
    Py_XDECREF(results);
    PyErr_Clear();
    Py_INCREF(self->numpys);
    Py_INCREF(self->python);
    self->operation = operation == Py_None ? NULL : Py_NewRef(operation);
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    Direct *self = (Direct *)object;
    Py_XDECREF(self->numpys);
    Py_XDECREF(self->python);
    Py_XDECREF(self->operation);
    Py_XDECREF(self->methods);
    Py_TYPE(object)->tp_free(object);
}

/* All else is the Python function's. */
static PyObject *of_python(PyObject *object, PyObject *name)
{
    Direct *self = (Direct *)object;
    PyObject *found = self->methods == NULL ? NULL : PyDict_GetItemWithError(self->methods, name);
    if (found != NULL) return Py_NewRef(found);
    if (PyErr_Occurred()) return NULL;
    found = PyObject_GenericGetAttr(object, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    found = PyObject_GetAttr(self->python, name);
    if (found == NULL || !self->ufunc || !Py_IS_TYPE(found, Py_TYPE(object))) return found;
    if (self->methods == NULL) self->methods = PyDict_New();
    if (self->methods == NULL || PyDict_SetItem(self->methods, name, found) < 0) Py_CLEAR(found);
    return found;
}

static PyObject *doc(PyObject *object, void *unused)
{
    return PyObject_GetAttrString(((Direct *)object)->python, "__doc__");
}

/* A program that has a table of functions is given NumPy's by `__array_function__` and `__array_ufunc__`. */
static PyObject *named(PyObject *object)
{
    PyObject *found = PyObject_GetAttrString(((Direct *)object)->python, "__wrapped__");
    if (found != NULL) return found;
    PyErr_Clear();
    return Py_NewRef(((Direct *)object)->numpys);
}

static Py_hash_t hash_of(PyObject *object)
{
    PyObject *function = named(object);
    Py_hash_t hash = PyObject_Hash(function);
    Py_DECREF(function);
    return hash;
}

static PyObject *compared(PyObject *object, PyObject *other, int how)
{
    if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    PyObject *function = named(object);
    int same = other == object || other == function;
    Py_DECREF(function);
    return PyBool_FromLong(same == (how == Py_EQ));
}

static PyObject *shown(PyObject *object) { return PyObject_Repr(((Direct *)object)->python); }

static PyObject *reduced(PyObject *object, PyObject *protocol)
{
    return PyObject_CallMethod(((Direct *)object)->python, "__reduce_ex__", "O", protocol);
}

static PyMethodDef METHODS[] = {{"__reduce_ex__", reduced, METH_O, NULL}, {NULL}};

static PyObject *python(PyObject *object, void *unused) { return Py_NewRef(((Direct *)object)->python); }

static PyGetSetDef ATTRIBUTES[] = {{"__doc__", doc, NULL, NULL, NULL}, {"python", python, NULL, NULL, NULL}, {NULL}};

static PyObject *bound(PyObject *object, PyObject *instance, PyObject *type)
{
    return instance == NULL ? Py_NewRef(object) : PyMethod_New(object, instance);
}

static PyTypeObject DIRECT = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfuser._numpy.Function", .tp_basicsize = sizeof(Direct),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, .tp_new = make, .tp_dealloc = drop,
    .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Direct, vectorcall), .tp_repr = shown,
    .tp_hash = hash_of, .tp_richcompare = compared, .tp_getattro = of_python, .tp_methods = METHODS, .tp_getset = ATTRIBUTES,
};

static PyTypeObject METHOD = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pyfuser._numpy.Method", .tp_basicsize = sizeof(Direct),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_VECTORCALL, .tp_new = make, .tp_dealloc = drop,
    .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Direct, vectorcall), .tp_repr = shown, .tp_getattro = of_python, .tp_methods = METHODS, .tp_getset = ATTRIBUTES,
    .tp_descr_get = bound,
};

int add_functions(PyObject *module)
{
    if (PyType_Ready(&DIRECT) < 0 || PyType_Ready(&METHOD) < 0) return -1;
    if (PyModule_AddObjectRef(module, "Function", (PyObject *)&DIRECT) < 0) return -1;
    return PyModule_AddObjectRef(module, "Method", (PyObject *)&METHOD);
}
