// clip

namespace pf {

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;

#define pf_thread(axis) ((int)threadIdx.axis)
#define pf_block(axis) ((int64_t)blockIdx.axis)
#define pf_blocks(axis) ((int64_t)gridDim.axis)
#define pf_threads(axis) ((int64_t)blockDim.axis)
#define pf_copy memcpy
enum { pf_warp = 32 };
__device__ inline void pf_barrier() { __syncthreads(); }
__device__ inline void pf_fence() { __threadfence(); }
__device__ inline void pf_lanes_barrier() { __syncwarp(); }
#define pf_inf() __longlong_as_double(0x7ff0000000000000ll)
#define pf_nan() __longlong_as_double(0x7ff8000000000000ll)
#define pf_inff() __int_as_float(0x7f800000)
#define pf_nanf() __int_as_float(0x7fc00000)

__device__ inline int pf_word_down(int word, int lanes) {
    return __shfl_down_sync(0xffffffffu, word, lanes);
}

__device__ inline int pf_lane_word_down(int word, int lanes) {
    return __shfl_down_sync(0xffffffffu, word, lanes, 32);
}

__device__ inline int pf_lane_word_first(int word) {
    return __shfl_sync(0xffffffffu, word, 0, 32);
}

__device__ inline uint32_t pf_exchange_32(uint32_t* cell, uint32_t old, uint32_t next) {
    return atomicCAS(cell, old, next);
}

__device__ inline uint64_t pf_exchange_64(uint64_t* cell, uint64_t old, uint64_t next) {
    return atomicCAS((unsigned long long*)cell, (unsigned long long)old, (unsigned long long)next);
}

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
