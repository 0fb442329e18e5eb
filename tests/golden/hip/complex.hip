// axpy
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

typedef long int64_t;
#define pf_thread(axis) ((int)__builtin_amdgcn_workitem_id_##axis())
#define pf_block(axis) ((int64_t)__builtin_amdgcn_workgroup_id_##axis())
#define pf_rounded(product) (product)  // the compiler is told not to contract

#define pf_number_x 0
#define pf_number_y 1
#define pf_number_z 2

extern "C" __device__ __attribute__((const)) unsigned long __ockl_get_num_groups(unsigned int);
#define pf_blocks(axis) ((int64_t)__ockl_get_num_groups(pf_number_##axis))

extern "C" __device__ __attribute__((const)) unsigned long __ockl_get_local_size(unsigned int);
#define pf_threads(axis) ((int64_t)__ockl_get_local_size(pf_number_##axis))

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
