#pragma once

#include "shared.h"

// The sum of the values of all threads before this one, and of the whole block. Pairs that are
// 1, 2, 4... threads apart are added (Hillis and Steele, 1986): the order is always the same.
template <int threads, typename T>
static PF_DEVICE inline T pf_before(T value, T& total) {
    T* const sum = pf_shared<threads, T>();
    const int me = pf_thread(x);
    sum[me] = value;
    pf_barrier();
    for (int apart = 1; apart < threads; apart *= 2) {
        T left = T();
        if (me >= apart) left = sum[me - apart];
        pf_barrier();
        if (me >= apart) sum[me] = (T)(left + sum[me]);
        pf_barrier();
    }
    const T before = me ? sum[me - 1] : T();
    total = sum[threads - 1];
    pf_barrier();  // before `sum` is used again
    return before;
}
