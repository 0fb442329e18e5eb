// Indicators: blocks of stocks stay in cache through all days; sums by day are added up afterwards.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const int days = d.number("days");
    auto price = d.array<double>("price");
    Array<double> position(n);
    std::vector<double> wealth;
    double fall = 0;
    const int B = 512;
    auto run = [&] {
        std::vector<double> profit(days), turnover(days);
#pragma omp parallel if (n >= 2048)
        {
            std::vector<double> gains(days), trades(days);
            alignas(64) double fast[B], slow[B], line[B], up[B], down[B], pos[B];
            const double a13 = 2.0 / 13.0, a27 = 2.0 / 27.0, a10 = 2.0 / 10.0, a14 = 1.0 / 14.0;
#pragma omp for schedule(static) nowait
            for (int64_t b = 0; b < n; b += B) {
                const int m = std::min<int64_t>(B, n - b);
                for (int i = 0; i < m; i++) {
                    fast[i] = slow[i] = price[b + i];
                    line[i] = up[i] = down[i] = pos[i] = 0;
                }
                for (int day = 1; day < days; day++) {
                    const double *p = &price[day * n + b], *q = &price[(day - 1) * n + b];
                    double g = 0, t = 0;
#pragma omp simd reduction(+ : g, t)
                    for (int i = 0; i < m; i++) {
                        double ret = p[i] / q[i] - 1.0;
                        g += pos[i] * ret;
                        double f = fast[i] + a13 * (p[i] - fast[i]);
                        double s = slow[i] + a27 * (p[i] - slow[i]);
                        double macd = f / s - 1.0;
                        double l = line[i] + a10 * (macd - line[i]);
                        double u = up[i] + a14 * ((ret > 0.0 ? ret : 0.0) - up[i]);
                        double w = down[i] + a14 * ((-ret > 0.0 ? -ret : 0.0) - down[i]);
                        double rsi = 100.0 * u / (u + w + 1e-12);
                        double want = ((macd > l) & (rsi < 70.0)) ? 1.0 : 0.0;
                        want = ((macd < l) & (rsi > 30.0)) ? -1.0 : want;
                        double trade = 0.5 * (want - pos[i]);
                        pos[i] += trade;
                        t += std::fabs(trade);
                        fast[i] = f, slow[i] = s, line[i] = l, up[i] = u, down[i] = w;
                    }
                    gains[day] += g;
                    trades[day] += t;
                }
                std::copy(pos, pos + m, &position[b]);
            }
#pragma omp critical
            for (int day = 1; day < days; day++) {
                profit[day] += gains[day];
                turnover[day] += trades[day];
            }
        }
        double now = 1, best = 1;
        fall = 0;
        wealth.clear();
        for (int day = 1; day < days; day++) {
            now *= 1.0 + profit[day] / n - 0.0005 * turnover[day] / n;
            best = std::max(best, now);
            fall = std::max(fall, 1.0 - now / best);
            wealth.push_back(now);
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("position", position.p, n);
        c.add("wealth", wealth.data(), wealth.size());
        c.add("fall", fall);
    });
}
