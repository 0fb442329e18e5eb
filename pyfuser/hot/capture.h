/* What `captured.c` knows of a step, and `capture.c` runs. */
#ifndef PYFUSER_CAPTURE_H
#define PYFUSER_CAPTURE_H

#include "hot.h"

/* What an argument has to be: a View of a type, a float (any), or this very value or object. */
enum { VIEW, FLOAT, VALUE, OBJECT };

typedef struct {
    int kind;
    long code;
    PyObject *object;
} Wanted;

/* All regions and numbers of a step have places: first the arguments, then what it reaches from
   outside (`frozen`), then the memory of its own (`made`), some of which is new each time (`fresh`). */
typedef struct {
    PyObject_HEAD
    Py_ssize_t count, frozen_count, made_count, fresh, places, words, steps, results, wanted_results;
    Wanted *wanted;
    PyObject *names, *outside, *frozen, *made, *zeroed, *make, *build, *failed, *flush, *futures;
    uint64_t *word;
    Step *step;
    char *result;
    int64_t *address;
} Captured;

/* Whether arguments are of the kinds, and their regions, which `drop` lets go. */
int takes(const Captured *self, PyObject *const *values, Py_ssize_t count, PyObject *names, PyObject **regions);
void drop(const Captured *self, PyObject **regions);
int lies_well(const Captured *self, PyObject *const *regions, const int *swaps, Py_ssize_t pairs);

#endif
