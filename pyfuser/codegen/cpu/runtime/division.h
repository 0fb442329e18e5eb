#pragma once

// A division of integers by 0 would end the process. A kernel cannot stop in the middle of its loops,
// so a quotient by 0 is 0, and the entry point returns an error in the end. The test is of divisions
// by the processor's instruction, which trap and take many times as long; those of 32 bits by way of
// doubles (quotient.h) do neither, and the test would keep them from vectors.
static int pf_zero;  // whether an integer was divided by 0

// Neither traps: not where b is 0, nor for the least number and -1.
template <typename T> static inline T pf_divided(T a, T b) {
    if (__builtin_expect(b == 0, 0)) {
        __atomic_store_n(&pf_zero, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if ((T)-1 < 0 && b == (T)-1) return 0 - a;
    return a / b;
}
template <typename T> static inline T pf_rest(T a, T b) {
    if (__builtin_expect(b == 0, 0)) {
        __atomic_store_n(&pf_zero, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if ((T)-1 < 0 && b == (T)-1) return 0;
    return a % b;
}
