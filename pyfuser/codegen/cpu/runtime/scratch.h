#pragma once

#include <stdint.h>
#include <stdlib.h>

extern "C" int dprintf(int, const char*, ...);

static inline int64_t pf_length(int64_t extent) { return extent > 0 ? extent : 0; }

// The bytes of so many elements, in whole cache lines; -1 if no machine has so many.
template <typename T, int rank> static inline int64_t pf_bytes(const int64_t (&extents)[rank]) {
    uint64_t size = sizeof(T);
    bool too_large = false;
    for (int64_t extent : extents) {
        too_large |= __builtin_mul_overflow(size, (uint64_t)extent, &size);
    }
    too_large |= size > INT64_MAX / 2;
    return too_large ? -1 : (int64_t)((size + 64) / 64 * 64);
}

// How many bytes of an array on the stack such memory takes.
template <typename T, int rank> static inline int64_t pf_stacked(const int64_t (&extents)[rank]) {
    const int64_t size = pf_bytes<T>(extents);
    return size < 0 || size > PF_STACK ? 64 : size;
}

// Zeroed memory of one iteration: that array, or the system's where it is too small.
template <typename T> struct pf_scratch {
    T* cells;
    void* heap = nullptr;
    template <int rank> pf_scratch(const int64_t (&extents)[rank], void* stack) {
        const int64_t size = pf_bytes<T>(extents);
        if (size < 0 || size > PF_STACK) {
            stack = heap = size < 0 ? nullptr : aligned_alloc(64, size);
        }
        if (!stack) {
            dprintf(2, "pyfuser: no memory for a scratch view of %ld bytes\n", (long)size);
            abort();
        }
        cells = (T*)stack;
        __builtin_memset(cells, 0, size);
    }
    ~pf_scratch() { free(heap); }
    pf_scratch(const pf_scratch&) = delete;
    pf_scratch& operator=(const pf_scratch&) = delete;
};
