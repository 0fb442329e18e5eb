#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto B = load<double>("b"); auto D = load<double>("d"); auto W = load<double>("wind");
    const long S = n + 2;
    vector<double> X(S * S), R(S * S), P(S * S), Q(S * S), V(S * S), U(S * S), T(S * S);
    double residual = 0; int iterations = 0;
    auto run = [&] {
        double start = 0;
#pragma omp parallel for schedule(static) reduction(+ : start)
        for (long i = 1; i <= n; i++) { double q = 0;
#pragma omp simd reduction(+ : q)
            for (long k = i * S + 1; k <= i * S + n; k++) { X[k] = 0; R[k] = P[k] = B[k]; q += B[k] * B[k]; }
            start += q; }
        double rho = start, alpha = 0, omega = 0, beta = 0; bool fresh_p = true;
        for (iterations = 1; iterations <= 6; iterations++) {
            // p (from the last iteration's r and v), p/d, v = A p/d and shadow.v, in a rolling window of rows
            double sv = 0;
            auto window = [&](auto make, auto body, double &s1, double &s2) {
                double a1 = 0, a2 = 0;
#pragma omp parallel reduction(+ : a1, a2)
                {
                    long th = omp_get_thread_num(), nt = omp_get_num_threads(), a = 1 + n * th / nt, b = 1 + n * (th + 1) / nt;
                    vector<double> buf(3 * S, 0.0); double *h[3] = {&buf[0], &buf[S], &buf[2 * S]};
                    auto fill = [&](long i) { double *o = h[i % 3]; if (i < 1 || i > n) std::fill(o, o + S, 0.0); else make(i, o, i >= a && i < b); };
                    fill(a - 1); fill(a);
                    for (long i = a; i < b; i++) { fill(i + 1); body(i, h[(i + 2) % 3], h[i % 3], h[(i + 1) % 3], a1, a2); }
                }
                s1 = a1; s2 = a2;
            };
            // V is read by rows above and below while it is written: the new v goes to T
            double none;
            window([&](long i, double *o, bool mine) {
                const long k0 = i * S; const double *r = &R[k0], *p = &P[k0], *v = &V[k0], *d = &D[k0]; double *q = &Q[k0];
                if (fresh_p) { for (long j = 1; j <= n; j++) { double t = p[j]; if (mine) q[j] = t; o[j] = t / d[j]; } }
                else if (mine) for (long j = 1; j <= n; j++) { double t = r[j] + beta * (p[j] - omega * v[j]); q[j] = t; o[j] = t / d[j]; }
                else for (long j = 1; j <= n; j++) o[j] = (r[j] + beta * (p[j] - omega * v[j])) / d[j];
            }, [&](long i, const double *lo, const double *x, const double *hi, double &s1, double &) {
                const long k0 = i * S; const double *d = &D[k0], *w = &W[k0], *sh = &B[k0]; double *v = &T[k0]; double q = 0;
#pragma omp simd reduction(+ : q)
                for (long j = 1; j <= n; j++) { double t = d[j] * x[j] - hi[j] - x[j + 1] - (1.0 + w[j]) * lo[j] - (1.0 + 0.5 * w[j]) * x[j - 1]; v[j] = t; q += sh[j] * t; }
                s1 += q;
            }, sv, none);
            P.swap(Q); V.swap(T); fresh_p = false;
            alpha = rho / sv;
            double tu, tt;
            window([&](long i, double *o, bool mine) {
                const long k0 = i * S; const double *r = &R[k0], *v = &V[k0], *d = &D[k0]; double *u = &U[k0];
                if (mine) for (long j = 1; j <= n; j++) { double t = r[j] - alpha * v[j]; u[j] = t; o[j] = t / d[j]; }
                else for (long j = 1; j <= n; j++) o[j] = (r[j] - alpha * v[j]) / d[j];
            }, [&](long i, const double *lo, const double *x, const double *hi, double &s1, double &s2) {
                const long k0 = i * S; const double *d = &D[k0], *w = &W[k0], *u = &U[k0]; double *y = &T[k0]; double q = 0, z = 0;
#pragma omp simd reduction(+ : q, z)
                for (long j = 1; j <= n; j++) { double t = d[j] * x[j] - hi[j] - x[j + 1] - (1.0 + w[j]) * lo[j] - (1.0 + 0.5 * w[j]) * x[j - 1]; y[j] = t; q += t * u[j]; z += t * t; }
                s1 += q; s2 += z;
            }, tu, tt);
            omega = tu / tt;
            double rr = 0, fr = 0;
#pragma omp parallel for schedule(static) reduction(+ : rr, fr)
            for (long i = 1; i <= n; i++) { const long k0 = i * S; const double *p = &P[k0], *u = &U[k0], *d = &D[k0], *t = &T[k0], *sh = &B[k0]; double *x = &X[k0], *r = &R[k0]; double q = 0, z = 0;
#pragma omp simd reduction(+ : q, z)
                for (long j = 1; j <= n; j++) { x[j] = x[j] + alpha * (p[j] / d[j]) + omega * (u[j] / d[j]); double f = u[j] - omega * t[j]; r[j] = f; q += f * f; z += sh[j] * f; }
                rr += q; fr += z; }
            residual = std::sqrt(rr / start);
            if (residual < 1e-10) break;
            beta = fr / rho * alpha / omega; rho = fr;
        }
        if (iterations > 6) iterations = 6;
    };
    return bench(run, [&] { return sum(X) + residual + iterations; });
}
