// dot_of_rows

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

// Iterations of a box, every `step`-th one from number `first` on. An iteration's number has one
// digit for each axis, the last one fastest; stepping adds digits, as divisions are slow.
template <int rank> struct pf_walk {
    int64_t digit[rank], move[rank], begin[rank], extent[rank], count;
    __device__ pf_walk(const int64_t (&from)[rank], const int64_t (&to)[rank], int64_t first,
                       int64_t step) : count(1) {
        for (int axis = 0; axis < rank; ++axis) {
            begin[axis] = from[axis];
            extent[axis] = to[axis] > from[axis] ? to[axis] - from[axis] : 0;
            count *= extent[axis];
        }
        if (!count) return;
        for (int axis = rank - 1; axis >= 0; --axis) {
            digit[axis] = axis ? first % extent[axis] : first;
            move[axis] = axis ? step % extent[axis] : step;
            first /= extent[axis];
            step /= extent[axis];
        }
    }
    __device__ bool more() const { return count && digit[0] < extent[0]; }
    __device__ int64_t index(int axis) const { return begin[axis] + digit[axis]; }
    __device__ void next() {
        for (int axis = rank - 1; axis >= 0; --axis) {
            digit[axis] += move[axis];
            if (axis && digit[axis] >= extent[axis]) {
                digit[axis] -= extent[axis];
                ++digit[axis - 1];
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t j_begin,
    const int64_t i_end,
    const int64_t j_end,
    const double* __restrict__ x,
    const int64_t x_stride0,
    double* __restrict__ y,
    void* const workspace,
    int64_t* const results
) {
    double acc{};
    const int64_t place_begin[] = {i_begin, j_begin}, place_end[] = {i_end, j_end};
    for (pf_walk<2> place(place_begin, place_end, pf_first(x), pf_step(x)); place.more(); place.next()) {
        const int64_t i = place.index(0);
        const int64_t j = place.index(1);
        y[i * x_stride0 + j] = 0.0;
        acc += x[i * x_stride0 + j] * x[i * x_stride0 + j];
    }
    double* const acc_parts = (double*)((char*)workspace + 64);
    acc = pf_total<256, pf_plus>(acc);
    if (pf_thread(x) == 0) {
        acc_parts[pf_block(x)] = acc;
    }
    if (!pf_is_last((uint32_t*)workspace)) return;
    acc = double();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc = pf_plus::join(acc, acc_parts[block]);
    }
    acc = pf_total<256, pf_plus>(acc);
    if (pf_thread(x) == 0) *(double*)results = acc;
}

}  // namespace pf
