// American put: a sweep for the paths, then one a date: exercise by the last fit, then its sums.
#include "common.hpp"

static void solve(double m[3][4]) {  // Gauss with pivots, the answer in column 3
    for (int c = 0; c < 3; c++) {
        int p = c;
        for (int r = c + 1; r < 3; r++)
            if (std::fabs(m[r][c]) > std::fabs(m[p][c])) p = r;
        for (int k = 0; k < 4; k++) std::swap(m[c][k], m[p][k]);
        for (int r = c + 1; r < 3; r++) {
            double f = m[r][c] / m[c][c];
            for (int k = c; k < 4; k++) m[r][k] -= f * m[c][k];
        }
    }
    for (int r = 2; r >= 0; r--) {
        for (int k = r + 1; k < 3; k++) m[r][3] -= m[r][k] * m[k][3];
        m[r][3] /= m[r][r];
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), dates = d.number("dates");
    auto normal = d.array<double>("normal");
    Array<double> price((dates + 1) * n), cash(n);
    const double spot = 36, strike = 40, rate = 0.06, vol = 0.2, dt = 1.0 / dates;
    const double drift = (rate - 0.5 * (vol * vol)) * dt, spread = vol * std::sqrt(dt);
    const double factor = std::exp(-rate * dt);
    std::vector<double> fits, result(2);
    auto run = [&] {
        fits.clear();
        double *P = price, *C = cash;
        const double *Z = normal;
#pragma omp parallel if (n >= PARALLEL_FROM)
        {
            const int64_t block = 1024;
#pragma omp for schedule(static)
            for (int64_t from = 0; from < n; from += block) {
                const int64_t to = std::min(n, from + block);
                for (int64_t i = from; i < to; i++) P[i] = spot;
                for (int64_t t = 1; t <= dates; t++) {
                    const double *__restrict a = P + (t - 1) * n, *__restrict z = Z + (t - 1) * n;
                    double *__restrict b = P + t * n;
#pragma omp simd
                    for (int64_t i = from; i < to; i++) b[i] = a[i] * exp(drift + spread * z[i]);
                }
                const double *b = P + dates * n;
                for (int64_t i = from; i < to; i++) C[i] = strike - b[i] > 0 ? strike - b[i] : 0.0;
            }
        }
        double a = 0, b = 0, c = 0;
        for (int64_t t = dates - 1; t >= 0; t--) {
            // exercise at t + 1 by the fit found there (not at the last date), then sums for t
            double s = 0, s1 = 0, s2 = 0, s11 = 0, s12 = 0, s22 = 0, y = 0, y1 = 0, y2 = 0;
            const double *__restrict pn = P + (t + 1) * n, *__restrict p = P + t * n;
            const bool last = t + 1 == dates;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM) \
    reduction(+ : s, s1, s2, s11, s12, s22, y, y1, y2)
            for (int64_t i = 0; i < n; i++) {
                double xn = pn[i] / strike, pay = strike - pn[i];
                double fit = a + b * (1.0 - xn) + c * (1.0 - 2.0 * xn + 0.5 * xn * xn);
                double v = C[i];
                v = !last & (pay > 0.0) & (pay > fit) ? pay : v;
                v *= factor;
                C[i] = v;
                double x = p[i] / strike, w = strike - p[i] > 0.0 ? 1.0 : 0.0;
                double l1 = 1.0 - x, l2 = 1.0 - 2.0 * x + 0.5 * x * x;
                s += w;
                s1 += w * l1;
                s2 += w * l2;
                s11 += w * l1 * l1;
                s12 += w * l1 * l2;
                s22 += w * l2 * l2;
                y += w * v;
                y1 += w * l1 * v;
                y2 += w * l2 * v;
            }
            if (t == 0) break;
            double m[3][4] = {{s, s1, s2, y}, {s1, s11, s12, y1}, {s2, s12, s22, y2}};
            solve(m);
            a = m[0][3], b = m[1][3], c = m[2][3];
            fits.insert(fits.end(), {a, b, c});
        }
        double sum = 0, dev = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) sum += C[i];
        const double mean = sum / n;
#pragma omp parallel for simd schedule(static) reduction(+ : dev) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) dev += (C[i] - mean) * (C[i] - mean);
        result = {mean, std::sqrt(dev / (n - 1) / n)};
    };
    bench(run, [&](Checksum &c) {
        c.add("cash", cash.p, n);
        c.add("fits", fits.data(), fits.size());
        c.add("result", result.data(), 2);
    });
}
