// sweep of smooth, dot_of_neighbours
#include <stdint.h>

static inline int64_t pf_extent(int64_t begin, int64_t end) {
    return end > begin ? end - begin : 0;
}

// A sum whose order of additions depends on the number of terms only: not on the threads, not on
// the vector registers, not on what else the loop computes. Four 64-byte vectors of running sums
// take the terms in turn and are added in halves at the end. Where registers are narrower, a vector
// is two of half its size: g++ would move one through memory, 8 or 16 bytes at a time.
template <typename T, int bytes> struct pf_wide {
    struct vector {
        typename pf_wide<T, bytes / 2>::vector low, high;
        __attribute__((always_inline)) inline void operator+=(const vector& other) {
            low += other.low;
            high += other.high;
        }
    };
};
template <typename T> struct pf_wide<T, 64> {
    typedef T vector __attribute__((vector_size(64)));
};
template <typename T, int block, int width = 1> struct pf_sum {
    typedef typename pf_wide<T, 64>::vector vector;
    static constexpr int64_t lanes = 4 * 64 / sizeof(T);
    static constexpr int64_t room = block * width > lanes ? block * width : lanes;
    vector sum[4] = {};
    alignas(64) T term[room];

    __attribute__((always_inline)) inline void add(int64_t count) {
        for (int64_t k = count * width; k % lanes; ++k) term[k] = 0;
        for (int64_t k = 0; k < count * width; k += lanes) {
            const vector* next = (const vector*)(term + k);
            for (int v = 0; v < 4; ++v) sum[v] += next[v];
        }
    }
    __attribute__((noinline)) void rest(int64_t count) { add(count); }
    const T* total() {
        T* lane = (T*)sum;
        int64_t half = lanes / 2;
        if (width <= lanes / 4) {  // as below, vector by vector
            sum[0] += sum[2];
            sum[1] += sum[3];
            sum[0] += sum[1];
            half = lanes / 8;
        }
        #pragma GCC unroll 8
        for (; half >= width; half /= 2)
            for (int64_t k = 0; k < half; ++k) lane[k] += lane[k + half];
        return lane;
    }
};

// How an iteration space is cut into tiles: several rows each, or parts of one row. It depends on
// the number of iterations alone, so a result does not change with the threads or the body.
struct pf_tiling {
    int64_t rows, columns, tile_rows, tile_columns, across, count;
    pf_tiling(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
        if (rows <= 0 || columns <= 0) { count = across = 0; return; }
        int64_t size = (rows * columns + 64 - 1) / 64;
        size = (size + 256 - 1) / 256 * 256;
        if (size > 4096) size = 4096;
        tile_columns = columns < size ? columns : size;
        tile_rows = columns < size ? size / columns : 1;
        across = (columns + tile_columns - 1) / tile_columns;
        count = (rows + tile_rows - 1) / tile_rows * across;
    }
    void box(int64_t tile, int64_t& row, int64_t& row_end, int64_t& column,
             int64_t& column_end) const {
        row = tile / across * tile_rows;
        row_end = row + tile_rows < rows ? row + tile_rows : rows;
        column = tile % across * tile_columns;
        column_end = column + tile_columns < columns ? column + tile_columns : columns;
    }
};

