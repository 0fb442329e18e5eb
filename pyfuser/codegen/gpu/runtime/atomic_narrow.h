#pragma once

// Cells of one or two bytes change together with the other bytes of their word.
template <typename T, typename F>
static PF_DEVICE inline T pf_atomic_narrow(T* cell, T value, F change) {
    uint32_t* const word = (uint32_t*)((uint64_t)cell & ~(uint64_t)3);
    const int shift = 8 * (int)((uint64_t)cell & 3);
    const uint32_t mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    uint32_t seen = *(volatile uint32_t*)word, before;
    T old;
    do {
        before = seen;
        uint32_t bits = (before & mask) >> shift;
        pf_copy(&old, &bits, sizeof(T));
        const T next = change(old, value);
        bits = 0;
        pf_copy(&bits, &next, sizeof(T));
        seen = pf_exchange_32(word, before, (before & ~mask) | (bits << shift));
    } while (seen != before);
    return old;
}
