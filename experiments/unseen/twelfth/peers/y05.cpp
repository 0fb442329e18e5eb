// Pores: two sweeps an iteration: direction and product with its dot (the direction is updated
// first, as the product gathers it), then all else with both sums.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto start = d.array<int32_t>("start"), column = d.array<int32_t>("column");
    auto value = d.array<double>("value"), x0 = d.array<double>("x0"), well = d.array<double>("well");
    Array<double> X(n), D(n), Q(n), R(n), P(n);
    std::vector<double> residuals, iterations;
    const bool par = n >= PARALLEL_FROM / 4;
    auto run = [&] {
        double *__restrict x = X, *__restrict di = D, *__restrict q = Q, *__restrict r = R, *__restrict p = P;
        const int32_t *st = start, *co = column;
        const double *va = value, *w = well, *first = x0;
        residuals.clear();
        iterations.clear();
        auto row = [&](int64_t i, const double *v) {
            double s = 0;
            for (int32_t k = st[i]; k < st[i + 1]; k++) s += va[k] * v[co[k]];
            return s;
        };
        for (int step = 0; step < 2; step++) {
            double rz = 0, bb = 0;
            const double rate = 0.4 * (step + 1), *from = step ? x : first;
#pragma omp parallel for schedule(static) if (par) reduction(+ : rz, bb)
            for (int64_t i = 0; i < n; i++) {
                if (!step)
                    for (int32_t k = st[i]; k < st[i + 1]; k++)
                        if (co[k] == i) di[i] = 1.0 / va[k];
                double b = from[i] + rate * w[i], e = b - row(i, from);
                r[i] = e;
                p[i] = di[i] * e;
                rz += e * p[i];
                bb += b * b;
            }
            const double limit = 1e-7 * std::sqrt(bb);
            double size = limit + 1, beta = 0;
            int count = 0;
            const double *xin = from;
            while (size > limit && count < 60) {
                double pq = 0, rr = 0, rz2 = 0;
                if (count) {
#pragma omp parallel for simd schedule(static) if (par)
                    for (int64_t i = 0; i < n; i++) p[i] = di[i] * r[i] + beta * p[i];
                }
#pragma omp parallel for schedule(static) if (par) reduction(+ : pq)
                for (int64_t i = 0; i < n; i++) {
                    q[i] = row(i, p);
                    pq += p[i] * q[i];
                }
                const double a = rz / pq;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : rr, rz2)
                for (int64_t i = 0; i < n; i++) {
                    x[i] = xin[i] + a * p[i];
                    double e = r[i] - a * q[i];
                    r[i] = e;
                    rr += e * e;
                    rz2 += e * e * di[i];
                }
                xin = x;
                size = std::sqrt(rr);
                beta = rz2 / rz;
                rz = rz2;
                count++;
            }
            residuals.push_back(size);
            iterations.push_back(count);
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("x", X.p, n);
        s.add("residuals", residuals.data(), residuals.size());
        s.add("iterations", iterations.data(), iterations.size());
    });
}
