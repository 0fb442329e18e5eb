// Landscape: three kinds of loops a step: receivers and slopes; four rounds of drainage over two
// buffers; and all that changes the heights, into a second buffer, with the sums.
#include "common.hpp"

static const double SPACING = 100.0, DT = 400.0, ERODIBILITY = 2e-5, CREEP = 0.3, STEEP = 0.6;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps"), N = n * n;
    auto h0 = d.array<double>("h0"), lift = d.array<double>("lift"), rain = d.array<double>("rain");
    Array<double> ha(N), hb(N), area(N), flow(N), slope(N);
    Array<int8_t> receiver(N + 64);
    std::vector<double> sediment, relief;
    std::vector<int64_t> pits;
    double *H = ha;
    auto run = [&] {
        sediment.clear(), relief.clear(), pits.clear();
        double *h = ha, *hn = hb;
#pragma omp parallel for schedule(static) if (N >= PARALLEL_FROM)
        for (int64_t i = 0; i < N; i++) h[i] = h0[i], area[i] = rain[i];
        for (int64_t step = 0; step < steps; step++) {
            int64_t pit = 0;
            double cuts = 0, heights = 0;
#pragma omp parallel reduction(+ : pit, cuts, heights) if (N >= PARALLEL_FROM)
            {
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    const double *row[3] = {h + std::max<int64_t>(i - 1, 0) * n, h + i * n, h + std::min(i + 1, n - 1) * n};
                    const double *u = row[0], *c = row[1], *v = row[2];
                    double *__restrict s = slope + i * n;
                    int8_t *__restrict r = receiver + i * n;
                    const double D = 1.4142135623730951 * SPACING;
                    auto one = [&](int64_t j, int64_t a, int64_t b) {
                        double best = 0, m = c[j];
                        int64_t which = 4;
                        auto look = [&](double other, double length, int64_t k) {
                            double q = (m - other) / length;
                            which = q > best ? k : which;
                            best = q > best ? q : best;
                        };
                        look(u[a], D, 0), look(u[j], SPACING, 1), look(u[b], D, 2), look(c[a], SPACING, 3);
                        look(c[b], SPACING, 5), look(v[a], D, 6), look(v[j], SPACING, 7), look(v[b], D, 8);
                        s[j] = best;
                        r[j] = int8_t(which);
                    };
                    one(0, 0, 1);
                    one(n - 1, n - 2, n - 1);
#pragma omp simd
                    for (int64_t j = 1; j < n - 1; j++) one(j, j - 1, j + 1);
                    if (i > 0 && i < n - 1)
                        for (int64_t j = 1; j < n - 1; j++) pit += r[j] == 4;
                }
                for (int round = 0; round < 4; round++) {
                    const double *from = round % 2 ? flow.p : area.p;
                    double *to = round % 2 ? area.p : flow.p;
#pragma omp for schedule(static)
                    for (int64_t i = 0; i < n; i++) {
                        const int8_t *r = receiver + i * n;
                        const double *a = from + i * n, *w = rain + i * n;
                        double *__restrict out = to + i * n;
                        auto rim = [&](int64_t j) {
                            double total = w[j];
                            for (int k = 0; k < 9; k++) {
                                const int64_t y = i + k / 3 - 1, x = j + k % 3 - 1;
                                if (k != 4 && y >= 0 && y < n && x >= 0 && x < n && receiver[y * n + x] == 8 - k) total += from[y * n + x];
                            }
                            out[j] = total;
                        };
                        if (i == 0 || i == n - 1) {
                            for (int64_t j = 0; j < n; j++) rim(j);
                            continue;
                        }
                        rim(0), rim(n - 1);
#pragma omp simd
                        for (int64_t j = 1; j < n - 1; j++) {
                            double t = w[j];
                            t += r[j - n - 1] == 8 ? a[j - n - 1] : 0.0;
                            t += r[j - n] == 7 ? a[j - n] : 0.0;
                            t += r[j - n + 1] == 6 ? a[j - n + 1] : 0.0;
                            t += r[j - 1] == 5 ? a[j - 1] : 0.0;
                            t += r[j + 1] == 3 ? a[j + 1] : 0.0;
                            t += r[j + n - 1] == 2 ? a[j + n - 1] : 0.0;
                            t += r[j + n] == 1 ? a[j + n] : 0.0;
                            t += r[j + n + 1] == 0 ? a[j + n + 1] : 0.0;
                            out[j] = t;
                        }
                    }
                }
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    const double *c = h + i * n, *s = slope + i * n, *a = area + i * n, *l = lift + i * n;
                    const double *u = h + std::max<int64_t>(i - 1, 0) * n, *v = h + std::min(i + 1, n - 1) * n;
                    const int8_t *r = receiver + i * n;
                    double *__restrict out = hn + i * n;
                    const double D = 1.4142135623730951 * SPACING, rate = DT * CREEP / (SPACING * SPACING);
                    double q = 0, t = 0;
                    // The drop to the receiver is the slope times its length.
                    auto one = [&](int64_t j, int64_t x, int64_t y) {
                        double cut = DT * ERODIBILITY * std::sqrt(a[j]) * s[j];
                        double drop = 0.5 * s[j] * (r[j] & 1 ? SPACING : D);
                        cut = cut < drop ? cut : drop;
                        double move = s[j] < STEEP ? rate * (u[j] + v[j] + c[x] + c[y] - 4.0 * c[j]) : 0.0;
                        double z = c[j] + DT * l[j] + move - cut;
                        q += cut;
                        return z;
                    };
                    one(0, 0, 1), one(n - 1, n - 2, n - 1);
                    out[0] = out[n - 1] = 0;
                    const double keep = i == 0 || i == n - 1 ? 0.0 : 1.0;
#pragma omp simd reduction(+ : q, t)
                    for (int64_t j = 1; j < n - 1; j++) {
                        double z = one(j, j - 1, j + 1) * keep;
                        out[j] = z;
                        t += z;
                    }
                    cuts += q, heights += t;
                }
            }
            sediment.push_back(cuts), relief.push_back(heights), pits.push_back(pit);
            std::swap(h, hn);
        }
        H = h;
    };
    bench(run, [&](Checksum &s) {
        s.add("h", H, N);
        s.add("area", area.p, N);
        s.add("receiver", receiver.p, N);
        s.add("sediment", sediment.data(), sediment.size());
        s.add("relief", relief.data(), relief.size());
        s.add("pits", pits.data(), pits.size());
    });
}
