/* `trace.key` in C: the words are 64-bit numbers, the key is their bytes.

The law is that of `trace/key.py`, and so is the proof: a call's words begin with its workunit, space
and pattern, each argument's with what it is (so that words can be told apart), and the facts follow.
Numbers of more than 64 bits have no key.
*/
#include "hot.h"

enum { REGION = 1, NUMBER = 2, FUTURE = 3, FREE = 4, FOREIGN = 4 };

void key_begin(Key *key)
{
    key->words = key->some_words;
    key->count = 0;
    key->room = 512;
    key->memories = key->some_memories;
    key->buffers = 0;
    key->memory_room = 24;
    key->index = key->some_index;
    key->slots = 64;
    memset(key->index, -1, sizeof key->some_index);
    key->results = key->some_results;
    key->calls = 0;
    key->result_room = 32;
    key->relative = 0;
    key->placed = 0;
    key->numbers = 0;
}

void key_end(Key *key)
{
    if (key->words != key->some_words) PyMem_Free(key->words);
    if (key->memories != key->some_memories) PyMem_Free(key->memories);
    if (key->index != key->some_index) PyMem_Free(key->index);
    if (key->results != key->some_results) PyMem_Free(key->results);
}

/* Twice the room of an array that begins in the key itself. */
static void *grown(void *array, void *inside, size_t bytes)
{
    void *bigger = PyMem_Malloc(2 * bytes);
    if (bigger == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(bigger, array, bytes);
    if (array != inside) PyMem_Free(array);
    return bigger;
}

static int reserve(Key *key, Py_ssize_t more)
{
    while (key->count + more > key->room) {
        uint64_t *bigger = grown(key->words, key->some_words, key->room * sizeof *bigger);
        if (bigger == NULL) return FAILED;
        key->words = bigger;
        key->room *= 2;
    }
    return KEYED;
}

static size_t slot_of(const Key *key, PyObject *buffer)
{
    size_t at = ((uintptr_t)buffer >> 4) * 0x9E3779B97F4A7C15ull >> 32 & (key->slots - 1);
    while (key->index[at] >= 0 && key->memories[key->index[at]].buffer != buffer)
        at = (at + 1) & (key->slots - 1);
    return at;
}

static int more_memories(Key *key)
{
    Memory *bigger = grown(key->memories, key->some_memories, key->memory_room * sizeof *bigger);
    if (bigger == NULL) return FAILED;
    key->memories = bigger;
    key->memory_room *= 2;
    int32_t *index = grown(key->index, key->some_index, key->slots * sizeof *index);
    if (index == NULL) return FAILED;
    key->index = index;
    key->slots *= 2;
    memset(index, -1, key->slots * sizeof *index);
    for (Py_ssize_t n = 0; n < key->buffers; n++) index[slot_of(key, key->memories[n].buffer)] = n;
    return KEYED;
}

/* A number of at most 64 bits. */
static int word_of(PyObject *number, int64_t *word)
{
    int overflow = 0;
    if (number == NULL || !PyLong_Check(number)) return UNKEYABLE;
    *word = PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow ? UNKEYABLE : KEYED;
}

int dtype_number(PyObject *dtype)
{
    for (int n = 0; n < DTYPES; n++)
        if (L.dtypes[n] == dtype) return n;
    return -1;
}

static int key_region(Key *key, PyObject *region)
{
    PyObject *buffer = PyTuple_GET_ITEM(region, BUFFER), *dtype = PyTuple_GET_ITEM(region, DTYPE);
    PyObject *shape = PyTuple_GET_ITEM(region, SHAPE), *strides = PyTuple_GET_ITEM(region, STRIDES);
    Py_ssize_t rank = PyTuple_GET_SIZE(shape);
    int kind = dtype_number(dtype);
    if (PyTuple_GET_SIZE(strides) != rank || kind < 0) return UNKEYABLE;
    if (reserve(key, 2 + 2 * rank) < 0) return FAILED;
    size_t slot = slot_of(key, buffer);
    Py_ssize_t number = key->index[slot];
    if (number < 0) {
        if (key->buffers == key->memory_room) {
            if (more_memories(key) < 0) return FAILED;
            slot = slot_of(key, buffer);
        }
        number = key->index[slot] = key->buffers++;
        Memory *new = &key->memories[number];
        new->buffer = buffer;
        new->external = SLOT(buffer, L.buffer.external) == Py_True;
        new->first = INT64_MIN;
        new->low = INT64_MAX;
        new->high = INT64_MIN;
    }
    uint64_t *word = &key->words[key->count];
    int64_t offset, low, high;
    Memory *memory = &key->memories[number];
    if (word_of(PyTuple_GET_ITEM(region, OFFSET), &offset) < 0) return UNKEYABLE;
    if (memory->first == INT64_MIN) memory->first = offset;
    word[0] = REGION | (uint64_t)kind << 8 | (uint64_t)rank << 16 | (uint64_t)number << 32;
    int64_t behind;
    if (__builtin_sub_overflow(offset, memory->first, &behind)) return UNKEYABLE;
    word[1] = behind;
    low = high = offset;
    int empty = 0;
    for (Py_ssize_t axis = 0; axis < rank; axis++) {
        int64_t extent, stride;
        if (word_of(PyTuple_GET_ITEM(shape, axis), &extent) < 0) return UNKEYABLE;
        if (word_of(PyTuple_GET_ITEM(strides, axis), &stride) < 0) return UNKEYABLE;
        word[2 + 2 * axis] = extent;
        word[3 + 2 * axis] = stride;
        int64_t *end = stride < 0 ? &low : &high, way;
        empty |= extent == 0;
        if (__builtin_mul_overflow(extent - 1, stride, &way) || __builtin_add_overflow(*end, way, end))
            return UNKEYABLE;
    }
    key->count += 2 + 2 * rank;
    if (memory->external) {
        int64_t address;
        if (word_of(SLOT(memory->buffer, L.buffer.address), &address) < 0) return UNKEYABLE;
        if (empty)
            low = high = offset;
        else
            high += L.sizes[kind];
        if (low + address < memory->low) memory->low = low + address;
        if (high + address > memory->high) memory->high = high + address;
    }
    return KEYED;
}

static int key_argument(Key *key, PyObject *argument, int matters)
{
    if (Py_TYPE(argument) == L.Region) return key_region(key, argument);
    if (reserve(key, 2) < 0) return FAILED;
    if (Py_TYPE(argument) == L.Future) {
        for (Py_ssize_t place = key->calls; place-- > 0;)
            if (key->results[place] == argument) {
                key->words[key->count++] = FUTURE | (uint64_t)place << 8;
                return KEYED;
            }
        argument = SLOT(argument, L.future.value);  /* of an earlier flush: a number */
        if (argument == NULL || argument == Py_None) return UNKEYABLE;
    }
    if (!matters) {
        key->words[key->count++] = FREE;
        return KEYED;
    }
    int64_t value;
    if (word_of(argument, &value) < 0) return UNKEYABLE;
    key->words[key->count++] = NUMBER;
    if (key->relative)
        key->number[key->numbers++] = value;
    else
        key->words[key->count++] = value;
    return KEYED;
}

/* Begin and end of each axis, which are numbers of the key. */
static int key_space(Key *key, PyObject *space)
{
    PyObject *begin = PyTuple_GET_ITEM(space, 0), *end = PyTuple_GET_ITEM(space, 1);
    Py_ssize_t rank = PyTuple_GET_SIZE(begin);
    if (rank > MAX_RANK) return UNKEYABLE;
    key->words[key->count++] = rank;
    for (Py_ssize_t axis = 0; axis < rank; axis++)
        if (word_of(PyTuple_GET_ITEM(begin, axis), &key->number[key->numbers++]) < 0 ||
            word_of(PyTuple_GET_ITEM(end, axis), &key->number[key->numbers++]) < 0)
            return UNKEYABLE;
    return KEYED;
}

int key_call(Key *key, PyObject *workunit, PyObject *space, char pattern, PyObject *const *arguments,
             Py_ssize_t count, uint64_t matters, PyObject *result)
{
    if (reserve(key, 3) < 0) return FAILED;
    key->words[key->count++] = (uintptr_t)workunit;
    PyObject *same = key->relative ? PyTuple_GET_ITEM(space, 2) : space;
    key->words[key->count++] = (uintptr_t)same << 8 | (uint8_t)pattern;  /* addresses have 56 bits */
    if (key->relative && key_space(key, space) < 0) return UNKEYABLE;
    for (Py_ssize_t n = 0; n < count; n++) {
        int failed = key_argument(key, arguments[n], matters >> n & 1);
        if (failed < 0) return failed;
    }
    if (key->calls == key->result_room) {
        PyObject **bigger = grown(key->results, key->some_results, key->result_room * sizeof *bigger);
        if (bigger == NULL) return FAILED;
        key->results = bigger;
        key->result_room *= 2;
    }
    key->results[key->calls++] = result;
    return KEYED;
}

static int is_dead(PyObject *reference)
{
    if (reference == NULL || !PyWeakref_Check(reference)) return 0;
    PyObject *object = referent(reference);
    Py_XDECREF(object);
    return object == NULL;
}

/* Memory of others by address, as `sorted` in `shape._Clusters` has it: stable. */
static void sort_by_range(const Key *key, int32_t *order, Py_ssize_t count)
{
    const Memory *memories = key->memories;
    for (Py_ssize_t n = 1; n < count; n++) {
        int32_t one = order[n];
        const Memory *new = &memories[one];
        Py_ssize_t at = n;
        for (; at > 0; at--) {
            const Memory *old = &memories[order[at - 1]];
            if (old->low < new->low || (old->low == new->low && old->high <= new->high)) break;
            order[at] = order[at - 1];
        }
        order[at] = one;
    }
}

/* Overlapping ranges get one cluster, numbered by first use: `shape._Clusters._merge`. */
static int key_clusters(Key *key, Py_ssize_t foreign)
{
    int32_t *order = PyMem_Malloc(foreign * sizeof *order);
    if (order == NULL) return FAILED;
    Py_ssize_t found = 0;
    for (Py_ssize_t n = 0; n < key->buffers; n++)
        if (key->memories[n].external) order[found++] = n;
    sort_by_range(key, order, foreign);
    int64_t end = -1, start = -1;
    for (Py_ssize_t n = 0; n < foreign; n++) {
        Memory *memory = &key->memories[order[n]];
        if (memory->low >= end || start < 0) {
            start = memory->low;
            end = memory->high;
        } else if (memory->high > end)
            end = memory->high;
        memory->start = start;
    }
    uint64_t clusters = 0;
    for (Py_ssize_t n = 0; n < key->buffers; n++) {
        Memory *memory = &key->memories[n];
        if (!memory->external) continue;
        memory->cluster = clusters;
        for (Py_ssize_t before = 0; before < n; before++)
            if (key->memories[before].external && key->memories[before].start == memory->start) {
                memory->cluster = key->memories[before].cluster;
                break;
            }
        clusters += memory->cluster == clusters;
    }
    PyMem_Free(order);
    return KEYED;
}

int key_facts(Key *key, int fresh)
{
    Py_ssize_t foreign = 0;
    for (Py_ssize_t n = 0; n < key->buffers; n++) foreign += key->memories[n].external;
    if (foreign > 256) return UNKEYABLE;  /* sorting takes its square */
    if (foreign && key_clusters(key, foreign) < 0) return FAILED;
    if (reserve(key, 2 * key->buffers + foreign) < 0) return FAILED;
    for (Py_ssize_t n = 0; n < key->buffers; n++) {
        const Memory *memory = &key->memories[n];
        if (memory->external) {
            int64_t address;
            if (word_of(SLOT(memory->buffer, L.buffer.address), &address) < 0) return UNKEYABLE;
            key->words[key->count++] = FOREIGN | memory->cluster << 8;
            key->words[key->count++] = address - memory->start + memory->first;
            if (key->placed || key->relative) key->words[key->count++] = memory->first;
            continue;
        }
        int temporary = is_dead(SLOT(memory->buffer, L.buffer.handle));
        int unmade = SLOT(memory->buffer, L.buffer.root) == Py_None &&
                     SLOT(memory->buffer, L.buffer.image) == Py_None;
        int known = temporary | (unmade && fresh) << 1;
        key->words[key->count++] = known;
        if (key->placed || (known && !key->relative)) key->words[key->count++] = memory->first;
    }
    return KEYED;
}

/* ------------------------------------------------------------------ of recorded calls */

int key_calls(Key *key, PyObject *calls)
{
    Py_ssize_t count = PyList_GET_SIZE(calls);
    uint64_t some[64], *matters = count <= 64 ? some : PyMem_Malloc(count * sizeof *matters);
    if (matters == NULL) {
        PyErr_NoMemory();
        return FAILED;
    }
    int failed = KEYED;
    /* All that may run Python comes first: the key refers to the calls' buffers. */
    for (Py_ssize_t n = 0; n < count && !failed; n++) {
        PyObject *call = PyList_GET_ITEM(calls, n);
        failed = PyObject_TypeCheck(call, L.Call) ? matters_of(SLOT(call, L.call.workunit), &matters[n]) : UNKEYABLE;
    }
    for (Py_ssize_t n = 0; n < count && !failed; n++) {
        PyObject *call = PyList_GET_ITEM(calls, n);
        PyObject *arguments = SLOT(call, L.call.arguments), *pattern = SLOT(call, L.call.pattern);
        if (PyTuple_GET_SIZE(arguments) > MAX_ARGUMENTS)
            failed = UNKEYABLE;
        else
            failed = key_call(key, SLOT(call, L.call.workunit), SLOT(call, L.call.space),
                              *(char *)PyUnicode_DATA(pattern), &PyTuple_GET_ITEM(arguments, 0),
                              PyTuple_GET_SIZE(arguments), matters[n], SLOT(call, L.call.result));
    }
    if (matters != some) PyMem_Free(matters);
    return failed;
}

/* key_of(calls): (words, facts) as bytes; None if there is none. */
PyObject *key_of(PyObject *module, PyObject *calls)
{
    Key key;
    PyObject *found = NULL;
    if (!L.bound || !PyList_CheckExact(calls)) {
        PyErr_SetString(PyExc_TypeError, "key_of takes a list, after bind");
        return NULL;
    }
    key_begin(&key);
    int failed = key_calls(&key, calls);
    Py_ssize_t words = key.count;
    if (!failed) failed = key_facts(&key, 1);
    if (failed == KEYED)
        found = Py_BuildValue("(y#y#)", key.words, words * sizeof(uint64_t), key.words + words,
                              (key.count - words) * sizeof(uint64_t));
    else if (failed == UNKEYABLE)
        found = Py_NewRef(Py_None);
    key_end(&key);
    return found;
}
