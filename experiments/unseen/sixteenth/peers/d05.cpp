// Colours by Jones and Plassmann: a vertex is coloured as soon as all neighbours before it are, which
// gives the same colours in whatever order; each thread keeps its own frontier. Then all classes at
// once by counting, and a sweep over one after another.
#include "common.hpp"
#include <array>

static constexpr double SHIFT = 0.05;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto start = d.array<int32_t>("start"), edges = d.array<int32_t>("edges");
    auto b = d.array<double>("b");
    Array<uint32_t> priority(n);
    Array<int32_t> colour(n), frontier(n), members(n), sizes(64);
    Array<double> x(n);
    double conflicts = 0, residual = 0;
    auto run = [&] {
        int64_t wrong = 0;
        double total = 0;
        int32_t classes = 0;
        std::vector<std::array<int64_t, 64>> counts(omp_get_max_threads()), offset(omp_get_max_threads());
        int64_t begin[65];
#pragma omp parallel reduction(+ : wrong, total) if (n >= PARALLEL_FROM / 8)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), v0 = n * t / nt, v1 = n * (t + 1) / nt;
            for (int64_t v = v0; v < v1; v++) {
                uint32_t h = v;
                h = (h ^ (h >> 16)) * 73244475u;
                h = (h ^ (h >> 16)) * 73244475u;
                priority[v] = h ^ (h >> 16), colour[v] = -1, frontier[v] = v, x[v] = 0.0;
            }
#pragma omp barrier
            for (int64_t mine = v1 - v0; mine > 0;) {
                int64_t kept = 0;
                for (int64_t k = v0; k < v0 + mine; k++) {
                    const int32_t v = frontier[k];
                    const uint32_t p = priority[v];
                    uint64_t used = 0;
                    bool ready = true;
                    for (int32_t e = start[v]; e < start[v + 1]; e++) {
                        const int32_t u = edges[e], c = __atomic_load_n(&colour[u], __ATOMIC_RELAXED);
                        if (c >= 0) used |= uint64_t(1) << c;
                        else if (priority[u] > p || (priority[u] == p && u > v)) { ready = false; break; }
                    }
                    if (ready) __atomic_store_n(&colour[v], __builtin_ctzll(~used), __ATOMIC_RELAXED);
                    else frontier[v0 + kept++] = v;
                }
                mine = kept;
            }
            auto &own = counts[t];
            own.fill(0);
            for (int64_t v = v0; v < v1; v++) own[colour[v]]++;
#pragma omp barrier
#pragma omp single
            {
                int64_t to = 0;
                for (int c = 0; c < 64; c++) {
                    begin[c] = to;
                    for (int64_t s = 0; s < nt; s++) offset[s][c] = to, to += counts[s][c];
                    sizes[c] = to - begin[c];
                    if (sizes[c]) classes = c + 1;
                }
                begin[64] = to;
            }
            for (int64_t v = v0; v < v1; v++) {
                members[offset[t][colour[v]]++] = v;
                for (int32_t e = start[v]; e < start[v + 1]; e++) wrong += colour[edges[e]] == colour[v];
            }
#pragma omp barrier
            for (int c = 0; c < classes; c++) {
#pragma omp for schedule(static)
                for (int64_t k = begin[c]; k < begin[c + 1]; k++) {
                    const int32_t v = members[k];
                    double sum = b[v];
                    for (int32_t e = start[v]; e < start[v + 1]; e++) sum += x[edges[e]];
                    x[v] = sum / (start[v + 1] - start[v] + SHIFT);
                }
            }
            for (int64_t v = v0; v < v1; v++) {
                double r = b[v] - (start[v + 1] - start[v] + SHIFT) * x[v];
                for (int32_t e = start[v]; e < start[v + 1]; e++) r += x[edges[e]];
                total += r * r;
            }
        }
        conflicts = wrong, residual = total / n;
    };
    bench(run, [&](Checksum &s) {
        s.add("colour", colour.p, n);
        s.add("sizes", sizes.p, 64);
        s.add("x", x.p, n);
        s.add("conflicts", &conflicts, 1);
        s.add("residual", &residual, 1);
    });
}
