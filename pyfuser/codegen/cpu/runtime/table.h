#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "threads.h"

// Each thread's own copies of the small tables that a kernel tallies in.
struct pf_copies {
    char* memory;
    int64_t bytes;

    pf_copies(int64_t threads, int64_t bytes)
        : memory((char*)aligned_alloc(64, threads * bytes)), bytes(bytes) {}
    ~pf_copies() { free(memory); }
    pf_copies(const pf_copies&) = delete;
    pf_copies& operator=(const pf_copies&) = delete;

    // This thread's copy of a table, of elements that change nothing.
    template <typename T> T* own(int64_t thread, int64_t place, int64_t count, T nothing) const {
        T* cells = (T*)(memory + thread * bytes + place);
        for (int64_t k = 0; k < count; ++k) cells[k] = nothing;
        return cells;
    }
    // Applies what all copies have of this thread's part of the cells; after a barrier.
    template <typename T, typename F, typename G>
    void apply(int64_t place, int64_t count, T nothing, F change, G update) const {
        const int64_t part = omp_get_thread_num(), parts = omp_get_num_threads();
        for (int64_t k = count * part / parts; k < count * (part + 1) / parts; ++k) {
            T total = nothing;
            for (int64_t n = 0; n < parts; ++n)
                total = change(total, ((const T*)(memory + n * bytes + place))[k]);
            if (__builtin_memcmp(&total, &nothing, sizeof(T))) update(k, total);
        }
    }
};

// Changes a cell that this thread alone has. Not a plain assignment: of a loop of those the compiler
// would be told that no two change one cell.
template <typename T, typename F> static inline void pf_own(T* cell, T value, F change) {
    T old;
    __atomic_load(cell, &old, __ATOMIC_RELAXED);
    T next = change(old, value);
    if (__builtin_memcmp(&next, &old, sizeof(T))) __atomic_store(cell, &next, __ATOMIC_RELAXED);
}
