/* A call that runs now and alone: `runtime/eager.py` for what has run before.

Its key is that of a trace of one call; whether memory is fresh is no part of it, nor is where in its
memory the first view begins: rows of one View share what runs for them, as in `eager._key`.
Its numbers are beside its words: an entry is right for all that meet its conditions (`eager.served`).
*/
#include "hot.h"

enum { MOVES = 16 };  /* as `eager.WARNED`: calls of fewer are looked at one by one */

static long age;  /* how often all was forgotten: entries of another age are none */

void forget_alone(void)
{
    age++;
}

static uint64_t hash_of(const uint64_t *words, Py_ssize_t count)
{
    uint64_t hash = count;
    for (Py_ssize_t n = 0; n < count; n++) hash = (hash ^ words[n]) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
    return hash;
}

static uint64_t hash_with(uint64_t hash, const Key *key)
{
    for (Py_ssize_t n = 0; n < key->numbers; n++) hash = (hash ^ key->number[n]) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
    return hash;
}

static int key_one(Key *key, const Site *site, PyObject *space, PyObject *const *arguments)
{
    key_begin(key);
    key->relative = 1;
    int failed = key_call(key, site->workunit, space, site->pattern, arguments, site->params, site->matters, NULL);
    return failed ? failed : key_facts(key, 0);
}

/* Whether a key was looked for before; it is noted. */
static int was_missed(Site *site, uint64_t hash)
{
    for (int n = 0; n < ALONE; n++)
        if (site->missed[n] == hash) return 1;
    site->missed[site->next_missed] = hash;
    site->next_missed = (site->next_missed + 1) % ALONE;
    return 0;
}

/* Whether a key was missed often with other numbers: then a range of them may be known. Asked seldom. */
static int moves(Site *site, const Key *key, uint64_t hash)
{
    if (!key->numbers) return 0;
    site->moved = site->moving == hash ? site->moved + 1 : 0;
    site->moving = hash;
    return site->moved >= MOVES && (site->moved & (site->moved - 1)) == 0;
}

/* Conditions on numbers, row after row; NULL: an exception. */
static int64_t *rows_of(PyObject *given, Py_ssize_t numbers, Py_ssize_t *count)
{
    Py_ssize_t size = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : -1;
    if (size < 0 || size % (numbers + 1)) {
        PyErr_SetString(PyExc_TypeError, "a condition has a constant, and a coefficient for each number");
        return NULL;
    }
    int64_t *rows = PyMem_Malloc((size + 1) * sizeof *rows);
    for (Py_ssize_t n = 0; rows != NULL && n < size; n++) rows[n] = PyLong_AsLongLong(PyTuple_GET_ITEM(given, n));
    *count = size / (numbers + 1);
    if (!PyErr_Occurred()) return rows;
    PyMem_Free(rows);
    return NULL;
}

/* Has Python prepare what it runs for calls of this key; the place of the entry, or -1. */
static int prepare(Site *site, Key *key, uint64_t hash, PyObject *pattern, PyObject *space, PyObject *const *arguments)
{
    PyObject *given = PyTuple_New(site->params), *both = NULL;
    for (Py_ssize_t n = 0; given != NULL && n < site->params; n++) PyTuple_SET_ITEM(given, n, Py_NewRef(arguments[n]));
    if (given != NULL) both = PyObject_CallFunctionObjArgs(R.prepare_alone, pattern, space, site->workunit, given, NULL);
    Py_XDECREF(given);
    if (both == NULL || both == Py_None) {
        Py_XDECREF(both);
        return -1;
    }
    Key again;  /* Python ran: is it still so? */
    int same = key_one(&again, site, space, arguments) == KEYED && again.count == key->count &&
               memcmp(again.words, key->words, key->count * sizeof *key->words) == 0;
    key_end(&again);
    uint64_t *words = same ? PyMem_Malloc(key->count * sizeof *words) : NULL;
    Py_ssize_t count = 0;
    int64_t *rows = same ? rows_of(PyTuple_GET_ITEM(both, 2), key->numbers, &count) : NULL;
    int at = site->next_alone;
    if (words != NULL && rows != NULL) {
        memcpy(words, key->words, key->count * sizeof *words);
        site->next_alone = (at + 1) % ALONE;
        site->moved = 0;
        PyMem_Free(site->alone[at].words);
        PyMem_Free(site->alone[at].rows);
        site->alone[at].words = words;
        site->alone[at].rows = rows;
        site->alone[at].row_count = count;
        site->alone[at].hash = hash;
        site->alone[at].count = key->count;
        site->alone[at].age = age;
        Py_XSETREF(site->alone[at].space, Py_NewRef(space));
        Py_XSETREF(site->alone[at].prepared, Py_NewRef(PyTuple_GET_ITEM(both, 0)));
        Py_XSETREF(site->alone[at].launchable, Py_NewRef(PyTuple_GET_ITEM(both, 1)));
    } else {
        PyMem_Free(words);
        PyMem_Free(rows);
        at = -1;
    }
    Py_DECREF(both);
    return at;
}

