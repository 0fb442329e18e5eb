// Five passes over the rows an iteration: product with its dot, updates with the first step of the
// polynomial, its other steps (the last with a dot), and the direction; one parallel region.
#include "common.hpp"

static constexpr int STEPS = 3, DEGREE = 3, WIDTH = 7;

int main(int, char **argv) {
    Dump dump(argv[1]);
    const int64_t n = dump.number("n");
    auto value = dump.array<double>("value"), b = dump.array<double>("b");
    auto single = dump.array<float>("single"), inverse = dump.array<float>("inverse");
    auto column = dump.array<int32_t>("column");
    Array<double> x(n), r(n), p(n), ap(n), history(3 * STEPS);
    Array<float> rhs(n), d(n), y(n), y2(n);
    static_assert(DEGREE == 3, "y and y2 take turns");
    const double centre = 0.5 * (2.0 + 0.25), radius = 0.5 * (2.0 - 0.25);
    auto run = [&] {
        double dots[3] = {};
#pragma omp parallel if (n >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), i0 = n * t / nt, i1 = n * (t + 1) / nt;
            auto sum = [&](int k, double mine) {
#pragma omp atomic
                dots[k] += mine;
#pragma omp barrier
                return dots[k];
            };
            // The factors of the polynomial, and its last values in y.
            auto polynomial = [&](double size) {
                const double scale = 1.0 / size;
                const float factor = 1.0 / centre;
                double rho = radius / centre;
#pragma omp simd
                for (int64_t i = i0; i < i1; i++) {
                    const float q = r[i] * scale;
                    rhs[i] = q, d[i] = y[i] = factor * inverse[i] * q;
                }
                double rz = 0;
                for (int k = 0; k < DEGREE - 1; k++) {
                    const double following = 1.0 / (2.0 * centre / radius - rho);
                    const float keep = following * rho, add = 2.0 * following / radius;
                    const float *__restrict from = k % 2 ? y2.p : y.p;
                    float *__restrict to = k % 2 ? y.p : y2.p;
#pragma omp barrier
                    for (int64_t i = i0; i < i1; i++) {
                        const float *v = single.p + i * WIDTH;
                        const int32_t *c = column.p + i * WIDTH;
                        float total = rhs[i];
                        for (int j = 0; j < WIDTH; j++) total -= v[j] * from[c[j]];
                        const float step = keep * d[i] + add * inverse[i] * total, z = from[i] + step;
                        d[i] = step, to[i] = z;
                        if (k == DEGREE - 2) rz += r[i] * (z * size);
                    }
                    rho = following;
                }
                return rz;
            };
            double mine = 0;
#pragma omp single
            dots[0] = dots[1] = dots[2] = 0;
            for (int64_t i = i0; i < i1; i++) x[i] = 0, r[i] = b[i], mine += b[i] * b[i];
            double size = std::sqrt(sum(0, mine) / double(n));
            double rz = sum(1, polynomial(size));
            for (int64_t i = i0; i < i1; i++) p[i] = y[i] * size;
            for (int step = 0; step < STEPS; step++) {
#pragma omp barrier
#pragma omp single
                dots[0] = dots[1] = dots[2] = 0;
                mine = 0;
                for (int64_t i = i0; i < i1; i++) {
                    const double *v = value.p + i * WIDTH;
                    const int32_t *c = column.p + i * WIDTH;
                    double total = 0;
                    for (int j = 0; j < WIDTH; j++) total += v[j] * p[c[j]];
                    ap[i] = total, mine += p[i] * total;
                }
                const double alpha = rz / sum(2, mine);
                mine = 0;
#pragma omp simd reduction(+ : mine)
                for (int64_t i = i0; i < i1; i++) {
                    x[i] += alpha * p[i];
                    const double q = r[i] - alpha * ap[i];
                    r[i] = q, mine += q * q;
                }
                size = std::sqrt(sum(0, mine) / double(n));
                const double old = rz;
                rz = sum(1, polynomial(size));
                const double beta = rz / old;
                if (t == 0) history[3 * step] = size, history[3 * step + 1] = alpha, history[3 * step + 2] = beta;
                if (step == STEPS - 1) break;  // the last direction is of no use
#pragma omp simd
                for (int64_t i = i0; i < i1; i++) p[i] = y[i] * size + beta * p[i];
            }
        }
    };
    bench(run, [&](Checksum &s) { s.add("x", x.p, n), s.add("history", history.p, 3 * STEPS); });
}
