// Chemical kinetics: a whole Runge-Kutta step of a cell in registers, eight cells at a time.
#include "common.hpp"
extern "C" {  // without errno, so that loops with them can be vectorised
__attribute__((const)) double exp(double) noexcept;
}

static constexpr double DT = 0.05, TOLERANCE = 1e-5;
static constexpr int STEPS = 3, B = 16;

static inline void slopes(double (*__restrict dy)[B], const double (*y)[B]) {
#pragma omp simd
    for (int l = 0; l < B; l++) {
        const double t = y[4][l], beta = 1.0 / t;
        const double forward = 40.0 * exp(-4.0 * beta) * y[0][l] * y[1][l];
        const double isomer = 15.0 * exp(-3.0 * beta) * y[2][l] - 25.0 * exp(-5.0 * beta) * y[3][l];
        const double loss = t > 1.2 ? 0.1 * (t * t * t * t - 1.0) : 0.2 * (t - 1.0);
        dy[0][l] = dy[1][l] = -forward;
        dy[2][l] = forward - isomer;
        dy[3][l] = isomer;
        dy[4][l] = 1.5 * forward + 0.3 * isomer - loss;
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto start = d.array<double>("start");
    Array<double> y(5 * n);
    double numbers[3];
    auto run = [&] {
        int steps = 0;
        double change = 0;
        int64_t burnt = 0;
        for (int step = 0; step < STEPS; step++) {
            const double *from = step ? y.p : start.p;
            change = 0, burnt = 0;
#pragma omp parallel for schedule(static) reduction(+ : change, burnt) if (5 * n >= PARALLEL_FROM)
            for (int64_t i0 = 0; i0 < n; i0 += B) {
                alignas(64) double a[5][B], k[5][B], total[5][B], mid[5][B];
                const int64_t lanes = std::min<int64_t>(B, n - i0);
                for (int s = 0; s < 5; s++) {
                    for (int64_t l = 0; l < lanes; l++) a[s][l] = from[s * n + i0 + l];
                    for (int64_t l = lanes; l < B; l++) a[s][l] = 1.0;
                }
                slopes(total, a);
                auto stage = [&](const double (*slope)[B], double h, double w) {
                    for (int s = 0; s < 5; s++)
#pragma omp simd
                        for (int l = 0; l < B; l++) mid[s][l] = a[s][l] + h * slope[s][l];
                    slopes(k, mid);
                    for (int s = 0; s < 5; s++)
#pragma omp simd
                        for (int l = 0; l < B; l++) total[s][l] += w * k[s][l];
                };
                stage(total, 0.5 * DT, 2.0), stage(k, 0.5 * DT, 2.0), stage(k, DT, 1.0);
                double sum = 0;
                for (int s = 0; s < 5; s++)
#pragma omp simd reduction(+ : sum)
                    for (int64_t l = 0; l < lanes; l++) {
                        const double e = DT / 6 * total[s][l];
                        sum += e * e;
                        a[s][l] = std::max(a[s][l] + e, 0.0);
                        y[s * n + i0 + l] = a[s][l];
                    }
                change += sum;
                for (int64_t l = 0; l < lanes; l++) burnt += a[4][l] > 1.5 && a[0][l] < 0.5;
            }
            change /= n;
            steps = step + 1;
            if (change < TOLERANCE) break;
        }
        numbers[0] = steps, numbers[1] = double(burnt), numbers[2] = change;
    };
    bench(run, [&](Checksum &s) {
        s.add("y", y.p, 5 * n);
        s.add("numbers", numbers, 3);
    });
}
