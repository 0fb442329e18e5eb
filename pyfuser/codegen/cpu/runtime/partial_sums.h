#pragma once

#include <stdint.h>

#include "sum.h"

// The partial results of a reduction that a sweep runs: of each tile its sum, or its terms.
template <typename T, int block, int width> struct pf_parts {
    T* sum = 0;
    T** terms = 0;

    bool open(int64_t count) {
        sum = (T*)__builtin_calloc(count * width, sizeof(T));
        terms = (T**)__builtin_calloc(count, sizeof(T*));
        return sum && terms;
    }
    static int64_t size(const pf_tiling& tiling, int64_t tile) {
        int64_t row, row_end, column, column_end;
        tiling.box(tile, row, row_end, column, column_end);
        return (row_end - row) * (column_end - column);
    }
    bool keep(const pf_tiling& tiling, int64_t tile) {
        if (!terms[tile])
            terms[tile] = (T*)__builtin_malloc(size(tiling, tile) * width * sizeof(T));
        return terms[tile];
    }
    void add(const T* from, int64_t count, T* total) {
        pf_sum<T, block, width> running;
        for (int64_t at = 0; at < count; at += block) {
            const int64_t some = count - at < block ? count - at : block;
            __builtin_memcpy(running.term, from + at * width, some * width * sizeof(T));
            running.add(some);
        }
        __builtin_memcpy(total, running.total(), width * sizeof(T));
    }
    // The result, if everything has run; frees the memory.
    void close(const pf_tiling& tiling, bool complete, int64_t* result) {
        T total[width] = {};
        for (int64_t tile = 0; tile < tiling.count && complete; ++tile) {
            T* part = sum + tile * width;
            if (terms[tile]) add(terms[tile], size(tiling, tile), part);
            for (int k = 0; k < width; ++k) total[k] += part[k];
        }
        if (complete) __builtin_memcpy(result, total, sizeof(total));
        for (int64_t tile = 0; terms && tile < tiling.count; ++tile) __builtin_free(terms[tile]);
        __builtin_free(terms);
        __builtin_free(sum);
    }
};

// Where a part of so many iterations begins, of parts that threads take in turn: whole vectors, if
// there are enough for all threads.
static inline int64_t pf_cut(int64_t size, int64_t part, int64_t parts, int64_t threads) {
    const int64_t unit = size < 8 * threads ? 1 : 8;
    const int64_t at = (size * part / parts + unit - 1) / unit * unit;
    return at < size ? at : size;
}
