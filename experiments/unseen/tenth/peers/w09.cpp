// Lanczos: three sweeps a step, since each of the three scalars needs all of the one before.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const int steps = 15;
    auto row = d.array<int32_t>("row"), column = d.array<int32_t>("column");
    auto weight = d.array<double>("weight"), degree = d.array<double>("degree"), first = d.array<double>("first");
    Array<double> a(n), b(n), c3(n);
    std::vector<double> alphas(steps), betas(steps);
    double *last = a;
    auto run = [&] {
        const double *v = first, *before = first;
        double *free_[3] = {a, b, c3};
        double beta = 0;
        for (int k = 0; k < steps; k++) {
            double *__restrict w = free_[k % 3];
            double alpha = 0, sum = 0, square = 0;
#pragma omp parallel if (n >= 2048)
            {
#pragma omp for schedule(static) reduction(+ : alpha)
                for (int64_t i = 0; i < n; i++) {
                    double s = 0;
                    for (int32_t e = row.p[i]; e < row.p[i + 1]; e++) s += weight.p[e] * v[column.p[e]];
                    s = degree.p[i] * v[i] - s;
                    w[i] = s;
                    alpha += s * v[i];
                }
                const double al = alpha, be = beta;
                if (k == 0) {
#pragma omp for simd schedule(static) reduction(+ : sum)
                    for (int64_t i = 0; i < n; i++) {
                        w[i] -= al * v[i];
                        sum += w[i];
                    }
                } else {
#pragma omp for simd schedule(static) reduction(+ : sum)
                    for (int64_t i = 0; i < n; i++) {
                        double s = w[i] - al * v[i];
                        s -= be * before[i];
                        w[i] = s;
                        sum += s;
                    }
                }
                const double mean = sum / n;
#pragma omp for simd schedule(static) reduction(+ : square)
                for (int64_t i = 0; i < n; i++) {
                    double s = w[i] - mean;
                    w[i] = s;
                    square += s * s;
                }
                const double scale = 1.0 / std::sqrt(square);
#pragma omp for simd schedule(static)
                for (int64_t i = 0; i < n; i++) w[i] *= scale;
            }
            beta = std::sqrt(square);
            alphas[k] = alpha;
            betas[k] = beta;
            before = v;
            v = last = w;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("v", last, n);
        c.add("alphas", alphas.data(), steps);
        c.add("betas", betas.data(), steps);
    });
}
