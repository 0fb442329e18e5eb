#include "common.h"
static inline double mm(double a, double b) { return a * b > 0 ? (fabs(a) < fabs(b) ? a : b) : 0.0; }
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto u = load<double>("u"), D = load<double>("d"), left = load<double>("left"), right = load<double>("right"), W = load<double>("w"), X = load<double>("x"); double dt = load<double>("dt")[0];
    vector<double> one(12 * n), two(12 * n), raw(12 * n), mean(3 * n); double mass, energy;
    auto stage = [&](vector<double> &out, const vector<double> &old, const vector<double> &in, double a, double b) {
        double d[16]; memcpy(d, D.data(), 128); double w[4]; memcpy(w, W.data(), 32); double x[4]; memcpy(x, X.data(), 32);
        double L = left[0], R = right[3];
        auto end = [&](const double *p, int k, double *f) { double r = p[k], m = p[4 + k], E = p[8 + k], v = m / r, pr = 0.4 * 1.0; pr = (1.4 - 1.0) * (E - 0.5 * m * v);
            f[0] = m; f[1] = m * v + pr; f[2] = (E + pr) * v; return fabs(v) + sqrt(1.4 * pr / r); };
        auto face = [&](long l, long r, double *g) { double fl[3], fr[3]; double cl = end(&in[12 * l], 3, fl), cr = end(&in[12 * r], 0, fr), c = max(cl, cr);
            for (int q = 0; q < 3; q++) g[q] = 0.5 * (fl[q] + fr[q]) - 0.5 * c * (in[12 * r + 4 * q] - in[12 * l + 4 * q + 3]); };
#pragma omp parallel
        {
            int t = omp_get_thread_num(), T = omp_get_num_threads(); long lo = n * t / T, hi = n * (t + 1) / T;
            double gl[3], gr[3]; face(lo ? lo - 1 : n - 1, lo, gl);
            for (long e = lo; e < hi; e++) {
                face(e, e + 1 == n ? 0 : e + 1, gr);
                const double *p = &in[12 * e], *o = &old[12 * e]; double f[3][4];
                for (int k = 0; k < 4; k++) { double r = p[k], m = p[4 + k], E = p[8 + k], v = m / r, pr = (1.4 - 1.0) * (E - 0.5 * m * v); f[0][k] = m; f[1][k] = m * v + pr; f[2][k] = (E + pr) * v; }
                for (int q = 0; q < 3; q++) { double s = 0;
                    double rhs[4]; for (int k = 0; k < 4; k++) { double y = 0; for (int j = 0; j < 4; j++) y += d[4 * k + j] * f[q][j]; rhs[k] = y; }
                    rhs[0] += L * gl[q]; rhs[3] -= R * gr[q];
                    for (int k = 0; k < 4; k++) { double y = a * o[4 * q + k] + b * (p[4 * q + k] + dt * rhs[k]); raw[12 * e + 4 * q + k] = y; s += w[k] * y; }
                    mean[3 * e + q] = s; }
                memcpy(gl, gr, 24);
            }
#pragma omp barrier
            for (long e = lo; e < hi; e++) { long l = e ? e - 1 : n - 1, r = e + 1 == n ? 0 : e + 1;
                for (int q = 0; q < 3; q++) { double m = mean[3 * e + q], s = mm(m - mean[3 * l + q], mean[3 * r + q] - m), a0 = m - raw[12 * e + 4 * q], a3 = raw[12 * e + 4 * q + 3] - m;
                    bool bad = fabs(mm(a0, s) - a0) + fabs(mm(a3, s) - a3) > 1e-3;
                    for (int k = 0; k < 4; k++) out[12 * e + 4 * q + k] = bad ? m + 0.5 * x[k] * s : raw[12 * e + 4 * q + k]; } }
        }
    };
    auto run = [&] {
        stage(one, u, u, 0.0, 1.0); stage(two, u, one, 0.75, 0.25); stage(u, u, two, 1.0 / 3.0, 2.0 / 3.0);
        double a = 0, b = 0;
        for (long e = 0; e < n; e++) { a += mean[3 * e]; b += mean[3 * e + 2]; }
        mass = a / n; energy = b / n;
    };
    return bench(run, [&] { return sum(u) + mass + energy; });
}
