// One sweep a round: stiffness, two sweeps of u, strain and two sweeps of d follow each other down the
// rows, each a row behind, in rings of four rows; the state goes to a second set of arrays.
#include "common.hpp"

static constexpr int LOADS = 3, ROUNDS = 7;
static constexpr double GC = 0.02, LEN = 2.0, RELAX = 0.8;

int main(int, char **argv) {
    Dump dump(argv[1]);
    const int64_t n = dump.number("n");
    auto u0 = dump.array<double>("u0"), d0 = dump.array<double>("d0");
    Array<double> U[2], D[2], Wst[2], history(LOADS * 6);
    for (int k = 0; k < 2; k++) U[k].make(n * n), D[k].make(n * n), Wst[k].make(n * n);
    const int64_t W = (n + 24) / 8 * 8, mid = n / 2 - 1, third = n / 3;
    // Sum of the four neighbours less four times the cell, the edge repeated.
    auto lap = [&](const double *a, const double *b, const double *c, int64_t j) {
        return a[j] + c[j] + b[j ? j - 1 : 0] + b[j < n - 1 ? j + 1 : j] - 4.0 * b[j];
    };
    auto relaxed = [&](double d, double l, double w) {
        const double source = 2.0 * w, residual = source * (1.0 - d) + GC * (LEN * l - d / LEN);
        return std::min(std::max(d + residual / (source + GC * (1.0 / LEN + 4.0 * LEN)), 0.0), 1.0);
    };
    auto sweep_d = [&](int64_t i, const double *__restrict a, const double *__restrict b, const double *__restrict c, const double *__restrict w, double *__restrict out) {
        out[0] = relaxed(b[0], lap(a, b, c, 0), w[0]);
        out[n - 1] = relaxed(b[n - 1], lap(a, b, c, n - 1), w[n - 1]);
#pragma omp simd
        for (int64_t j = 1; j < n - 1; j++) out[j] = relaxed(b[j], a[j] + c[j] + b[j - 1] + b[j + 1] - 4.0 * b[j], w[j]);
        if (i == mid || i == mid + 1) std::fill(out, out + third, 1.0);
    };
    auto sweep_u = [&](const double *__restrict a, const double *__restrict b, const double *__restrict c, const double *__restrict kx, const double *__restrict ky, const double *__restrict kz, double *__restrict out) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {  // beyond the sides the stiffness is 0
            const double force = ky[j] * a[j] + kz[j] * c[j] + kx[j] * b[j - 1] + kx[j + 1] * b[j + 1];
            out[j] = (1.0 - RELAX) * b[j] + RELAX * force / (kx[j] + ky[j] + kz[j] + kx[j + 1]);
        }
    };
    auto round = [&](int at, double &du, double &dd) {
        const double *uo = U[at].p, *od = D[at].p, *wo = Wst[at].p;
        double *un = U[1 - at].p, *dn = D[1 - at].p, *wn = Wst[1 - at].p, su = 0, sd = 0;
#pragma omp parallel if (n * n >= PARALLEL_FROM) reduction(+ : su, sd)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), i0 = n * t / nt, i1 = n * (t + 1) / nt;
            std::vector<double> mem(28 * W + 8);
            auto ring = [&](int which, int64_t i) { return mem.data() + 8 + (which * 4 + (i & 3)) * W; };
            enum { G, KX, KY, U1, U2, WW, D1 };
            auto stiff = [&](int64_t i) {  // g of row i, ky between it and the row before
                double *__restrict g = ring(G, i), *__restrict ky = ring(KY, i);
                const double *__restrict b = od + i * n;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) g[j] = (1.0 - b[j]) * (1.0 - b[j]) + 0.001;
                if (i == 0) return;
                const double *__restrict a = od + (i - 1) * n;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    const double before = (1.0 - a[j]) * (1.0 - a[j]) + 0.001;
                    ky[j] = 2.0 * before * g[j] / (before + g[j]);
                }
            };
            auto inside = [](int64_t i, int64_t lo, int64_t hi) { return i >= lo && i <= hi; };
            const int64_t first = std::max<int64_t>(0, i0 - 3);
            if (i0 < i1) stiff(first);
            for (int64_t r = first; i0 < i1 && r <= i1 + 2; r++) {
                if (r <= std::min(n - 1, i1 + 2)) {
                    if (r + 1 < n) stiff(r + 1);
                    double *__restrict kx = ring(KX, r), *__restrict out = ring(U1, r);
                    const double *__restrict g = ring(G, r), *b = uo + r * n;
                    kx[0] = kx[n] = 0.0;
#pragma omp simd
                    for (int64_t j = 1; j < n; j++) kx[j] = 2.0 * g[j - 1] * g[j] / (g[j - 1] + g[j]);
                    if (r == 0 || r == n - 1) std::copy(b, b + n, out);
                    else sweep_u(b - n, b, b + n, kx, ring(KY, r), ring(KY, r + 1), out);
                }
                if (const int64_t i = r - 1; inside(i, std::max<int64_t>(0, i0 - 2), std::min(n - 1, i1 + 1))) {
                    double *__restrict out = ring(U2, i);
                    const double *b = ring(U1, i);
                    if (i == 0 || i == n - 1) std::copy(b, b + n, out);
                    else sweep_u(ring(U1, i - 1), b, ring(U1, i + 1), ring(KX, i), ring(KY, i), ring(KY, i + 1), out);
                    if (i >= i0 && i < i1) {
                        const double *__restrict old = uo + i * n;
                        double *__restrict to = un + i * n;
#pragma omp simd reduction(+ : su)
                        for (int64_t j = 0; j < n; j++) to[j] = out[j], su += (out[j] - old[j]) * (out[j] - old[j]);
                    }
                }
                if (const int64_t i = r - 2; inside(i, std::max<int64_t>(0, i0 - 1), std::min(n - 1, i1))) {
                    const double *__restrict b = ring(U2, i), *__restrict a = i ? ring(U2, i - 1) : b, *__restrict c = i < n - 1 ? ring(U2, i + 1) : b;
                    const double *__restrict old = wo + i * n;
                    double *__restrict w = ring(WW, i);
                    const double dy = i && i < n - 1 ? 0.5 : 1.0;
                    auto psi = [&](double gy, double gx) { return 0.5 * (gx * gx + gy * gy); };
                    w[0] = std::max(old[0], psi((c[0] - a[0]) * dy, b[1] - b[0]));
                    w[n - 1] = std::max(old[n - 1], psi((c[n - 1] - a[n - 1]) * dy, b[n - 1] - b[n - 2]));
#pragma omp simd
                    for (int64_t j = 1; j < n - 1; j++) w[j] = std::max(old[j], psi((c[j] - a[j]) * dy, (b[j + 1] - b[j - 1]) * 0.5));
                    const double *m = od + i * n;
                    sweep_d(i, i ? m - n : m, m, i < n - 1 ? m + n : m, w, ring(D1, i));
                    if (i >= i0 && i < i1) std::copy(w, w + n, wn + i * n);
                }
                if (const int64_t i = r - 3; inside(i, i0, i1 - 1)) {
                    const double *m = ring(D1, i), *__restrict old = od + i * n;
                    double *__restrict to = dn + i * n;
                    sweep_d(i, i ? ring(D1, i - 1) : m, m, i < n - 1 ? ring(D1, i + 1) : m, ring(WW, i), to);
#pragma omp simd reduction(+ : sd)
                    for (int64_t j = 0; j < n; j++) sd += (to[j] - old[j]) * (to[j] - old[j]);
                }
            }
        }
        du = std::sqrt(su) / n * std::sqrt(double(n)), dd = std::sqrt(sd) / n;
    };
    int at = 0;
    auto run = [&] {
        at = 0;
#pragma omp parallel for schedule(static) if (n * n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) {
            std::copy(u0.p + i * n, u0.p + i * n + n, U[0].p + i * n);
            std::copy(d0.p + i * n, d0.p + i * n + n, D[0].p + i * n);
            std::fill(Wst[0].p + i * n, Wst[0].p + i * n + n, 0.0);
        }
        for (int load = 0; load < LOADS; load++) {
            for (int64_t j = 0; j < n; j++) U[at][j] = -1.5 * (load + 1), U[at][(n - 1) * n + j] = 1.5 * (load + 1);
            int rounds = 0;
            double du = 1, dd = 1, bulk = 0, surface = 0, force = 0;
            while (rounds < ROUNDS && (du > 0.1 || dd > 0.02)) round(at, du, dd), at = 1 - at, rounds++;
            const double *u = U[at].p, *d = D[at].p, *od = D[1 - at].p;
#pragma omp parallel for schedule(static) reduction(+ : bulk, surface) if (n * n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) {
                const double *__restrict b = u + i * n, *__restrict a = i ? b - n : b, *__restrict c = i < n - 1 ? b + n : b;
                const double *__restrict e = d + i * n, *__restrict f = i ? e - n : e, *__restrict h = i < n - 1 ? e + n : e;
                const double dy = i && i < n - 1 ? 0.5 : 1.0;
                auto cell = [&](int64_t j, double gx, double l) {
                    const double gy = (c[j] - a[j]) * dy;
                    bulk += ((1.0 - e[j]) * (1.0 - e[j]) + 0.001) * (0.5 * (gx * gx + gy * gy));
                    surface += 0.5 * GC * e[j] * (e[j] / LEN - LEN * l);
                };
                cell(0, b[1] - b[0], lap(f, e, h, 0)), cell(n - 1, b[n - 1] - b[n - 2], lap(f, e, h, n - 1));
#pragma omp simd reduction(+ : bulk, surface)
                for (int64_t j = 1; j < n - 1; j++) {
                    const double gy = (c[j] - a[j]) * dy, gx = (b[j + 1] - b[j - 1]) * 0.5, l = f[j] + h[j] + e[j - 1] + e[j + 1] - 4.0 * e[j];
                    bulk += ((1.0 - e[j]) * (1.0 - e[j]) + 0.001) * (0.5 * (gx * gx + gy * gy));
                    surface += 0.5 * GC * e[j] * (e[j] / LEN - LEN * l);
                }
            }
            for (int64_t j = (n - 1) * n; j < n * n; j++) {
                const double g = (1.0 - od[j]) * (1.0 - od[j]) + 0.001, p = (1.0 - od[j - n]) * (1.0 - od[j - n]) + 0.001;
                force += 2.0 * p * g / (p + g) * (u[j] - u[j - n]);
            }
            const double row[6] = {double(rounds), du, dd, bulk, surface, force};
            std::copy(row, row + 6, history.p + 6 * load);
        }
    };
    bench(run, [&](Checksum &s) { s.add("u", U[at].p, n * n), s.add("d", D[at].p, n * n), s.add("history", history.p, LOADS * 6); });
}
