// GRU: each sequence goes through all times while its state is in registers and the first cache.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const int T = 10, I = 16, H = 32, C = 10, R = 4;  // R sequences at once share the loads of weights
    auto x = d.array<float>("x"), out = d.array<float>("out");
    Array<float> w[3] = {d.array<float>("w_0"), d.array<float>("w_1"), d.array<float>("w_2")};
    Array<float> u[3] = {d.array<float>("u_0"), d.array<float>("u_1"), d.array<float>("u_2")};
    Array<float> bias[3] = {d.array<float>("bias_0"), d.array<float>("bias_1"), d.array<float>("bias_2")};
    Array<float> h(n * H), y(n * C);
    double sure = 0;
    auto run = [&] {
        double top = 0;
#pragma omp parallel for schedule(static) reduction(+ : top) if (n >= 8)
        for (int64_t b = 0; b < n; b += R) {
            const int m = std::min<int64_t>(R, n - b);
            alignas(64) float s[R][H] = {}, rs[R][H] = {}, z[R][H], r[R][H], c[R][H];
            auto layer = [&](float(&a)[R][H], int g, int t, const float(&hid)[R][H]) {
                const float *W = w[g], *U = u[g], *B = bias[g];
                for (int q = 0; q < R; q++) {
                    const float *in = &x[(int64_t(t) * n + std::min<int64_t>(b + q, n - 1)) * I];
                    alignas(64) float acc[H];
                    for (int j = 0; j < H; j++) acc[j] = B[j];
                    for (int k = 0; k < I; k++)
                        for (int j = 0; j < H; j++) acc[j] += in[k] * W[k * H + j];
                    for (int k = 0; k < H; k++)
                        for (int j = 0; j < H; j++) acc[j] += hid[q][k] * U[k * H + j];
                    for (int j = 0; j < H; j++) a[q][j] = acc[j];
                }
            };
            for (int t = 0; t < T; t++) {
                layer(z, 0, t, s);
                layer(r, 1, t, s);
                for (int q = 0; q < R; q++)
                    for (int j = 0; j < H; j++) {
                        z[q][j] = 1 / (1 + std::exp(-z[q][j]));
                        rs[q][j] = s[q][j] * (1 / (1 + std::exp(-r[q][j])));
                    }
                layer(c, 2, t, rs);
                for (int q = 0; q < R; q++)
                    for (int j = 0; j < H; j++)
                        s[q][j] = (1 - z[q][j]) * s[q][j] + z[q][j] * std::tanh(c[q][j]);
            }
            for (int q = 0; q < m; q++) {
                std::copy(s[q], s[q] + H, &h[(b + q) * H]);
                float v[10] = {}, sum = 0;
                for (int k = 0; k < H; k++)
                    for (int e = 0; e < C; e++) v[e] += s[q][k] * out.p[k * C + e];
                float most = *std::max_element(v, v + C);
                for (int e = 0; e < C; e++) sum += v[e] = std::exp(v[e] - most);
                for (int e = 0; e < C; e++) y[(b + q) * C + e] = v[e] /= sum;
                top += *std::max_element(v, v + C);
            }
        }
        sure = top / n;
    };
    bench(run, [&](Checksum &c) {
        c.add("h", h.p, n * H);
        c.add("y", y.p, n * C);
        c.add("sure", sure);
    });
}
