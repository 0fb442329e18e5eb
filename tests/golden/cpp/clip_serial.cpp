// clip
#include <stdint.h>

template <typename T> static inline T pf_bits(const int64_t& slot) {
    T value;
    __builtin_memcpy(&value, &slot, sizeof(T));
    return value;
}

static inline double pf_sqrt_f64(double x) { return __builtin_sqrt(x); }

static __attribute__((noinline)) void pf_loop(
    int64_t begin,
    int64_t end,
    double* __restrict__ x,
    const double limit) {
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
    pf_loop(begin[0], end[0], x, limit);
    return 0;
}
