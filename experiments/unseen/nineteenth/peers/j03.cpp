// One sweep a proposal: a row of it is drawn, then the row before gets its gradient and the four sums;
// the accepted state is added to the mean in the next sweep.
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"), const)) double vcos(double) noexcept __asm__("cos");
}
static constexpr int STEPS = 8;
static constexpr double OWN = 0.3, TIE = 0.8;

static inline uint32_t scramble(uint32_t x) {
    x = (x ^ (x >> 16)) * 73244475u;
    x = (x ^ (x >> 16)) * 73244475u;
    return x ^ (x >> 16);
}
static inline double unit(uint32_t x) { return (double(int32_t(x ^ 0x80000000u)) + 2147483648.5) / 4294967296.0; }

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto start = d.array<double>("start"), effort = d.array<double>("effort");
    auto seen = d.array<int32_t>("seen");
    double draws[STEPS];
    for (int k = 0; k < STEPS; k++) draws[k] = d.number("draws_" + std::to_string(k));
    Array<double> bufs[2], grads[2], mean(n * n), history(STEPS * 5);
    for (auto &b : bufs) b.make(n * n);
    for (auto &b : grads) b.make(n * n);
    // From x with its gradient to y with its own; without a gradient y is x.
    auto sweep = [&](const double *x0, const double *g0, double *y0, double *gy0, uint32_t seed, double h, double size, int add, double *sums) {
        double energy = 0, there = 0, here = 0;
#pragma omp parallel if (n * n >= PARALLEL_FROM) reduction(+ : energy, there, here)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), i0 = n * t / nt, i1 = n * (t + 1) / nt;
            const int64_t W = (n + 24) / 8 * 8;
            std::vector<double> mem(3 * W + 8);
            auto ring = [&](int64_t i) { return mem.data() + 8 + (i + 3) % 3 * W; };
            auto draw = [&](int64_t i) {
                double *__restrict y = ring(i);
                const double *__restrict x = x0 + i * n, *__restrict g = g0 + i * n;
                const bool mine = i >= i0 && i < i1;
                if (!g0) std::copy(x, x + n, y);
                else {
                    double s = 0;
#pragma omp simd reduction(+ : s)
                    for (int64_t j = 0; j < n; j++) {
                        const uint32_t key = scramble(uint32_t(i * n + j));
                        const double xi = std::sqrt(-2.0 * log(unit(scramble(key + seed)))) * vcos(6.283185307179586 * unit(scramble(key + seed + 1)));
                        const double forth = x[j] - h * g[j], v = forth + size * xi;
                        y[j] = v, s += (v - forth) * (v - forth);
                    }
                    if (mine) there += s;
                }
                if (mine) std::copy(y, y + n, y0 + i * n);
                y[-1] = y[0], y[n] = y[n - 1];
            };
            if (i0 < i1) {
                if (i0 > 0) draw(i0 - 1);
                draw(i0);
            }
            for (int64_t i = i0; i < i1; i++) {
                if (i + 1 < n) draw(i + 1);
                const double *__restrict y = ring(i), *__restrict up = i ? ring(i - 1) : y, *__restrict dn = i + 1 < n ? ring(i + 1) : y;
                const double *__restrict x = x0 + i * n, *__restrict e = effort.p + i * n;
                const int32_t *__restrict c = seen.p + i * n;
                double *__restrict g = gy0 + i * n, *__restrict m = mean.p + i * n;
#pragma omp simd reduction(+ : energy, here)
                for (int64_t j = 0; j < n; j++) {
                    const double v = y[j], lam = e[j] * exp(v), rough = 4.0 * v - up[j] - dn[j] - y[j - 1] - y[j + 1];
                    const double gv = lam - c[j] + OWN * v + TIE * rough, b = x[j] - (v - h * gv);
                    g[j] = gv;
                    energy += lam - c[j] * v + 0.5 * v * (OWN * v + TIE * rough), here += b * b;
                }
                if (add == 1) {
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) m[j] += x[j];
                } else if (add == 0)
                    std::fill(m, m + n, 0.0);
            }
        }
        sums[0] = energy, sums[1] = there, sums[2] = here;
    };
    auto run = [&] {
        double sums[3], size = 1.1 / std::sqrt(double(n)), current;
        int at = 0;
        sweep(start.p, nullptr, bufs[0].p, grads[0].p, 0, 0, 0, 0, sums);
        current = sums[0];
        for (int step = 0; step < STEPS; step++) {
            const double h = 0.5 * size * size;
            sweep(bufs[at].p, grads[at].p, bufs[1 - at].p, grads[1 - at].p, 2 * step + 77, h, size, step ? 1 : 2, sums);
            const double odds = current - sums[0] + (sums[1] - sums[2]) / (4.0 * h);
            const bool taken = draws[step] < odds;
            const double row[5] = {sums[0], odds, sums[1], sums[2], double(taken)};
            std::copy(row, row + 5, history.p + 5 * step);
            if (taken) at = 1 - at, current = sums[0];
            size *= std::exp(0.3 * (std::min(1.0, std::exp(std::min(odds, 0.0))) - 0.574));
        }
        double *__restrict m = mean.p;
        const double *__restrict x = bufs[at].p;
#pragma omp parallel for simd schedule(static) if (n * n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n * n; i++) m[i] += x[i];
    };
    bench(run, [&](Checksum &s) { s.add("mean", mean.p, n * n), s.add("history", history.p, STEPS * 5); });
}
