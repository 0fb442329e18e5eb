#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto bins = load<uint8_t>("bins"), label = load<uint8_t>("label"); auto f = load<double>("f"), leaves = load<double>("leaves");
    const int F = 8, B = 32, D = 3; int T = omp_get_max_threads(), K = 8;
    vector<int> g(n), h(n); vector<uint8_t> node(n); vector<long> hist(T * K * F * B * 2); double loss[2]; long right[2];
    auto run = [&] {
        for (int tree = 0; tree < 2; tree++) {
            double ls = 0; long rt = 0; int feature[8] = {0}, cut[8] = {0};
            for (int depth = 0; depth <= D; depth++) {
                int k = 1 << depth; long w = (long)k * F * B * 2;
#pragma omp parallel reduction(+ : ls, rt)
                {
                    long *H = &hist[omp_get_thread_num() * K * F * B * 2]; memset(H, 0, 8 * w);
#pragma omp for schedule(static)
                    for (long i = 0; i < n; i++) {
                        if (!depth) {
                            double p = 1 / (1 + exp(tree ? -f[i] : -0.0));
                            ls -= label[i] ? log(p) : log(1 - p); rt += (p > 0.5) == label[i];
                            g[i] = floor((p - label[i]) * 1024 + 0.5); h[i] = floor(p * (1 - p) * 1024 + 0.5); node[i] = 0;
                            if (!tree) f[i] = 0;
                        } else { int a = node[i]; node[i] = 2 * a + (bins[i * F + feature[a]] > cut[a]); }
                        if (depth < D) for (int q = 0; q < F; q++) { long *c = H + ((node[i] * F + q) * B + bins[i * F + q]) * 2; c[0] += g[i]; c[1] += h[i]; }
                        else { H[2 * node[i]] += g[i]; H[2 * node[i] + 1] += h[i]; }
                    }
                }
                long *H = &hist[0];
                for (int t = 1; t < T; t++) for (long q = 0; q < w; q++) H[q] += hist[t * K * F * B * 2 + q];
                if (depth < D) for (int a = 0; a < k; a++) {
                    double best = 0; feature[a] = 0; cut[a] = B - 1;
                    for (int q = 0; q < F; q++) {
                        long *c = H + (a * F + q) * B * 2, tg = 0, th = 0, sg = 0, sh = 0;
                        for (int b = 0; b < B; b++) tg += c[2 * b], th += c[2 * b + 1];
                        double G = tg / 1024., Q = th / 1024.;
                        for (int b = 0; b < B - 1; b++) { sg += c[2 * b]; sh += c[2 * b + 1]; double gl = sg / 1024., hl = sh / 1024.;
                            double v = gl * gl / (hl + 1) + (G - gl) * (G - gl) / (Q - hl + 1) - G * G / (Q + 1);
                            if (v > best) best = v, feature[a] = q, cut[a] = b; }
                    }
                } else for (int a = 0; a < k; a++) leaves[a] = -0.3 * (H[2 * a] / 1024.) / (H[2 * a + 1] / 1024. + 1);
            }
#pragma omp parallel for schedule(static)
            for (long i = 0; i < n; i++) f[i] += leaves[node[i]];
            loss[tree] = ls / n; right[tree] = rt;
        }
    };
    return bench(run, [&] { return sum(f) + sum(leaves) + loss[0] + loss[1] + right[0] + right[1]; });
}