// The partial results of a reduction that a sweep runs: of each tile its sum, or its terms.
template <typename T, int block, int width> struct pf_parts {
    T* sum = 0;
    T** terms = 0;

    bool open(int64_t count) {
        sum = (T*)__builtin_calloc(count * width, sizeof(T));
        terms = (T**)__builtin_calloc(count, sizeof(T*));
        return sum && terms;
    }
    static int64_t size(const pf_tiling& tiling, int64_t tile) {
        int64_t row, row_end, column, column_end;
        tiling.box(tile, row, row_end, column, column_end);
        return (row_end - row) * (column_end - column);
    }
    bool keep(const pf_tiling& tiling, int64_t tile) {
        if (!terms[tile])
            terms[tile] = (T*)__builtin_malloc(size(tiling, tile) * width * sizeof(T));
        return terms[tile];
    }
    void add(const T* from, int64_t count, T* total) {
        pf_sum<T, block, width> running;
        for (int64_t at = 0; at < count; at += block) {
            const int64_t some = count - at < block ? count - at : block;
            __builtin_memcpy(running.term, from + at * width, some * width * sizeof(T));
            running.add(some);
        }
        __builtin_memcpy(total, running.total(), width * sizeof(T));
    }
    // The result, if everything has run; frees the memory.
    void close(const pf_tiling& tiling, bool complete, int64_t* result) {
        T total[width] = {};
        for (int64_t tile = 0; tile < tiling.count && complete; ++tile) {
            T* part = sum + tile * width;
            if (terms[tile]) add(terms[tile], size(tiling, tile), part);
            for (int k = 0; k < width; ++k) total[k] += part[k];
        }
        if (complete) __builtin_memcpy(result, total, sizeof(total));
        for (int64_t tile = 0; terms && tile < tiling.count; ++tile) __builtin_free(terms[tile]);
        __builtin_free(terms);
        __builtin_free(sum);
    }
};

// Where a part of so many iterations begins, of parts that threads take in turn: whole vectors, if
// there are enough for all threads.
static inline int64_t pf_cut(int64_t size, int64_t part, int64_t parts, int64_t threads) {
    const int64_t unit = size < 8 * threads ? 1 : 8;
    const int64_t at = (size * part / parts + unit - 1) / unit * unit;
    return at < size ? at : size;
}

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

// One loop of a sweep: it runs over steps of its outermost axis, `lag` behind the front.
struct pf_stage {
    void (*run)(const int64_t* slot, void* state, int64_t first, int64_t last);
    const int64_t* slot;
    int64_t lag, ahead, begin, end;
};

// A view of which a thread keeps only the steps that its loops still read (see `plan.Rolling`).
struct pf_rolling {
    int64_t step, oldest, made, begun, until;
};

// What a thread has of a rolling view: the steps of some waves, from `start` on, and those around
// the cuts, which it shares with its neighbours. `places` are the slots of its address, up to a
// zero. When the memory is full, the steps that later waves use move to its beginning; they are
// half of what the waves in between made, or less.
struct pf_window {
    pf_rolling view;
    const int* places;
    char *memory, *edges;
    int64_t start;

    int64_t kept() const { return view.made - view.oldest; }
    int64_t waves(int64_t wave) const { return kept() ? (2 * kept() - 1) / wave + 1 : 1; }
    int64_t steps(int64_t wave) const { return kept() + waves(wave) * wave; }
    int64_t bytes(int64_t wave) const { return steps(wave) * view.step; }
    int64_t edge_bytes() const { return (view.until - view.oldest) * view.step; }
    char* edge(int64_t cut) const { return edges + (cut - 1) * edge_bytes(); }
    void point(int64_t* slots, char* at, int64_t step) const {
        for (const int* place = places; *place; ++place)
            slots[*place] = (int64_t)at - step * view.step;
    }
    // Make room for the steps of the next wave, keeping those before.
    void advance(int64_t* slots, int64_t before, int64_t wave, bool again) {
        const int64_t oldest = before + view.oldest;
        if (again && before + wave + view.made <= start + steps(wave)) return;
        if (again)
            __builtin_memmove(memory, memory + (oldest - start) * view.step, kept() * view.step);
        start = oldest;
        point(slots, memory, start);
    }
    // Copy the steps from first to last, as far as they lie around the cut at `step`.
    void save(int64_t first, int64_t last, char* edge, int64_t step) const {
        if (first < step + view.oldest) first = step + view.oldest;
        if (last > step + view.until) last = step + view.until;
        if (first < last)
            __builtin_memcpy(edge + (first - step - view.oldest) * view.step,
                             memory + (first - start) * view.step,
                             (last - first) * view.step);
    }
};

