/* The compiled hot path: what it shares between its files. See docs/hot.md.

It has no policy and no data of its own: it reads and writes the slots of the Python classes that the
pure-Python path uses (their places are looked up once, in `bind`), so either path may take over from
the other at any call. Whatever is not the usual case is left to Python, before anything is changed.
*/
#ifndef PYFUSER_HOT_H
#define PYFUSER_HOT_H

#include "slots.h"
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif
#include <stdint.h>
#include <time.h>

#if PY_VERSION_HEX >= 0x030D0000
#define at_exit Py_IsFinalizing
#else
#define at_exit _Py_IsFinalizing
#endif

/* Fields of a Region, a named tuple. */
enum { BUFFER, OFFSET, STRIDES, SHAPE, DTYPE };

enum { DTYPES = 13, MAX_ARGUMENTS = 64, MAX_RANK = 8, MAX_NUMBERS = MAX_ARGUMENTS + 2 * MAX_RANK };

/* The order of `ir.dtypes.DType`. */
enum { BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 };

static inline int is_only_thread(void)
{
    return PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) == NULL;
}

/* The object that a weak reference is of: a new reference, or NULL. */
static inline PyObject *referent(PyObject *reference)
{
    if (reference == NULL || !PyWeakref_Check(reference)) return NULL;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *object;
    if (PyWeakref_GetRef(reference, &object) < 0) PyErr_Clear();
    return object;
#else
    PyObject *object = PyWeakref_GET_OBJECT(reference);
    return object == Py_None ? NULL : Py_NewRef(object);
#endif
}

/* Classes, the places of their slots, and functions of the Python side. */
typedef struct {
    PyTypeObject *Call, *Future, *Region, *Buffer;
    struct { Py_ssize_t arguments, at, code, label, pattern, position, result, space, workunit; } call;
    struct { Py_ssize_t error, force, value, deferred, dtype; } future;
    struct { Py_ssize_t exports, handle, address, external, image, lent, nbytes, pending, root, seen; } buffer;
    struct { Py_ssize_t calls, recorded, raw, bytes, look_at, gate, settle, watch, postponed, postponing, place, fast; } tracer;
    struct { Py_ssize_t latest, mean, runs; } timing;
    PyObject *dtypes[DTYPES];
    Py_ssize_t sizes[DTYPES];
    PyObject *structural;         /* workunit -> frozenset of places */
    PyObject *nothing_to_settle;
    PyObject *allocate, *withdraw;  /* names of methods */
    int bound;
} Layout;
extern Layout L;

/* ------------------------------------------------------------------ key.c */

/* Why there is no key. */
enum { KEYED = 0, FAILED = -1, UNKEYABLE = -2 };

typedef struct {
    PyObject *buffer;  /* borrowed from the calls */
    int external;
    int64_t first;      /* the offset of its first region */
    int64_t low, high;  /* of others' memory: addresses */
    int64_t start;
    uint64_t cluster;
} Memory;

typedef struct {
    uint64_t *words;
    Py_ssize_t count, room;
    Memory *memories;
    Py_ssize_t buffers, memory_room;
    int32_t *index;  /* an open hash table of places in memories, by buffer; -1: empty */
    Py_ssize_t slots;
    PyObject **results;  /* of calls, borrowed; NULL where a call has none */
    Py_ssize_t calls, result_room;
    /* Of a call that runs alone: where memory of ours begins is no fact, and its numbers (begin and end of
       each axis, then arguments that matter) are beside the words, as many may have one entry. */
    int relative;
    int placed;  /* of a captured step: where all memory begins is a fact */
    Py_ssize_t numbers;
    int64_t number[MAX_NUMBERS];
    uint64_t some_words[512];
    Memory some_memories[24];
    int32_t some_index[64];
    PyObject *some_results[32];
} Key;

void key_begin(Key *key);
void key_end(Key *key);
int key_call(Key *key, PyObject *workunit, PyObject *space, char pattern, PyObject *const *arguments, Py_ssize_t count, uint64_t matters, PyObject *result);
int key_facts(Key *key, int fresh);  /* fresh: whether that is a fact, too */
int key_calls(Key *key, PyObject *calls);
PyObject *key_of(PyObject *module, PyObject *calls);
PyObject *box_of(PyObject *axes, PyObject *space, PyObject *region);
PyObject *hot_zero_around(PyObject *module, PyObject *args);

