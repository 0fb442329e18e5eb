// histogram

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

static __device__ inline int64_t pf_atomic_add_i64(int64_t* cell, int64_t value) {
    return (int64_t)atomicAdd((unsigned long long*)cell, (unsigned long long)value);
}
static __device__ inline double pf_atomic_sub_f64(double* cell, double value) {
    return atomicAdd(cell, -value);
}
static __device__ inline int32_t pf_atomic_max_i32(int32_t* cell, int32_t value) {
    return (int32_t)atomicMax((int*)cell, (int)value);
}
static __device__ inline int32_t pf_atomic_min_i32(int32_t* cell, int32_t value) {
    return (int32_t)atomicMin((int*)cell, (int)value);
}

template <typename T, typename F>
static __device__ inline T pf_atomic_64(T* cell, T value, F change) {
    uint64_t seen = *(volatile uint64_t*)cell, before;
    T old;
    do {
        before = seen;
        pf_copy(&old, &before, sizeof(T));
        const T next = change(old, value);
        uint64_t after;
        pf_copy(&after, &next, sizeof(T));
        seen = pf_exchange_64((uint64_t*)cell, before, after);
    } while (seen != before);
    return old;
}

#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))

// Signed arithmetic that wraps.
__device__ inline int32_t pf_add_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
__device__ inline int64_t pf_add_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
__device__ inline int32_t pf_sub_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
__device__ inline int64_t pf_sub_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
__device__ inline int32_t pf_mul_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
__device__ inline int64_t pf_mul_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    const int32_t* __restrict__ x,
    int64_t* __restrict__ counts,
    double* __restrict__ weights,
    int32_t* __restrict__ extremes
) {
    for (int64_t i = i_begin + pf_first(x); i < i_end; i += pf_step(x)) {
        pf_atomic_add_i64(&counts[(int64_t)x[i]], (int64_t)1);
        pf_atomic_sub_f64(&weights[(int64_t)x[i]], 0.5);
        pf_atomic_max_i32(&extremes[0], x[i]);
        pf_atomic_min_i32(&extremes[1L], x[i]);
        pf_atomic_64<double>(&weights[(int64_t)pf_add_i32(100, x[i])], 2.0, [](double old, double value) { return (double)(old * value); });
    }
}

}  // namespace pf
