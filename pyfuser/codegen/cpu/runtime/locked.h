#pragma once

// No processor instruction covers 16 bytes portably: one lock for all such cells of the kernel.
template <typename T, typename F> static inline T pf_locked(T* cell, T value, F change) {
    static bool lock;
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {}
    const T old = *cell;
    *cell = change(old, value);
    __atomic_clear(&lock, __ATOMIC_RELEASE);
    return old;
}
