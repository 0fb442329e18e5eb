#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto y0 = load<double>("y0"), t0 = load<double>("t0"), h0 = load<double>("h0"), y = load<double>("y"), t = load<double>("t"), h = load<double>("h"), time = load<double>("time");
    long accepted[3]; double elapsed[3]; const double G = 1.0 + 0.7071067811865476;
    auto run = [&] {
        long ac[3] = {0}; double el[3] = {0};
#pragma omp parallel for schedule(static) reduction(+ : ac, el)
        for (long i = 0; i < n; i++) {
            double Y[3], T = t0[i], H = h0[i], now = 0; memcpy(Y, &y0[3 * i], 24);
            for (int s = 0; s < 3; s++) {
                double a = 40.0 * exp(-2.0 / T), b = 9e3 * exp(-4.0 / T), c = 3e2 * exp(-3.0 / T), f[3], g[3], k1[3], k2[3], m[3][3];
                auto rates = [&](const double *p, double *o) { double r0 = a * p[0], r1 = b * p[1] * p[1], r2 = c * p[1] * p[2]; o[0] = r2 - r0; o[1] = r0 - r1; o[2] = r1 - r2; };
                rates(Y, f);
                double J[3][3] = {{-a, c * Y[2], c * Y[1]}, {a, -2.0 * b * Y[1], 0}, {0, 2.0 * b * Y[1] - c * Y[2], -c * Y[1]}};
                for (int p = 0; p < 3; p++) { for (int q = 0; q < 3; q++) m[p][q] = -G * H * J[p][q]; m[p][p] += 1; }
                for (int p = 0; p < 3; p++) for (int q = p + 1; q < 3; q++) { m[q][p] /= m[p][p]; for (int r = p + 1; r < 3; r++) m[q][r] -= m[q][p] * m[p][r]; }
                auto solve = [&](double *x, const double *r) { x[0] = r[0]; x[1] = r[1] - m[1][0] * x[0]; x[2] = r[2] - m[2][0] * x[0] - m[2][1] * x[1];
                    x[2] /= m[2][2]; x[1] = (x[1] - m[1][2] * x[2]) / m[1][1]; x[0] = (x[0] - m[0][1] * x[1] - m[0][2] * x[2]) / m[0][0]; };
                solve(k1, f);
                double mid[3]; for (int p = 0; p < 3; p++) mid[p] = Y[p] + H * k1[p];
                rates(mid, g); for (int p = 0; p < 3; p++) g[p] -= 2.0 * k1[p];
                solve(k2, g);
                double e = 0, nw[3]; for (int p = 0; p < 3; p++) { nw[p] = Y[p] + 1.5 * H * k1[p] + 0.5 * H * k2[p]; double d = 0.5 * H * (k1[p] + k2[p]) / (1e-3 * (0.01 + fabs(Y[p]))); e += d * d; }
                e = sqrt(e / 3.0);
                if (e <= 1) { for (int p = 0; p < 3; p++) Y[p] = max(nw[p], 0.0); T += 0.2 * H * fabs(f[2]); now += H; ac[s]++; }
                H *= min(4.0, max(0.2, 0.9 / sqrt(e + 1e-12))); el[s] += now;
            }
            memcpy(&y[3 * i], Y, 24); t[i] = T; h[i] = H; time[i] = now;
        }
        for (int s = 0; s < 3; s++) { accepted[s] = ac[s]; elapsed[s] = el[s] / n; }
    };
    return bench(run, [&] { double c = sum(y) + sum(t) + sum(h) + sum(time); for (int s = 0; s < 3; s++) c += accepted[s] + elapsed[s]; return c; });
}
