// Soap film: an update and the next sum in one sweep each in both loops of the recursion; the trial
// with its energy in one sweep; the gradient with both differences and their sums in another.
#include "common.hpp"

static const int KEPT = 4;
static const double WEIGHT = 1e-3;

int main(int, char **argv) {
    Dump dump(argv[1]);
    const int64_t n = dump.number("n"), steps = dump.number("steps"), N = n * n;
    auto u0 = dump.array<double>("u0");
    Array<double> ua(N), ub(N), ga(N), gb(N), Q(N);
    std::vector<Array<double>> S, D;
    for (int k = 0; k < KEPT; k++) S.emplace_back(N), D.emplace_back(N);
    std::vector<double> history, last;
    const bool par = N >= PARALLEL_FROM;
    const double *U = u0, *G = ga;

    auto energy_of = [&](const double *u) {  // of a whole surface
        double e = 0, w = 0;
#pragma omp parallel for schedule(static) if (par) reduction(+ : e, w)
        for (int64_t i = 0; i < n - 1; i++) {
            const double *a = u + i * n, *b = a + n;
            double s = 0, t = 0;
#pragma omp simd reduction(+ : s)
            for (int64_t j = 0; j < n - 1; j++) {
                double x = 0.5 * (a[j + 1] - a[j] + b[j + 1] - b[j]), y = 0.5 * (b[j] - a[j] + b[j + 1] - a[j + 1]);
                s += std::sqrt(1.0 + x * x + y * y);
            }
            if (i)
#pragma omp simd reduction(+ : t)
                for (int64_t j = 1; j < n - 1; j++) t += a[j];
            e += s, w += t;
        }
        return e + WEIGHT * w;
    };
    // v = u - t q on the inner nodes, and its energy; a thread makes its first lower row itself
    auto try_step = [&](double *v, const double *u, const double *q, double t) {
        double e = 0, w = 0;
#pragma omp parallel if (par) reduction(+ : e, w)
        {
            const int64_t T = omp_get_num_threads(), k = omp_get_thread_num();
            const int64_t first = (n - 1) * k / T, end = (n - 1) * (k + 1) / T;
            std::vector<double> extra(n);
            auto make = [&](int64_t i, double *__restrict o) {
                const double *a = u + i * n, *b = q + i * n;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) o[j] = a[j] - t * b[j];
            };
            make(first, v + first * n);
            for (int64_t i = first; i < end; i++) {
                double *a = v + i * n, *b = i + 1 < end || i == n - 2 ? a + n : extra.data();
                make(i + 1, b);
                double s = 0, r = 0;
#pragma omp simd reduction(+ : s)
                for (int64_t j = 0; j < n - 1; j++) {
                    double x = 0.5 * (a[j + 1] - a[j] + b[j + 1] - b[j]);
                    double y = 0.5 * (b[j] - a[j] + b[j + 1] - a[j + 1]);
                    s += std::sqrt(1.0 + x * x + y * y);
                }
                if (i)
#pragma omp simd reduction(+ : r)
                    for (int64_t j = 1; j < n - 1; j++) r += a[j];
                e += s, w += r;
            }
        }
        return e + WEIGHT * w;
    };
    // the gradient; where u is given also s = v - u, d = h - g and their sums
    auto gradient = [&](double *h, const double *v, const double *u, const double *g, double *s, double *d,
                        double &sd, double &dd) {
        double s1 = 0, s2 = 0;
#pragma omp parallel if (par) reduction(+ : s1, s2)
        {
            const int64_t T = omp_get_num_threads(), k = omp_get_thread_num();
            const int64_t first = 1 + (n - 2) * k / T, end = 1 + (n - 2) * (k + 1) / T;
            std::vector<double> store(4 * n);
            double *x0 = &store[0], *y0 = x0 + n, *x1 = y0 + n, *y1 = x1 + n;
            auto cells = [&](int64_t i, double *__restrict x, double *__restrict y) {
                const double *a = v + i * n, *b = a + n;
#pragma omp simd
                for (int64_t j = 0; j < n - 1; j++) {
                    double p = 0.5 * (a[j + 1] - a[j] + b[j + 1] - b[j]);
                    double q = 0.5 * (b[j] - a[j] + b[j + 1] - a[j + 1]);
                    double r = 1.0 / std::sqrt(1.0 + p * p + q * q);
                    x[j] = p * r, y[j] = q * r;
                }
            };
            cells(first - 1, x0, y0);
            for (int64_t i = first; i < end; i++) {
                cells(i, x1, y1);
                double p1 = 0, p2 = 0;
                double *__restrict ho = h + i * n;
                const double *vi = v + i * n, *ui = u ? u + i * n : nullptr, *gi = u ? g + i * n : nullptr;
                double *__restrict so = u ? s + i * n : nullptr, *__restrict df = u ? d + i * n : nullptr;
                if (u) {
#pragma omp simd reduction(+ : p1, p2)
                    for (int64_t j = 1; j < n - 1; j++) {
                        double a = x0[j - 1] - x0[j] + x1[j - 1] - x1[j], b = y0[j - 1] + y0[j] - y1[j - 1] - y1[j];
                        double z = 0.5 * (a + b) + WEIGHT, sv = vi[j] - ui[j], dv = z - gi[j];
                        ho[j] = z, so[j] = sv, df[j] = dv;
                        p1 += sv * dv;
                        p2 += dv * dv;
                    }
                } else {
#pragma omp simd
                    for (int64_t j = 1; j < n - 1; j++) {
                        double a = x0[j - 1] - x0[j] + x1[j - 1] - x1[j], b = y0[j - 1] + y0[j] - y1[j - 1] - y1[j];
                        ho[j] = 0.5 * (a + b) + WEIGHT;
                    }
                }
                s1 += p1, s2 += p2;
                std::swap(x0, x1);
                std::swap(y0, y1);
            }
        }
        sd = s1, dd = s2;
    };
    // q = f (from + a x) and its product with y: rims are zero in all but surfaces
    auto sweep = [&](const double *from, double a, const double *x, double f, const double *y) {
        double sum = 0;
        double *q = Q;
        if (!x) x = from;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : sum)
        for (int64_t i = 0; i < N; i++) {
            double v = f * (from[i] + a * x[i]);
            q[i] = v;
            sum += v * y[i];
        }
        return sum;
    };
    auto run = [&] {
        history.clear();
        int order[KEPT], m = 0;
        double rho[KEPT], gam[KEPT], alpha[KEPT], a, b;
        const double *u = u0;
        double *g = ga, *h = gb;
        double energy = energy_of(u);
        gradient(g, u, nullptr, nullptr, nullptr, nullptr, a, b);
        for (int64_t step = 0; step < steps; step++) {
            double slope;
            if (!m) slope = sweep(g, 0.0, nullptr, 0.5, g);
            else {
                double sq = 0;
                const double *s = S[order[m - 1]].p, *gg = g;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : sq)
                for (int64_t i = 0; i < N; i++) sq += s[i] * gg[i];
                for (int k = m - 1; k >= 0; k--) {
                    alpha[k] = rho[order[k]] * sq;
                    const double *from = k == m - 1 ? g : Q.p;
                    sq = k ? sweep(from, -alpha[k], D[order[k]], 1.0, S[order[k - 1]])
                           : sweep(from, -alpha[k], D[order[k]], gam[order[m - 1]], D[order[0]]);
                }
                for (int k = 0; k < m; k++) {
                    double beta = rho[order[k]] * sq;
                    sq = sweep(Q, alpha[k] - beta, S[order[k]], 1.0, k + 1 < m ? D[order[k + 1]].p : g);
                }
                slope = sq;
            }
            double *v = u == ua.p ? ub.p : ua.p, t = 1.0, now;
            while (true) {
                now = try_step(v, u, Q, t);
                if (now <= energy - 1e-4 * t * slope || t < 1e-3) break;
                t *= 0.5;
            }
            int slot = m;
            if (m == KEPT) {
                slot = order[0];
                for (int k = 1; k < KEPT; k++) order[k - 1] = order[k];
                m--;
            }
            order[m++] = slot;
            double sd, dd;
            gradient(h, v, u, g, S[slot], D[slot], sd, dd);
            rho[slot] = 1.0 / sd;
            gam[slot] = sd / dd;
            std::swap(g, h);
            u = v;
            energy = now;
            history.push_back(energy);
            history.push_back(slope);
            history.push_back(t);
        }
        U = u;
        G = g;
    };
    bench(run, [&](Checksum &s) {
        last.clear();
        for (int64_t i = 1; i < n - 1; i++) last.insert(last.end(), G + i * n + 1, G + i * n + n - 1);
        s.add("u", U, N);
        s.add("g", last.data(), last.size());
        s.add("history", history.data(), history.size());
    });
}
