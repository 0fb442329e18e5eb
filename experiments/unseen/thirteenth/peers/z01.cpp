// Electrolyte: one sweep an iteration over two buffers of the potential; the residual's square with it.
#include "common.hpp"

static const double INSIDE = 4.0, WATER = 78.5, SALT = 0.9, OMEGA = 0.85, TOLERANCE = 1e-6, LENGTH = 24.0,
                    STERN = 1.4, BLUR = 1.1, CLAMP = 12.0;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), most = d.number("most"), N = n * n * n, count = d.extent("atoms");
    auto atoms = d.array<double>("atoms");
    const double h = LENGTH / (n - 1), h2 = h * h;
    Array<double> eps(N), ions(N), rho(N), fx(N), fy(N), fz(N), total(N), pa(N), pb(N);
    std::vector<double> gauss(3 * count * n);
    std::vector<double> residuals;
    double *phi = pa, energy = 0, charge = 0;
    auto run = [&] {
        for (int64_t a = 0; a < count; a++)
            for (int c = 0; c < 3; c++)
                for (int64_t i = 0; i < n; i++) {
                    double x = i * h - atoms[5 * a + c];
                    gauss[(a * 3 + c) * n + i] = exp(-x * x / (BLUR * BLUR));
                }
#pragma omp parallel for collapse(2) schedule(static) if (N >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t o = (i * n + j) * n;
                for (int64_t k = 0; k < n; k++) eps[o + k] = WATER, ions[o + k] = SALT, rho[o + k] = 0, pa[o + k] = pb[o + k] = 0;
                for (int64_t a = 0; a < count; a++) {
                    const double *at = &atoms[5 * a], *g = &gauss[3 * a * n];
                    const double x = i * h - at[0], y = j * h - at[1], xy = x * x + y * y;
                    const double in = at[3] * at[3], out = (at[3] + STERN) * (at[3] + STERN);
                    const double q = at[4] * g[i] * g[n + j];
                    double *e = &eps[o], *s = &ions[o], *r = &rho[o];
#pragma omp simd
                    for (int64_t k = 0; k < n; k++) {
                        double z = k * h - at[2], r2 = xy + z * z;
                        e[k] = r2 < in ? INSIDE : e[k];
                        s[k] = r2 < out ? 0.0 : s[k];
                        r[k] += q * g[2 * n + k];
                    }
                }
            }
        auto mean = [](double a, double b) { return 2.0 * a * b / (a + b); };
#pragma omp parallel for collapse(2) schedule(static) if (N >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t o = (i * n + j) * n;
                const bool x = i < n - 1, y = j < n - 1;
#pragma omp simd
                for (int64_t k = 0; k < n; k++) fx[o + k] = x ? mean(eps[o + k], eps[o + k + n * n]) : 0.0;
#pragma omp simd
                for (int64_t k = 0; k < n; k++) fy[o + k] = y ? mean(eps[o + k], eps[o + k + n]) : 0.0;
#pragma omp simd
                for (int64_t k = 0; k < n - 1; k++) fz[o + k] = mean(eps[o + k], eps[o + k + 1]);
            }
        residuals.clear();
        double *p = pa, *q = pb, mobile = 0;
        for (int64_t iteration = 0; iteration < most; iteration++) {
            double sum = 0, ion = 0;
#pragma omp parallel for collapse(2) schedule(static) reduction(+ : sum, ion) if (N >= PARALLEL_FROM)
            for (int64_t i = 1; i < n - 1; i++)
                for (int64_t j = 1; j < n - 1; j++) {
                    const int64_t o = (i * n + j) * n;
                    const double *c = p + o, *w = c - n * n, *e = c + n * n, *s = c - n, *t = c + n;
                    const double *xe = fx + o, *xw = xe - n * n, *yn = fy + o, *ys = yn - n, *z = fz + o;
                    const double *io = ions + o, *rh = rho + o;
                    double *__restrict out = q + o;
                    double s1 = 0, s2 = 0;
#pragma omp simd reduction(+ : s1, s2)
                    for (int64_t k = 1; k < n - 1; k++) {
                        double v = c[k];
                        double f = xe[k] * (e[k] - v) + xw[k] * (w[k] - v) + yn[k] * (t[k] - v) + ys[k] * (s[k] - v) +
                                   z[k] * (c[k + 1] - v) + z[k - 1] * (c[k - 1] - v);
                        double g = xe[k] + xw[k] + yn[k] + ys[k] + z[k] + z[k - 1];
                        double u = v < CLAMP ? v : CLAMP;
                        u = u > -CLAMP ? u : -CLAMP;
                        double up = exp(u), down = 1.0 / up;
                        double m = 0.5 * io[k] * (up - down), dm = 0.5 * io[k] * (up + down);
                        double r = f + h2 * (rh[k] - m);
                        s1 += r * r;
                        s2 += m;
                        out[k] = v + OMEGA * r / (g + h2 * dm);
                    }
                    sum += s1;
                    ion += s2;
                }
            std::swap(p, q);
            mobile = ion;
            if (iteration % 6 == 5) {
                residuals.push_back(std::sqrt(sum));
                if (residuals.back() < TOLERANCE * residuals[0]) break;
            }
        }
        double work = 0;
#pragma omp parallel for schedule(static) reduction(+ : work) if (N >= PARALLEL_FROM)
        for (int64_t i = 0; i < N; i++) work += rho[i] * p[i];
        phi = p;
        energy = 0.5 * h * h * h * work;
        charge = h * h * h * mobile;
    };
    bench(run, [&](Checksum &s) {
        s.add("phi", phi, N);
        s.add("residuals", residuals.data(), residuals.size());
        s.add("energy", energy);
        s.add("charge", charge);
    });
}
