// Evaporation: one loop a day, all in registers; what depends on the station alone (tangent, sine and
// cosine of the latitude, psychrometric constant) is found once a run; the sums are in the loop.
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"))) double sin(double) noexcept;
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
__attribute__((simd("notinbranch"))) double tan(double) noexcept;
__attribute__((simd("notinbranch"))) double acos(double) noexcept;
__attribute__((simd("notinbranch"))) double pow(double, double) noexcept;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), days = 10;
    auto low = d.array<double>("low"), high = d.array<double>("high"), wind = d.array<double>("wind");
    auto rain = d.array<double>("rain"), lat = d.array<double>("lat"), height = d.array<double>("height");
    Array<double> water(n), season(n), g(n), ts(n), sl(n), cl(n);
    std::vector<double> totals;
    const double C = 60.0, pi = std::acos(-1.0);
    auto run = [&] {
        totals.clear();
        for (int64_t day = 0; day < days; day++) {
            const double year = 2.0 * pi * (120 + 3 * day) / 365.0;
            const double decl = 0.409 * std::sin(year - 1.39), far = 1.0 + 0.033 * std::cos(year);
            const double sine = std::sin(decl), cosine = std::cos(decl), tilt = sine / cosine;
            const double *lo = low + day * n, *hi = high + day * n, *wi = wind + day * n;
            const double *ra_ = rain + day * n;
#pragma omp parallel if (n >= 1000)
            {
                if (day == 0) {
#pragma omp for simd schedule(static)
                    for (int64_t i = 0; i < n; i++) {
                        g[i] = 0.000665 * 101.3 * pow((293.0 - 0.0065 * height[i]) / 293.0, 5.26);
                        ts[i] = -tan(lat[i]), sl[i] = sin(lat[i]), cl[i] = cos(lat[i]);
                        water[i] = 0.6 * C, season[i] = 0.0;
                    }
                }
#pragma omp for simd schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    double t = 0.5 * (lo[i] + hi[i]), a = t + 237.3;
                    double el = 0.6108 * exp(17.27 * lo[i] / (lo[i] + 237.3));
                    double eh = 0.6108 * exp(17.27 * hi[i] / (hi[i] + 237.3));
                    double slope = 4098.0 * (0.6108 * exp(17.27 * t / a)) / (a * a);
                    double w = acos(ts[i] * tilt);
                    double ra = 37.586 * far * (w * sl[i] * sine + cl[i] * cosine * sin(w));
                    double rs = 0.16 * std::sqrt(hi[i] - lo[i]) * ra;
                    double clear = (0.75 + 0.00002 * height[i]) * ra, k = t + 273.16;
                    double cloud = 1.35 * std::min(rs / clear, 1.0) - 0.35;
                    double rl = 4.903e-9 * k * k * k * k * (0.34 - 0.14 * std::sqrt(el)) * cloud;
                    double rn = 0.77 * rs - rl, dry = 0.5 * (el + eh) - el;
                    double top = 0.408 * slope * rn + g[i] * 900.0 / (t + 273.0) * wi[i] * dry;
                    double et = std::max(top / (slope + g[i] * (1.0 + 0.34 * wi[i])), 0.0);
                    et *= std::min(1.0, 2.0 * water[i] / C);
                    water[i] = std::min(std::max(water[i] + ra_[i] - et, 0.0), C);
                    season[i] += et;
                }
            }
            double sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum) if (n >= 5 * PARALLEL_FROM)
            for (int64_t i = 0; i < (n + 4) / 5; i++) sum += water[5 * i];
            totals.push_back(sum);
        }
        double sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) sum += season[i];
        totals.push_back(sum);
    };
    bench(run, [&](Checksum &s) {
        s.add("water", water.p, n);
        s.add("season", season.p, n);
        s.add("totals", totals.data(), totals.size());
    });
}
