// clip
#include <stdint.h>

template <typename T> static inline T pf_bits(const int64_t& slot) {
    T value;
    __builtin_memcpy(&value, &slot, sizeof(T));
    return value;
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

static inline double pf_sqrt_f64(double x) { return __builtin_sqrt(x); }

static __attribute__((noinline)) void pf_loop(
    int64_t begin,
    int64_t end,
    double* __restrict__ x,
    const double limit) {
    #pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
        double value = pf_sqrt_f64(x[i]);
        if (value > limit) {
            value = limit;
        }
        x[i] = value;
    }
}

extern "C" int pf_kernel(const int64_t* slot) {
    int64_t begin[] = {slot[1]}, end[] = {slot[2]};
    double* x = (double*)slot[3];
    const double limit = pf_bits<double>(slot[4]);
    if ((uintptr_t)x % alignof(double)) return 1;
    const int64_t threads = pf_team(slot[0], end[0] - begin[0], 11915);
    if (threads == 1) {
        pf_loop(begin[0], end[0], x, limit);
        return 0;
    }
    #pragma omp parallel num_threads(threads)
    {
        int64_t my_begin = begin[0], my_end = end[0];
        pf_share(my_begin, my_end, 64);
        pf_loop(my_begin, my_end, x, limit);
    }
    return 0;
}
