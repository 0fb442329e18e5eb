// clip
#ifndef __device__
#define __device__ __attribute__((device))
#endif
#ifndef __global__
#define __global__ __attribute__((global))
#endif
#ifndef __shared__
#define __shared__ __attribute__((shared))
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif

namespace pf {

typedef long int64_t;

extern "C" __device__ __attribute__((const)) double __ocml_sqrt_f64(double);
static __device__ inline double pf_sqrt_f64(double x) { return __ocml_sqrt_f64(x); }

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
