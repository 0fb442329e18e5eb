#pragma once

#include <stdint.h>

// Quotients by a number whose reciprocal is known, rounded as divisions round.
//
// With r the reciprocal of y and s what it lacks, each rounded, q = x r + x s has an error of a little
// more than half a unit in the last place: it is one of the two doubles around x / y. Then x - q y is
// a double, and q + (x - q y) r, rounded once, is x / y, correctly rounded: P. Markstein, "Computation
// of elementary functions on the IBM RISC System/6000 processor" (1990), theorem 7; for divisors that
// are known before: N. Brisebarre, J.-M. Muller and S. Raina, "Accelerating correctly rounded
// floating-point division when the divisor is known in advance" (2004).
//
// The proof wants no step to overflow or underflow. So the divisor must lie from 2^-100 to 2^100 (else
// r is no number, nor is then any quotient) and the quotient from 2^-800 to 2^800, or be the zero of a
// zero. A vector with any other quotient is divided. That takes a branch, which g++ does not make in
// vectors of loops: they call a function. It exists for the 64 bytes of AVX-512; in fewer lanes, and
// elsewhere, a division is one. So it is on processors whose divisions are fast: on a Zen 4
// vertical_diffusion took 1.07 times as long by reciprocals, on a Xeon 0.70.
//
// x / y where y is the same in all of a loop, before which g++ computes its reciprocal.
#if defined(PF_INTEL) && defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
typedef double pf_two __attribute__((vector_size(16)));
typedef double pf_four __attribute__((vector_size(32)));
typedef double pf_eight __attribute__((vector_size(64)));
typedef int64_t pf_words __attribute__((vector_size(64)));
extern "C" __attribute__((const, simd("notinbranch")))
double pf_by(double x, double y, double reciprocal, double rest);
#define PF_BY(T, name, prefix) \
    __attribute__((visibility("hidden"))) T name(T x, T y, T, T) __asm__(prefix "pf_by"); \
    T name(T x, T y, T, T) { return x / y; }
PF_BY(double, pf_by_1, "")
PF_BY(pf_two, pf_by_2, "_ZGVbN2vvvv_")
PF_BY(pf_four, pf_by_4, "_ZGVcN4vvvv_")
PF_BY(pf_four, pf_by_4_wide, "_ZGVdN4vvvv_")
static __attribute__((noinline)) pf_eight pf_divided_eight(pf_eight x, pf_eight y) { return x / y; }
__attribute__((visibility("hidden"))) pf_eight pf_by_8(pf_eight x, pf_eight y, pf_eight r,
                                                       pf_eight s) __asm__("_ZGVeN8vvvv_pf_by");
pf_eight pf_by_8(pf_eight x, pf_eight y, pf_eight r, pf_eight s) {
    enum { nearest = 4, not_equal = 4, not_at_most = 22, not_at_least = 25 };
    const pf_eight q = __builtin_ia32_vfmaddpd512_mask(x, r, x * s, -1, nearest);
    const pf_eight left = __builtin_ia32_vfmaddpd512_mask(-q, y, x, -1, nearest);
    const pf_eight value = __builtin_ia32_vfmaddpd512_mask(left, r, q, -1, nearest);
    const pf_eight zero = {}, least = zero + 0x1p-800, most = zero + 0x1p800;
    const pf_eight size = (pf_eight)((pf_words)value & INT64_MAX);
    unsigned char odd = __builtin_ia32_cmppd512_mask(size, least, not_at_least, -1, nearest);
    odd = __builtin_ia32_cmppd512_mask(x, zero, not_equal, odd, nearest);
    odd |= __builtin_ia32_cmppd512_mask(size, most, not_at_most, -1, nearest);
    if (__builtin_expect(odd, 0)) return pf_divided_eight(x, y);
    const pf_words sign = ((pf_words)x ^ (pf_words)r) & INT64_MIN;
    return (pf_eight)((pf_words)value | sign);  // zeros may have lost it in the sums
}
static inline double pf_over(double x, double y) {
    const double inverse = 1.0 / y;
    int64_t bits, word;
    __builtin_memcpy(&bits, &y, sizeof y);
    __builtin_memcpy(&word, &inverse, sizeof inverse);
    const uint64_t above = (uint64_t)(bits & INT64_MAX) - ((uint64_t)(1023 - 100) << 52);
    word |= -(int64_t)(above > (uint64_t)200 << 52);
    double reciprocal;
    __builtin_memcpy(&reciprocal, &word, sizeof word);
    const double rest = __builtin_fma(-y, reciprocal, 1.0) * reciprocal;
    return pf_by(x, y, reciprocal, rest);
}
#else
static inline double pf_over(double x, double y) { return x / y; }
#endif
