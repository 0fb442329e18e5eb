// KdV: one loop a step. A block's m, s and d are never stored; the ends wrap by hand. The sums are
// in the loop of the step after which they are wanted.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps");
    auto start = d.array<double>("start");
    const double DX = 2.0 / 256, DT = 2.0e-4, DELTA2 = 0.000484;
    Array<double> x(n), y(n), z(n);
    double *u = x;
    std::vector<double> mass, energy;
    auto run = [&] {
        mass.clear(), energy.clear();
        double *old = x, *now = y, *next = z;
        for (int64_t step = 0; step < steps; step++) {
            const double half = step == 0 ? 0.5 : 1.0;
            const double a = half * DT / DX, b = half * DELTA2 * DT / (DX * DX * DX);
            const double *p = step == 0 ? start.p : now, *o = step <= 1 ? start.p : old;
            double *q = next;
            auto point = [&](int64_t l2, int64_t l, int64_t i, int64_t r, int64_t r2) {
                double m = (p[r] + p[i] + p[l]) / 3.0, s = p[r] - p[l];
                double e = (p[r2] - p[i]) - 2.0 * s + (p[i] - p[l2]);
                return q[i] = o[i] - a * m * s - b * e;
            };
            auto wrap = [&](int64_t i) {
                return point((i + n - 2) % n, (i + n - 1) % n, i, (i + 1) % n, (i + 2) % n);
            };
            const bool wanted = step % 10 == 9;
            double total = 0, squares = 0;
            if (wanted) {
#pragma omp parallel for simd schedule(static) reduction(+ : total, squares) if (n >= PARALLEL_FROM)
                for (int64_t i = 2; i < n - 2; i++) {
                    double v = point(i - 2, i - 1, i, i + 1, i + 2);
                    total += v, squares += v * v;
                }
            } else {
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM)
                for (int64_t i = 2; i < n - 2; i++) point(i - 2, i - 1, i, i + 1, i + 2);
            }
            for (int64_t i : {int64_t(0), int64_t(1), n - 2, n - 1}) {
                double v = wrap(i);
                total += v, squares += v * v;
            }
            std::swap(old, now);  // the new one is now; what was now is old
            std::swap(now, next);
            if (wanted) mass.push_back(total * DX), energy.push_back(squares * DX);
        }
        u = now;
    };
    bench(run, [&](Checksum &s) {
        s.add("u", u, n);
        s.add("mass", mass.data(), mass.size());
        s.add("energy", energy.data(), energy.size());
    });
}
