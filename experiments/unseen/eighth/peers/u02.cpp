#include "common.h"

static void forward(long m, const float *w, const float *__restrict x, float *__restrict z, float *__restrict a) {
    const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4];
    for (long i = 0; i < m; i++) {
        float t = w0 * x[i - 2] + w1 * x[i - 1] + w2 * x[i] + w3 * x[i + 1] + w4 * x[i + 2];
        z[i] = t; a[i] = t > 0 ? t : 0.125f * t;
    }
}
static void backward(long m, const float *w, const float *__restrict e, const float *__restrict z, float *__restrict d) {
    const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4];
    for (long i = 0; i < m; i++) {
        float t = w0 * e[i + 2] + w1 * e[i + 1] + w2 * e[i] + w3 * e[i - 1] + w4 * e[i - 2];
        d[i] = z[i] <= 0 ? t * 0.125f : t;
    }
}
static void predict(long m, const float *w, const float *__restrict a, const float *__restrict b, const float *__restrict c, const float *__restrict clean, float *__restrict e) {
    float k[15]; memcpy(k, w, 60);
    for (long i = 0; i < m; i++)
        e[i] = (k[0] * a[i - 2] + k[1] * a[i - 1] + k[2] * a[i] + k[3] * a[i + 1] + k[4] * a[i + 2])
             + (k[5] * b[i - 2] + k[6] * b[i - 1] + k[7] * b[i] + k[8] * b[i + 1] + k[9] * b[i + 2])
             + (k[10] * c[i - 2] + k[11] * c[i - 1] + k[12] * c[i] + k[13] * c[i + 1] + k[14] * c[i + 2]) - clean[i];
}
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    const int C = 3; const int T = 5; const int STEPS = 2; const float SLOPE = 0.125f; const long B = 1024;
    auto x = load<float>("noisy"); auto clean = load<float>("clean");
    auto w1 = load<float>("w1"); auto w2 = load<float>("w2"); auto m1 = load<float>("m1"); auto m2 = load<float>("m2");
    double loss = 0; double norm = 0;
    auto step = [&] {
        double L = 0; double G1[15] = {0}; double G2[15] = {0};
        long tiles = (n - 4 + B - 1) / B;
#pragma omp parallel for schedule(static) reduction(+ : L, G1, G2)
        for (long tile = 0; tile < tiles; tile++) {
            long a = 2 + tile * B, b = min(n - 2, a + B);           // hidden points of this tile
            long ea = max(4L, a - 2), eb = min(n - 4, b + 2);       // errors they need
            long za = max(2L, ea - 2), zb = min(n - 2, eb + 2);
            alignas(64) float z[3][B + 16], act[3][B + 16], e[B + 16] = {0}, d[B + 16];
            const long o = a - 8;                                    // local index = global - o
            const float *X = x.data();
            for (int c = 0; c < C; c++) {
                const float *w = &w1[c * T];
                forward(zb - za, w, X + za, z[c] + (za - o), act[c] + (za - o));
            }
            predict(eb - ea, w2.data(), act[0] + (ea - o), act[1] + (ea - o), act[2] + (ea - o), &clean[ea], e + (ea - o));
            long oa = max(4L, a), ob = min(n - 4, b);
            float l = 0;
#pragma omp simd reduction(+ : l)
            for (long i = oa; i < ob; i++) l += e[i - o] * e[i - o];
            L += l;
            for (int c = 0; c < C; c++) {
                float g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0; const float *q = act[c];
#pragma omp simd reduction(+ : g0, g1, g2, g3, g4)
                for (long i = oa - o; i < ob - o; i++) {
                    g0 += e[i] * q[i - 2]; g1 += e[i] * q[i - 1]; g2 += e[i] * q[i]; g3 += e[i] * q[i + 1]; g4 += e[i] * q[i + 2];
                }
                double *G = G2 + c * T; G[0] += g0; G[1] += g1; G[2] += g2; G[3] += g3; G[4] += g4;
                const float *w = &w2[c * T];
                backward(b - a, w, e + (a - o), z[c] + (a - o), d + (a - o));
                g0 = g1 = g2 = g3 = g4 = 0; const float *r = X + o;
#pragma omp simd reduction(+ : g0, g1, g2, g3, g4)
                for (long i = a - o; i < b - o; i++) {
                    g0 += d[i] * r[i - 2]; g1 += d[i] * r[i - 1]; g2 += d[i] * r[i]; g3 += d[i] * r[i + 1]; g4 += d[i] * r[i + 2];
                }
                G = G1 + c * T; G[0] += g0; G[1] += g1; G[2] += g2; G[3] += g3; G[4] += g4;
            }
        }
        double s = 0;
        for (int k = 0; k < 15; k++) { G1[k] /= n; G2[k] /= n; s += G1[k] * G1[k] + G2[k] * G2[k]; }
        norm = std::sqrt(s);
        double rate = 0.05 * min(1.0, 1.0 / norm);
        for (int k = 0; k < 15; k++) {
            m1[k] = 0.9 * m1[k] + G1[k]; w1[k] -= rate * m1[k];
            m2[k] = 0.9 * m2[k] + G2[k]; w2[k] -= rate * m2[k];
        }
        loss = L / n;
    };
    return bench([&] { for (int s = 0; s < STEPS; s++) step(); }, [&] { return sum(w1) + sum(w2) + loss + norm; });
}
