#pragma once

#include <stdint.h>
#include <stdlib.h>

extern "C" int dprintf(int, const char*, ...);

static inline int64_t pf_length(int64_t extent) { return extent > 0 ? extent : 0; }

// Zeroed memory of one iteration.
template <typename T> struct pf_scratch {
    T* cells;
    template <int rank> explicit pf_scratch(const int64_t (&extents)[rank]) {
        uint64_t size = sizeof(T);
        bool too_large = false;
        for (int64_t extent : extents) {
            too_large |= __builtin_mul_overflow(size, (uint64_t)extent, &size);
        }
        too_large |= size > INT64_MAX / 2;
        size = (size + 64) / 64 * 64;
        cells = too_large ? nullptr : (T*)aligned_alloc(64, size);
        if (!cells) {
            dprintf(2, "pyfuser: no memory for a scratch view of %ld bytes\n", (long)size);
            abort();
        }
        __builtin_memset(cells, 0, size);
    }
    ~pf_scratch() { free(cells); }
    pf_scratch(const pf_scratch&) = delete;
    pf_scratch& operator=(const pf_scratch&) = delete;
};
