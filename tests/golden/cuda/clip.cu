// clip

namespace pf {

typedef long int64_t;
#define pf_thread(axis) ((int)threadIdx.axis)
#define pf_block(axis) ((int64_t)blockIdx.axis)
#define pf_blocks(axis) ((int64_t)gridDim.axis)
#define pf_threads(axis) ((int64_t)blockDim.axis)

#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))

static __device__ inline double pf_sqrt_f64(double x) { return sqrt(x); }

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    double* __restrict__ x,
    const double limit_given,
    const double* const limit_at
) {
    const double limit = limit_at ? *limit_at : limit_given;
    for (int64_t i = i_begin + pf_first(x); i < i_end; i += pf_step(x)) {
        double value = pf_sqrt_f64(x[i]);
        if (value > limit) {
            value = limit;
        }
        x[i] = value;
    }
}

}  // namespace pf
