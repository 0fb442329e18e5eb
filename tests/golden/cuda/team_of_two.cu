// row_of_scratch

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

static __device__ inline uint32_t pf_atomic_add_u32(uint32_t* cell, uint32_t value) {
    return (uint32_t)atomicAdd((unsigned int*)cell, (unsigned int)value);
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
        __shared__ int32_t mine[2];
        for (int64_t k = pf_thread(x); k < 2; k += 128) mine[k] = int32_t();
        const int64_t row_extent0 = pf_length(n);
        const int64_t row_extent1 = pf_length(2);
        const int64_t row_stride0 = row_extent1;
        double* const row = (double*)(pf_dynamic + 0);
        for (int64_t k_2 = pf_thread(x); k_2 < row_extent0 * row_extent1; k_2 += 128) row[k_2] = double();
        pf_barrier();
        const int64_t team_rank_stop = 2L;
        for (int64_t team_rank = pf_thread(x); team_rank < team_rank_stop; team_rank += 128) {
            mine[team_rank] = pf_add_i32((int32_t)team_rank, 1);
        }
        const int64_t i_stop = n;
        for (int64_t i_wide = pf_thread(x); i_wide < i_stop; i_wide += 128) {
            const int32_t i = (int32_t)i_wide;
            row[(int64_t)i * row_stride0] = x[league_rank * x_stride0 + (int64_t)i];
        }
        double total = 0.0;
        pf_barrier();
        double total_part{};
        const int64_t team_rank_2_stop = 2L;
        for (int64_t team_rank_2 = pf_group(); team_rank_2 < team_rank_2_stop; team_rank_2 += 4) {
            const int64_t chunk = pf_add_i64((int64_t)n, 1L) / 2;
            const int64_t first = pf_mul_i64((int64_t)(int32_t)team_rank_2, chunk);
            const int64_t last = pf_add_i64(first, chunk) < (int64_t)n ? pf_add_i64(first, chunk) : (int64_t)n;
            const int64_t i_2_stop = last;
            for (int64_t i_2_wide = (int64_t)((int32_t)(first < (int64_t)n ? first : (int64_t)n)) + pf_lane(); i_2_wide < i_2_stop; i_2_wide += 32) {
                const int32_t i_2 = (int32_t)i_2_wide;
                total_part += row[(int64_t)i_2 * row_stride0] * (double)mine[team_rank_2];
            }
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
