#pragma once

#include <stdint.h>

// A sum whose order of additions depends on the number of terms only: not on the threads, not on
// the vector registers, not on what else the loop computes. Four 64-byte vectors of running sums
// take the terms in turn and are added in halves at the end. Where registers are narrower, a vector
// is two of half its size: g++ would move one through memory, 8 or 16 bytes at a time.
template <typename T, int bytes> struct pf_wide {
    struct vector {
        typename pf_wide<T, bytes / 2>::vector low, high;
        __attribute__((always_inline)) inline void operator+=(const vector& other) {
            low += other.low;
            high += other.high;
        }
    };
};
template <typename T> struct pf_wide<T, PF_VECTOR_BYTES> {
    typedef T vector __attribute__((vector_size(PF_VECTOR_BYTES)));
};
template <typename T, int block, int width = 1> struct pf_sum {
    typedef typename pf_wide<T, 64>::vector vector;
    static constexpr int64_t lanes = 4 * 64 / sizeof(T);
    static constexpr int64_t room = block * width > lanes ? block * width : lanes;
    vector sum[4] = {};
    alignas(64) T term[room];

    __attribute__((always_inline)) inline void add(int64_t count) {
        for (int64_t k = count * width; k % lanes; ++k) term[k] = 0;
        for (int64_t k = 0; k < count * width; k += lanes) {
            const vector* next = (const vector*)(term + k);
            for (int v = 0; v < 4; ++v) sum[v] += next[v];
        }
    }
    __attribute__((noinline)) void rest(int64_t count) { add(count); }
    const T* total() {
        T* lane = (T*)sum;
        int64_t half = lanes / 2;
        if (width <= lanes / 4) {  // as below, vector by vector
            sum[0] += sum[2];
            sum[1] += sum[3];
            sum[0] += sum[1];
            half = lanes / 8;
        }
        #pragma GCC unroll 8
        for (; half >= width; half /= 2)
            for (int64_t k = 0; k < half; ++k) lane[k] += lane[k + half];
        return lane;
    }
};

// How an iteration space is cut into tiles: several rows each, or parts of one row. It depends on
// the number of iterations alone, so a result does not change with the threads or the body.
struct pf_tiling {
    int64_t rows, columns, tile_rows, tile_columns, across, count;
    pf_tiling(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
        if (rows <= 0 || columns <= 0) { count = across = 0; return; }
        int64_t size = (rows * columns + PF_TILES - 1) / PF_TILES;
        size = (size + PF_SMALLEST_TILE - 1) / PF_SMALLEST_TILE * PF_SMALLEST_TILE;
        if (size > PF_TILE) size = PF_TILE;
        tile_columns = columns < size ? columns : size;
        tile_rows = columns < size ? size / columns : 1;
        across = (columns + tile_columns - 1) / tile_columns;
        count = (rows + tile_rows - 1) / tile_rows * across;
    }
    void box(int64_t tile, int64_t& row, int64_t& row_end, int64_t& column,
             int64_t& column_end) const {
        row = tile / across * tile_rows;
        row_end = row + tile_rows < rows ? row + tile_rows : rows;
        column = tile % across * tile_columns;
        column_end = column + tile_columns < columns ? column + tile_columns : columns;
    }
};
