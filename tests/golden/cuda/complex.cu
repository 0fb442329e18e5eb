// axpy

namespace pf {

typedef long int64_t;
#define pf_thread(axis) ((int)threadIdx.axis)
#define pf_block(axis) ((int64_t)blockIdx.axis)
#define pf_blocks(axis) ((int64_t)gridDim.axis)
#define pf_threads(axis) ((int64_t)blockDim.axis)
#define pf_rounded(product) (product)  // the compiler is told not to contract

#define pf_magnitude(x) ((x) < 0 ? -(x) : (x))

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

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    const pf_complex<double> a,
    const pf_complex<double>* __restrict__ x,
    pf_complex<double>* __restrict__ y
) {
    for (int64_t i = i_begin + pf_first(x); i < i_end; i += pf_step(x)) {
        y[i] += a * x[i];
    }
}

}  // namespace pf
