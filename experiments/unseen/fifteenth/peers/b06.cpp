// Heston's model: all steps of sixteen paths in registers; only the payoffs and variances are stored.
#include "common.hpp"
extern "C" {  // without errno, so that loops with them can be vectorised
__attribute__((const)) double sqrt(double) noexcept;
__attribute__((const)) double exp(double) noexcept;
__attribute__((const)) double log(double) noexcept;
__attribute__((simd("notinbranch"), const)) double sin(double) noexcept;
__attribute__((simd("notinbranch"), const)) double cos(double) noexcept;
}

static constexpr int STEPS = 6, B = 16;
static constexpr double SPOT = 100.0, STRIKE = 98.0, BARRIER = 78.0, RATE = 0.02, KAPPA = 1.5, THETA = 0.05;
static constexpr double VOL = 0.6, RHO = -0.7, V0 = 0.06, DT = 1.0 / 12;

static inline uint32_t scramble(uint32_t h) {
    h = (h ^ (h >> 16)) * 2146121005u;
    h = (h ^ (h >> 15)) * 2221713035u;
    return h ^ (h >> 16);
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    Array<double> pay(n), variance(n), asian(n);
    double results[5];
    auto run = [&] {
        const double barrier = std::log(BARRIER), discount = std::exp(-RATE * STEPS * DT), first = std::log(SPOT);
        const double other = std::sqrt(1.0 - RHO * RHO);
        double sum = 0, asian_sum = 0;
        int64_t survivors = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum, asian_sum, survivors) if (n >= PARALLEL_FROM)
        for (int64_t i0 = 0; i0 < n; i0 += B) {
            alignas(64) double x[B], v[B], average[B], r[B], angle[B], c[B], sine[B], level[B];
            alignas(64) uint32_t a[B], b[B];
            alignas(64) double lowest[B];
            const int64_t lanes = std::min<int64_t>(B, n - i0);
            for (int l = 0; l < B; l++) x[l] = lowest[l] = first, v[l] = V0, average[l] = 0.0;
            for (int step = 0; step < STEPS; step++) {
                const uint32_t seed = 7919u * (step + 1);
#pragma omp simd
                for (int l = 0; l < B; l++) a[l] = scramble(uint32_t(i0 + l) + seed), b[l] = scramble(a[l] + 2654435769u);
#pragma omp simd
                for (int l = 0; l < B; l++) {
                    r[l] = std::sqrt(-2.0 * log((a[l] + 0.5) / 4294967296.0));
                    angle[l] = 6.283185307179586 * ((b[l] + 0.5) / 4294967296.0);
                }
#pragma omp simd
                for (int l = 0; l < B; l++) c[l] = cos(angle[l]);
#pragma omp simd
                for (int l = 0; l < B; l++) sine[l] = sin(angle[l]);
#pragma omp simd
                for (int l = 0; l < B; l++) {
                    const double z1 = r[l] * c[l], z2 = r[l] * sine[l];
                    const double p = std::max(v[l], 0.0), s = std::sqrt(p * DT);
                    x[l] += (RATE - 0.5 * p) * DT + s * z1;
                    v[l] += KAPPA * (THETA - p) * DT + VOL * s * (RHO * z1 + other * z2);
                    lowest[l] = std::min(lowest[l], x[l]);
                }
#pragma omp simd
                for (int l = 0; l < B; l++) level[l] = exp(x[l]), average[l] += level[l] / STEPS;
            }
            for (int64_t l = 0; l < lanes; l++) {
                const bool alive = !(lowest[l] < barrier);
                const double q = alive ? discount * std::max(level[l] - STRIKE, 0.0) : 0.0;
                const double s = alive ? discount * std::max(average[l] - STRIKE, 0.0) : 0.0;
                pay[i0 + l] = q, asian[i0 + l] = s, variance[i0 + l] = v[l];
                sum += q, asian_sum += s, survivors += alive;
            }
        }
        const double mean = sum / n, asian_mean = asian_sum / n;
        double spread = 0, asian_spread = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : spread, asian_spread) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) {
            spread += (pay[i] - mean) * (pay[i] - mean);
            asian_spread += (asian[i] - asian_mean) * (asian[i] - asian_mean);
        }
        results[0] = mean, results[1] = spread / (n - 1);
        results[2] = asian_mean, results[3] = asian_spread / (n - 1), results[4] = double(survivors);
    };
    bench(run, [&](Checksum &s) {
        s.add("pay", pay.p, n);
        s.add("v", variance.p, n);
        s.add("results", results, 5);
    });
}
