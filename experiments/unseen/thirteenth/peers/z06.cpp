// Cores: rounds of peeling with lists of leavers and atomic decrements; searches with frontiers.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), count = d.extent("sources");
    auto start = d.array<int32_t>("start"), target = d.array<int32_t>("target"), sources = d.array<int32_t>("sources");
    Array<int32_t> core(n), total(n), degree(n), distance(n);
    const int SHELLS = 32;
    std::vector<int64_t> tables, leavers, levels;
    std::vector<double> closeness;
    std::vector<int32_t> now(n), next(n), rest(n);
    const int64_t BIG = 2048;  // a list shorter than this is one thread's
    auto run = [&] {
        leavers.clear(), levels.clear(), closeness.clear();
        tables.assign(3 * SHELLS, 0);
#pragma omp parallel for schedule(static) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) degree[i] = start[i + 1] - start[i], core[i] = -1, total[i] = 0;
        int64_t alive = n;
        for (int64_t i = 0; i < n; i++) rest[i] = i;
        for (int k = 1; alive > 0; k++) {
            // Those that leave at once; the others are kept in order.
            int64_t m = 0, kept = 0;
            for (int64_t i = 0; i < alive; i++) {
                const int32_t v = rest[i];
                if (core[v] >= 0) continue;
                if (degree[v] < k) now[m++] = v;
                else rest[kept++] = v;
            }
            alive = kept;
            while (m > 0) {
                leavers.push_back(m);
                for (int64_t q = 0; q < m; q++) core[now[q]] = k - 1;
                int64_t found = 0;
#pragma omp parallel for schedule(static) if (m >= BIG)
                for (int64_t q = 0; q < m; q++)
                    for (int32_t e = start[now[q]]; e < start[now[q] + 1]; e++) {
                        const int32_t v = target[e];
                        if (core[v] >= 0) continue;
                        int32_t was;
                        if (m >= BIG) {
#pragma omp atomic capture
                            was = degree[v]--;
                        } else was = degree[v]--;
                        if (was == k) {
                            int64_t place;
                            if (m >= BIG) {
#pragma omp atomic capture
                                place = found++;
                            } else place = found++;
                            next[place] = v;
                        }
                    }
                std::swap(now, next);
                m = found;
            }
        }
        for (int64_t s = 0; s < count; s++) {
#pragma omp parallel for schedule(static) if (n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) distance[i] = -1;
            int64_t m = 1, reached = 1, away = 0;
            int level = 0;
            now[0] = sources[s];
            distance[now[0]] = 0;
            for (;;) {
                int64_t found = 0;
                if (m < n / 16) {  // from the frontier outwards
#pragma omp parallel for schedule(static) if (m >= BIG)
                    for (int64_t q = 0; q < m; q++)
                        for (int32_t e = start[now[q]]; e < start[now[q] + 1]; e++) {
                            const int32_t v = target[e];
                            if (__atomic_load_n(&distance[v], __ATOMIC_RELAXED) >= 0) continue;
                            if (m >= BIG) {
                                int32_t none = -1;
                                if (!__atomic_compare_exchange_n(&distance[v], &none, level + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
                                int64_t place;
#pragma omp atomic capture
                                place = found++;
                                next[place] = v;
                            } else distance[v] = level + 1, next[found++] = v;
                        }
                } else {  // from those not yet found
#pragma omp parallel if (n >= PARALLEL_FROM)
                    {
                        std::vector<int32_t> mine;
#pragma omp for schedule(static) nowait
                        for (int64_t i = 0; i < n; i++) {
                            if (distance[i] >= 0) continue;
                            for (int32_t e = start[i]; e < start[i + 1]; e++)
                                if (__atomic_load_n(&distance[target[e]], __ATOMIC_RELAXED) == level) {
                                    __atomic_store_n(&distance[i], level + 1, __ATOMIC_RELAXED);
                                    mine.push_back(i);
                                    break;
                                }
                        }
                        int64_t place;
#pragma omp atomic capture
                        { place = found; found += int64_t(mine.size()); }
                        std::copy(mine.begin(), mine.end(), next.begin() + place);
                    }
                }
                if (found == 0) break;
                level++;
                reached += found;
                away += found * level;
                std::swap(now, next);
                m = found;
            }
#pragma omp parallel for schedule(static) if (n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) total[i] += distance[i] > 0 ? distance[i] : 0;
            levels.push_back(level);
            closeness.push_back(double(reached - 1) / std::max<int64_t>(away, 1));
        }
#pragma omp parallel if (n >= PARALLEL_FROM)
        {
            int64_t mine[3 * 32] = {};
#pragma omp for schedule(static) nowait
            for (int64_t i = 0; i < n; i++) {
                const int32_t c = core[i], s = std::min(c, SHELLS - 1);
                int32_t inside = 0;
                for (int32_t e = start[i]; e < start[i + 1]; e++) inside += core[target[e]] >= c;
                mine[s]++, mine[SHELLS + s] += inside, mine[2 * SHELLS + s] += total[i];
            }
#pragma omp critical
            for (int k = 0; k < 3 * SHELLS; k++) tables[k] += mine[k];
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("core", core.p, n);
        s.add("distances", total.p, n);
        s.add("tables", tables.data(), tables.size());
        s.add("leavers", leavers.data(), leavers.size());
        s.add("levels", levels.data(), levels.size());
        s.add("closeness", closeness.data(), closeness.size());
    });
}
