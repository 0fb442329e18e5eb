// Convection in a box: one sweep for all tendencies into the other buffer, one for the pressure.
// The first step reads the initial fields, whose ghost cells are set like those of any step.
#include "common.hpp"

static constexpr int STEPS = 2;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), m = n + 2, mm = m * m, all = mm * m;
    const double h = d.number("h"), dt = d.number("dt"), nu = d.number("nu"), kappa = d.number("kappa");
    const double lift = d.number("lift"), sound2 = d.number("sound2");
    auto u0 = d.array<double>("u0"), v0 = d.array<double>("v0"), w0 = d.array<double>("w0");
    auto p0 = d.array<double>("p0"), t0 = d.array<double>("t0");
    Array<double> ua(all), va(all), wa(all), ta(all), ub(all), vb(all), wb(all), tb(all), pa(all);
    double energy = 0, *u = nullptr, *v = nullptr, *w = nullptr, *p = nullptr, *t = nullptr;
    auto run = [&] {
        const double c = 0.5 / h, h2 = 1.0 / (h * h), pc = dt * c, dc = sound2 * dt, dl = dt * lift;
        double total = 0;
        // Ghost cells of the sides and plates at index a: sign * inner + shift at the plates.
        auto ghosts = [&](double *f, int64_t a, double sign, double low, double high) {
            for (int64_t b = 1; b <= n; b++) f[a * mm + b] = f[a * mm + n * m + b], f[a * mm + (n + 1) * m + b] = f[a * mm + m + b];
            std::memcpy(f + a * m + 1, f + n * mm + a * m + 1, n * 8);
            std::memcpy(f + (n + 1) * mm + a * m + 1, f + mm + a * m + 1, n * 8);
            for (int64_t b = 1; b <= n; b++) {
                double *r = f + a * mm + b * m;
                r[0] = low + sign * r[1], r[n + 1] = high + sign * r[n];
            }
        };
#pragma omp parallel if (n * n * n >= PARALLEL_FROM)
        for (int step = 0; step < STEPS; step++) {
            double *U = step == 0 ? u0.p : step % 2 ? ua.p : ub.p, *V = step == 0 ? v0.p : step % 2 ? va.p : vb.p;
            double *W = step == 0 ? w0.p : step % 2 ? wa.p : wb.p, *T = step == 0 ? t0.p : step % 2 ? ta.p : tb.p;
            double *P = step == 0 ? p0.p : pa.p, *PN = pa.p;
            double *UN = step % 2 ? ub.p : ua.p, *VN = step % 2 ? vb.p : va.p;
            double *WN = step % 2 ? wb.p : wa.p, *TN = step % 2 ? tb.p : ta.p;
#pragma omp for schedule(static)
            for (int64_t a = 1; a <= n; a++) {
                if (step == 0) ghosts(U, a, -1, 0, 0), ghosts(V, a, -1, 0, 0), ghosts(W, a, -1, 0, 0);
                ghosts(T, a, -1, 2.0, 0.0), ghosts(P, a, 1, 0, 0);
            }
#pragma omp for schedule(static)
            for (int64_t i = 1; i <= n; i++)
                for (int64_t j = 1; j <= n; j++) {
                    const int64_t o = i * mm + j * m;
                    auto both = [&](const double *f, int64_t e, double nu, double uu, double vv, double ww) {
                        const double x = uu * (f[e + mm] - f[e - mm]), y = vv * (f[e + m] - f[e - m]), z = ww * (f[e + 1] - f[e - 1]);
                        const double around = (f[e + mm] + f[e - mm] + f[e + m] + f[e - m]) + (f[e + 1] + f[e - 1]);
                        return dt * (nu * ((around - 6.0 * f[e]) * h2) - c * (x + y + z));
                    };
#pragma omp simd
                    for (int64_t e = o + 1; e <= o + n; e++) {
                        const double uu = U[e], vv = V[e], ww = W[e], tt = T[e];
                        UN[e] = uu + both(U, e, nu, uu, vv, ww) - pc * (P[e + mm] - P[e - mm]);
                        VN[e] = vv + both(V, e, nu, uu, vv, ww) - pc * (P[e + m] - P[e - m]);
                        WN[e] = ww + dl * (tt - 0.5) + both(W, e, nu, uu, vv, ww) - pc * (P[e + 1] - P[e - 1]);
                        TN[e] = tt + both(T, e, kappa, uu, vv, ww);
                    }
                }
#pragma omp for schedule(static)
            for (int64_t a = 1; a <= n; a++) ghosts(UN, a, -1, 0, 0), ghosts(VN, a, -1, 0, 0), ghosts(WN, a, -1, 0, 0);
            const bool last = step == STEPS - 1;
#pragma omp for schedule(static) reduction(+ : total)
            for (int64_t i = 1; i <= n; i++)
                for (int64_t j = 1; j <= n; j++) {
                    const int64_t o = i * mm + j * m;
                    double sum = 0;
#pragma omp simd
                    for (int64_t e = o + 1; e <= o + n; e++) {
                        const double dx = UN[e + mm] - UN[e - mm], dy = VN[e + m] - VN[e - m], dz = WN[e + 1] - WN[e - 1];
                        PN[e] = P[e] - dc * (c * (dx + dy + dz));
                    }
                    if (last) {
#pragma omp simd reduction(+ : sum)
                        for (int64_t e = o + 1; e <= o + n; e++) sum += 0.5 * (UN[e] * UN[e] + VN[e] * VN[e] + WN[e] * WN[e]);
                    }
                    total += sum;
                }
#pragma omp single
            u = UN, v = VN, w = WN, p = PN, t = TN;
        }
        energy = total * (h * h * h);
    };
    bench(run, [&](Checksum &s) {
        Array<double> inner(n * n * n);
        const char *names[] = {"u", "v", "w", "p", "t"};
        const double *fields[] = {u, v, w, p, t};
        for (int f = 0; f < 5; f++) {
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    std::memcpy(inner.p + (i * n + j) * n, fields[f] + (i + 1) * mm + (j + 1) * m + 1, n * 8);
            s.add(names[f], inner.p, n * n * n);
        }
        s.add("energy", &energy, 1);
    });
}
