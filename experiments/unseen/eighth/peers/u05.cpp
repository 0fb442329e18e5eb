#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto x = load<double>("x"); auto p = load<double>("p"); auto z = load<double>("z"); auto f = load<double>("f"); auto q = load<double>("q");
    long accepted = 0; double nis = 0;
    auto run = [&] {
        long ac = 0; double ni = 0;
        double F[4][4], Q[4][4]; memcpy(F, f.data(), 128); memcpy(Q, q.data(), 128);
#pragma omp parallel for schedule(static) reduction(+ : ac, ni)
        for (long t = 0; t < n; t++) {
            double X[4], P[4][4], Y[4], A[4][4], K[4][2];
            memcpy(X, &x[4 * t], 32); memcpy(P, &p[16 * t], 128);
            for (int s = 0; s < 3; s++) {
                for (int a = 0; a < 4; a++) { double y = 0; for (int b = 0; b < 4; b++) y += F[a][b] * X[b]; Y[a] = y; }
                for (int a = 0; a < 4; a++) {
                    double r[4] = {0}; for (int c = 0; c < 4; c++) for (int b = 0; b < 4; b++) r[b] += F[a][c] * P[c][b];
                    memcpy(A[a], r, 32);
                }
                for (int a = 0; a < 4; a++) {
                    double r[4]; for (int b = 0; b < 4; b++) r[b] = Q[a][b];
                    for (int c = 0; c < 4; c++) for (int b = 0; b < 4; b++) r[b] += A[a][c] * F[b][c];
                    memcpy(P[a], r, 32);
                }
                const double *zz = &z[(s * n + t) * 2];
                double r0 = zz[0] - Y[0], r1 = zz[1] - Y[1], N2 = 0.2 * 0.2;
                double c0 = P[0][0] + N2, c1 = P[0][1], c2 = P[1][1] + N2, det = c0 * c2 - c1 * c1;
                double i0 = c2 / det, i1 = -c1 / det, i2 = c0 / det;
                double d = i0 * r0 * r0 + 2.0 * i1 * r0 * r1 + i2 * r1 * r1;
                if (d < 9.0) {
                    ac++; ni += d;
                    for (int a = 0; a < 4; a++) { K[a][0] = P[a][0] * i0 + P[a][1] * i1; K[a][1] = P[a][0] * i1 + P[a][1] * i2; Y[a] += K[a][0] * r0 + K[a][1] * r1; }
                    double u[4], w[4]; memcpy(u, P[0], 32); memcpy(w, P[1], 32);
                    for (int a = 0; a < 4; a++) for (int b = 0; b < 4; b++) P[a][b] -= K[a][0] * u[b] + K[a][1] * w[b];
                }
                memcpy(X, Y, 32);
            }
            memcpy(&x[4 * t], X, 32); memcpy(&p[16 * t], P, 128);
        }
        accepted = ac; nis = ni / max(1L, ac);
    };
    return bench(run, [&] { return sum(x) + sum(p) + accepted + nis; });
}