/* ------------------------------------------------------------------ workunits.c */

int matters_of(PyObject *workunit, uint64_t *matters);
int take_spare(PyObject *workunit, double iterations);
PyObject *spare(PyObject *module, PyObject *args);
int is_lone(PyObject *calls);
PyObject *lend(PyObject *module, PyObject *args);
void forget_workunits(void);
long known_workunits(void);

/* ------------------------------------------------------------------ steps.c and launch.c */

enum { THREADS_SLOT, POINTER_SLOT, SCALAR_SLOT, BEGIN_SLOT, END_SLOT, /* on a device: */
       WRITTEN_SLOT /* a pointer */, RESULTS_SLOT, WORKSPACE_SLOT, NUMBER_SLOT /* a scalar, and where it is */ };

/* What differs between runs of a launch: the slot, and where it comes from.

   The axis `place` of the space, or the argument `place` of the call number `call`;
   in a captured step of all that the step has, `call`
   bytes after it, or if `place` is negative the result number ~place. */
typedef struct {
    int kind, dtype, place;
    Py_ssize_t slot, call;
    PyObject *box;  /* of a pointer: what is overwritten before it is read, as axes if the space changes, or None */
    int heir_call, heir_place;  /* of a pointer: whose memory it gets, if call >= 0 (see inherit.c) */
} Patch;

typedef struct {
    int call, dtype;
} Result;

/* How a device launches a kernel: blocks and threads along three axes, and the word in which each parameter begins.
   room: makes (results, their numbers, their address, that of working memory), or None. */
typedef struct {
    unsigned shape[6];
    int device;
    Py_ssize_t count, *where;
    PyObject *room;
} Grid;

/* A launch: its kernel, a template of its slots, what differs, and what it computes. grid: NULL on the host. */
typedef struct {
    void *entry;
    Grid *grid;
    uint64_t *slots;
    Py_ssize_t count, patches, results;
    Patch *patch;
    Result *result;
    PyObject *timing;
} Step;

/* Launches [first, last) that run band by band: see bands.c. ends: slots of begin and end, of each launch. */
typedef struct {
    Py_ssize_t first, last, *ends;
    int64_t begin, end, size;
    int threads;
} Band;

enum { RESULT_BYTES = 16 };

int steps_of(PyObject *given, Step **steps, Py_ssize_t *count);
void steps_end(Step *steps, Py_ssize_t count);
int scalar_of(PyObject *number, int dtype, uint64_t *word);
PyObject *place_result(const char *result, int dtype);

extern PyTypeObject PreparedType;

typedef struct {
    int either, alone;
    long long runs, begin, rest;  /* begin: the run with which the next trial begins, rest: so many after the last */
    double sum[2], most[2];          /* seconds of a trial's runs by all threads, by one */
} Team;

enum { GRAPHS = 16, MAX_PARAMETERS = 512 };

typedef struct {
    uint64_t *words;
    void *stream, *exec;
    long long times;
} Graph;

/* Launches that came before, by all their words. */
typedef struct {
    Graph known[GRAPHS];
    int next;
} Graphs;

/* The launches of a program. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t count, runs;
    Step *steps;
    Band *bands;
    Py_ssize_t band_count;
    /* Which is faster, all launches one after the other or in bands, is measured in turns. */
    int turns;       /* so far; WARM at first, in bands, then one of each */
    double took[2];  /* the best of each */
    Team team;
    Graphs *graphs;  /* of launches on a device; NULL: they run on the host */
} Prepared;

/* The arguments of the calls: a list of Calls, or of one that is not made, its arguments and space.
   made: by `Grid.room` of each step, or NULL. */
typedef struct {
    PyObject *calls;
    PyObject *const *arguments;
    PyObject *space, *made;
} Data;

/* Buffers that were made without zeros, and the step that overwrites them. */
typedef struct {
    PyObject **buffers;
    Py_ssize_t *steps, count, room;
    PyObject *made;  /* as in `Data` */
} Fresh;

/* What has run of a program: how many launches, the status of the last, and their results. */
typedef struct {
    Py_ssize_t done, count;
    int status, replayed;  /* replayed: by one graph of a device */
    PyObject *made;        /* as in `Data` */
    char *results;
    uint64_t some[64];
} Outcome;

