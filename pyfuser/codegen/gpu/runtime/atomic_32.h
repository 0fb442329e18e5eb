#pragma once

template <typename T, typename F>
static PF_DEVICE inline T pf_atomic_32(T* cell, T value, F change) {
    uint32_t seen = *(volatile uint32_t*)cell, before;
    T old;
    do {
        before = seen;
        pf_copy(&old, &before, sizeof(T));
        const T next = change(old, value);
        uint32_t after;
        pf_copy(&after, &next, sizeof(T));
        seen = pf_exchange_32((uint32_t*)cell, before, after);
    } while (seen != before);
    return old;
}
