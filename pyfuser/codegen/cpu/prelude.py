"""The pieces of C++ that emitted kernels are built on; a kernel carries only those it uses."""

from __future__ import annotations

from pyfuser.ir.dtypes import DType

BLOCK = 128
"""Iterations that are run together; of a reduction, terms that are computed before being added."""

TILE = 4096
"""Iterations that one partial result of a large reduction covers."""

TILES = 64
"""Partial results of a small reduction, so that threads can share it."""

SMALLEST_TILE = 8

HEADER = """\
#include <stdint.h>
"""

STRAIGHT = """\
// g++ would move a call into the only branch that uses its value, and join the branches of equal
// conditions around what lies between: neither can then become masked vector operations.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-sink", "no-thread-jumps")
#endif
"""

BITS = """\
template <typename T> static inline T pf_bits(const int64_t& slot) {
    T value;
    __builtin_memcpy(&value, &slot, sizeof(T));
    return value;
}
"""

EXTENT = """\
static inline int64_t pf_extent(int64_t begin, int64_t end) {
    return end > begin ? end - begin : 0;
}
"""

QUOTIENT = """\
// 32-bit integer division by way of doubles, in vectors: of a loop's invariant divisor there is one
// reciprocal. It is exact: |a| + 1/2 is no multiple of b, its quotient is at least 1/(2 |b|) away
// from every integer, and two roundings move that by less than 2^-19 / |b|.
template <typename T> static inline T pf_quotient(T a, T b) {
    return (T)((a + __builtin_copysign(0.5, (double)a)) * (1.0 / b));
}
template <typename T> static inline T pf_remainder(T a, T b) { return a - pf_quotient(a, b) * b; }
"""

ALONG = """\
// Iterations of a block along memory. Longer runs are read and written faster, and more lines meet
// in one place of the cache: 128 took a Xeon 0.85 and a Zen 4 1.03 times as long as 64.
#if defined(PF_INTEL)
#define pf_along 128
#else
#define pf_along 64
#endif
"""

OPENMP = """\
extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);

// How many threads the work is worth: one for every `grain` iterations.
static inline int64_t pf_team(int64_t threads, int64_t iterations, int64_t grain) {
    const int64_t worth = iterations / grain;
    return worth < 2 ? 1 : worth < threads ? worth : threads;
}

// This thread's share of [begin, end), in whole multiples of `unit`.
static inline void pf_share(int64_t& begin, int64_t& end, int64_t unit) {
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    int64_t size = (end - begin + parts - 1) / parts;
    size = (size + unit - 1) / unit * unit;
    const int64_t first = begin + part * size, last = first + size;
    begin = first < end ? first : end;
    end = last < end ? last : end;
}
"""

GRAIN = """\
static inline double pf_trips(int64_t start, int64_t stop) {
    return stop > start ? (double)(stop - start) : 0.0;
}

// How many iterations of a cost are worth another thread.
static inline int64_t pf_grain(double worth, double cost) {
    return cost < 1.0 ? (int64_t)worth : cost < worth ? (int64_t)(worth / cost) : 1;
}
"""

AXIS = """\
// The outermost axis that has enough work for all threads, else the longest.
static inline int pf_axis(const int64_t* begin, const int64_t* end, const int* order, int rank,
                          int64_t threads) {
    int longest = order[0];
    for (int k = 0; k < rank; ++k) {
        const int axis = order[k];
        const int64_t extent = end[axis] - begin[axis];
        if (extent >= 4 * threads) return axis;
        if (extent > end[longest] - begin[longest]) longest = axis;
    }
    return longest;
}
"""

