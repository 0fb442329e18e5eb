// prefix
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

static __device__ inline uint32_t pf_atomic_add_u32(uint32_t* cell, uint32_t value) {
    return __hip_atomic_fetch_add(cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

template <int threads, typename T> static __device__ inline T* pf_shared() {
    __shared__ T cells[threads];
    return cells;
}

// The sum of the values of all threads before this one, and of the whole block. Pairs that are
// 1, 2, 4... threads apart are added (Hillis and Steele, 1986): the order is always the same.
template <int threads, typename T>
static __device__ inline T pf_before(T value, T& total) {
    T* const sum = pf_shared<threads, T>();
    const int me = pf_thread(x);
    sum[me] = value;
    pf_barrier();
    for (int apart = 1; apart < threads; apart *= 2) {
        T left = T();
        if (me >= apart) left = sum[me - apart];
        pf_barrier();
        if (me >= apart) sum[me] = (T)(left + sum[me]);
        pf_barrier();
    }
    const T before = me ? sum[me - 1] : T();
    total = sum[threads - 1];
    pf_barrier();  // before `sum` is used again
    return before;
}

#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))

// Whether all other blocks were here before, so that what they wrote to memory is complete.
static __device__ inline bool pf_is_last(uint32_t* ticket) {
    __shared__ bool last;
    pf_fence();
    pf_barrier();
    if (pf_thread(x) == 0) {
        const uint32_t count = (uint32_t)pf_blocks(x);
        last = pf_atomic_add_u32(ticket, 1) == count - 1;
        if (last) *ticket = 0;  // for the next launch
    }
    pf_barrier();
    pf_fence();
    return last;
}

extern "C" __global__ void __launch_bounds__(256) pf_totals(
    const int64_t i_begin,
    const int64_t i_end,
    double* __restrict__ x,
    void* const workspace,
    int64_t* const results
) {
    double* const own = (double*)((char*)workspace + 64);
    double* const tile = own + pf_blocks(x) * 256;
    const int64_t first = i_begin + pf_first(x) * 8;
    const int64_t stop = first + 8 < i_end ? first + 8 : i_end;
    const bool last = false;
    (void)last;
    double acc = double();
    for (int64_t i = first; i < stop; ++i) {
        acc += x[i];
        if (last) {
            x[i] = acc;
        }
    }
    own[pf_first(x)] = acc;
    double total;
    pf_before<256>(acc, total);
    if (pf_thread(x) == 0) tile[pf_block(x)] = total;
    if (!pf_is_last((uint32_t*)workspace)) return;
    double carry = double();
    for (int64_t at = 0; at < pf_blocks(x); at += 256) {
        const int64_t block = at + pf_thread(x);
        const double mine = block < pf_blocks(x) ? tile[block] : double();
        double total_2;
        const double before_2 = pf_before<256>(mine, total_2);
        if (block < pf_blocks(x)) tile[block] = (double)(carry + before_2);
        carry = (double)(carry + total_2);
    }
}

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    double* __restrict__ x,
    void* const workspace,
    int64_t* const results
) {
    double* const own = (double*)((char*)workspace + 64);
    double* const tile = own + pf_blocks(x) * 256;
    const int64_t first = i_begin + pf_first(x) * 8;
    const int64_t stop = first + 8 < i_end ? first + 8 : i_end;
    const bool last = true;
    (void)last;
    double total;
    const double before = pf_before<256>(own[pf_first(x)], total);
    double acc = (double)(tile[pf_block(x)] + before);
    for (int64_t i = first; i < stop; ++i) {
        acc += x[i];
        if (last) {
            x[i] = acc;
        }
    }
    if (first < stop && stop == i_end) *(double*)results = acc;
}

}  // namespace pf
