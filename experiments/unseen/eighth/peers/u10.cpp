#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto panel = load<uint8_t>("panel"); const int S = 16; const double SW = 0.05, ERR = 0.01;
    const int seen[16] = {0, 1, 2, 1, 1, 2, 0, 2, 0, 1, 2, 0, 2, 1, 0, 0};
    vector<float> rows(S * n), bb(n); double dosage[16], likelihood = 0; const long B = 2048;
    auto run = [&] {
        double total = 1.0, totals[16];
        for (int s = 0; s < S; s++) {
            double sum_ = 0; const float a = (1.0 - SW) / total, share = SW / n, hit = 1.0 - ERR, miss = ERR; const int o = seen[s];
#pragma omp parallel for schedule(static) reduction(+ : sum_)
            for (long k = 0; k < n; k += B) {
                long m = min(B, n - k); const float *p = &rows[max(0, s - 1) * n + k]; float *q = &rows[s * n + k]; const uint8_t *h = &panel[s * n + k]; float t = 0;
                const float init = a * (float)(1.0 / n) + share;
                if (s == 0) {
#pragma omp simd reduction(+ : t)
                    for (long i = 0; i < m; i++) { float r = init * (h[i] == o ? hit : miss); q[i] = r; t += r; }
                } else if (o < 2) {
#pragma omp simd reduction(+ : t)
                    for (long i = 0; i < m; i++) { float r = (a * p[i] + share) * (h[i] == o ? hit : miss); q[i] = r; t += r; }
                } else {
#pragma omp simd reduction(+ : t)
                    for (long i = 0; i < m; i++) { float r = a * p[i] + share; q[i] = r; t += r; }
                }
                sum_ += t;
            }
            totals[s] = total = sum_;
        }
        double mass = 1.0; bool first = true;
        for (int s = S - 1; s >= 0; s--) {
            double gs = 0, cs = 0, ms = 0; const int o = seen[s]; const float a = first ? 0.f : (1.0 - SW) / mass, share = first ? 1.f : SW, hit = 1.0 - ERR, miss = ERR;
#pragma omp parallel for schedule(static) reduction(+ : gs, cs, ms)
            for (long k = 0; k < n; k += B) {
                long m = min(B, n - k); const float *r = &rows[s * n + k]; float *b = &bb[k]; const uint8_t *h = &panel[s * n + k]; float t = 0, c = 0, w = 0;
                if (first) for (long i = 0; i < m; i++) b[i] = 0;
                if (o < 2) {
#pragma omp simd reduction(+ : t, c, w)
                    for (long i = 0; i < m; i++) { float v = a * b[i] + share, g = r[i] * v; t += g; c += h[i] == 1 ? g : 0.f; v *= h[i] == o ? hit : miss; b[i] = v; w += v; }
                } else {
#pragma omp simd reduction(+ : t, c, w)
                    for (long i = 0; i < m; i++) { float v = a * b[i] + share, g = r[i] * v; t += g; c += h[i] == 1 ? g : 0.f; b[i] = v; w += v; }
                }
                gs += t; cs += c; ms += w;
            }
            dosage[s] = cs / gs; mass = ms / n; first = false;
        }
        likelihood = 0; for (double t : totals) likelihood += std::log(t);
    };
    return bench(run, [&] { double s = sum(rows) + likelihood; for (double d : dosage) s += d; return s; });
}
