// clip

namespace pf {

typedef long int64_t;

static __device__ inline double pf_sqrt_f64(double x) { return sqrt(x); }

extern "C" __global__ void __launch_bounds__(1) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    double* __restrict__ x,
    const double limit_given,
    const double* const limit_at
) {
    const double limit = limit_at ? *limit_at : limit_given;
    for (int64_t i = i_begin; i < i_end; ++i) {
        double value = pf_sqrt_f64(x[i]);
        if (value > limit) {
            value = limit;
        }
        x[i] = value;
    }
}

}  // namespace pf