int bands_of(PyObject *given, const Step *steps, Py_ssize_t count, Band **bands, Py_ssize_t *found);
void bands_end(Band *bands, Py_ssize_t count);
int run_band(const Step *steps, const Band *band, const Data *data, int threads,
             int (*fill)(const Step *, const Data *, int, uint64_t *));
PyObject *argument_of(const Data *data, int call, int place);
int inherits(const Patch *patch, const Data *data);
int inherit(const Step *step, const Data *data);
void zero_rest(PyObject *region, PyObject *box, int64_t bytes, char *at);
int allocate(const Prepared *self, Data *data, Fresh *fresh);
void undo(Fresh *fresh, Py_ssize_t first, PyObject *gate);
int run_all(const Prepared *self, const Data *data, PyObject *gate, int threads, Outcome *outcome);
int tell(const Prepared *self, PyObject *ran, const Outcome *outcome);
int settle(PyObject *tracer, PyObject *calls, PyObject *empty);
void outcome_end(Outcome *outcome);

int is_on_device(const Prepared *self);

/* Runs the one launch of a call that was not made. 1: it ran, with *status, and *answer (NULL with an
   exception) is what it computed if that is 0. 0: it did not, and nothing was changed. -1: an exception. */
int run_one(const Prepared *self, PyObject *space, PyObject *const *arguments, int threads, int *status, PyObject **answer);

/* ------------------------------------------------------------------ record.c, sites.c, arguments.c, alone.c, careful.c */

/* Classes, objects and names that only recording needs; see `bind_recording`. */
typedef struct {
    PyObject *tracer, *switches, *block, *owned, *policies, *team, *use, *counters, *session, *harmless, *hosts;
    PyObject *view, *subview, *range, *md_range, *team_policy, *state, *ndarray, *space_class, *numpys_float;
    PyObject *classify, *describe, *prepare_alone, *divided, *compute, *acquire, *release, *run_eagerly, *looked_at;
    PyObject *begin, *end, *league_size, *team_size, *space, *code_name, *region_name, *state_name, *record, *devices, *run_name, *keep, *stream;
    Py_ssize_t allowed, careful, watched, everywhere, mode, marked, sites, limit, count, launches, flushes_count, replays_count, graphs_count;
    long float64, int32, int64, future, on_device;  /* codes of arguments */
    int divided_status;  /* of a kernel that ran and divided an integer by 0 */
    int ready;
} Recorder;
extern Recorder R;

typedef struct {
    Py_ssize_t place;
    long long least, greatest;
} Range;

enum { ALONE = 64 };

typedef struct {
    PyObject_HEAD
    PyObject *next;
    PyObject *names, *workunit, *dtype;
    PyObject *free;  /* (dict or cell, name, value) of what the workunit took from outside */
    Py_ssize_t count, params, range_count;
    long head, *codes, *order;
    uint64_t matters;
    Range *ranges;
    char pattern;
    int takes_turns;  /* see turns.c: either way gives the same bits */
    int may_wait;  /* see careful.c: nobody sees when it runs, and it does not fail */
    PyObject *looked_at;  /* the latest call that was, by `careful._key` */
    /* Calls that ran alone, by key; and what keys were looked for in vain. */
    struct {
        uint64_t hash, *words;
        Py_ssize_t count;
        /* Functions of its numbers that are at least 0, each a constant and a coefficient for each number. */
        int64_t *rows;
        Py_ssize_t row_count;
        long age;
        PyObject *prepared, *space, *launchable;
    } alone[ALONE];
    int next_alone, next_missed;
    uint64_t missed[ALONE];
    uint64_t moving;  /* of keys without their numbers the last one that was missed, ... */
    long moved;       /* ... and how often, with others each time */
} Site;

extern PyTypeObject DispatcherType, SiteType;

PyObject *space_of(PyObject *policy);
int classify(PyObject *name, PyObject *argument, long *code, PyObject **value);
Site *site_of(PyObject *state, char pattern, PyObject *pattern_name, long head, PyObject *head_object, PyObject *names,
              const long *codes, Py_ssize_t count);
