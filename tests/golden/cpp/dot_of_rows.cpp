// dot_of_rows
#include <stdint.h>

static inline int64_t pf_extent(int64_t begin, int64_t end) {
    return end > begin ? end - begin : 0;
}

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
    const int64_t i,
    const double* __restrict__ x,
    const int64_t x_stride0,
    double* __restrict__ y) {
    #pragma GCC ivdep
    for (int64_t step = 0; step < count; ++step) {
        const int64_t j = at + step;
        y[i * x_stride0 + j] = 0.0;
        acc_terms[step] = x[i * x_stride0 + j] * x[i * x_stride0 + j];
    }
}

struct pf_running {
    pf_sum<double, 32> acc_sum;
    int64_t filled = 0;  // terms of the block that is not complete
    __attribute__((always_inline)) inline void done(double* acc_partial) {
        acc_sum.add(filled);
        *acc_partial = *(const double*)acc_sum.total();
    }
};

static __attribute__((noinline)) void pf_run(
    pf_running& running,
    int64_t at,
    int64_t count,
    const int64_t i,
    const double* __restrict__ x,
    const int64_t x_stride0,
    double* __restrict__ y) {
    {
        pf_sum<double, 32>::vector acc_sum_0 = running.acc_sum.sum[0];
        pf_sum<double, 32>::vector acc_sum_1 = running.acc_sum.sum[1];
        pf_sum<double, 32>::vector acc_sum_2 = running.acc_sum.sum[2];
        pf_sum<double, 32>::vector acc_sum_3 = running.acc_sum.sum[3];
        for (int64_t done = 0; done < count; done += 32) {
            alignas(64) double acc_terms[32];
            #pragma GCC ivdep
            for (int64_t step = 0; step < 32; ++step) {
                const int64_t j = at + done + step;
                y[i * x_stride0 + j] = 0.0;
                acc_terms[step] = x[i * x_stride0 + j] * x[i * x_stride0 + j];
            }
            acc_sum_0 += ((const pf_sum<double, 32>::vector*)acc_terms)[0];
            acc_sum_1 += ((const pf_sum<double, 32>::vector*)acc_terms)[1];
            acc_sum_2 += ((const pf_sum<double, 32>::vector*)acc_terms)[2];
            acc_sum_3 += ((const pf_sum<double, 32>::vector*)acc_terms)[3];
        }
        running.acc_sum.sum[0] = acc_sum_0;
        running.acc_sum.sum[1] = acc_sum_1;
        running.acc_sum.sum[2] = acc_sum_2;
        running.acc_sum.sum[3] = acc_sum_3;
    }
}

static inline __attribute__((always_inline)) void pf_more(
    pf_running& running,
    const int64_t* begin,
    const int64_t* end,
    int64_t row,
    int64_t row_end,
    int64_t column,
    int64_t column_end,
    const double* __restrict__ x,
    const int64_t x_stride0,
    double* __restrict__ y) {
    const int64_t i_begin = begin[0], i_end = end[0];
    const int64_t j_begin = begin[1], j_end = end[1];
    for (int64_t i = i_begin + row; i < i_begin + row_end; ++i) {
        for (int64_t at = j_begin + column; at < j_begin + column_end;) {
            const int64_t left = j_begin + column_end - at, space = 32 - running.filled;
            if (left >= 32 && space == 32) {
                const int64_t run = left < 4096 ? left & -32 : 4096;
                pf_run(running, at, run, i, x, x_stride0, y);
                at += run;
                continue;
            }
            const int64_t count = left < space ? left : space;
            pf_terms(at, count, running.acc_sum.term + running.filled, i, x, x_stride0, y);
            at += count;
            running.filled += count;
            if (running.filled == 32) {
                running.acc_sum.add(32);
                running.filled = 0;
            }
        }
    }
}

static __attribute__((noinline)) void pf_tile(
    const int64_t* begin,
    const int64_t* end,
    int64_t row,
    int64_t row_end,
    int64_t column,
    int64_t column_end,
    double* acc_partial,
    const double* __restrict__ x,
    const int64_t x_stride0,
    double* __restrict__ y) {
    pf_running running;
    pf_more(running, begin, end, row, row_end, column, column_end, x, x_stride0, y);
    running.done(acc_partial);
}

extern "C" int pf_kernel(const int64_t* slot, int64_t* results) {
    int64_t begin[] = {slot[1], slot[2]}, end[] = {slot[3], slot[4]};
    const double* x = (const double*)slot[5];
    const int64_t x_stride0 = slot[6];
    double* y = (double*)slot[7];
    if ((uintptr_t)x % alignof(double)) return 1;
    if ((uintptr_t)y % alignof(double)) return 2;
    const pf_tiling tiling(pf_extent(begin[0], end[0]), pf_extent(begin[1], end[1]));
    if (tiling.rows * tiling.columns == 0) return 0;  // the caller zeroed the results
    int64_t row, row_end, column, column_end;
    const int64_t threads = pf_team(slot[0], tiling.rows * tiling.columns, 13107);
    if (tiling.count == 1) {
        tiling.box(0, row, row_end, column, column_end);
        pf_tile(begin, end, row, row_end, column, column_end, (double*)results, x, x_stride0, y);
        return 0;
    }
    double acc_few[64];
    double* acc_partial = tiling.count <= 64 ? acc_few : (double*)__builtin_malloc(tiling.count * sizeof(double));
    if (!acc_partial) return -1;
    if (threads > 1) {
        const auto run = [&](int64_t tile) {
            int64_t row, row_end, column, column_end;
            tiling.box(tile, row, row_end, column, column_end);
            pf_tile(begin, end, row, row_end, column, column_end, acc_partial + tile, x, x_stride0, y);
        };
        #pragma omp parallel for num_threads(threads)
        for (int64_t tile = 0; tile < tiling.count; ++tile) run(tile);
    } else {
        const auto run = [&](int64_t tile) {
            int64_t row, row_end, column, column_end;
            tiling.box(tile, row, row_end, column, column_end);
            pf_tile(begin, end, row, row_end, column, column_end, acc_partial + tile, x, x_stride0, y);
        };
        for (int64_t tile = 0; tile < tiling.count; ++tile) run(tile);
    }
    double acc{};
    for (int64_t tile = 0; tile < tiling.count; ++tile) acc += acc_partial[tile];
    *(double*)results = acc;
    if (acc_partial != acc_few) __builtin_free(acc_partial);
    return 0;
}
