// One pass a step: densities of a block of points, and all moments about the means of the step before,
// from which the sums about the new means follow.
#include "common.hpp"

static constexpr int STEPS = 2, K = 4, D = 3, B = 256;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto x = d.array<float>("x");
    auto mean0 = d.array<double>("mean0");
    Array<double> mean(K * D), variance(K * D), share(K), likelihood(STEPS);
    Array<uint8_t> labels(n);
    Array<int32_t> counts(K + 1);
    auto run = [&] {
        for (int k = 0; k < K; k++) share[k] = 1.0 / K;
        for (int i = 0; i < K * D; i++) mean[i] = mean0[i], variance[i] = 1.0;
        int64_t c[K + 1] = {};
        for (int step = 0; step < STEPS; step++) {
            double sums[K * (1 + 2 * D)] = {}, base[K], over[K * D], mu[K * D];
            for (int k = 0; k < K; k++) {
                base[k] = std::log(share[k]) - 0.5 * std::log(variance[k * D] * variance[k * D + 1] * variance[k * D + 2]);
                for (int j = 0; j < D; j++) over[k * D + j] = -0.5 / variance[k * D + j], mu[k * D + j] = mean[k * D + j];
            }
            const bool last = step == STEPS - 1;
            double like = 0;
#pragma omp parallel if (n >= PARALLEL_FROM / 4) reduction(+ : sums, c, like)
            {
                double r[K][B], p[D][B], norm[B];
                const float *in = x.p;
#pragma omp for schedule(static)
                for (int64_t b = 0; b < n; b += B) {
                    const int m = std::min<int64_t>(B, n - b);
#pragma omp simd
                    for (int i = 0; i < m; i++) p[0][i] = in[(b + i) * 3], p[1][i] = in[(b + i) * 3 + 1], p[2][i] = in[(b + i) * 3 + 2];
                    for (int k = 0; k < K; k++) {
                        const double m0 = mu[k * D], m1 = mu[k * D + 1], m2 = mu[k * D + 2], o0 = over[k * D], o1 = over[k * D + 1], o2 = over[k * D + 2], c0 = base[k];
#pragma omp simd
                        for (int i = 0; i < m; i++) {
                            const double u = p[0][i] - m0, v = p[1][i] - m1, w = p[2][i] - m2;
                            r[k][i] = c0 + (u * u * o0 + v * v * o1 + w * w * o2);
                        }
                    }
#pragma omp simd reduction(+ : like)
                    for (int i = 0; i < m; i++) {
                        const double top = std::max(std::max(r[0][i], r[1][i]), std::max(r[2][i], r[3][i]));
                        const double e0 = exp(r[0][i] - top), e1 = exp(r[1][i] - top), e2 = exp(r[2][i] - top), e3 = exp(r[3][i] - top);
                        const double total = e0 + e1 + e2 + e3, by = 1.0 / total;
                        like += top + log(total);
                        r[0][i] = e0 * by, r[1][i] = e1 * by, r[2][i] = e2 * by, r[3][i] = e3 * by;
                    }
                    for (int k = 0; k < K; k++) {
                        const double m0 = mu[k * D], m1 = mu[k * D + 1], m2 = mu[k * D + 2];
                        double s = 0, a0 = 0, a1 = 0, a2 = 0, b0 = 0, b1 = 0, b2 = 0;
#pragma omp simd reduction(+ : s, a0, a1, a2, b0, b1, b2)
                        for (int i = 0; i < m; i++) {
                            const double u = p[0][i] - m0, v = p[1][i] - m1, w = p[2][i] - m2, q = r[k][i];
                            s += q, a0 += q * u, a1 += q * v, a2 += q * w;
                            b0 += q * u * u, b1 += q * v * v, b2 += q * w * w;
                        }
                        double *to = sums + k * 7;
                        to[0] += s, to[1] += a0, to[2] += a1, to[3] += a2, to[4] += b0, to[5] += b1, to[6] += b2;
                    }
                    if (!last) continue;
                    uint8_t *o = labels.p + b;
                    int c0 = 0, c1 = 0, c2 = 0, c3 = 0;
                    for (int i = 0; i < m; i++) {
                        double best = r[0][i];
                        int k = 0;
                        k = r[1][i] > best ? 1 : k, best = std::max(best, r[1][i]);
                        k = r[2][i] > best ? 2 : k, best = std::max(best, r[2][i]);
                        k = r[3][i] > best ? 3 : k, best = std::max(best, r[3][i]);
                        k = best < 0.6 ? K : k;
                        o[i] = k, c0 += k == 0, c1 += k == 1, c2 += k == 2, c3 += k == 3;
                    }
                    c[0] += c0, c[1] += c1, c[2] += c2, c[3] += c3, c[4] += m - c0 - c1 - c2 - c3;
                }
            }
            likelihood[step] = like / n;
            for (int k = 0; k < K; k++) {
                const double *s = sums + k * 7, w = s[0];
                share[k] = w / n;
                for (int j = 0; j < D; j++) {
                    const double shift = s[1 + j] / w;
                    mean[k * D + j] = mu[k * D + j] + shift;
                    variance[k * D + j] = s[4 + j] / w - shift * shift + 1e-6;
                }
            }
        }
        for (int k = 0; k <= K; k++) counts[k] = c[k];
    };
    bench(run, [&](Checksum &s) {
        s.add("mean", mean.p, K * D), s.add("variance", variance.p, K * D), s.add("share", share.p, K);
        s.add("labels", labels.p, n), s.add("counts", counts.p, K + 1), s.add("likelihood", likelihood.p, STEPS);
    });
}
