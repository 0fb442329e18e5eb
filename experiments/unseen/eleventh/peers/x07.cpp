// Argon: two sweeps a step: scale, kick, drift, wrap; then forces, kick and both energies.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps"), most = d.extent("near", 1);
    const double box = d.number("box"), dt = 0.004, half = 0.5 * dt, cut2 = 5.0;
    auto near = d.array<int32_t>("near");
    Array<double> first[6] = {d.array<double>("x0_0"), d.array<double>("x0_1"), d.array<double>("x0_2"),
                              d.array<double>("v0_0"), d.array<double>("v0_1"), d.array<double>("v0_2")};
    Array<double> X(3 * n), V(3 * n), F(3 * n);
    std::vector<double> kinetic(steps), potential(steps);
    auto run = [&] {
        const bool par = n >= 256;
        double *x = X, *y = x + n, *z = y + n, *v = V, *f = F;
        const double hb = 0.5 * box;
        auto force = [&](int64_t i, double &e) {
            const int32_t *__restrict nb = near + i * most;
            const double xi = x[i], yi = y[i], zi = z[i];
            double sx = 0, sy = 0, sz = 0, en = 0;
#pragma omp simd reduction(+ : sx, sy, sz, en)
            for (int64_t k = 0; k < most; k++) {
                const int32_t j = nb[k];
                double dx = xi - x[j], dy = yi - y[j], dz = zi - z[j];
                dx = dx > hb ? dx - box : dx;
                dx = dx < -hb ? dx + box : dx;
                dy = dy > hb ? dy - box : dy;
                dy = dy < -hb ? dy + box : dy;
                dz = dz > hb ? dz - box : dz;
                dz = dz < -hb ? dz + box : dz;
                double r2 = dx * dx + dy * dy + dz * dz, s = 1.0 / r2, s6 = s * s * s;
                double in = r2 < cut2 ? 1.0 : 0.0;
                double w = in * (24.0 * s6 * (2.0 * s6 - 1.0) * s);
                sx += w * dx;
                sy += w * dy;
                sz += w * dz;
                en += in * (2.0 * s6 * (s6 - 1.0));
            }
            f[i] = sx;
            f[n + i] = sy;
            f[2 * n + i] = sz;
            e = en;
        };
#pragma omp parallel if (par)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++)
                for (int a = 0; a < 3; a++) {
                    x[a * n + i] = first[a][i];
                    v[a * n + i] = first[3 + a][i];
                }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                double e;
                force(i, e);
            }
        }
        double factor = 1.0;
        for (int64_t k = 0; k < steps; k++) {
            double ke = 0, pe = 0;
#pragma omp parallel reduction(+ : ke, pe) if (par)
            {
                for (int a = 0; a < 3; a++) {
                    double *__restrict va = v + a * n, *__restrict xa = x + a * n;
                    const double *__restrict fa = f + a * n;
#pragma omp for simd schedule(static) nowait
                    for (int64_t i = 0; i < n; i++) {
                        double u = va[i] * factor + half * fa[i], p = xa[i] + dt * u;
                        p = p < 0.0 ? p + box : p;
                        p = p >= box ? p - box : p;
                        va[i] = u;
                        xa[i] = p;
                    }
                }
#pragma omp barrier
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    double e;
                    force(i, e);
                    double a = v[i] += half * f[i];
                    double b = v[n + i] += half * f[n + i];
                    double c = v[2 * n + i] += half * f[2 * n + i];
                    ke += a * a + b * b + c * c;
                    pe += e;
                }
            }
            ke *= 0.5;
            kinetic[k] = ke / n;
            potential[k] = pe / n;
            factor = std::sqrt(1.0 + 0.05 * (0.4 / (2.0 * ke / (3.0 * n)) - 1.0));
        }
#pragma omp parallel for simd schedule(static) if (par)
        for (int64_t i = 0; i < 3 * n; i++) v[i] *= factor;
    };
    bench(run, [&](Checksum &c) {
        c.add("x", X.p, 3 * n);
        c.add("v", V.p, 3 * n);
        c.add("kinetic", kinetic.data(), steps);
        c.add("potential", potential.data(), steps);
    });
}