SUM = f"""\
// A sum whose order of additions depends on the number of terms only: not on the threads, not on
// the vector registers, not on what else the loop computes. Four 64-byte vectors of running sums
// take the terms in turn and are added in halves at the end. Where registers are narrower, a vector
// is two of half its size: g++ would move one through memory, 8 or 16 bytes at a time.
#if defined(__AVX512F__)
#define PF_VECTOR 64
#elif defined(__AVX__)
#define PF_VECTOR 32
#else
#define PF_VECTOR 16
#endif
template <typename T, int bytes> struct pf_wide {{
    struct vector {{
        typename pf_wide<T, bytes / 2>::vector low, high;
        __attribute__((always_inline)) inline void operator+=(const vector& other) {{
            low += other.low;
            high += other.high;
        }}
    }};
}};
template <typename T> struct pf_wide<T, PF_VECTOR> {{
    typedef T vector __attribute__((vector_size(PF_VECTOR)));
}};
template <typename T, int block, int width = 1> struct pf_sum {{
    typedef typename pf_wide<T, 64>::vector vector;
    static constexpr int64_t lanes = 4 * 64 / sizeof(T);
    static constexpr int64_t room = block * width > lanes ? block * width : lanes;
    vector sum[4] = {{}};
    alignas(64) T term[room];

    __attribute__((always_inline)) inline void add(int64_t count) {{
        for (int64_t k = count * width; k % lanes; ++k) term[k] = 0;
        for (int64_t k = 0; k < count * width; k += lanes) {{
            const vector* next = (const vector*)(term + k);
            for (int v = 0; v < 4; ++v) sum[v] += next[v];
        }}
    }}
    __attribute__((noinline)) void rest(int64_t count) {{ add(count); }}
    const T* total() {{
        T* lane = (T*)sum;
        int64_t half = lanes / 2;
        if (width <= lanes / 4) {{  // as below, vector by vector
            sum[0] += sum[2];
            sum[1] += sum[3];
            sum[0] += sum[1];
            half = lanes / 8;
        }}
        #pragma GCC unroll 8
        for (; half >= width; half /= 2)
            for (int64_t k = 0; k < half; ++k) lane[k] += lane[k + half];
        return lane;
    }}
}};

// How an iteration space is cut into tiles: several rows each, or parts of one row. It depends on
// the number of iterations alone, so a result does not change with the threads or the body.
struct pf_tiling {{
    int64_t rows, columns, tile_rows, tile_columns, across, count;
    pf_tiling(int64_t rows, int64_t columns) : rows(rows), columns(columns) {{
        if (rows <= 0 || columns <= 0) {{ count = across = 0; return; }}
        int64_t size = (rows * columns + {TILES - 1}) / {TILES};
        size = (size + {SMALLEST_TILE - 1}) / {SMALLEST_TILE} * {SMALLEST_TILE};
        if (size > {TILE}) size = {TILE};
        tile_columns = columns < size ? columns : size;
        tile_rows = columns < size ? size / columns : 1;
        across = (columns + tile_columns - 1) / tile_columns;
        count = (rows + tile_rows - 1) / tile_rows * across;
    }}
    void box(int64_t tile, int64_t& row, int64_t& row_end, int64_t& column,
             int64_t& column_end) const {{
        row = tile / across * tile_rows;
        row_end = row + tile_rows < rows ? row + tile_rows : rows;
        column = tile % across * tile_columns;
        column_end = column + tile_columns < columns ? column + tile_columns : columns;
    }}
}};
"""

BOXES = """\
// The iterations from `at` to `stop` of a space whose rows have so many columns, as boxes: a part
// of a row, whole rows, a part of a row.
template <typename F>
static inline void pf_boxes(int64_t at, int64_t stop, int64_t columns, F run) {
    while (at < stop) {
        const int64_t row = at / columns, column = at % columns, rows = (stop - at) / columns;
        if (column == 0 && rows > 0) {
            run(row, row + rows, 0, columns);
            at += rows * columns;
            continue;
        }
        const int64_t end = column + stop - at < columns ? column + stop - at : columns;
        run(row, row + 1, column, end);
        at += end - column;
    }
}
"""

LANES = """\
// The running sums of `pf_sum`, to which a loop of as many trips adds without a detour over memory.
template <typename T> struct pf_lanes {
    static constexpr int64_t count = 4 * 64 / sizeof(T);
    alignas(64) T lane[count] = {};
    T total() {
        for (int64_t half = count / 2; half >= 1; half /= 2)
            for (int64_t k = 0; k < half; ++k) lane[k] += lane[k + half];
        return lane[0];
    }
};
"""

