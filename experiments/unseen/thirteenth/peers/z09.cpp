// Sinkhorn: no matrix: costs are found anew from the points. Rows: greatest, then the sum, a row in
// cache. Columns: blocks of columns, each thread its own, in two walks down the rows.
#include "common.hpp"

static const double FIRST = 0.5, LAST = 0.02, FALL = 0.85, TOLERANCE = 1e-9;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t rows = d.number("rows"), columns = d.number("columns"), most = d.number("most");
    auto x = d.array<double>("x"), y = d.array<double>("y"), mx = d.array<double>("mass_x"), my = d.array<double>("mass_y");
    std::vector<double> yx(columns), yy(columns), f(rows), g(columns), errors, goal(2 * rows), lx(rows), ly(columns);
    for (int64_t j = 0; j < columns; j++) yx[j] = y[2 * j], yy[j] = y[2 * j + 1];
    double cost = 0;
    const bool parallel = rows * columns >= 2048;
    auto run = [&] {
        errors.clear();
        for (int64_t i = 0; i < rows; i++) f[i] = 0, lx[i] = std::log(mx[i]);
        for (int64_t j = 0; j < columns; j++) g[j] = 0, ly[j] = std::log(my[j]);
        double eps = FIRST;
        for (int64_t round = 0; round < most; round++) {
            double error = 0;
            const bool last = eps == LAST;
            std::vector<double> change(rows);
#pragma omp parallel if (parallel)
            {
                std::vector<double> row(columns);
#pragma omp for schedule(static) reduction(+ : error)
                for (int64_t i = 0; i < rows; i++) {
                    const double a = x[2 * i], b = x[2 * i + 1], fi = f[i], r = 1.0 / eps;
                    const double *p = yx.data(), *q = yy.data(), *gj = g.data();
                    double *m = row.data(), top = -INFINITY, s = 0;
#pragma omp simd reduction(max : top)
                    for (int64_t j = 0; j < columns; j++) {
                        double v = a - p[j], w = b - q[j];
                        m[j] = (fi + gj[j] - (v * v + w * w)) * r;
                        top = top > m[j] ? top : m[j];
                    }
#pragma omp simd reduction(+ : s)
                    for (int64_t j = 0; j < columns; j++) s += exp(m[j] - top);
                    error += std::fabs(s * std::exp(top) - mx[i]);
                    change[i] = eps * (lx[i] - top - std::log(s));
                }
            }
            errors.push_back(error);
            if (last && error < TOLERANCE) break;
            for (int64_t i = 0; i < rows; i++) f[i] += change[i];
            const int64_t W = 32;
#pragma omp parallel for schedule(static) if (parallel)
            for (int64_t first = 0; first < columns; first += W) {
                const int64_t n = std::min(W, columns - first);
                const double *p = &yx[first], *q = &yy[first], *gj = &g[first], r = 1.0 / eps;
                double top[W], s[W] = {};
                std::fill(top, top + W, -INFINITY);
                for (int64_t i = 0; i < rows; i++) {
                    const double a = x[2 * i], b = x[2 * i + 1], fi = f[i];
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) {
                        double v = a - p[j], w = b - q[j], m = (fi + gj[j] - (v * v + w * w)) * r;
                        top[j] = top[j] > m ? top[j] : m;
                    }
                }
                for (int64_t i = 0; i < rows; i++) {
                    const double a = x[2 * i], b = x[2 * i + 1], fi = f[i];
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) {
                        double v = a - p[j], w = b - q[j], m = (fi + gj[j] - (v * v + w * w)) * r;
                        s[j] += exp(m - top[j]);
                    }
                }
                for (int64_t j = 0; j < n; j++) g[first + j] += eps * (ly[first + j] - top[j] - std::log(s[j]));
            }
            eps = std::max(LAST, FALL * eps);
        }
        double work = 0;
#pragma omp parallel for schedule(static) reduction(+ : work) if (parallel)
        for (int64_t i = 0; i < rows; i++) {
            const double a = x[2 * i], b = x[2 * i + 1], fi = f[i], r = 1.0 / eps;
            const double *p = yx.data(), *q = yy.data(), *gj = g.data();
            double s = 0, u = 0, t = 0;
#pragma omp simd reduction(+ : s, u, t)
            for (int64_t j = 0; j < columns; j++) {
                double v = a - p[j], w = b - q[j], c = v * v + w * w, e = exp((fi + gj[j] - c) * r);
                s += e * c, u += e * p[j], t += e * q[j];
            }
            work += s;
            goal[2 * i] = u / mx[i], goal[2 * i + 1] = t / mx[i];
        }
        cost = work;
    };
    bench(run, [&](Checksum &s) {
        s.add("f", f.data(), rows);
        s.add("g", g.data(), columns);
        s.add("goal", goal.data(), 2 * rows);
        s.add("errors", errors.data(), errors.size());
        s.add("cost", cost);
    });
}
