#pragma once

template <typename T, typename F> static inline T pf_atomic(T* cell, T value, F change) {
    T old, next;
    __atomic_load(cell, &old, __ATOMIC_RELAXED);
    do {
        next = change(old, value);
        if (!__builtin_memcmp(&next, &old, sizeof(T))) break;  // most minima change nothing
    } while (!__atomic_compare_exchange(cell, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
