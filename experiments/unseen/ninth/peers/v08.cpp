#include "common.h"
typedef vector<float> A;
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto first = load<uint8_t>("first"), second = load<uint8_t>("second"); auto u = load<float>("u"), v = load<float>("v"); const double R = 0.5;
    A a(n * n), b(n * n), dx(n * n), dy(n * n), dt(n * n), P[5]; for (auto &p : P) p.resize(n * n); double err[2];
    auto prepare = [&](const vector<uint8_t> &im, A &out) {
#pragma omp parallel
        { vector<float> h[3]; for (auto &r : h) r.resize(n); int t = omp_get_thread_num(), T = omp_get_num_threads(); long lo = n * t / T, hi = n * (t + 1) / T;
          auto row = [&](long i) { auto &o = h[i % 3]; const uint8_t *p = &im[i * n]; auto f = [&](long j) { return (float)(p[j] / 16.0); };
              o[0] = 0.25 * f(0) + 0.5 * f(0) + 0.25 * f(1);
              for (long j = 1; j < n - 1; j++) o[j] = 0.25 * f(j - 1) + 0.5 * f(j) + 0.25 * f(j + 1);
              o[n - 1] = 0.25 * f(n - 2) + 0.5 * f(n - 1) + 0.25 * f(n - 1); };
          row(max(0L, lo - 1)); row(lo);
          for (long i = lo; i < hi; i++) { if (i + 1 < n) row(i + 1); float *x = h[max(0L, i - 1) % 3].data(), *y = h[i % 3].data(), *z = h[min(n - 1, i + 1) % 3].data();
              for (long j = 0; j < n; j++) out[i * n + j] = 0.25 * x[j] + 0.5 * y[j] + 0.25 * z[j]; } }
    };
    // box sums of products of two, rows then columns, in a ring of five rows
    auto window = [&](int count, const A *const *x, const A *const *y, A *const *out) {
#pragma omp parallel
        { A ring(5 * count * n), prod(n); int t = omp_get_thread_num(), T = omp_get_num_threads(); long lo = n * t / T, hi = n * (t + 1) / T;
          auto row = [&](long i) { for (int c = 0; c < count; c++) { float *o = &ring[(c * 5 + i % 5) * n]; const float *p = &(*x[c])[i * n], *q = &(*y[c])[i * n];
              for (long j = 0; j < n; j++) prod[j] = p[j] * q[j];
              auto edge = [&](long j) { double s = 0; for (long k = max(0L, j - 2); k < min(n, j + 3); k++) s += prod[k]; o[j] = s; };
              edge(0); edge(1); for (long j = 2; j < n - 2; j++) o[j] = (double)prod[j - 2] + prod[j - 1] + prod[j] + prod[j + 1] + prod[j + 2]; edge(n - 2); edge(n - 1); } };
          for (long i = max(0L, lo - 2); i < min(n, lo + 2); i++) row(i);
          for (long i = lo; i < hi; i++) { if (i + 2 < n) row(i + 2);
              long f = max(0L, i - 2), l = min(n, i + 3);
              for (int c = 0; c < count; c++) { float *o = &(*out[c])[i * n]; float *r[5]; for (int k = 0; k < 5; k++) r[k] = &ring[(c * 5 + k) * n];
                  if (l - f == 5) { float *r0 = r[f % 5], *r1 = r[(f + 1) % 5], *r2 = r[(f + 2) % 5], *r3 = r[(f + 3) % 5], *r4 = r[(f + 4) % 5];
                      for (long j = 0; j < n; j++) o[j] = (double)r0[j] + r1[j] + r2[j] + r3[j] + r4[j]; }
                  else for (long j = 0; j < n; j++) { double s = 0; for (long k = f; k < l; k++) s += r[k % 5][j]; o[j] = s; } } } }
    };
    auto run = [&] {
        prepare(first, a); prepare(second, b);
#pragma omp parallel for schedule(static)
        for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) { long q = i * n + j;
            dx[q] = 0.5 * (a[i * n + min(j + 1, n - 1)] - a[i * n + max(j - 1, 0L)]); dy[q] = 0.5 * (a[min(i + 1, n - 1) * n + j] - a[max(i - 1, 0L) * n + j]); }
        { const A *x[] = {&dx, &dx, &dy}, *y[] = {&dx, &dy, &dy}; A *o[] = {&P[0], &P[1], &P[2]}; window(3, x, y, o); }
        for (int k = 0; k < 2; k++) { double e = 0;
#pragma omp parallel for schedule(static) reduction(+ : e)
            for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) { long q = i * n + j; float m;
                if (!k) { u[q] = 0; v[q] = 0; }
                double y = min(max(i + (double)v[q], 0.0), n - 1.001), x = min(max(j + (double)u[q], 0.0), n - 1.001);
                int c = y, d = x; double fy = y - c, fx = x - d; const float *f = &b[c * n + d];
                double top = (1 - fx) * f[0] + fx * f[1], bot = (1 - fx) * f[n] + fx * f[n + 1]; m = (1 - fy) * top + fy * bot;
                float w = m - a[q]; dt[q] = w; e += w * w; }
            err[k] = e;
            { const A *x[] = {&dx, &dy}, *y[] = {&dt, &dt}; A *o[] = {&P[3], &P[4]}; window(2, x, y, o); }
#pragma omp parallel for simd schedule(static)
            for (long q = 0; q < n * n; q++) { double xx = P[0][q], yy = P[2][q]; float xy = P[1][q], xt = P[3][q], yt = P[4][q];
                float det = (xx + R) * (yy + R) - xy * xy;
                float nu = u[q] - ((yy + R) * xt - xy * yt) / det, nv = v[q] - ((xx + R) * yt - xy * xt) / det;
                u[q] = min(max(nu, -4.f), 4.f); v[q] = min(max(nv, -4.f), 4.f); }
        }
    };
    return bench(run, [&] { return sum(u) + sum(v) + err[0] + err[1]; });
}
