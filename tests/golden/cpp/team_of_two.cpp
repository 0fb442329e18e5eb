// row_of_scratch
#include <stdint.h>
#include <stdlib.h>

// g++ would move a call into the only branch that uses its value, and join the branches of equal
// conditions around what lies between: neither can then become masked vector operations.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-sink", "no-thread-jumps")
#endif

template <typename T> static inline T pf_bits(const int64_t& slot) {
    T value;
    __builtin_memcpy(&value, &slot, sizeof(T));
    return value;
}

static inline int64_t pf_extent(int64_t begin, int64_t end) {
    return end > begin ? end - begin : 0;
}

static inline double pf_trips(int64_t start, int64_t stop) {
    return stop > start ? (double)(stop - start) : 0.0;
}

// How many iterations of a cost are worth another thread.
static inline int64_t pf_grain(double worth, double cost) {
    return cost < 1.0 ? (int64_t)worth : cost < worth ? (int64_t)(worth / cost) : 1;
}

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
template <typename T> struct pf_wide<T, 64> {
    typedef T vector __attribute__((vector_size(64)));
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
        int64_t size = (rows * columns + 64 - 1) / 64;
        size = (size + 256 - 1) / 256 * 256;
        if (size > 4096) size = 4096;
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
    return size < 0 || size > 8192 ? 64 : size;
}

