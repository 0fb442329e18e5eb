#pragma once

// No instruction of all processors covers 16 bytes: one lock for all such cells of the kernel. It
// is taken and left within one trip, as threads of a warp may have to wait for each other.
static PF_DEVICE uint32_t pf_lock;

template <typename T, typename F>
static PF_DEVICE inline T pf_atomic_locked(T* cell, T value, F change) {
    T old = T();
    for (bool done = false; !done;) {
        if (pf_exchange_32(&pf_lock, 0u, 1u) == 0u) {
            pf_fence();
            old = *cell;
            *cell = change(old, value);
            pf_fence();
            pf_exchange_32(&pf_lock, 1u, 0u);
            done = true;
        }
    }
    return old;
}
