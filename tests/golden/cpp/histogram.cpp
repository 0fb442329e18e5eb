// histogram
#include <stdint.h>

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
    int64_t begin,
    int64_t end,
    const int32_t* __restrict__ keys,
    int64_t* __restrict__ counts) {
    #pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
        __atomic_fetch_add(&counts[(int64_t)keys[i]], (int64_t)1, __ATOMIC_RELAXED);
    }
}

extern "C" int pf_kernel(const int64_t* slot) {
    int64_t begin[] = {slot[1]}, end[] = {slot[2]};
    const int32_t* keys = (const int32_t*)slot[3];
    int64_t* counts = (int64_t*)slot[4];
    if ((uintptr_t)keys % alignof(int32_t)) return 1;
    if ((uintptr_t)counts % alignof(int64_t)) return 2;
    const int64_t threads = pf_team(slot[0], end[0] - begin[0], 5957);
    if (threads == 1) {
        pf_loop(begin[0], end[0], keys, counts);
        return 0;
    }
    #pragma omp parallel num_threads(threads)
    {
        int64_t my_begin = begin[0], my_end = end[0];
        pf_share(my_begin, my_end, 64);
        pf_loop(my_begin, my_end, keys, counts);
    }
    return 0;
}
