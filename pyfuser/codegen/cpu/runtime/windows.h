#pragma once

#include <stdint.h>

#include "wavefront.h"

// The memory of all windows: for each thread those it moves, and those around the cuts.
struct pf_storage {
    const pf_window* windows;
    int64_t count, wave;
    char* memory;
    int64_t share;  // bytes of one thread's windows

    static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
    pf_storage(pf_window* windows, int64_t count, int64_t wave, int64_t threads)
        : windows(windows), count(count), wave(wave), share(0) {
        int64_t cuts = 0;
        for (int64_t n = 0; n < count; ++n) {
            share += rounded(windows[n].bytes(wave));
            cuts += rounded(windows[n].edge_bytes() * (threads - 1));
        }
        memory = (char*)__builtin_malloc(threads * share + cuts + 64);
        char* at = aligned() + threads * share;
        for (int64_t n = 0; n < count; ++n) {
            windows[n].edges = at;
            at += rounded(windows[n].edge_bytes() * (threads - 1));
        }
    }
    ~pf_storage() { __builtin_free(memory); }
    pf_storage(const pf_storage&) = delete;
    char* aligned() const { return (char*)(((uintptr_t)memory + 63) / 64 * 64); }
    void of(int64_t thread, pf_window* mine) const {
        char* at = aligned() + thread * share;
        for (int64_t n = 0; n < count; ++n) {
            mine[n] = windows[n];
            mine[n].memory = at;
            at += rounded(mine[n].bytes(wave));
        }
    }
};
