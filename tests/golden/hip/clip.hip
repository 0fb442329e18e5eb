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

#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))

extern "C" __device__ __attribute__((const)) double __ocml_sqrt_f64(double);
static __device__ inline double pf_sqrt_f64(double x) { return __ocml_sqrt_f64(x); }

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
