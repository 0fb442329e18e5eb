// Discontinuous Galerkin acoustics: one sweep a stage in blocks of elements. Nodes are kept node by
// node, so that loops over elements are vectorised; the last stage writes element by element.
#include "common.hpp"

static constexpr int N = 5, STEPS = 2, B = 256;
static const double RA[5] = {0.0, -567301805773.0 / 1357537059087.0, -2404267990393.0 / 2016746695238.0,
                             -3550918686646.0 / 2091501179385.0, -1275806237668.0 / 842570457699.0};
static const double RB[5] = {1432997174477.0 / 9575080441755.0, 5161836677717.0 / 13612068292357.0,
                             1720146321549.0 / 2090206949498.0, 3134564353537.0 / 4481467310338.0,
                             2277821191437.0 / 14882151754819.0};

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double dt = d.number("dt"), h = d.number("h");
    auto D = d.array<double>("d"), w = d.array<double>("w"), bulk = d.array<double>("bulk");
    auto light = d.array<double>("lightness"), z = d.array<double>("z");
    auto p0 = d.array<double>("p0"), u0 = d.array<double>("u0");
    Array<double> P(N * n), U(N * n), RP(N * n), RU(N * n), p(N * n), u(N * n);
    double energy = 0;
    auto run = [&] {
        const double k = 2 * dt / h;
        double total = 0;
        std::vector<double> edge_p(omp_get_max_threads() + 1), edge_u(omp_get_max_threads() + 1);
#pragma omp parallel reduction(+ : total) if (N * n >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
            const int64_t e0 = n * t / nt, e1 = n * (t + 1) / nt;
            for (int64_t e = e0; e < e1; e++)
                for (int i = 0; i < N; i++) P[i * n + e] = p0[e * N + i], U[i * n + e] = u0[e * N + i];
#pragma omp barrier
            alignas(64) double ps[B + 1], us[B + 1], dp[N][B], du[N][B];
            auto star = [&](int64_t left, int64_t f, double &sp, double &su) {
                const double zl = z[left], zr = z[f], pl = P[4 * n + left], pr = P[f], ul = U[4 * n + left], ur = U[f];
                su = (zl * ul + zr * ur + (pl - pr)) / (zl + zr);
                sp = (zr * pl + zl * pr + zl * zr * (ul - ur)) / (zl + zr);
            };
            for (int stage = 0; stage < 5 * STEPS; stage++) {
                const double a = RA[stage % 5], b = RB[stage % 5];
                const bool last = stage == 5 * STEPS - 1;
                star((e0 + n - 1) % n, e0, edge_p[t], edge_u[t]);
                if (t == 0) edge_p[nt] = edge_p[0], edge_u[nt] = edge_u[0];
#pragma omp barrier
                ps[0] = edge_p[t], us[0] = edge_u[t];
                for (int64_t f0 = e0; f0 < e1; f0 += B) {
                    const int64_t m = std::min<int64_t>(B, e1 - f0);
                    const bool end = f0 + m == e1;
                    const double *__restrict zz = z.p + f0;
#pragma omp simd
                    for (int64_t l = 1; l < m + !end; l++) {
                        const double zl = zz[l - 1], zr = zz[l];
                        const double pl = P[4 * n + f0 + l - 1], pr = P[f0 + l], ul = U[4 * n + f0 + l - 1], ur = U[f0 + l];
                        const double inv = 1.0 / (zl + zr);
                        us[l] = (zl * ul + zr * ur + (pl - pr)) * inv;
                        ps[l] = (zr * pl + zl * pr + zl * zr * (ul - ur)) * inv;
                    }
                    if (end) ps[m] = edge_p[t + 1], us[m] = edge_u[t + 1];
                    for (int i = 0; i < N; i++) {
                        const double *__restrict c = D.p + i * N;
#pragma omp simd
                        for (int64_t l = 0; l < m; l++) {
                            const int64_t e = f0 + l;
                            dp[i][l] = c[0] * P[e] + c[1] * P[n + e] + c[2] * P[2 * n + e] + c[3] * P[3 * n + e] + c[4] * P[4 * n + e];
                            du[i][l] = c[0] * U[e] + c[1] * U[n + e] + c[2] * U[2 * n + e] + c[3] * U[3 * n + e] + c[4] * U[4 * n + e];
                        }
                    }
#pragma omp simd
                    for (int64_t l = 0; l < m; l++) {
                        const int64_t e = f0 + l;
                        dp[0][l] -= 10.0 * (ps[l] - P[e]), du[0][l] -= 10.0 * (us[l] - U[e]);
                        dp[4][l] += 10.0 * (ps[l + 1] - P[4 * n + e]), du[4][l] += 10.0 * (us[l + 1] - U[4 * n + e]);
                    }
                    for (int i = 0; i < N; i++) {
                        double *__restrict rp = RP.p + i * n + f0, *__restrict ru = RU.p + i * n + f0;
                        double *__restrict pp = P.p + i * n + f0, *__restrict uu = U.p + i * n + f0;
                        const double *__restrict kb = bulk.p + f0, *__restrict kl = light.p + f0;
                        if (a == 0.0) {
#pragma omp simd
                            for (int64_t l = 0; l < m; l++) {
                                rp[l] = -k * kb[l] * du[i][l], ru[l] = -k * kl[l] * dp[i][l];
                                pp[l] += b * rp[l], uu[l] += b * ru[l];
                            }
                        } else {
#pragma omp simd
                            for (int64_t l = 0; l < m; l++) {
                                rp[l] = a * rp[l] - k * kb[l] * du[i][l], ru[l] = a * ru[l] - k * kl[l] * dp[i][l];
                                pp[l] += b * rp[l], uu[l] += b * ru[l];
                            }
                        }
                        if (last) {
                            double sum = 0;
#pragma omp simd reduction(+ : sum)
                            for (int64_t l = 0; l < m; l++) sum += pp[l] * pp[l] / kb[l] + uu[l] * uu[l] / kl[l];
                            total += 0.5 * w[i] * sum;
                        }
                    }
                    if (last)
                        for (int64_t e = f0; e < f0 + m; e++)
                            for (int i = 0; i < N; i++) p[e * N + i] = P[i * n + e], u[e * N + i] = U[i * n + e];
                    ps[0] = ps[m], us[0] = us[m];
                }
#pragma omp barrier
            }
        }
        energy = total * h / 2;
    };
    bench(run, [&](Checksum &s) {
        s.add("p", p.p, N * n);
        s.add("u", u.p, N * n);
        s.add("energy", &energy, 1);
    });
}
