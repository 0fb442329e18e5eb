// transpose
#include <stdint.h>

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

static inline int64_t pf_extent(int64_t begin, int64_t end) {
    return end > begin ? end - begin : 0;
}

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

static __attribute__((noinline)) void pf_loop(
    const int64_t* begin,
    const int64_t* end,
    const double* __restrict__ x,
    const int64_t x_stride0,
    double* __restrict__ y) {
    const int64_t i_begin = begin[0], i_end = end[0];
    const int64_t j_begin = begin[1], j_end = end[1];
    for (int64_t i_block = i_begin; i_block < i_end; i_block += 64) {
        const int64_t i_block_end = i_block + 64 < i_end ? i_block + 64 : i_end;
        for (int64_t j_block = j_begin; j_block < j_end; j_block += 64) {
            const int64_t j_block_end = j_block + 64 < j_end ? j_block + 64 : j_end;
            for (int64_t i = i_block; i < i_block_end; ++i) {
                #pragma GCC ivdep
                for (int64_t j = j_block; j < j_block_end; ++j) {
                    y[i * x_stride0 + j] = 2.0 * x[j * x_stride0 + i];
                }
            }
        }
    }
}

extern "C" int pf_kernel(const int64_t* slot) {
    int64_t begin[] = {slot[1], slot[2]}, end[] = {slot[3], slot[4]};
    const double* x = (const double*)slot[5];
    const int64_t x_stride0 = slot[6];
    double* y = (double*)slot[7];
    if ((uintptr_t)x % alignof(double)) return 1;
    if ((uintptr_t)y % alignof(double)) return 2;
    const int64_t threads = pf_team(slot[0], pf_extent(begin[0], end[0]) * pf_extent(begin[1], end[1]), 26214);
    if (threads == 1) {
        pf_loop(begin, end, x, x_stride0, y);
        return 0;
    }
    static const int order[] = {0, 1};
    const int axis = pf_axis(begin, end, order, 2, threads);
    const int64_t unit = axis == 1 ? 64 : 1;
    #pragma omp parallel num_threads(threads)
    {
        int64_t my_begin[2], my_end[2];
        for (int dim = 0; dim < 2; ++dim) {
            my_begin[dim] = begin[dim];
            my_end[dim] = end[dim];
        }
        pf_share(my_begin[axis], my_end[axis], unit);
        pf_loop(my_begin, my_end, x, x_stride0, y);
    }
    return 0;
}
