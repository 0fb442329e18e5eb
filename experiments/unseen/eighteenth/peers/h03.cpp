// One pass draws all dates of a path; then one a date backwards, which exercises by the coefficients of
// the date after it and adds up the eight sums of its own.
#include "common.hpp"

extern "C" {
// By other names, as g++ makes one scalar sincos of the two.
__attribute__((simd("notinbranch"), const)) double vsin(double) noexcept __asm__("sin");
__attribute__((simd("notinbranch"), const)) double vcos(double) noexcept __asm__("cos");
}
static constexpr int DATES = 6, B = 512;

static inline uint32_t scramble(uint32_t x) {
    x = (x ^ (x >> 16)) * 73244475u;
    x = (x ^ (x >> 16)) * 73244475u;
    return x ^ (x >> 16);
}

static inline double unit(uint32_t x) { return (double(int32_t(x ^ 0x80000000u)) + 2147483648.5) / 4294967296.0; }

// All dates of a block of paths.
static void draw(double *prices, int64_t base, int m, int64_t n, uint32_t seed, double spot, double drift, double vol, double div) {
    double s[B];
    uint32_t key[B];
    for (int i = 0; i < m; i++) s[i] = spot, key[i] = scramble(uint32_t(base) + i);
    for (int k = 0; k < DATES; k += 2) {
        double *__restrict one = prices + k * n + base, *__restrict two = one + n;
        // Without a dividend: 0 is subtracted from all.
        const double d1 = k + 1 == DATES / 2 ? div : 0.0, d2 = k + 2 == DATES / 2 ? div : 0.0;
#pragma omp simd
        for (int i = 0; i < m; i++) {
            const double radius = std::sqrt(-2.0 * log(unit(scramble(key[i] + (seed + k))))), angle = 6.283185307179586 * unit(scramble(key[i] + (seed + k + 1)));
            double v = s[i] * exp(drift + vol * (radius * vcos(angle)));
            v = v >= d1 + d1 ? v - d1 : v * 0.5;
            one[i] = v;
            v = v * exp(drift + vol * (radius * vsin(angle)));
            v = v >= d2 + d2 ? v - d2 : v * 0.5;
            two[i] = s[i] = v;
        }
    }
}

static void solve(const double *p, const double *r, double *c) {
    double m[3][4];
    for (int i = 0; i < 3; i++) m[i][0] = p[i], m[i][1] = p[i + 1], m[i][2] = p[i + 2], m[i][3] = r[i];
    for (int k = 0; k < 3; k++) {
        int best = k;
        for (int i = k + 1; i < 3; i++)
            if (std::fabs(m[i][k]) > std::fabs(m[best][k])) best = i;
        for (int j = 0; j < 4; j++) std::swap(m[k][j], m[best][j]);
        for (int i = k + 1; i < 3; i++) {
            const double f = m[i][k] / m[k][k];
            for (int j = k; j < 4; j++) m[i][j] -= f * m[k][j];
        }
    }
    for (int k = 2; k >= 0; k--) {
        double v = m[k][3];
        for (int j = k + 1; j < 3; j++) v -= m[k][j] * c[j];
        c[k] = v / m[k][k];
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const uint32_t seed = d.number("seed");
    const double spot = d.number("spot"), rate = d.number("rate"), sigma = d.number("volatility"), div = d.number("dividend");
    Array<double> S(n * DATES), cash(n), price(3);
    Array<uint8_t> when(n);
    auto run = [&] {
        const double dt = 1.0 / DATES, drift = (rate - 0.5 * (sigma * sigma)) * dt, vol = sigma * std::sqrt(dt), factor = std::exp(-rate * dt);
        double c[3] = {1e300, 0, 0};
#pragma omp parallel for schedule(static) if (n >= PARALLEL_FROM)
        for (int64_t base = 0; base < n; base += B) draw(S.p, base, std::min<int64_t>(B, n - base), n, seed, spot, drift, vol, div);
        for (int date = DATES - 1; date >= 1; date--) {
            const double *__restrict now = S.p + (date - 1) * n, *__restrict next = S.p + date * n;
            const double c0 = c[0], c1 = c[1], c2 = c[2];
            const bool last = date + 1 == DATES;
            double p0 = 0, p1 = 0, p2 = 0, p3 = 0, p4 = 0, r0 = 0, r1 = 0, r2 = 0;
            double *__restrict cs = cash.p;
            uint8_t *__restrict wh = when.p;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM) reduction(+ : p0, p1, p2, p3, p4, r0, r1, r2)
            for (int64_t i = 0; i < n; i++) {
                const double x1 = next[i], pay1 = std::max(1.0 - x1, 0.0);
                const bool take = last | ((pay1 > 0.0) & (pay1 > c0 + x1 * (c1 + x1 * c2)));
                const double v = (take ? pay1 : cs[i]) * factor;
                cs[i] = v;
                wh[i] = take ? uint8_t(date + 1) : wh[i];
                const double x = now[i], in = 1.0 - x > 0.0 ? 1.0 : 0.0, x2 = x * x, vin = v * in;
                p0 += in, p1 += in * x, p2 += in * x2, p3 += in * (x2 * x), p4 += in * (x2 * x2);
                r0 += vin, r1 += vin * x, r2 += vin * x2;
            }
            const double p[5] = {p0, p1, p2, p3, p4}, r[3] = {r0, r1, r2};
            solve(p, r, c);
        }
        double total = 0, square = 0, mean, guess;
        int64_t early = 0;
        const double c0 = c[0], c1 = c[1], c2 = c[2], *__restrict next = S.p;
        double *__restrict cs = cash.p;
        uint8_t *__restrict wh = when.p;
        guess = 0.1;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM) reduction(+ : total, square, early)
        for (int64_t i = 0; i < n; i++) {
            const double x1 = next[i], pay1 = std::max(1.0 - x1, 0.0);
            const bool take = (pay1 > 0.0) & (pay1 > c0 + x1 * (c1 + x1 * c2));
            const double v = (take ? pay1 : cs[i]) * factor;
            const uint8_t w = take ? uint8_t(1) : wh[i];
            cs[i] = v, wh[i] = w;
            total += v, square += (v - guess) * (v - guess), early += w < DATES;
        }
        mean = total / n;
        price[0] = mean, price[1] = std::sqrt((square - n * ((mean - guess) * (mean - guess))) / (n - 1) / n), price[2] = double(early) / n;
    };
    bench(run, [&](Checksum &s) { s.add("cash", cash.p, n), s.add("when", when.p, n), s.add("price", price.p, 3); });
}
