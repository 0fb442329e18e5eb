#pragma once

#include <stdint.h>

static inline double pf_trips(int64_t start, int64_t stop) {
    return stop > start ? (double)(stop - start) : 0.0;
}

// How many iterations of a cost are worth another thread.
static inline int64_t pf_grain(double worth, double cost) {
    return cost < 1.0 ? (int64_t)worth : cost < worth ? (int64_t)(worth / cost) : 1;
}
