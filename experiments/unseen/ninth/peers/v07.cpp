#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto image = load<uint8_t>("image"); auto out = load<int>("out"), area = load<int>("area");
    vector<uint8_t> mask(n * n), thin(n * n); vector<int> label(n * n), root(n * n), old(n * n), rank(n * n); long found, big, rounds;
    auto run = [&] {
        found = big = rounds = 0;
#pragma omp parallel
        {
#pragma omp for schedule(static)
            for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) mask[i * n + j] = image[i * n + j] > 120;
#pragma omp for schedule(static)
            for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) { long q = i * n + j; thin[q] = mask[q] & mask[q - n] & mask[q + n] & mask[q - 1] & mask[q + 1]; }
#pragma omp for schedule(static)
            for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) { long q = i * n + j; bool in = i > 0 && j > 0 && i < n - 1 && j < n - 1;
                old[q] = in && (thin[q] | thin[q - n] | thin[q + n] | thin[q - 1] | thin[q + 1]) ? q : -1; root[q] = old[q]; }
        }
        // the same rounds, as their number is a result; the test of the last jump is fused
        for (long changed = 1; changed;) {
            changed = 0;
#pragma omp parallel reduction(+ : changed)
            {
#pragma omp for schedule(static)
                for (long i = 1; i < n - 1; i++) for (long j = 1; j < n - 1; j++) { long q = i * n + j; int m = old[q], o = m; if (m < 0) continue;
                    for (long k : {q - n, q + n, q - 1, q + 1}) if (old[k] >= 0 && old[k] < m) m = old[k];
                    if (m < o) { int c = __atomic_load_n(&root[o], __ATOMIC_RELAXED); while (m < c && !__atomic_compare_exchange_n(&root[o], &c, m, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); } }
#pragma omp for schedule(static)
                for (long q = 0; q < n * n; q++) label[q] = root[q] >= 0 ? root[root[q]] : -1;
#pragma omp for schedule(static)
                for (long q = 0; q < n * n; q++) { int v = label[q] >= 0 ? label[label[q]] : -1; changed += v != old[q]; root[q] = v; old[q] = v; }
            }
            rounds++;
        }
        int T = omp_get_max_threads(); vector<long> part(T + 1, 0);
#pragma omp parallel
        {
            int t = omp_get_thread_num(); long lo = n * n * t / T, hi = n * n * (t + 1) / T, c = 0;
            for (long q = lo; q < hi; q++) c += old[q] == q;
            part[t + 1] = c;
#pragma omp barrier
#pragma omp single
            for (int k = 0; k < T; k++) part[k + 1] += part[k];
            c = part[t];
            for (long q = lo; q < hi; q++) { area[q] = 0; if (old[q] == q) rank[q] = c++; }
#pragma omp barrier
            for (long q = lo; q < hi; q++) { out[q] = old[q] >= 0 ? rank[old[q]] + 1 : 0; if (out[q]) __atomic_fetch_add(&area[out[q] - 1], 1, __ATOMIC_RELAXED); }
        }
        found = part[T];
        for (long k = 0; k < max(1L, found); k++) big += area[k] >= 20;
    };
    return bench(run, [&] { return sum(out) + sum(area) + found + big + rounds; });
}