void forget_site(PyObject *state);
int is_unchanged(PyObject *free);
int in_ranges(const Site *site, PyObject *const *values);
int fuses_here(PyObject *marked, int *in_block);
int same_names(PyObject *known, PyObject *names);
void forget_policies(void);
int is_tiny(PyObject *space);
int enter(void);
void leave(int entered);
int put(PyObject **slot, long long value);
PyObject *new_call(const Site *site, PyObject *pattern, PyObject *space, PyObject *const *values, PyObject *label, PyObject *result);
PyObject *new_future(const Site *site, PyObject *value);

/* Why a call that could be recorded is not; results are Futures where it is AT_ONCE. */
enum { CAREFUL = 1, AT_ONCE };
PyObject *run_alone(Site *site, PyObject *pattern, PyObject *space, PyObject *const *values, PyObject *label, int now, int *usual);
int may_wait(Site *site, PyObject *space, PyObject *const *values, int watched);
int dtype_number(PyObject *dtype);
void forget_alone(void);

/* ------------------------------------------------------------------ device.c */

PyObject *bind_device(PyObject *module, PyObject *args);
PyObject *capture_on(PyObject *module, PyObject *handle);
int devices_in_use(void);
int device_is_here(PyObject *place);
int device_takes(PyObject *value);
int device_allocate(const Patch *patch, PyObject *region);
PyObject *device_value(const Data *data);
void device_run(const Step *steps, Py_ssize_t count, Graphs *graphs, const Data *data, PyObject *place, Outcome *outcome);
void device_graphs_end(Graphs *graphs);

/* ------------------------------------------------------------------ blocks.c */

extern PyTypeObject BlockType;
PyObject *bind_blocks(PyObject *module, PyObject *args);

/* ------------------------------------------------------------------ faults.c */

enum { LAUNCHED = 8 };
extern void *volatile launched[LAUNCHED];
extern unsigned launches_noted;

/* Before a kernel is called: should the process die, it says which kernels ran last. */
static inline void note_launch(void *entry)
{
    launched[launches_noted++ % LAUNCHED] = entry;
}

PyObject *watch_faults(PyObject *module, PyObject *args);
PyObject *name_kernel(PyObject *module, PyObject *args);
PyObject *launching(PyObject *module, PyObject *entry);

/* ------------------------------------------------------------------ flush.c */

PyObject *bind_flush(PyObject *module, PyObject *args);
PyObject *hot_flush(PyObject *module, PyObject *const *args, Py_ssize_t count);
int idle(void);
int count_replays(long long replays, long long launches);
int note_again(PyObject *flush);

/* ------------------------------------------------------------------ policies.c */

extern PyTypeObject InitType;
PyObject *bind_policies(PyObject *module, PyObject *args);

/* ------------------------------------------------------------------ exports.c */

extern PyTypeObject ExportType;
PyObject *bind_exports(PyObject *module, PyObject *args);
PyObject *data_of(PyObject *module, PyObject *view);

/* ------------------------------------------------------------------ memory.c and views.c */

PyObject *bind_memory(PyObject *module, PyObject *args);
int take_block(PyObject *region, PyObject *box);
void has_memory(PyObject *buffer);
int is_allocation(PyObject *buffer);
PyObject *new_buffer(PyObject *nbytes, PyObject **handle);
PyObject *new_region(PyObject *buffer, PyObject *offset, PyObject *strides, PyObject *shape, PyObject *dtype);
PyObject *tuple_of(const Py_ssize_t *numbers, Py_ssize_t count);
PyObject *bind_views(PyObject *module, PyObject *args);
PyObject *init_usual(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *part_of(PyObject *module, PyObject *const *args, Py_ssize_t count);
void forget_views(void);

/* ------------------------------------------------------------------ number.c */

PyObject *bind_number(PyObject *module, PyObject *args);
long long number_of(PyObject *number);

static inline double seconds_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* ------------------------------------------------------------------ team.c */


void team_begin(Team *team, int either);
int team_threads(const Team *team, int threads);
int team_tries(const Team *team, int threads);
void team_note(Team *team, int threads, double seconds);

/* ------------------------------------------------------------------ turns.c */

PyObject *bind_turns(PyObject *module, PyObject *args);
void turns_reset(void);
void turns_pause(void);
int turns_call(const void *site, const void *space, double iterations);

/* ------------------------------------------------------------------ runs.c */

PyObject *rounds(PyObject *module, PyObject *args);

/* ------------------------------------------------------------------ capture.c */

extern PyTypeObject CapturedType, CaptureType;

#endif
