#pragma once

#include <stdint.h>

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
