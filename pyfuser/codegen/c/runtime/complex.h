#pragma once

#include "magnitude.h"
#include "rounded.h"

template <typename T> struct PF_ALIGNED pf_complex {
    T re, im;
    pf_complex() = default;
    PF_DEVICE constexpr pf_complex(T re, T im = 0) : re(re), im(im) {}
    template <typename U> explicit PF_DEVICE constexpr pf_complex(pf_complex<U> z) : re(z.re), im(z.im) {}
    friend PF_DEVICE pf_complex operator-(pf_complex a) { return {-a.re, -a.im}; }
    friend PF_DEVICE pf_complex operator+(pf_complex a) { return a; }
    friend PF_DEVICE pf_complex operator+(pf_complex a, pf_complex b) { return {a.re + b.re, a.im + b.im}; }
    friend PF_DEVICE pf_complex operator-(pf_complex a, pf_complex b) { return {a.re - b.re, a.im - b.im}; }
    friend PF_DEVICE pf_complex operator*(pf_complex a, pf_complex b) {
        return {pf_rounded(a.re * b.re) - pf_rounded(a.im * b.im),
                pf_rounded(a.re * b.im) + pf_rounded(a.im * b.re)};
    }
    // Smith's algorithm (Communications of the ACM 5 (1962) 435), in double for both types.
    friend PF_DEVICE pf_complex operator/(pf_complex a, pf_complex b) {
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
    friend PF_DEVICE bool operator==(pf_complex a, pf_complex b) { return a.re == b.re && a.im == b.im; }
    friend PF_DEVICE bool operator!=(pf_complex a, pf_complex b) { return !(a == b); }
    PF_DEVICE pf_complex& operator+=(pf_complex b) { return *this = *this + b; }
    PF_DEVICE pf_complex& operator-=(pf_complex b) { return *this = *this - b; }
    PF_DEVICE pf_complex& operator*=(pf_complex b) { return *this = *this * b; }
    PF_DEVICE pf_complex& operator/=(pf_complex b) { return *this = *this / b; }
};
