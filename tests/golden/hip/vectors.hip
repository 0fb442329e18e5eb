// stencil
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
#define pf_get(words) (*(words))
#define pf_get_constant(words) (*(words))
#define pf_put(place, words) (*(place) = (words))
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

template <int bytes> struct pf_words {
    typedef unsigned int type __attribute__((ext_vector_type(4)));
};
template <> struct pf_words<8> { typedef unsigned int type __attribute__((ext_vector_type(2))); };
template <> struct pf_words<4> { typedef unsigned int type; };
template <> struct pf_words<2> { typedef unsigned short type; };

#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))

// Neighbouring elements, which are loaded and stored at once.
template <typename T, int lanes> struct alignas(lanes * sizeof(T)) pf_vector { T cell[lanes]; };

template <int lanes, typename T>
static __device__ inline pf_vector<T, lanes> pf_load(const T* first) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    const words all = pf_get((const words*)first);
    pf_vector<T, lanes> result;
    pf_copy(&result, &all, sizeof(words));
    return result;
}

// Of memory that the kernel does not write.
template <int lanes, typename T>
static __device__ inline pf_vector<T, lanes> pf_load_constant(const T* first) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    const words all = pf_get_constant((const words*)first);
    pf_vector<T, lanes> result;
    pf_copy(&result, &all, sizeof(words));
    return result;
}

template <int lanes, typename T>
static __device__ inline void pf_store(T* first, pf_vector<T, lanes> values) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    words all;
    pf_copy(&all, &values, sizeof(words));
    pf_put((words*)first, all);
}

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    const float* __restrict__ x,
    float* __restrict__ y
) {
    for (int64_t i = i_begin + pf_first(x); i < i_end; i += pf_step(x)) {
        y[i] = x[i - 1] + x[i] + (float)3 * x[i + 1];
    }
}

extern "C" __global__ void __launch_bounds__(256) pf_vectors(
    const int64_t i_begin,
    const int64_t i_end,
    const float* __restrict__ x,
    float* __restrict__ y
) {
    const int64_t i_first = i_begin - (((int64_t)((uint64_t)y / 4) + i_begin) & 3);
    for (int64_t i_group = i_first + 4 * pf_first(x); i_group < i_end; i_group += 4 * pf_step(x)) {
        if (i_begin <= i_group && i_group + 4 <= i_end) {
            pf_vector<float, 4> y_lanes;
            const pf_vector<float, 4> x_lanes = pf_load_constant<4>(&x[i_group]);
            #pragma unroll
            for (int lane = 0; lane < 4; ++lane) {
                const int64_t i = i_group + lane;
                (void)i;
                y_lanes.cell[lane] = (lane - 1 >= 0 ? x_lanes.cell[lane - 1] : x[i - 1]) + x_lanes.cell[lane] + (float)3 * (lane + 1 < 4 ? x_lanes.cell[lane + 1] : x[i + 1]);
            }
            pf_store(&y[i_group], y_lanes);
        } else {
            #pragma unroll 1
            for (int64_t i = i_group < i_begin ? i_begin : i_group; i < i_end && i < i_group + 4; ++i) {
                y[i] = x[i - 1] + x[i] + (float)3 * x[i + 1];
            }
        }
    }
}

}  // namespace pf
