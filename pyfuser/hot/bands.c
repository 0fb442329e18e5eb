/* Launches that run band by band: each thread runs all of them for some lanes, then for the next ones
(`runtime/bands.py`, `plan/bands.py`).

Threads are those of the libgomp that the kernels have loaded, which each runs on one thread here.
*/
#include "hot.h"

#include <dlfcn.h>

typedef void Gomp(void (*)(void *), void *, unsigned, unsigned);

typedef struct {
    const Step *steps;  /* the first one's */
    const Band *band;
    uint64_t *slots;  /* of all steps, one after the other, for each thread */
    Py_ssize_t words;
    int threads;
    int (*number)(void);
    int failed;
} Work;

int bands_of(PyObject *given, const Step *steps, Py_ssize_t count, Band **bands, Py_ssize_t *found)
{
    Py_ssize_t size = PyTuple_GET_SIZE(given), before = 0;
    *bands = PyMem_Calloc(size + 1, sizeof **bands);
    *found = 0;
    if (*bands == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    while (*found < size) {
        Band *band = &(*bands)[(*found)++];
        PyObject *ends;
        long long begin, end, lanes;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, *found - 1), "nnLLLpO!", &band->first, &band->last, &begin, &end,
                              &lanes, &band->threads, &PyTuple_Type, &ends))
            return -1;
        band->begin = begin, band->end = end, band->size = lanes;
        if (band->first < before || band->last <= band->first || band->last > count || lanes < 1 || begin > end ||
            PyTuple_GET_SIZE(ends) != band->last - band->first) {
            PyErr_SetString(PyExc_ValueError, "bands of no launches");
            return -1;
        }
        before = band->last;
        band->ends = PyMem_Calloc(2 * PyTuple_GET_SIZE(ends), sizeof *band->ends);
        if (band->ends == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(ends); n++) {
            const Step *step = &steps[band->first + n];
            Py_ssize_t *at = &band->ends[2 * n];
            if (!PyArg_ParseTuple(PyTuple_GET_ITEM(ends, n), "nn", &at[0], &at[1])) return -1;
            if (at[0] < 0 || at[1] < 0 || at[0] >= step->count || at[1] >= step->count || step->results) {
                PyErr_SetString(PyExc_ValueError, "a band outside of its slots");
                return -1;
            }
        }
    }
    return 0;
}

void bands_end(Band *bands, Py_ssize_t count)
{
    for (Py_ssize_t n = 0; n < count; n++) PyMem_Free(bands[n].ends);
    PyMem_Free(bands);
}

/* A thread's bands: neighbours, as far as they go. */
static void share(void *given)
{
    Work *work = given;
    const Band *band = work->band;
    int64_t part = work->threads > 1 ? work->number() : 0, lanes = band->end - band->begin;
    int64_t bands = (lanes + band->size - 1) / band->size;
    int64_t first = bands * part / work->threads, last = bands * (part + 1) / work->threads;
    uint64_t *own = work->slots + part * work->words;
    for (int64_t n = first; n < last; n++) {
        int64_t low = band->begin + n * band->size, high = low + band->size;
        uint64_t *slots = own;
        for (Py_ssize_t k = 0; k < band->last - band->first; slots += work->steps[k].count, k++) {
            uint64_t *begin = &slots[band->ends[2 * k]], *end = &slots[band->ends[2 * k + 1]];
            const int64_t from = *begin, to = *end;
            if (from < high && low < to) {
                *begin = from < low ? low : from;
                *end = to < high ? to : high;
                if (((int (*)(const void *))work->steps[k].entry)(slots)) work->failed = 1;
                *begin = from;
                *end = to;
            }
        }
    }
}

/* Whether kernels take what is in their slots: they look before their loops, which have no trips here. */
static int are_taken(const Work *work)
{
    uint64_t *slots = work->slots;
    for (Py_ssize_t k = 0; k < work->band->last - work->band->first; slots += work->steps[k].count, k++) {
        uint64_t *end = &slots[work->band->ends[2 * k + 1]];
        const uint64_t to = *end;
        *end = slots[work->band->ends[2 * k]];
        note_launch(work->steps[k].entry);
        int status = ((int (*)(const void *))work->steps[k].entry)(slots);
        *end = to;
        if (status) return 0;
    }
    return 1;
}

static Gomp *gomp(int (**number)(void))
{
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) return NULL;
    Gomp *parallel = (Gomp *)dlsym(library, "GOMP_parallel");
    *number = (int (*)(void))dlsym(library, "omp_get_thread_num");
    dlclose(library);  /* the kernels have it */
    return *number == NULL ? NULL : parallel;
}

/* Runs the launches of a band; 0: none ran, or -1 with MemoryError. fill: fills slots for one thread. */
int run_band(const Step *steps, const Band *band, const Data *data, int threads,
             int (*fill)(const Step *, const Data *, int, uint64_t *))
{
    Work work = {&steps[band->first], band, NULL, 0, 1, NULL, 0};
    for (Py_ssize_t n = band->first; n < band->last; n++) work.words += steps[n].count;
    int64_t bands = (band->end - band->begin + band->size - 1) / band->size;
    Gomp *parallel = band->threads && threads > 1 && bands > 1 ? gomp(&work.number) : NULL;
    if (parallel != NULL) work.threads = bands < threads ? (int)bands : threads;
    work.slots = PyMem_Malloc(work.threads * work.words * 8);
    if (work.slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    uint64_t *slots = work.slots;
    int ready = 1;
    for (Py_ssize_t n = band->first; ready && n < band->last; slots += steps[n].count, n++)
        ready = fill(&steps[n], data, 1, slots);
    for (int n = 1; ready && n < work.threads; n++)
        memcpy(work.slots + n * work.words, work.slots, work.words * 8);
    if (ready) ready = are_taken(&work);
    if (ready) {
        Py_BEGIN_ALLOW_THREADS
        if (work.threads > 1)
            parallel(share, &work, work.threads, 0);
        else
            share(&work);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(work.slots);
    return ready;
}
