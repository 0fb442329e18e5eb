// several

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

#define pf_magnitude(x) ((x) < 0 ? -(x) : (x))

#define pf_rounded(product) (product)  // the compiler is told not to contract

template <typename T> struct alignas(2 * sizeof(T)) pf_complex {
    T re, im;
    pf_complex() = default;
    __device__ constexpr pf_complex(T re, T im = 0) : re(re), im(im) {}
    template <typename U> explicit __device__ constexpr pf_complex(pf_complex<U> z) : re(z.re), im(z.im) {}
    friend __device__ pf_complex operator-(pf_complex a) { return {-a.re, -a.im}; }
    friend __device__ pf_complex operator+(pf_complex a) { return a; }
    friend __device__ pf_complex operator+(pf_complex a, pf_complex b) { return {a.re + b.re, a.im + b.im}; }
    friend __device__ pf_complex operator-(pf_complex a, pf_complex b) { return {a.re - b.re, a.im - b.im}; }
    friend __device__ pf_complex operator*(pf_complex a, pf_complex b) {
        return {pf_rounded(a.re * b.re) - pf_rounded(a.im * b.im),
                pf_rounded(a.re * b.im) + pf_rounded(a.im * b.re)};
    }
    // Smith's algorithm (Communications of the ACM 5 (1962) 435), in double for both types.
    friend __device__ pf_complex operator/(pf_complex a, pf_complex b) {
        const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
        if (pf_magnitude(br) >= pf_magnitude(bi)) {
            const double ratio = bi / br, scale = br + pf_rounded(bi * ratio);
            return {(T)((ar + pf_rounded(ai * ratio)) / scale),
                    (T)((ai - pf_rounded(ar * ratio)) / scale)};
        }
        const double ratio = br / bi, scale = pf_rounded(br * ratio) + bi;
        return {(T)((pf_rounded(ar * ratio) + ai) / scale),
                (T)((pf_rounded(ai * ratio) - ar) / scale)};
    }
    friend __device__ bool operator==(pf_complex a, pf_complex b) { return a.re == b.re && a.im == b.im; }
    friend __device__ bool operator!=(pf_complex a, pf_complex b) { return !(a == b); }
    __device__ pf_complex& operator+=(pf_complex b) { return *this = *this + b; }
    __device__ pf_complex& operator-=(pf_complex b) { return *this = *this - b; }
    __device__ pf_complex& operator*=(pf_complex b) { return *this = *this * b; }
    __device__ pf_complex& operator/=(pf_complex b) { return *this = *this / b; }
};

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

template <typename T> static __device__ inline T pf_min(T a, T b) { return b < a ? b : a; }
template <typename T> static __device__ inline T pf_max(T a, T b) { return a < b ? b : a; }

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
static __device__ __attribute__((noinline)) T pf_total(T value) {
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
    const double* __restrict__ x,
    const double* __restrict__ x_2,
    const int32_t* __restrict__ x_3,
    const double* __restrict__ x_4,
    const pf_complex<double>* __restrict__ x_5,
    const int16_t* __restrict__ x_6,
    const double* __restrict__ x_7,
    void* const workspace,
    int64_t* const results
) {
    double acc{};
    double acc_2{};
    int32_t acc_3{};
    double acc_4{};
    pf_complex<double> acc_5{};
    int16_t acc_6{};
    double acc_7{};
    for (int64_t i = i_begin + pf_first(x); i < i_end; i += pf_step(x)) {
        acc += x[i];
        acc_2 = pf_max<double>(acc_2, x_2[i]);
        acc_3 = pf_min<int32_t>(acc_3, x_3[i]);
        acc_4 -= x_4[i];
        acc_5 += x_5[i];
        acc_6 = (int16_t)pf_add_i32(acc_6, x_6[i]);
        acc_7 += x_7[i];
    }
    double* const acc_parts = (double*)((char*)workspace + 64);
    acc = pf_total<256, pf_plus>(acc);
    double* const acc_2_parts = (double*)((char*)workspace + 64 + 16 * pf_blocks(x));
    acc_2 = pf_total<256, pf_most>(acc_2);
    int32_t* const acc_3_parts = (int32_t*)((char*)workspace + 64 + 32 * pf_blocks(x));
    acc_3 = pf_total<256, pf_least>(acc_3);
    double* const acc_4_parts = (double*)((char*)workspace + 64 + 48 * pf_blocks(x));
    acc_4 = pf_total<256, pf_plus>(acc_4);
    pf_complex<double>* const acc_5_parts = (pf_complex<double>*)((char*)workspace + 64 + 64 * pf_blocks(x));
    acc_5 = pf_total<256, pf_plus>(acc_5);
    int16_t* const acc_6_parts = (int16_t*)((char*)workspace + 64 + 80 * pf_blocks(x));
    acc_6 = pf_total<256, pf_plus>(acc_6);
    double* const acc_7_parts = (double*)((char*)workspace + 64 + 96 * pf_blocks(x));
    acc_7 = pf_total<256, pf_plus>(acc_7);
    if (pf_thread(x) == 0) {
        acc_parts[pf_block(x)] = acc;
        acc_2_parts[pf_block(x)] = acc_2;
        acc_3_parts[pf_block(x)] = acc_3;
        acc_4_parts[pf_block(x)] = acc_4;
        acc_5_parts[pf_block(x)] = acc_5;
        acc_6_parts[pf_block(x)] = acc_6;
        acc_7_parts[pf_block(x)] = acc_7;
    }
    if (!pf_is_last((uint32_t*)workspace)) return;
    acc = double();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc = pf_plus::join(acc, acc_parts[block]);
    }
    acc = pf_total<256, pf_plus>(acc);
    if (pf_thread(x) == 0) *(double*)results = acc;
    acc_2 = double();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc_2 = pf_most::join(acc_2, acc_2_parts[block]);
    }
    acc_2 = pf_total<256, pf_most>(acc_2);
    if (pf_thread(x) == 0) *(double*)(results + 2) = acc_2;
    acc_3 = int32_t();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc_3 = pf_least::join(acc_3, acc_3_parts[block]);
    }
    acc_3 = pf_total<256, pf_least>(acc_3);
    if (pf_thread(x) == 0) *(int32_t*)(results + 4) = acc_3;
    acc_4 = double();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc_4 = pf_plus::join(acc_4, acc_4_parts[block]);
    }
    acc_4 = pf_total<256, pf_plus>(acc_4);
    if (pf_thread(x) == 0) *(double*)(results + 6) = acc_4;
    acc_5 = pf_complex<double>();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc_5 = pf_plus::join(acc_5, acc_5_parts[block]);
    }
    acc_5 = pf_total<256, pf_plus>(acc_5);
    if (pf_thread(x) == 0) *(pf_complex<double>*)(results + 8) = acc_5;
    acc_6 = int16_t();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc_6 = pf_plus::join(acc_6, acc_6_parts[block]);
    }
    acc_6 = pf_total<256, pf_plus>(acc_6);
    if (pf_thread(x) == 0) *(int16_t*)(results + 10) = acc_6;
    acc_7 = double();
    for (int64_t block = pf_thread(x); block < pf_blocks(x); block += 256) {
        acc_7 = pf_plus::join(acc_7, acc_7_parts[block]);
    }
    acc_7 = pf_total<256, pf_plus>(acc_7);
    if (pf_thread(x) == 0) *(double*)(results + 12) = acc_7;
}

}  // namespace pf
