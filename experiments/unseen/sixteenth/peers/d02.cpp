// Variable annuities: all years of a block of policies in the nearest cache, in vectorised loops; then
// the mean and the extremes, one pass for the deviation and the counts, one for the tail.
#include "common.hpp"
extern "C" {
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
__attribute__((simd("notinbranch"))) double sin(double) noexcept;
}

static constexpr int YEARS = 6, BINS = 1024, B = 256;
static constexpr double R0 = 0.02, KAPPA = 0.15, THETA = 0.03, SIGMA = 0.008, VOL = 0.18, RHO = -0.25;
static constexpr double FEE = 0.012, CHARGE = 0.04, ROLL = 1.01, LEVEL = 0.95;

#pragma omp declare simd linear(x : 1)
static inline double draw(uint32_t *x) {
    uint32_t v = *x;
    v ^= v << 13, v ^= v >> 17, v ^= v << 5;
    *x = v;
    return (v + 0.5) * 2.3283064365386963e-10;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto seed = d.array<uint32_t>("seed");
    auto premium = d.array<double>("premium"), age = d.array<double>("age");
    Array<double> loss(n), alive(n);
    double figures[4];
    auto run = [&] {
        double sum = 0, low = INFINITY, high = -INFINITY;
        const double across = std::sqrt(1.0 - RHO * RHO);
#pragma omp parallel for schedule(static) reduction(+ : sum) reduction(min : low) reduction(max : high) if (n >= PARALLEL_FROM / 8)
        for (int64_t i0 = 0; i0 < n; i0 += B) {
            const int m = std::min<int64_t>(B, n - i0);
            alignas(64) uint32_t x[B];
            alignas(64) double fund[B], best[B], live[B], rate[B], disc[B], cost[B];
            for (int l = 0; l < m; l++) {
                x[l] = seed[i0 + l];
                fund[l] = best[l] = premium[i0 + l];
                live[l] = disc[l] = 1.0, rate[l] = R0, cost[l] = 0.0;
            }
            for (int year = 0; year < YEARS; year++) {
#pragma omp simd
                for (int l = 0; l < m; l++) {
                    const double ua = draw(x + l), ub = draw(x + l);
                    const double radius = std::sqrt(-2.0 * log(ua)), angle = 6.283185307179586 * ub;
                    const double za = radius * cos(angle), z = RHO * za + across * (radius * sin(angle));
                    const double r = rate[l], f = fund[l] * exp(r - FEE - 0.5 * VOL * VOL + VOL * z);
                    const double dis = disc[l] * exp(-r), up = best[l] * ROLL, g = up > f ? up : f;
                    const double q = 0.00003 * exp(0.095 * (age[i0 + l] + year));
                    const double a = live[l], deaths = a * (q < 1.0 ? q : 1.0), money = f / g;
                    const double share = money < 0.5 ? 0.005 : 0.06 * money * money, lapses = (a - deaths) * share;
                    const double short_ = g - f > 0.0 ? g - f : 0.0;
                    cost[l] += dis * (deaths * short_ - f * (FEE * a + CHARGE * lapses));
                    rate[l] = r + (KAPPA * (THETA - r) + SIGMA * za);
                    fund[l] = f, best[l] = g, disc[l] = dis, live[l] = a - (deaths + lapses);
                }
            }
#pragma omp simd reduction(+ : sum) reduction(min : low) reduction(max : high)
            for (int l = 0; l < m; l++) {
                const double short_ = best[l] - fund[l] > 0.0 ? best[l] - fund[l] : 0.0;
                const double c = cost[l] + disc[l] * live[l] * short_;
                loss[i0 + l] = c, alive[i0 + l] = live[l];
                sum += c, low = low < c ? low : c, high = high > c ? high : c;
            }
        }
        const double mean = sum / n, scale = BINS / (high - low);
        double squares = 0, worst = 0;
        int64_t counts[BINS] = {};
#pragma omp parallel reduction(+ : squares, counts[:BINS]) if (n >= PARALLEL_FROM)
        {
            int64_t mine[BINS] = {};
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                const double x = loss[i], away = x - mean;
                squares += away * away;
                mine[std::min(int((x - low) * scale), BINS - 1)]++;
            }
            for (int b = 0; b < BINS; b++) counts[b] += mine[b];
        }
        int b = 0;
        for (int64_t total = counts[0]; total < LEVEL * n; total += counts[++b]) {}
        const double threshold = low + b * (high - low) / BINS;
#pragma omp parallel for simd schedule(static) reduction(+ : worst) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) worst += loss[i] > threshold ? loss[i] - threshold : 0.0;
        figures[0] = mean, figures[1] = std::sqrt(squares / n), figures[2] = threshold, figures[3] = threshold + worst / (n * (1.0 - LEVEL));
    };
    bench(run, [&](Checksum &s) {
        s.add("loss", loss.p, n);
        s.add("alive", alive.p, n);
        s.add("figures", figures, 4);
    });
}
