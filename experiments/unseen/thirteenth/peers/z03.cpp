// Swarm: two loops a step over the particles: price and judge, then (the leader known) move.
#include "common.hpp"

static inline double uniform(uint32_t i, uint32_t j, uint32_t counter) {
    uint32_t x = i * 747796405u + j * 40503u + counter;
    x ^= x >> 16;
    x *= 2146121005u;
    x ^= x >> 15;
    x *= 1845390219u;
    x ^= x >> 16;
    return (double(x) + 0.5) * 2.3283064365386963e-10;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps"), bonds = d.extent("time");
    auto time = d.array<double>("time"), market = d.array<double>("market"), weight = d.array<double>("weight");
    auto low = d.array<double>("low"), high = d.array<double>("high");
    Array<double> x(6 * n), v(6 * n), place(6 * n), best(n);
    std::vector<double> leaders, means;
    std::vector<int64_t> improvements;
    auto run = [&] {
        leaders.clear(), means.clear(), improvements.clear();
#pragma omp parallel for schedule(static) if (n * bonds >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) {
            for (int j = 0; j < 6; j++) {
                x[6 * i + j] = low[j] + uniform(i, j, 977) * (high[j] - low[j]);
                v[6 * i + j] = 0;
            }
            best[i] = 1e300;
        }
        for (int64_t step = 0; step < steps; step++) {
            double sum = 0, least = INFINITY;
            int64_t improved = 0, leader = n;
#pragma omp parallel reduction(+ : sum, improved) if (n * bonds >= PARALLEL_FROM)
            {
                double my_least = INFINITY;
                int64_t my_leader = n;
                const double *t = time, *mk = market, *w = weight;
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    const double *p = x + 6 * i;
                    double s = 0;
                    const double b0 = p[0], b1 = p[1], b2 = p[2], b3 = p[3], t1 = p[4], t2 = p[5];
#pragma omp simd reduction(+ : s)
                    for (int64_t b = 0; b < bonds; b++) {
                        double a1 = t[b] / t1, a2 = t[b] / t2, e1 = exp(-a1), e2 = exp(-a2);
                        double f1 = (1.0 - e1) / a1, f2 = (1.0 - e2) / a2;
                        double y = b0 + b1 * f1 + b2 * (f1 - e1) + b3 * (f2 - e2);
                        double q = exp(-y * t[b]) - mk[b];
                        s += w[b] * q * q;
                    }
                    const double rate = b0 + b1;
                    if (rate < 0.0) s += 10.0 * rate * rate;
                    if (t2 < t1) s += 0.01 * (t1 - t2);
                    sum += s;
                    if (s < best[i]) {
                        best[i] = s;
                        improved++;
                        for (int j = 0; j < 6; j++) place[6 * i + j] = p[j];
                    }
                    if (best[i] < my_least) my_least = best[i], my_leader = i;
                }
#pragma omp critical
                if (my_least < least || (my_least == least && my_leader < leader)) least = my_least, leader = my_leader;
            }
            improvements.push_back(improved);
            means.push_back(sum / n);
            leaders.push_back(least);
            const double inertia = 0.9 - 0.5 * step / steps;
            const uint32_t c1 = 977 + 7919 * (2 * step + 1), c2 = c1 + 7919;
            double lead[6];
            for (int j = 0; j < 6; j++) lead[j] = place[6 * leader + j];
#pragma omp parallel for schedule(static) if (n * bonds >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 6
                for (int j = 0; j < 6; j++) {
                    const int64_t o = 6 * i + j;
                    const double most = 0.2 * (high[j] - low[j]);
                    double w = inertia * v[o] + 1.6 * uniform(i, j, c1) * (place[o] - x[o]) +
                               1.5 * uniform(i, j, c2) * (lead[j] - x[o]);
                    w = std::max(-most, std::min(most, w));
                    double y = x[o] + w;
                    if (y < low[j]) y = 2.0 * low[j] - y, w = -w;
                    else if (y > high[j]) y = 2.0 * high[j] - y, w = -w;
                    x[o] = y, v[o] = w;
                }
            }
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("x", x.p, 6 * n);
        s.add("best", best.p, n);
        s.add("leaders", leaders.data(), leaders.size());
        s.add("means", means.data(), means.size());
        s.add("improvements", improvements.data(), improvements.size());
    });
}
