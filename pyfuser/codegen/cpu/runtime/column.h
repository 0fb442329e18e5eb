#pragma once

#include <stdint.h>

// The array of an iteration, whose elements lie between those of the others of its strip.
template <typename T, int64_t size> struct pf_column {
    T* first;
    inline T& operator[](int64_t place) const { return first[place * size]; }
};