// `wave`: negative where the axis is a ring, whose end meets its beginning. The first share then
// has a neighbour, too, the last one, and what lies around the end runs as what lies around a cut.
struct pf_schedule {
    const pf_stage* stages;
    int64_t count, wave, low, high, lag, ahead;
    bool ring;

    pf_schedule(const pf_stage* stages, int64_t count, int64_t wave)
        : stages(stages), count(count), wave(wave < 0 ? -wave : wave), low(stages->begin),
          high(stages->end), lag(0), ahead(0), ring(wave < 0) {
        for (const pf_stage* s = stages; s < stages + count; ++s) {
            if (s->begin < low) low = s->begin;
            if (s->end > high) high = s->end;
            if (s->lag > lag) lag = s->lag;
            if (s->ahead > ahead) ahead = s->ahead;
        }
    }
    // How many threads can have a share: what runs between shares must not meet.
    int64_t parts(int64_t threads) const {
        const int64_t most = (high - low) / (2 * (lag + ahead) + 1);
        return most < 1 ? 1 : most < threads ? most : threads;
    }
    // Where share number `part` begins, and the one before ends.
    int64_t cut(int64_t part, int64_t parts) const {
        return low + (high - low) / parts * part + (high - low) % parts * part / parts;
    }
    void share(int64_t part, int64_t parts, void* const* states, int64_t* slots,
               pf_window* windows, int rolling) const {
        const int64_t first = cut(part, parts), last = cut(part + 1, parts);
        const bool left = ring || part > 0, right = ring || part + 1 < parts;
        for (int64_t front = first; front < last + (right ? 0 : lag);) {
            const int64_t before = front;
            front += wave;
            for (int n = 0; n < rolling; ++n)
                windows[n].advance(slots, before, wave, before != first);
            for (int64_t k = 0; k < count; ++k) {
                const pf_stage& s = stages[k];
                const int64_t from = left ? first + s.ahead : s.begin;
                const int64_t until = right ? last - s.lag : s.end;
                run(k, states, latest(from, before - s.lag), earliest(until, front - s.lag));
            }
            for (int n = 0; n < rolling; ++n) {
                const pf_window& w = windows[n];
                int64_t old = before + w.view.oldest, now = front + w.view.made;
                if (left) old = latest(old, first + w.view.begun);
                if (right) now = earliest(now, last + w.view.made);
                if (left) w.save(old, now, w.edge(part), first);
                if (right) w.save(old, now, w.edge(part + 1), last);
            }
        }
    }
    // The steps around the beginning of share number `part` that neither thread has run.
    void between(int64_t part, int64_t parts, void* const* states, int64_t* slots,
                 const pf_window* windows, int rolling) const {
        if (part >= parts) {
            for (int64_t k = 0; k < count && ring; ++k) {
                run(k, states, high - stages[k].lag, high);
                run(k, states, low, low + stages[k].ahead);
            }
            return;
        }
        const int64_t step = cut(part, parts);
        for (int n = 0; n < rolling; ++n)
            windows[n].point(slots, windows[n].edge(part), step + windows[n].view.oldest);
        for (int64_t k = 0; k < count; ++k)
            run(k, states, step - stages[k].lag, step + stages[k].ahead);
    }

private:
    static int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }
    static int64_t earliest(int64_t a, int64_t b) { return a < b ? a : b; }
    void run(int64_t k, void* const* states, int64_t first, int64_t last) const {
        const pf_stage& s = stages[k];
        first = latest(first, s.begin);
        last = earliest(last, s.end);
        if (first < last) s.run(s.slot, states[k], first, last);
    }
};

namespace pf_stage0 {

static __attribute__((noinline)) void pf_loop(
    int64_t begin,
    int64_t end,
    const double* __restrict__ x,
    double* __restrict__ y) {
    #pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
        y[i] = x[i - 1] + x[i + 1] - x[i];
    }
}

static __attribute__((noinline)) void run(
    const int64_t* slot,
    void*,
    int64_t first,
    int64_t last) {
    const double* x = (const double*)slot[3];
    double* y = (double*)slot[4];
    pf_loop(first, last, x, y);
}

