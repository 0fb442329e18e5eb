// Logistic regressions: all of a round for a branch while its customers are in the first cache.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const int M = 32, K = 8;
    auto x = d.array<double>("x"), y = d.array<double>("y");
    Array<double> beta(n * K);
    std::vector<double> deviances;
    auto run = [&] {
        std::fill(beta.p, beta.p + n * K, 0.0);
        deviances.clear();
        for (int round = 0; round < 8; round++) {
            double dev = 0;
#pragma omp parallel for schedule(static) reduction(+ : dev) if (n >= 16)
            for (int64_t b = 0; b < n; b++) {
                const double *X = &x[b * M * K], *Y = &y[b * M];
                double *B = &beta[b * K];
                alignas(64) double p[M], g[K] = {}, h[K][K] = {}, z[K];
                double mine = 0;
                for (int c = 0; c < M; c++) {
                    double eta = 0;
                    for (int f = 0; f < K; f++) eta += X[c * K + f] * B[f];
                    p[c] = eta;
                }
                for (int c = 0; c < M; c++) p[c] = 1.0 / (1.0 + std::exp(-p[c]));
                for (int c = 0; c < M; c++) mine -= 2.0 * std::log(Y[c] > 0.5 ? p[c] : 1.0 - p[c]);
                for (int c = 0; c < M; c++) {
                    const double *row = X + c * K, r = Y[c] - p[c], w = p[c] * (1.0 - p[c]);
                    for (int f = 0; f < K; f++) g[f] += row[f] * r;
                    for (int f = 0; f < K; f++) {
                        const double wf = w * row[f];
                        for (int e = 0; e < K; e++) h[f][e] += wf * row[e];  // a full vector
                    }
                }
                dev += mine;
                for (int f = 0; f < K; f++) g[f] -= 0.5 * B[f], h[f][f] += 0.5;
                for (int r = 0; r < K; r++)
                    for (int c = 0; c <= r; c++) {
                        double s = h[r][c];
                        for (int q = 0; q < c; q++) s -= h[r][q] * h[c][q];
                        h[r][c] = c == r ? std::sqrt(s) : s / h[c][c];
                    }
                for (int r = 0; r < K; r++) {
                    double t = g[r];
                    for (int q = 0; q < r; q++) t -= h[r][q] * z[q];
                    z[r] = t / h[r][r];
                }
                for (int r = K - 1; r >= 0; r--) {
                    double t = z[r];
                    for (int q = r + 1; q < K; q++) t -= h[q][r] * z[q];
                    z[r] = t / h[r][r];
                    B[r] += z[r];
                }
            }
            deviances.push_back(dev);
            if (round && std::fabs(deviances[round - 1] - dev) < 1e-4 * dev) break;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("beta", beta.p, n * K);
        c.add("deviances", deviances.data(), deviances.size());
    });
}