// Zeroed memory of one iteration: that array, or the system's where it is too small.
template <typename T> struct pf_scratch {
    T* cells;
    void* heap = nullptr;
    template <int rank> pf_scratch(const int64_t (&extents)[rank], void* stack) {
        const int64_t size = pf_bytes<T>(extents);
        if (size < 0 || size > 8192) {
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

static inline __attribute__((always_inline)) void pf_terms(
    int64_t at,
    int64_t count,
    double* acc_terms,
    const double* __restrict__ x,
    const int64_t x_stride0,
    const int32_t n) {
    #pragma GCC ivdep
    for (int64_t step = 0; step < count; ++step) {
        const int64_t league_rank = at + step;
        int32_t mine[2] = {};
        const int64_t row_2_extent0 = pf_length(n);
        const int64_t row_2_extent1 = pf_length(2);
        const int64_t row_2_stride0 = row_2_extent1;
        alignas(64) char pf_row_2_stack[pf_stacked<double>({row_2_extent0, row_2_extent1})];
        const pf_scratch<double> pf_row_2_memory({row_2_extent0, row_2_extent1}, pf_row_2_stack);
        double* __restrict__ const row_2 = pf_row_2_memory.cells;
        for (int64_t team_rank = 0L; team_rank < 2L; ++team_rank) {
            mine[team_rank] = (int32_t)team_rank + 1;
        }
        for (int32_t i = 0; i < n; ++i) {
            row_2[(int64_t)i * row_2_stride0] = x[league_rank * x_stride0 + (int64_t)i];
        }
        double total = 0.0;
        for (int64_t team_rank_2 = 0L; team_rank_2 < 2L; ++team_rank_2) {
            const int64_t chunk = ((int64_t)n + 1) / 2;
            const int64_t first = (int64_t)(int32_t)team_rank_2 * chunk;
            const int64_t last = first + chunk < (int64_t)n ? first + chunk : (int64_t)n;
            const int64_t row_first = (int32_t)(first < (int64_t)n ? first : (int64_t)n), row_last = last;
            if (row_last - row_first >= 24) {
                pf_lanes<double> total_row;
                int64_t at = row_first;
                for (; at + pf_lanes<double>::count <= row_last; at += pf_lanes<double>::count) {
                    for (int64_t step = 0; step < pf_lanes<double>::count; ++step) {
                        const int32_t i_2 = at + step;
                        double total_term{};
                        total_term += row_2[(int64_t)i_2 * row_2_stride0] * (double)mine[team_rank_2];
                        total_row.lane[step] += total_term;
                    }
                }
                for (int64_t step = 0; at + step < row_last; ++step) {
                    const int32_t i_2 = at + step;
                    double total_term{};
                    total_term += row_2[(int64_t)i_2 * row_2_stride0] * (double)mine[team_rank_2];
                    total_row.lane[step] += total_term;
                }
                total += total_row.total();
            } else {
                for (int32_t i_2 = (int32_t)(first < (int64_t)n ? first : (int64_t)n); i_2 < last; ++i_2) {
                    total += row_2[(int64_t)i_2 * row_2_stride0] * (double)mine[team_rank_2];
                }
            }
            __asm__ volatile("");  // no vectors, which g++ 12 makes wrong here
        }
        const double total_2 = total;
        acc_terms[step] = total_2;
    }
}

struct pf_running {
    pf_sum<double, 128> acc_sum;
    int64_t filled = 0;  // terms of the block that is not complete
    __attribute__((always_inline)) inline void done(double* acc_partial) {
        acc_sum.add(filled);
        *acc_partial = *(const double*)acc_sum.total();
    }
};

static inline __attribute__((always_inline)) void pf_more(
    pf_running& running,
    int64_t column,
    int64_t column_end,
    const double* __restrict__ x,
    const int64_t x_stride0,
    const int32_t n) {
    for (int64_t at = column; at < column_end;) {
        const int64_t left = column_end - at, space = 128 - running.filled;
        if (left >= 128 && space == 128) {
            pf_terms(at, 128, running.acc_sum.term, x, x_stride0, n);
            running.acc_sum.add(128);
            at += 128;
            continue;
        }
        const int64_t count = left < space ? left : space;
        pf_terms(at, count, running.acc_sum.term + running.filled, x, x_stride0, n);
        at += count;
        running.filled += count;
        if (running.filled == 128) {
            running.acc_sum.add(128);
            running.filled = 0;
        }
    }
}

static __attribute__((noinline)) void pf_spill(
    int64_t column,
    int64_t column_end,
    double* acc_terms,
    const double* __restrict__ x,
    const int64_t x_stride0,
    const int32_t n) {
    for (int64_t at = column; at < column_end;) {
        const int64_t left = column_end - at;
        const int64_t count = left < 128 ? left : 128;
        pf_terms(at, count, acc_terms, x, x_stride0, n);
        acc_terms += count;
        at += count;
    }
}

struct pf_fold {
    pf_tiling tiling{0, 0};
    pf_parts<double, 128, 1> acc_partial;
    bool open(const int64_t* slot) {
        tiling = pf_tiling(1, pf_extent(slot[1], slot[2]));
        return acc_partial.open(tiling.count);
    }
    // Keep the terms of all tiles that the steps from first to last are in, or cut.
    bool keep(const int64_t* slot, int64_t first, int64_t last) {
        first = first > slot[1] ? (first - slot[1]) * 1 / tiling.tile_columns : 0;
        last = last - slot[1] < tiling.columns ? ((last - slot[1]) * 1 + tiling.tile_columns - 1) / tiling.tile_columns : tiling.count;
        bool enough = true;
        for (int64_t tile = first; tile < last && enough; ++tile)
            enough = acc_partial.keep(tiling, tile);
        return enough;
    }
    void close(bool complete, int64_t* results) {
        acc_partial.close(tiling, complete, results + 0);
    }
};

static __attribute__((noinline)) void pf_tile(
    int64_t column,
    int64_t column_end,
    double* acc_partial,
    const double* __restrict__ x,
    const int64_t x_stride0,
    const int32_t n) {
    pf_running running;
    pf_more(running, column, column_end, x, x_stride0, n);
    running.done(acc_partial);
}

extern "C" int pf_kernel(const int64_t* slot, int64_t* results) {
    int64_t begin[] = {slot[1]}, end[] = {slot[2]};
    const double* x = (const double*)slot[3];
    const int64_t x_stride0 = slot[4];
    const int32_t n = pf_bits<int32_t>(slot[5]);
    if ((uintptr_t)x % alignof(double)) return 1;
    const pf_tiling tiling(1, pf_extent(begin[0], end[0]));
    if (tiling.rows * tiling.columns == 0) return 0;  // the caller zeroed the results
    int64_t row, row_end, column, column_end;
    const int64_t threads = pf_team(slot[0], tiling.rows * tiling.columns, pf_grain(131072, 189 + pf_trips(0, n) * (1 + 4)));
    if (threads > 1 && tiling.count < 4 * threads) {
        const int64_t pf_each = 4 * threads / tiling.count + 1;
        pf_fold pf_all;
        const bool pf_open = pf_all.open(slot) && pf_all.keep(slot, slot[1], slot[2]);
        if (pf_open) {
            const auto run = [&](int64_t pf_at) {
                const int64_t tile = pf_at / pf_each, pf_part = pf_at % pf_each;
                int64_t row, row_end, column, column_end;
                tiling.box(tile, row, row_end, column, column_end);
                const int64_t pf_first = column, pf_size = column_end - pf_first;
                column = pf_first + pf_cut(pf_size, pf_part, pf_each, threads);
                column_end = pf_first + pf_cut(pf_size, pf_part + 1, pf_each, threads);
                pf_spill(begin[0] + column, begin[0] + column_end, pf_all.acc_partial.terms[tile] + (column - pf_first), x, x_stride0, n);
            };
            #pragma omp parallel for num_threads(threads)
            for (int64_t pf_at = 0; pf_at < tiling.count * pf_each; ++pf_at) run(pf_at);
        }
        pf_all.close(pf_open, results);
        return pf_open ? 0 : -1;
    }
    if (tiling.count == 1) {
        tiling.box(0, row, row_end, column, column_end);
        pf_tile(begin[0] + column, begin[0] + column_end, (double*)results, x, x_stride0, n);
        return 0;
    }
    double acc_few[64];
    double* acc_partial = tiling.count <= 64 ? acc_few : (double*)__builtin_malloc(tiling.count * sizeof(double));
    if (!acc_partial) return -1;
    if (threads > 1) {
        const auto run = [&](int64_t tile) {
            int64_t row, row_end, column, column_end;
            tiling.box(tile, row, row_end, column, column_end);
            pf_tile(begin[0] + column, begin[0] + column_end, acc_partial + tile, x, x_stride0, n);
        };
        #pragma omp parallel for num_threads(threads)
        for (int64_t tile = 0; tile < tiling.count; ++tile) run(tile);
    } else {
        const auto run = [&](int64_t tile) {
            int64_t row, row_end, column, column_end;
            tiling.box(tile, row, row_end, column, column_end);
            pf_tile(begin[0] + column, begin[0] + column_end, acc_partial + tile, x, x_stride0, n);
        };
        for (int64_t tile = 0; tile < tiling.count; ++tile) run(tile);
    }
    double acc{};
    for (int64_t tile = 0; tile < tiling.count; ++tile) acc += acc_partial[tile];
    *(double*)results = acc;
    if (acc_partial != acc_few) __builtin_free(acc_partial);
    return 0;
}
