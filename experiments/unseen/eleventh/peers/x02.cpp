// Components: two sweeps a round (hook and count; four jumps at once), one for sizes.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto start = d.array<int32_t>("start"), target = d.array<int32_t>("target");
    Array<int32_t> label(n), best(n), size(n), inside(n), mine(n);
    std::vector<Array<int32_t>> own;
    for (int t = 1; t < omp_get_max_threads(); t++) own.emplace_back(n), own.emplace_back(n);
    std::vector<double> moves, summary(4);
    auto run = [&] {
        moves.clear();
        int32_t *l = label, *b = best, *z = size, *in = inside, *m = mine;
        const int32_t *st = start, *ta = target;
#pragma omp parallel for if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) l[i] = i, z[i] = 0, in[i] = 0;
        for (int round = 0; round < 60; round++) {
            int64_t moved = 0;
#pragma omp parallel if (n >= PARALLEL_FROM)
            {
#pragma omp for schedule(static) reduction(+ : moved)
                for (int64_t i = 0; i < n; i++) {
                    int32_t least = l[i];
                    for (int32_t e = st[i]; e < st[i + 1]; e++) least = std::min(least, l[ta[e]]);
                    moved += least < l[i];
                    b[i] = least;
                }
                if (moved) {
#pragma omp for schedule(static)
                    for (int64_t i = 0; i < n; i++) l[i] = b[b[b[b[i]]]];
                }
            }
            moves.push_back(moved);
            if (!moved) break;
        }
        int64_t roots = 0, alone = 0, trees = 0;
        double sizes = 0;
#pragma omp parallel reduction(+ : roots, alone, trees, sizes) if (n >= PARALLEL_FROM)
        {
            // each thread counts for itself: atomics would meet at the great component's label
            const int T = omp_get_num_threads(), t = omp_get_thread_num();
            int32_t *mz = t ? own[2 * t - 2].p : z, *mi = t ? own[2 * t - 1].p : in;
            if (t) std::memset(mz, 0, n * 4), std::memset(mi, 0, n * 4);
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                mz[l[i]]++;
                mi[l[i]] += st[i + 1] - st[i];
            }
            for (int q = 1; q < T; q++) {
                const int32_t *a = own[2 * q - 2], *b = own[2 * q - 1];
#pragma omp for simd schedule(static)
                for (int64_t i = 0; i < n; i++) z[i] += a[i], in[i] += b[i];
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                m[i] = z[l[i]];
                roots += l[i] == i;
                alone += m[i] == 1;
                trees += z[i] > 0 && in[i] == 2 * (z[i] - 1);
                sizes += m[i];
            }
        }
        summary = {double(roots), double(alone), double(trees), sizes / n};
    };
    bench(run, [&](Checksum &c) {
        c.add("label", label.p, n);
        c.add("mine", mine.p, n);
        c.add("moves", moves.data(), moves.size());
        c.add("summary", summary.data(), 4);
    });
}
