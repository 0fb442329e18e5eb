#pragma once

template <typename T, typename F>
static PF_DEVICE inline T pf_atomic_64(T* cell, T value, F change) {
    uint64_t seen = *(volatile uint64_t*)cell, before;
    T old;
    do {
        before = seen;
        pf_copy(&old, &before, sizeof(T));
        const T next = change(old, value);
        uint64_t after;
        pf_copy(&after, &next, sizeof(T));
        seen = pf_exchange_64((uint64_t*)cell, before, after);
    } while (seen != before);
    return old;
}
