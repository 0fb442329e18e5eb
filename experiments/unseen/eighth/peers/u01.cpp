#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    const int STEPS = 2; const double DT = 1e-3, NU = 0.02, KAPPA = 0.03, BETA = 4.0, BUOY = 8.0;
    const double g = 0.5 * n, h2 = double(n * n);
    vector<double> F[5] = {load<double>("u"), load<double>("v"), load<double>("w"), load<double>("p"), load<double>("t")};
    vector<double> N[5]; for (auto &x : N) x.resize(F[0].size());
    double energy = 0; double flux = 0;
    const long R = n + 2; const long P = R * R;
    auto run = [&] {
        const double plate[5] = {-1, -1, -1, 1, -1}, wall[5] = {1, -1, 1, 1, 1}, low[5] = {0, 0, 0, 0, .5}, high[5] = {0, 0, 0, 0, -.5};
        double ke = 0, fl = 0;
        for (int step = 0; step < STEPS; step++) {
            bool last = step == STEPS - 1;
            ke = fl = 0;
#pragma omp parallel reduction(+ : ke, fl)
            {
#pragma omp for collapse(2)
            for (int f = 0; f < 5; f++)
                for (long i = 1; i <= n; i++) {   // walls and wrap of the inner planes
                    double *a = F[f].data() + i * P;
                    for (long k = 1; k <= n; k++) { a[k] = wall[f] * a[R + k]; a[(n + 1) * R + k] = wall[f] * a[n * R + k]; }
                    for (long j = 0; j <= n + 1; j++) { a[j * R] = a[j * R + n]; a[j * R + n + 1] = a[j * R + 1]; }
                }
#pragma omp for collapse(2)
            for (int f = 0; f < 5; f++)
                for (int side = 0; side < 2; side++) {
                    double *a = F[f].data() + (side ? (n + 1) * P : 0), *b = F[f].data() + (side ? n * P : P);
                    double c = 2.0 * (side ? high[f] : low[f]);
                    for (long j = 1; j <= n; j++) for (long k = 1; k <= n; k++) a[j * R + k] = c + plate[f] * b[j * R + k];
                    for (long k = 1; k <= n; k++) { a[k] = wall[f] * a[R + k]; a[(n + 1) * R + k] = wall[f] * a[n * R + k]; }
                    for (long j = 0; j <= n + 1; j++) { a[j * R] = a[j * R + n]; a[j * R + n + 1] = a[j * R + 1]; }
                }
            const double cu = NU * h2 / 100.0, ct = KAPPA * h2 / 100.0;
#pragma omp for collapse(2)
            for (long i = 1; i <= n; i++)
                for (long j = 1; j <= n; j++) {
                    const long o = i * P + j * R;
                    const double *u = F[0].data() + o, *v = F[1].data() + o, *w = F[2].data() + o, *p = F[3].data() + o, *t = F[4].data() + o;
                    double *nu = N[0].data() + o, *nv = N[1].data() + o, *nw = N[2].data() + o, *np = N[3].data() + o, *nt = N[4].data() + o;
                    auto tr = [&](const double *f, long k, double c) __attribute__((always_inline)) {
                        double ax = u[k] * (f[k + 1] - f[k - 1]), ay = v[k] * (f[k + R] - f[k - R]), az = w[k] * (f[k + P] - f[k - P]);
                        double lap = f[k + 1] + f[k - 1] + f[k + R] + f[k - R] + f[k + P] + f[k - P] - 6.0 * f[k];
                        return c * lap - g * (ax + ay + az);
                    };
                    double e1 = 0, e2 = 0;
#pragma omp simd reduction(+ : e1, e2)
                    for (long k = 1; k <= n; k++) {
                        double div = g * (u[k + 1] - u[k - 1] + v[k + R] - v[k - R] + w[k + P] - w[k - P]);
                        double a = u[k] + DT * (tr(u, k, cu) - g * (p[k + 1] - p[k - 1]));
                        double b = v[k] + DT * (tr(v, k, cu) - g * (p[k + R] - p[k - R]));
                        double c = w[k] + DT * (tr(w, k, cu) + (BUOY * t[k] - g * (p[k + P] - p[k - P])));
                        double d = t[k] + DT * tr(t, k, ct);
                        nu[k] = a; nv[k] = b; nw[k] = c; nt[k] = d; np[k] = p[k] - BETA * DT * div;
                        e1 += 0.5 * (a * a + b * b + c * c); e2 += c * d;
                    }
                    if (last) { ke += e1; fl += e2; }
                }
            }
            for (int f = 0; f < 5; f++) F[f].swap(N[f]);
        }
        energy = ke / (double(n) * n * n); flux = fl / (double(n) * n * n);
    };
    return bench(run, [&] {
        double s = energy + flux;
        for (auto &f : F) for (long i = 1; i <= n; i++) for (long j = 1; j <= n; j++) for (long k = 1; k <= n; k++) s += f[i * P + j * R + k];
        return s;
    });
}
