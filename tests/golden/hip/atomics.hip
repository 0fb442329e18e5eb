// histogram
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

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;

#define pf_thread(axis) ((int)__builtin_amdgcn_workitem_id_##axis())
#define pf_block(axis) ((int64_t)__builtin_amdgcn_workgroup_id_##axis())
#define pf_copy __builtin_memcpy
__device__ inline void pf_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
#define pf_inf() __builtin_inf()
#define pf_nan() __builtin_nan("")
#define pf_inff() __builtin_inff()
#define pf_nanf() __builtin_nanf("")

#define pf_number_x 0
#define pf_number_y 1
#define pf_number_z 2

extern "C" __device__ __attribute__((const)) unsigned long __ockl_get_num_groups(unsigned int);
#define pf_blocks(axis) ((int64_t)__ockl_get_num_groups(pf_number_##axis))

extern "C" __device__ __attribute__((const)) unsigned long __ockl_get_local_size(unsigned int);
#define pf_threads(axis) ((int64_t)__ockl_get_local_size(pf_number_##axis))

#if defined(__GFX8__) || defined(__GFX9__)
enum { pf_warp = 64 };
#else
enum { pf_warp = 32 };
#endif

__device__ inline void pf_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__device__ inline int pf_word_down(int word, int lanes) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute(4 * (lane + lanes), word);
}

__device__ inline void pf_lanes_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// The upper lanes of a group get values of another one, or none; the first lane's sum has none of
// theirs.
__device__ inline int pf_lane_word_down(int word, int lanes) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute(4 * (lane + lanes), word);
}

__device__ inline int pf_lane_word_first(int word) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute(4 * (lane & ~31), word);
}

__device__ inline uint32_t pf_exchange_32(uint32_t* cell, uint32_t old,
                                                  uint32_t next) {
    __hip_atomic_compare_exchange_strong(cell, &old, next, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return old;
}

__device__ inline uint64_t pf_exchange_64(uint64_t* cell, uint64_t old,
                                                  uint64_t next) {
    __hip_atomic_compare_exchange_strong(cell, &old, next, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return old;
}

static __device__ inline int64_t pf_atomic_add_i64(int64_t* cell, int64_t value) {
    return __hip_atomic_fetch_add(cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
static __device__ inline double pf_atomic_sub_f64(double* cell, double value) {
    return __hip_atomic_fetch_add(cell, -value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
static __device__ inline int32_t pf_atomic_max_i32(int32_t* cell, int32_t value) {
    return __hip_atomic_fetch_max(cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
static __device__ inline int32_t pf_atomic_min_i32(int32_t* cell, int32_t value) {
    return __hip_atomic_fetch_min(cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
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
