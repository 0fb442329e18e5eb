// Heart: one sweep a step over two arrays of voltage, which also writes the ghosts of the next step.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps"), m = n + 2, m2 = m * m, all = m2 * m;
    auto u0 = d.array<double>("u0"), r0 = d.array<double>("r0");
    Array<double> ua(all), ub(all), rr(all), ff(all);
    std::vector<double> counts, sums;
    const double dt = 0.05, al = 1.6, ac = 0.6, K = 8.0, A = 0.12, eps = 0.01, mu1 = 0.2, mu2 = 0.3;
    double *U = ua;
    const bool par = n * n * n >= PARALLEL_FROM;
    auto ghosts = [&](double *u, int64_t i, int64_t j) {  // of a row that has been written
        double *row = u + i * m2 + j * m;
        row[0] = row[1];
        row[n + 1] = row[n];
        if (j == 1) std::memcpy(row - m + 1, row + 1, n * sizeof(double));
        if (j == n) std::memcpy(row + m + 1, row + 1, n * sizeof(double));
        if (i == 1) std::memcpy(row - m2 + 1, row + 1, n * sizeof(double));
        if (i == n) std::memcpy(row + m2 + 1, row + 1, n * sizeof(double));
    };
    auto run = [&] {
        counts.clear();
        sums.clear();
        double *in = ua, *out = ub, *R = rr, *F = ff;
#pragma omp parallel if (par)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < m; i++)
                for (int64_t q = i * m2; q < (i + 1) * m2; q++) in[q] = u0[q], R[q] = r0[q], F[q] = -1.0;
#pragma omp for schedule(static)
            for (int64_t i = 1; i <= n; i++)
                for (int64_t j = 1; j <= n; j++) ghosts(in, i, j);
        }
        const int64_t from = n - n / 4, to = n / 4;
        for (int64_t step = 0; step < steps; step++) {
            double count = 0, sum = 0;
            const double time = step * dt;
#pragma omp parallel for schedule(static) reduction(+ : count, sum) if (par)
            for (int64_t i = 1; i <= n; i++)
                for (int64_t j = 1; j <= n; j++) {
                    const int64_t o = i * m2 + j * m;
                    const double *__restrict u = in + o;
                    double *__restrict v = out + o, *__restrict r = R + o, *__restrict f = F + o;
                    auto cells = [&](int64_t a, int64_t b, double much) {
#pragma omp simd reduction(+ : count, sum)
                        for (int64_t k = a; k < b; k++) {
                            double x = u[k], w = r[k], c = 2.0 * x;
                            double dif = al * (u[k - 1] - c + u[k + 1]) +
                                         ac * (u[k - m] - c + u[k + m] + u[k - m2] - c + u[k + m2]);
                            double ion = K * x * (x - A) * (x - 1.0) + x * w - much;
                            r[k] = w + dt * (eps + mu1 * w / (x + mu2)) * (-w - K * x * (x - A - 1.0));
                            x += dt * (dif - ion);
                            v[k] = x;
                            double g = f[k];
                            g = (g < 0.0) & (x > 0.5) ? time : g;
                            f[k] = g;
                            count += g >= 0.0 ? 1.0 : 0.0;
                            sum += x;
                        }
                    };
                    if (step < 5 && i >= from && j >= from) {
                        cells(1, to, 3.0);
                        cells(to, n + 1, 0.0);
                    } else {
                        cells(1, n + 1, 0.0);
                    }
                    ghosts(out, i, j);
                }
            std::swap(in, out);
            U = in;
            counts.push_back(count);
            sums.push_back(sum);
            if (count == double(n * n * n)) break;
        }
    };
    bench(run, [&](Checksum &c) {
        std::vector<double> inner;
        for (int64_t i = 1; i <= n; i++)
            for (int64_t j = 1; j <= n; j++)
                inner.insert(inner.end(), U + i * m2 + j * m + 1, U + i * m2 + j * m + 1 + n);
        c.add("u", inner.data(), inner.size());
        c.add("r", rr.p, all);
        c.add("first", ff.p, all);
        c.add("counts", counts.data(), counts.size());
        c.add("sums", sums.data(), sums.size());
    });
}