COLUMN = """\
// The array of an iteration, whose elements lie between those of the others of its strip.
template <typename T, int64_t size> struct pf_column {
    T* first;
    inline T& operator[](int64_t place) const { return first[place * size]; }
};
"""

ATOMIC = """\
template <typename T, typename F> static inline T pf_atomic(T* cell, T value, F change) {
    T old, next;
    __atomic_load(cell, &old, __ATOMIC_RELAXED);
    do next = change(old, value);
    while (!__atomic_compare_exchange(cell, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
"""

ATOMIC_WIDE = """\
// No processor instruction covers 16 bytes portably: one lock for all such cells of the kernel.
template <typename T, typename F> static inline T pf_locked(T* cell, T value, F change) {
    static bool lock;
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {}
    const T old = *cell;
    *cell = change(old, value);
    __atomic_clear(&lock, __ATOMIC_RELEASE);
    return old;
}
"""

PLAIN_FETCH = """\
template <typename T, typename F> static inline T pf_fetch(T* cell, T value, F change) {
    const T old = *cell;
    *cell = change(old, value);
    return old;
}
"""

MINMAX = """\
template <typename T> static inline T pf_min(T a, T b) { return b < a ? b : a; }
template <typename T> static inline T pf_max(T a, T b) { return a < b ? b : a; }
"""

PRINTF = """\
#include <stdio.h>
"""

ROUNDED = """\
// Under -ffp-contract=off g++ 12 and later still contract a * b - c beside a * b + c where they
// fill neighbouring lanes (vfmaddsub); this keeps the product apart.
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define pf_rounded(product) __builtin_assoc_barrier(product)
#endif
#endif
#ifndef pf_rounded
#define pf_rounded(product) (product)
#endif
"""

COMPLEX = """\
template <typename T> struct pf_complex {
    T re, im;
    pf_complex() = default;
    constexpr pf_complex(T re, T im = 0) : re(re), im(im) {}
    template <typename U> explicit constexpr pf_complex(pf_complex<U> z) : re(z.re), im(z.im) {}
    friend pf_complex operator-(pf_complex a) { return {-a.re, -a.im}; }
    friend pf_complex operator+(pf_complex a) { return a; }
    friend pf_complex operator+(pf_complex a, pf_complex b) { return {a.re + b.re, a.im + b.im}; }
    friend pf_complex operator-(pf_complex a, pf_complex b) { return {a.re - b.re, a.im - b.im}; }
    friend pf_complex operator*(pf_complex a, pf_complex b) {
        return {pf_rounded(a.re * b.re) - pf_rounded(a.im * b.im),
                pf_rounded(a.re * b.im) + pf_rounded(a.im * b.re)};
    }
    // Smith's algorithm (Communications of the ACM 5 (1962) 435), in double for both types.
    friend pf_complex operator/(pf_complex a, pf_complex b) {
        const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
        if (__builtin_fabs(br) >= __builtin_fabs(bi)) {
            const double ratio = bi / br, scale = br + pf_rounded(bi * ratio);
            return {(T)((ar + pf_rounded(ai * ratio)) / scale),
                    (T)((ai - pf_rounded(ar * ratio)) / scale)};
        }
        const double ratio = br / bi, scale = pf_rounded(br * ratio) + bi;
        return {(T)((pf_rounded(ar * ratio) + ai) / scale),
                (T)((pf_rounded(ai * ratio) - ar) / scale)};
    }
    friend bool operator==(pf_complex a, pf_complex b) { return a.re == b.re && a.im == b.im; }
    friend bool operator!=(pf_complex a, pf_complex b) { return !(a == b); }
    pf_complex& operator+=(pf_complex b) { return *this = *this + b; }
    pf_complex& operator-=(pf_complex b) { return *this = *this - b; }
    pf_complex& operator*=(pf_complex b) { return *this = *this * b; }
    pf_complex& operator/=(pf_complex b) { return *this = *this / b; }
};
"""


def unaligned(dtype: DType) -> str:
    """The type of elements that may lie at any address."""
    return f"typedef {dtype.cpp} __attribute__((aligned(1))) pf_unaligned_{dtype.value};\n"