static __attribute__((noinline)) int misaligned(const int64_t* slot) {
    const double* x = (const double*)slot[3];
    double* y = (double*)slot[4];
    if ((uintptr_t)x % alignof(double)) return 1;
    if ((uintptr_t)y % alignof(double)) return 2;
    return 0;
}

}  // namespace pf_stage0

namespace pf_stage1 {

static inline __attribute__((always_inline)) void pf_terms(
    int64_t at,
    int64_t count,
    double* acc_terms,
    const double* __restrict__ y,
    const double* __restrict__ z) {
    #pragma GCC ivdep
    for (int64_t step = 0; step < count; ++step) {
        const int64_t i = at + step;
        acc_terms[step] = y[i - 1] * z[i + 1];
    }
}

struct pf_running {
    pf_sum<double, 32> acc_sum;
    int64_t filled = 0;  // terms of the block that is not complete
    __attribute__((always_inline)) inline void done(double* acc_partial) {
        acc_sum.add(filled);
        *acc_partial = *(const double*)acc_sum.total();
    }
};

static __attribute__((noinline)) void pf_run(
    pf_running& running,
    int64_t at,
    int64_t count,
    const double* __restrict__ y,
    const double* __restrict__ z) {
    {
        pf_sum<double, 32>::vector acc_sum_0 = running.acc_sum.sum[0];
        pf_sum<double, 32>::vector acc_sum_1 = running.acc_sum.sum[1];
        pf_sum<double, 32>::vector acc_sum_2 = running.acc_sum.sum[2];
        pf_sum<double, 32>::vector acc_sum_3 = running.acc_sum.sum[3];
        for (int64_t done = 0; done < count; done += 32) {
            alignas(64) double acc_terms[32];
            #pragma GCC ivdep
            for (int64_t step = 0; step < 32; ++step) {
                const int64_t i = at + done + step;
                acc_terms[step] = y[i - 1] * z[i + 1];
            }
            acc_sum_0 += ((const pf_sum<double, 32>::vector*)acc_terms)[0];
            acc_sum_1 += ((const pf_sum<double, 32>::vector*)acc_terms)[1];
            acc_sum_2 += ((const pf_sum<double, 32>::vector*)acc_terms)[2];
            acc_sum_3 += ((const pf_sum<double, 32>::vector*)acc_terms)[3];
        }
        running.acc_sum.sum[0] = acc_sum_0;
        running.acc_sum.sum[1] = acc_sum_1;
        running.acc_sum.sum[2] = acc_sum_2;
        running.acc_sum.sum[3] = acc_sum_3;
    }
}

static inline __attribute__((always_inline)) void pf_more(
    pf_running& running,
    int64_t column,
    int64_t column_end,
    const double* __restrict__ y,
    const double* __restrict__ z) {
    for (int64_t at = column; at < column_end;) {
        const int64_t left = column_end - at, space = 32 - running.filled;
        if (left >= 32 && space == 32) {
            const int64_t run = left < 4096 ? left & -32 : 4096;
            pf_run(running, at, run, y, z);
            at += run;
            continue;
        }
        const int64_t count = left < space ? left : space;
        pf_terms(at, count, running.acc_sum.term + running.filled, y, z);
        at += count;
        running.filled += count;
        if (running.filled == 32) {
            running.acc_sum.add(32);
            running.filled = 0;
        }
    }
}

static __attribute__((noinline)) void pf_spill(
    int64_t column,
    int64_t column_end,
    double* acc_terms,
    const double* __restrict__ y,
    const double* __restrict__ z) {
    for (int64_t at = column; at < column_end;) {
        const int64_t left = column_end - at;
        const int64_t count = left < 32 ? left : 32;
        pf_terms(at, count, acc_terms, y, z);
        acc_terms += count;
        at += count;
    }
}

struct pf_fold {
    pf_tiling tiling{0, 0};
    pf_parts<double, 32, 1> acc_partial;
    bool open(const int64_t* slot) {
        tiling = pf_tiling(1, pf_extent(slot[1], slot[2]));
        return acc_partial.open(tiling.count);
    }
    // Keep the terms of all tiles that the steps from first to last are in, or cut.
    bool keep(const int64_t* slot, int64_t first, int64_t last) {
        first = first > slot[1] ? (first - slot[1]) * 1 / tiling.tile_columns : 0;
        last = last - slot[1] < tiling.columns ? ((last - slot[1]) * 1 + tiling.tile_columns - 1) / tiling.tile_columns : tiling.count;
        bool enough = true;
        for (int64_t tile = first; tile < last && enough; ++tile)
            enough = acc_partial.keep(tiling, tile);
        return enough;
    }
    void close(bool complete, int64_t* results) {
        acc_partial.close(tiling, complete, results + 0);
    }
};

struct pf_state {
    pf_fold* common;
    pf_running running;
};

static __attribute__((noinline)) void run(
    const int64_t* slot,
    void* state,
    int64_t first,
    int64_t last) {
    const double* y = (const double*)slot[3];
    const double* z = (const double*)slot[4];
    pf_running& pf_sums = ((pf_state*)state)->running;
    pf_fold& pf_all = *((pf_state*)state)->common;
    const pf_tiling& pf_tiles = pf_all.tiling;
    int64_t row, row_end, column, column_end;
    for (int64_t pf_at = first - slot[1]; pf_at < last - slot[1];) {
        const int64_t tile = pf_at / pf_tiles.tile_columns;
        pf_tiles.box(tile, row, row_end, column, column_end);
        const int64_t pf_stop = last - slot[1] < column_end ? last - slot[1] : column_end;
        if (pf_all.acc_partial.terms[tile]) {
            pf_spill(slot[1] + pf_at, slot[1] + pf_stop, pf_all.acc_partial.terms[tile] + (pf_at - column), y, z);
        } else {
            if (pf_at == column) pf_sums = pf_running();
            pf_more(pf_sums, slot[1] + pf_at, slot[1] + pf_stop, y, z);
            if (pf_stop == column_end) pf_sums.done((double*)(pf_all.acc_partial.sum + tile));
        }
        pf_at = pf_stop;
    }
}

static __attribute__((noinline)) int misaligned(const int64_t* slot) {
    const double* y = (const double*)slot[3];
    const double* z = (const double*)slot[4];
    if ((uintptr_t)y % alignof(double)) return 1;
    if ((uintptr_t)z % alignof(double)) return 2;
    return 0;
}

}  // namespace pf_stage1

