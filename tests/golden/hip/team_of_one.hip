// row_of_scratch
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

static __device__ inline int64_t pf_length(int64_t extent) { return extent > 0 ? extent : 0; }

#ifndef pf_dynamic
extern __shared__ __attribute__((aligned(16))) char pf_dynamic[];
#endif

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

// How two partial results become one.
struct pf_plus {
    template <typename T> static __device__ inline T join(T a, T b) { return (T)(a + b); }
};
struct pf_least {
    template <typename T> static __device__ inline T join(T a, T b) { return (T)(b < a ? b : a); }
};
struct pf_most {
    template <typename T> static __device__ inline T join(T a, T b) { return (T)(a < b ? b : a); }
};
struct pf_or {
    template <typename T> static __device__ inline T join(T a, T b) { return (T)(a | b); }
};
struct pf_xor {
    template <typename T> static __device__ inline T join(T a, T b) { return (T)(a ^ b); }
};

#define pf_lane() (pf_thread(x) % 32)
#define pf_group() (pf_thread(x) / 32)

// The first lane's value, for each lane of a group.
template <typename T> static __device__ inline T pf_lanes_first(T value) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_lane_word_first(word[k]);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

template <typename T> static __device__ inline T pf_from_above(T value, int lanes) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_lane_word_down(word[k], lanes);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

// All values of a group of lanes joined in halves, for each of them.
template <int lanes, typename F, typename T> static __device__ inline T pf_lanes_total(T value) {
    for (int half = lanes / 2; half; half /= 2) {
        value = F::join(value, pf_from_above(value, half));
    }
    return pf_lanes_first(value);
}

template <int threads, typename T> static __device__ inline T* pf_shared() {
    __shared__ T cells[threads];
    return cells;
}

template <typename T> static __device__ inline T pf_down(T value, int lanes) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_word_down(word[k], lanes);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

// All values of a block joined in halves, which is the same order for every width of a warp. The
// result is thread 0's.
template <int threads, typename F, typename T>
static __device__ inline T pf_total(T value) {
    T* const upper = pf_shared<threads, T>();
    const int me = pf_thread(x);
    for (int half = threads / 2; half >= pf_warp; half /= 2) {
        if (half <= me && me < 2 * half) upper[me] = value;
        pf_barrier();
        if (me < half) value = F::join(value, upper[me + half]);
    }
    if (me < pf_warp) {
        for (int half = pf_warp / 2; half; half /= 2) value = F::join(value, pf_down(value, half));
    }
    pf_barrier();  // before `upper` is used again
    return value;
}

// The first thread's value, for each thread of a block.
template <int threads, typename T> static __device__ inline T pf_team_first(T value) {
    T* const first = pf_shared<threads, T>();
    if (pf_thread(x) == 0) *first = value;
    pf_barrier();
    value = *first;
    pf_barrier();  // before `first` is used again
    return value;
}

// All values of a block joined in halves, for each of its threads.
template <int threads, typename F, typename T> static __device__ inline T pf_team_total(T value) {
    return pf_team_first<threads>(pf_total<threads, F>(value));
}

// Signed arithmetic that wraps.
__device__ inline int32_t pf_add_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
__device__ inline int64_t pf_add_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
__device__ inline int32_t pf_sub_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
__device__ inline int64_t pf_sub_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
__device__ inline int32_t pf_mul_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
__device__ inline int64_t pf_mul_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

extern "C" __global__ void __launch_bounds__(128) pf_kernel(
    const int64_t league_rank_begin,
    const int64_t league_rank_end,
    const double* __restrict__ x,
    const int64_t x_stride0,
    const int32_t n,
    void* const workspace,
    int64_t* const results
) {
    double acc{};
    for (int64_t league_rank = league_rank_begin + pf_block(x); league_rank < league_rank_end; league_rank += pf_blocks(x)) {
        pf_barrier();
        const int64_t row_extent0 = pf_length(n);
        const int64_t row_extent1 = pf_length(2);
        const int64_t row_stride0 = row_extent1;
        double* const row = (double*)(pf_dynamic + 0);
        for (int64_t k = pf_thread(x); k < row_extent0 * row_extent1; k += 128) row[k] = double();
        const int64_t mine = pf_add_i64(0L, 1L);
        pf_barrier();
        const int64_t i_stop = n;
        for (int64_t i_wide = pf_thread(x); i_wide < i_stop; i_wide += 128) {
            const int32_t i = (int32_t)i_wide;
            row[(int64_t)i * row_stride0] = x[league_rank * x_stride0 + (int64_t)i];
        }
        double total = 0.0;
        pf_barrier();
        double total_part{};
        const int64_t i_2_stop = n;
        for (int64_t i_2_wide = pf_thread(x); i_2_wide < i_2_stop; i_2_wide += 128) {
            const int32_t i_2 = (int32_t)i_2_wide;
            total_part += row[(int64_t)i_2 * row_stride0] * (double)(int32_t)mine;
        }
        total = pf_plus::join<double>(total, pf_team_total<128, pf_plus>(total_part));
        const double total_2 = total;
        if (pf_thread(x) == 0) {
            acc += total_2;
        }
    }
    double* const acc_parts = (double*)((char*)workspace + 64);
    acc = pf_total<128, pf_plus>(acc);
    if (pf_thread(x) == 0) {
        acc_parts[pf_block(x)] = acc;
    }
    if (!pf_is_last((uint32_t*)workspace)) return;
    acc = double();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 128) {
        acc = pf_plus::join(acc, acc_parts[block]);
    }
    acc = pf_total<128, pf_plus>(acc);
    if (pf_thread(x) == 0) *(double*)results = acc;
}

}  // namespace pf