/* Whether the numbers of a key meet all conditions of an entry. */
static int holds(const int64_t *row, Py_ssize_t count, const Key *key)
{
    for (; count-- > 0; row += key->numbers + 1) {
        __int128 value = row[0];
        for (Py_ssize_t n = 0; n < key->numbers; n++) value += (__int128)row[n + 1] * key->number[n];
        if (value < 0) return 0;
    }
    return 1;
}

/* From the latest on: most calls come again at once, or after as many others as before. */
static int find(Site *site, const Key *key, uint64_t hash)
{
    for (int n = 1; n <= ALONE; n++) {
        int at = (site->next_alone - n + ALONE) % ALONE;
        if (site->alone[at].hash == hash && site->alone[at].words != NULL && site->alone[at].age == age &&
            site->alone[at].count == key->count &&
            memcmp(site->alone[at].words, key->words, key->count * sizeof *key->words) == 0 &&
            holds(site->alone[at].rows, site->alone[at].row_count, key))
            return at;
    }
    return -1;
}

static void count_launch(void)
{
    PyObject *more = PyLong_FromLongLong(PyLong_AsLongLong(SLOT(R.counters, R.launches)) + 1);
    if (more != NULL) Py_XSETREF(SLOT(R.counters, R.launches), more);
}

/* What a kernel that divided an integer by 0 raises: it has run. */
static PyObject *divided(const Site *site, PyObject *launchable, PyObject *pattern, PyObject *space, PyObject *const *values,
                         PyObject *label)
{
    PyObject *call = new_call(site, pattern, space, values, label, Py_None);
    if (call == NULL) return NULL;
    PyObject *nothing = PyObject_CallFunctionObjArgs(R.divided, launchable, call, NULL);
    Py_DECREF(call);
    Py_XDECREF(nothing);
    return NULL;
}

/* Python runs the call, which it may compile first; what comes back is a Future, or None. */
static PyObject *run_in_python(const Site *site, PyObject *pattern, PyObject *space, PyObject *const *values, PyObject *label)
{
    PyObject *result = *(char *)PyUnicode_DATA(pattern) == 'f' ? Py_NewRef(Py_None) : new_future(site, Py_None);
    PyObject *call = result == NULL ? NULL : new_call(site, pattern, space, values, label, result);
    PyObject *done = call == NULL ? NULL : PyObject_CallOneArg(R.run_eagerly, call);
    Py_XDECREF(call);
    if (done == NULL) Py_CLEAR(result);
    Py_XDECREF(done);
    return result;
}

static PyObject *as_future(const Site *site, PyObject *number)
{
    PyObject *future = new_future(site, number);
    Py_DECREF(number);
    return future;
}

PyObject *run_alone(Site *site, PyObject *pattern, PyObject *space, PyObject *const *values, PyObject *label, int now, int *usual)
{
    PyObject *arguments[MAX_ARGUMENTS], *answer = NULL;
    PyObject *runs = PyObject_GetAttr(R.session, R.run_name);
    Py_XDECREF(runs);
    if (devices_in_use() != !!(site->head & R.on_device) || runs != R.run_eagerly) return NULL;
    for (Py_ssize_t n = 0; n < site->params; n++) arguments[n] = values[site->order[n]];
    Key key;
    int at = -1;
    if (key_one(&key, site, space, arguments) == KEYED) {
        uint64_t hash = hash_of(key.words, key.count);
        at = find(site, &key, hash);
        if (at < 0 && (was_missed(site, hash_with(hash, &key)) | moves(site, &key, hash) || now == CAREFUL))
            at = prepare(site, &key, hash, pattern, space, arguments);
    }
    key_end(&key);
    if (at < 0 && (now == AT_ONCE || (!now && *(char *)PyUnicode_DATA(pattern) == 'f'))) {
        *usual = 1;
        return run_in_python(site, pattern, space, values, label);
    }
    if (at < 0) return NULL;
    PyObject *prepared = Py_NewRef(site->alone[at].prepared), *launchable = Py_NewRef(site->alone[at].launchable);
    int status = 0, ran = run_one((Prepared *)prepared, space, arguments, (int)PyLong_AsLong(SLOT(R.team, R.count)), &status, &answer);
    if (ran == 1 && status == 0) {
        *usual = 1;
        count_launch();
    } else if (ran == 1 && status == R.divided_status) {
        *usual = 1;
        answer = divided(site, launchable, pattern, space, values, label);
    }
    Py_DECREF(prepared);
    Py_DECREF(launchable);
    return now == AT_ONCE && answer != NULL && answer != Py_None ? as_future(site, answer) : answer;
}
