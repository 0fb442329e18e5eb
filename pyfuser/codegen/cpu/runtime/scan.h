#pragma once

#include <stdint.h>

// The tiles of a scan, which threads take in turn. A tile's total is known after a first pass over
// it; the last pass starts from the totals of all tiles before, added up in order. A thread makes
// it as soon as these are known, when the tile is hardly out of its cache (D. Merrill and
// M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016). It never waits
// for them, which would stop all threads when the system takes one off: it goes on with first
// passes, and what is left over is done after a barrier.
template <typename T> struct pf_chain {
    const int64_t begin, end, tiles;
    T* const result;
    char* const memory;
    T *total, *start;
    int64_t* later;  // the tile that a thread took next
    bool *ready, busy;
    int64_t next, known;  // the first tile that nobody took, and that has no start yet

    pf_chain(int64_t begin, int64_t end, T* result)
        : begin(begin), end(end), tiles((end - begin + PF_SCAN_TILE - 1) / PF_SCAN_TILE),
          result(result),
          memory((char*)__builtin_malloc(tiles * (2 * sizeof(T) + sizeof(int64_t) + 1))),
          busy(false), next(0), known(1) {
        if (!memory) return;
        total = (T*)memory;
        start = total + tiles;
        later = (int64_t*)(start + tiles);
        ready = (bool*)(later + tiles);
        __builtin_memset(ready, 0, tiles);
        start[0] = T();
    }
    ~pf_chain() { __builtin_free(memory); }

    int64_t first(int64_t tile) const { return begin + tile * PF_SCAN_TILE; }
    int64_t last(int64_t tile) const { return tile < tiles - 1 ? first(tile + 1) : end; }
    void advance() {
        if (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) return;
        int64_t tile = known;
        for (; tile < tiles && __atomic_load_n(ready + tile - 1, __ATOMIC_ACQUIRE); ++tile)
            start[tile] = start[tile - 1] + total[tile - 1];
        __atomic_store_n(&known, tile, __ATOMIC_RELEASE);
        __atomic_clear(&busy, __ATOMIC_RELEASE);
    }
    // One thread, whose sum runs on from tile to tile: `rest` does everything.
    template <typename Rest> void alone(Rest rest) {
        T sum = T();
        for (int64_t tile = 0; tile < tiles; ++tile) sum = rest(first(tile), last(tile), sum);
        *result = sum;
    }
    // What each thread does: `before` runs what comes before the scan over a tile, `pass` gives its
    // total, `rest` makes the last pass and runs what comes after it.
    template <typename Before, typename Pass, typename Rest>
    void run(bool at_once, Before before, Pass pass, Rest rest) {
        int64_t head = -1, tail = -1;  // the tiles that wait for their last pass
        const auto finish = [&](int64_t limit) {
            for (; head >= 0 && head < limit; head = later[head]) {
                const T sum = rest(first(head), last(head), start[head]);
                if (head == tiles - 1) *result = sum;
            }
        };
        for (int64_t tile; (tile = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < tiles;) {
            before(first(tile), last(tile));
            if (tile < tiles - 1) total[tile] = pass(first(tile), last(tile));
            later[tile] = -1;
            (head < 0 ? head : later[tail]) = tile;
            tail = tile;
            __atomic_store_n(ready + tile, true, __ATOMIC_RELEASE);
            if (!at_once) continue;
            advance();
            finish(__atomic_load_n(&known, __ATOMIC_ACQUIRE));
        }
        #pragma omp barrier
        #pragma omp single
        advance();
        finish(tiles);
    }
};
