#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]); const int I = 32, H = 24, C = 10;
    auto x = load<float>("x"), p = load<float>("p"); auto w1 = load<int8_t>("w1"), w2 = load<int8_t>("w2"); auto b1 = load<int>("b1"); auto choice = load<uint8_t>("choice"); auto votes = load<int>("votes"); double mean;
    auto run = [&] { double m = 0; int vt[10] = {0};
#pragma omp parallel reduction(+ : m, vt)
        { short W1[H][I], W2[C][H]; for (int h = 0; h < H; h++) for (int a = 0; a < I; a++) W1[h][a] = w1[h * I + a]; for (int c = 0; c < C; c++) for (int h = 0; h < H; h++) W2[c][h] = w2[c * H + h];
#pragma omp for schedule(static)
        for (long i = 0; i < n; i++) {
            const float *X = &x[i * I]; float mx = 1e-6f; for (int a = 0; a < I; a++) mx = max(mx, fabsf(X[a])); float scale = (double)mx / 127.0;
            short q[I], q1[H]; int out[C]; for (int a = 0; a < I; a++) q[a] = (int)floor(X[a] / scale + 0.5);
            for (int h = 0; h < H; h++) { int s = 0; for (int a = 0; a < I; a++) s += W1[h][a] * q[a]; s = max(s + b1[h], 0); q1[h] = (int8_t)min(127, s >> 6); }
            for (int c = 0; c < C; c++) { int s = 0; for (int h = 0; h < H; h++) s += W2[c][h] * q1[h]; out[c] = s; }
            float z[C], e[C]; int best = 0; for (int c = 0; c < C; c++) { z[c] = out[c] * scale * (1.0 / 64.0); if (out[c] > out[best]) best = c; }
            float top = z[0]; for (int c = 1; c < C; c++) top = max(top, z[c]);
            double t = 0; for (int c = 0; c < C; c++) e[c] = expf(z[c] - top); for (int c = 0; c < C; c++) t += e[c]; float tf = t;
            for (int c = 0; c < C; c++) p[i * C + c] = e[c] / tf;
            choice[i] = best; vt[best]++; m += p[i * C + best];
        } }
        mean = m / n; for (int c = 0; c < C; c++) votes[c] = vt[c]; };
    return bench(run, [&] { return sum(p) + sum(choice) + sum(votes) + mean; });
}
