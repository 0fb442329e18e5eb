"""The pieces of C++ that emitted kernels are built on; a kernel carries only those it uses."""

from __future__ import annotations

from pyfuser.ir.dtypes import DType

BLOCK = 128
"""Iterations that are run together; of a reduction, terms that are computed before being added."""

TILE = 4096
"""Iterations that one partial result of a scan, or of a large reduction, covers."""

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
// 32-bit integer division by way of doubles, which divide faster and in vectors. It is exact: the
// rounded quotient of two such integers never reaches the next integer (they are below 2^53).
template <typename T> static inline T pf_quotient(T a, T b) { return (T)((double)a / (double)b); }
template <typename T> static inline T pf_remainder(T a, T b) { return a - pf_quotient(a, b) * b; }
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
// take the terms in turn and are added in halves at the end.
template <typename T, int block, int width = 1> struct pf_sum {{
    typedef T vector __attribute__((vector_size(64)));
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
        for (int64_t half = lanes / 2; half >= width; half /= 2)
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


SWEEP = """\
// One loop of a sweep: it runs over steps of its outermost axis, `lag` behind the front.
struct pf_stage {
    void (*run)(const int64_t* slot, void* state, int64_t first, int64_t last);
    const int64_t* slot;
    int64_t lag, ahead, begin, end;
};

// A view of which a thread keeps only the steps that its loops still read (see `plan.Rolling`).
struct pf_rolling {
    int64_t step, oldest, made, begun, until;
};

// What a thread has of a rolling view: the steps of a wave, and those around the cuts, which it
// shares with its neighbours. `places` are the slots of its address, up to a zero.
struct pf_window {
    pf_rolling view;
    const int* places;
    char *memory, *edges;

    int64_t bytes(int64_t wave) const { return (wave + view.made - view.oldest) * view.step; }
    int64_t edge_bytes() const { return (view.until - view.oldest) * view.step; }
    char* edge(int64_t cut) const { return edges + (cut - 1) * edge_bytes(); }
    void point(int64_t* slots, char* at, int64_t step) const {
        for (const int* place = places; *place; ++place)
            slots[*place] = (int64_t)at - step * view.step;
    }
    // Make room for the steps of the next wave, keeping those before.
    void advance(int64_t* slots, int64_t before, int64_t wave, bool again) const {
        if (again)
            __builtin_memmove(memory, memory + wave * view.step,
                              (view.made - view.oldest) * view.step);
        point(slots, memory, before + view.oldest);
    }
    // Copy the steps from first to last, as far as they lie around the cut at `step`.
    void save(int64_t before, int64_t first, int64_t last, char* edge, int64_t step) const {
        if (first < step + view.oldest) first = step + view.oldest;
        if (last > step + view.until) last = step + view.until;
        if (first < last)
            __builtin_memcpy(edge + (first - step - view.oldest) * view.step,
                             memory + (first - before - view.oldest) * view.step,
                             (last - first) * view.step);
    }
};

struct pf_schedule {
    const pf_stage* stages;
    int64_t count, wave, low, high, lag, ahead;

    pf_schedule(const pf_stage* stages, int64_t count, int64_t wave)
        : stages(stages), count(count), wave(wave), low(stages->begin), high(stages->end),
          lag(0), ahead(0) {
        for (const pf_stage* s = stages; s < stages + count; ++s) {
            if (s->begin < low) low = s->begin;
            if (s->end > high) high = s->end;
            if (s->lag > lag) lag = s->lag;
            if (s->ahead > ahead) ahead = s->ahead;
        }
    }
    // How many threads can have a share: what runs between shares must not meet.
    int64_t parts(int64_t threads) const {
        const int64_t most = (high - low) / (2 * (lag + ahead) + 1);
        return most < 1 ? 1 : most < threads ? most : threads;
    }
    // Where share number `part` begins, and the one before ends.
    int64_t cut(int64_t part, int64_t parts) const {
        return low + (high - low) / parts * part + (high - low) % parts * part / parts;
    }
    void share(int64_t part, int64_t parts, void* const* states, int64_t* slots,
               const pf_window* windows, int rolling) const {
        const int64_t first = cut(part, parts), last = cut(part + 1, parts);
        const bool left = part > 0, right = part + 1 < parts;
        for (int64_t front = first; front < last + (right ? 0 : lag);) {
            const int64_t before = front;
            front += wave;
            for (int n = 0; n < rolling; ++n)
                windows[n].advance(slots, before, wave, before != first);
            for (int64_t k = 0; k < count; ++k) {
                const pf_stage& s = stages[k];
                const int64_t from = left ? first + s.ahead : s.begin;
                const int64_t until = right ? last - s.lag : s.end;
                run(k, states, latest(from, before - s.lag), earliest(until, front - s.lag));
            }
            for (int n = 0; n < rolling; ++n) {
                const pf_window& w = windows[n];
                int64_t old = before + w.view.made, now = front + w.view.made;
                if (left) old = latest(old, first + w.view.begun);
                if (right) now = earliest(now, last + w.view.made);
                if (left) w.save(before, old, now, w.edge(part), first);
                if (right) w.save(before, old, now, w.edge(part + 1), last);
            }
        }
    }
    // The steps around the beginning of share number `part` that neither thread has run.
    void between(int64_t part, int64_t parts, void* const* states, int64_t* slots,
                 const pf_window* windows, int rolling) const {
        if (part >= parts) return;
        const int64_t step = cut(part, parts);
        for (int n = 0; n < rolling; ++n)
            windows[n].point(slots, windows[n].edge(part), step + windows[n].view.oldest);
        for (int64_t k = 0; k < count; ++k)
            run(k, states, step - stages[k].lag, step + stages[k].ahead);
    }

private:
    static int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }
    static int64_t earliest(int64_t a, int64_t b) { return a < b ? a : b; }
    void run(int64_t k, void* const* states, int64_t first, int64_t last) const {
        const pf_stage& s = stages[k];
        first = latest(first, s.begin);
        last = earliest(last, s.end);
        if (first < last) s.run(s.slot, states[k], first, last);
    }
};
"""

STORAGE = """\
// The memory of all windows: for each thread those it moves, and those around the cuts.
struct pf_storage {
    const pf_window* windows;
    int64_t count, wave;
    char* memory;
    int64_t share;  // bytes of one thread's windows

    static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
    pf_storage(pf_window* windows, int64_t count, int64_t wave, int64_t threads)
        : windows(windows), count(count), wave(wave), share(0) {
        int64_t cuts = 0;
        for (int64_t n = 0; n < count; ++n) {
            share += rounded(windows[n].bytes(wave));
            cuts += rounded(windows[n].edge_bytes() * (threads - 1));
        }
        memory = (char*)__builtin_malloc(threads * share + cuts + 64);
        char* at = aligned() + threads * share;
        for (int64_t n = 0; n < count; ++n) {
            windows[n].edges = at;
            at += rounded(windows[n].edge_bytes() * (threads - 1));
        }
    }
    ~pf_storage() { __builtin_free(memory); }
    pf_storage(const pf_storage&) = delete;
    char* aligned() const { return (char*)(((uintptr_t)memory + 63) / 64 * 64); }
    void of(int64_t thread, pf_window* mine) const {
        char* at = aligned() + thread * share;
        for (int64_t n = 0; n < count; ++n) {
            mine[n] = windows[n];
            mine[n].memory = at;
            at += rounded(mine[n].bytes(wave));
        }
    }
};
"""

PARTS = """\
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
"""
