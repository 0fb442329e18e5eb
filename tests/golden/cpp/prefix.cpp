// prefix
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
        : begin(begin), end(end), tiles((end - begin + 4096 - 1) / 4096),
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

    int64_t first(int64_t tile) const { return begin + tile * 4096; }
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

extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);

// How many threads the work is worth: one for every `grain` iterations.
static inline int64_t pf_team(int64_t threads, int64_t iterations, int64_t grain) {
    const int64_t worth = iterations / grain;
    return worth < 2 ? 1 : worth < threads ? worth : threads;
}

// This thread's share of [begin, end), in whole multiples of `unit`.
static inline void pf_share(int64_t& begin, int64_t& end, int64_t unit) {
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    int64_t size = (end - begin + parts - 1) / parts;
    size = (size + unit - 1) / unit * unit;
    const int64_t first = begin + part * size, last = first + size;
    begin = first < end ? first : end;
    end = last < end ? last : end;
}

template <bool last_2>
static __attribute__((noinline)) double pf_pass(
    int64_t begin,
    int64_t end,
    double acc,
    double* __restrict__ x) {
    for (int64_t i = begin; i < end; ++i) {
        acc += x[i];
        if (last_2) {
            x[i] = acc;
        }
    }
    return acc;
}

extern "C" int pf_kernel(const int64_t* slot, int64_t* results) {
    int64_t begin[] = {slot[1]}, end[] = {slot[2]};
    double* x = (double*)slot[3];
    if ((uintptr_t)x % alignof(double)) return 1;
    const int64_t threads = pf_team(slot[0], end[0] - begin[0], 18724);
    if (end[0] - begin[0] <= 4096) {
        *(double*)results = pf_pass<true>(begin[0], end[0], double(), x);
        return 0;
    }
    pf_chain<double> chain(begin[0], end[0], (double*)results);
    if (!chain.memory) return -1;
    #pragma omp parallel num_threads(threads)
    chain.run(true, [](int64_t, int64_t) {},
        [&](int64_t first, int64_t last) {
            return pf_pass<false>(first, last, double(), x);
        },
        [&](int64_t first, int64_t last, double start) {
            return pf_pass<true>(first, last, start, x);
        });
    return 0;
}