extern "C" int pf_kernel(const int64_t* slot, int64_t* results) {
    if (const int at = pf_stage0::misaligned(slot + 4)) return at;
    if (const int at = pf_stage1::misaligned(slot + 9)) return at + 2;
    const pf_stage stages[] = {
        {pf_stage0::run, slot + 4, slot[4], slot[2], slot[5], slot[6]},
        {pf_stage1::run, slot + 9, slot[9], slot[3], slot[10], slot[11]},
    };
    const pf_schedule schedule(stages, 2, slot[1]);
    const int64_t threads = schedule.parts(slot[0]);
    bool memory = true;
    pf_stage1::pf_fold fold1;
    memory &= fold1.open(slot + 9);
    #pragma omp parallel if (threads > 1) num_threads(threads)
    {
        const int64_t part = omp_get_thread_num(), parts = omp_get_num_threads();
        pf_stage1::pf_state state1{&fold1, {}};
        void* states[] = {0, &state1};
        #pragma omp single
        for (int64_t cut = !schedule.ring; cut < parts + schedule.ring; ++cut) {
            const int64_t step = schedule.cut(cut, parts);
            memory = memory && fold1.keep(slot + 9, step - stages[1].lag, step + stages[1].ahead);
        }
        if (memory) schedule.share(part, parts, states, 0, 0, 0);
        #pragma omp barrier
        if (memory) schedule.between(part + 1, parts, states, 0, 0, 0);
    }
    fold1.close(memory, results + 0);
    return memory ? 0 : -1;
}
