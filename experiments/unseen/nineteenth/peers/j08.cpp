// Columns know nothing of each other: blocks of 32 go through all steps in cache, levels outside, columns
// as vectors inside.
#include "common.hpp"

static constexpr int L = 24, STEPS = 3, B = 32;
static constexpr double DT = 20.0, DZ = 250.0, SIGMA = 0.0000000567, RATE = DT / DZ / 1005.0;
using Field = double[L][B];

int main(int, char **argv) {
    Dump dump(argv[1]);
    const int64_t n = dump.number("n");
    auto t0 = dump.array<double>("t0"), qv0 = dump.array<double>("qv0"), qc0 = dump.array<double>("qc0"), qr0 = dump.array<double>("qr0");
    auto pressure = dump.array<double>("pressure"), density = dump.array<double>("density"), surface = dump.array<double>("surface");
    Array<double> T(L * n), V(L * n), C(L * n), R(L * n), ground(n), path(n);
    auto columns = [&](int64_t base, int m) {
        alignas(64) Field t, qv, qc, qr, fall, tr, b, up, kz, c;
        alignas(64) double rain[B] = {}, glow[B], flux[B], under[B], total[B] = {};
        for (int k = 0; k < L; k++)
            for (int i = 0; i < m; i++) {
                const int64_t at = k * n + base + i;
                t[k][i] = t0[at], qv[k][i] = qv0[at], qc[k][i] = qc0[at], qr[k][i] = qr0[at];
            }
        for (int i = 0; i < m; i++) {
            const double s = surface[base + i];
            glow[i] = SIGMA * s * s * s * s;
        }
        for (int step = 0; step < STEPS; step++) {
            for (int k = 0; k < L; k++) {
                const double p = pressure[k], rho = density[k];
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    double x = t[k][i], v = qv[k][i], w = qc[k][i], r = qr[k][i], s = 0;
                    for (int again = 0; again < 2; again++) {
                        const double es = 611.2 * exp(17.67 * (x - 273.15) / (x - 29.65));
                        s = 0.622 * es / (p - 0.378 * es);
                        const double slope = s * 4302.645 / ((x - 29.65) * (x - 29.65));
                        const double amount = std::max((v - s) / (1.0 + 2490.0 * slope), -w);
                        x += 2490.0 * amount, v -= amount, w += amount;
                    }
                    const double born = 0.001 * std::max(w - 0.0005, 0.0), swept = 2.2 * w * std::sqrt(r * std::sqrt(std::sqrt(r)) * r);
                    double amount = std::min(DT * (born + swept), w);
                    w -= amount, r += amount;
                    amount = std::min(DT * 0.003 * (1.0 - v / s) * std::sqrt(r), r);
                    amount = (v < s) & (r > 0.0) ? amount : 0.0;
                    x -= 2490.0 * amount, v += amount, r -= amount;
                    t[k][i] = x, qv[k][i] = v, qc[k][i] = w;
                    const double f = rho * r * std::min(14.0 * std::sqrt(std::sqrt(rho * r) / rho), 9.0);
                    qr[k][i] = r;
                    tr[k][i] = exp(-rho * DZ * (0.02 * v + 60.0 * w)), b[k][i] = SIGMA * x * x * x * x;
                    fall[k][i] = f;
                }
            }
            for (int k = 0; k < L; k++)
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    const double in = k < L - 1 ? fall[k + 1][i] : 0.0;
                    qr[k][i] = std::max(qr[k][i] + DT / DZ * (in - fall[k][i]) / density[k], 0.0);
                }
            for (int i = 0; i < m; i++) rain[i] += DT * fall[0][i], flux[i] = glow[i];
            for (int k = 0; k < L; k++)
#pragma omp simd
                for (int i = 0; i < m; i++) up[k][i] = flux[i] = flux[i] * tr[k][i] + b[k][i] * (1.0 - tr[k][i]);
            for (int i = 0; i < m; i++) under[i] = 0.0;
            for (int k = L - 1; k >= 0; k--)
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    const double above = under[i], down = above * tr[k][i] + b[k][i] * (1.0 - tr[k][i]);
                    const double below = k ? up[k - 1][i] : glow[i];
                    t[k][i] += RATE * (below - up[k][i] + above - down) / density[k];
                    under[i] = down;
                }
            // One elimination for the three.
            for (int k = 0; k < L; k++)
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    const int next = k < L - 1 ? k + 1 : k;
                    const double lapse = (t[k][i] - t[next][i]) - 2.44;
                    kz[k][i] = k < L - 1 ? 0.02 + 0.2 * std::max(lapse, 0.0) / (1.0 + std::fabs(lapse)) : 0.0;
                }
            for (int k = 0; k < L; k++) {
                const int prev = k ? k - 1 : 0;
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    const double low = k ? kz[prev][i] : 0.0, before = k ? c[prev][i] : 0.0, beta = 1.0 + kz[k][i] + low * (1.0 + before);
                    c[k][i] = -kz[k][i] / beta;
                    t[k][i] = (t[k][i] + low * t[prev][i]) / beta;
                    qv[k][i] = (qv[k][i] + low * qv[prev][i]) / beta;
                    qc[k][i] = (qc[k][i] + low * qc[prev][i]) / beta;
                }
            }
            for (int k = L - 2; k >= 0; k--)
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    t[k][i] -= c[k][i] * t[k + 1][i];
                    qv[k][i] -= c[k][i] * qv[k + 1][i];
                    qc[k][i] -= c[k][i] * qc[k + 1][i];
                }
        }
        for (int k = 0; k < L; k++)
            for (int i = 0; i < m; i++) {
                const int64_t at = k * n + base + i;
                T[at] = t[k][i], V[at] = qv[k][i], C[at] = qc[k][i], R[at] = qr[k][i];
                total[i] += density[k] * DZ * qc[k][i];
            }
        for (int i = 0; i < m; i++) ground[base + i] = rain[i], path[base + i] = total[i];
    };
    auto run = [&] {
#pragma omp parallel for schedule(static) if (n * L >= PARALLEL_FROM)
        for (int64_t base = 0; base < n; base += B) columns(base, std::min<int64_t>(B, n - base));
    };
    bench(run, [&](Checksum &s) {
        s.add("t", T.p, L * n), s.add("qv", V.p, L * n), s.add("qc", C.p, L * n), s.add("qr", R.p, L * n);
        s.add("ground", ground.p, n), s.add("path", path.p, n);
    });
}
