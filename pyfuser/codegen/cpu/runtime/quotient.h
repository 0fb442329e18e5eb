#pragma once

// 32-bit integer division by way of doubles, in vectors: of a loop's invariant divisor there is one
// reciprocal. It is exact: |a| + 1/2 is no multiple of b, its quotient is at least 1/(2 |b|) away
// from every integer, and two roundings move that by less than 2^-19 / |b|.
template <typename T> static inline T pf_quotient(T a, T b) {
    return (T)((a + __builtin_copysign(0.5, (double)a)) * (1.0 / b));
}
template <typename T> static inline T pf_remainder(T a, T b) { return a - pf_quotient(a, b) * b; }
