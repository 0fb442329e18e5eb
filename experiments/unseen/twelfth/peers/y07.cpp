// Orders: three sweeps a window: rows picked and gathered (each thread counts its own first) with
// the sums by shop; deviations; bins; then the values are pulled in, with the moments.
#include "common.hpp"

static const int SHOPS = 200, BINS = 160;
static const double REACH = 4.0;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto shop = d.array<int32_t>("shop"), day = d.array<int32_t>("day"), quantity = d.array<int32_t>("quantity");
    auto price = d.array<double>("price"), discount = d.array<double>("discount");
    Array<double> Z(n);
    Array<int32_t> Key(n);
    std::vector<double> means, counts, rows;
    int64_t m = 0;
    const bool par = n >= 2048;
    const int most = omp_get_max_threads();
    auto run = [&] {
        means.clear(), counts.clear(), rows.clear();
        double *__restrict z = Z;
        int32_t *__restrict key = Key;
        for (int w = 0; w < 3; w++) {
            const int lo = w * 25, hi = lo + 39;
            std::vector<int64_t> picked(most + 1), cnt(SHOPS), cents(SHOPS), hist(BINS);
            double mean[SHOPS], sum = 0, spread = 0, low = 0, high = 0, m1 = 0, m2 = 0, m3 = 0;
            int64_t out = 0;
#pragma omp parallel if (par)
            {
                const int T = omp_get_num_threads(), t = omp_get_thread_num();
                const int64_t a = n * t / T, b = n * (t + 1) / T;
                int64_t c = 0;
                for (int64_t i = a; i < b; i++) c += (day[i] >= lo) & (day[i] <= hi) & (quantity[i] > 0);
                picked[t + 1] = c;
#pragma omp barrier
#pragma omp single
                {
                    for (int q = 0; q < T; q++) picked[q + 1] += picked[q];
                    m = picked[T];
                }
                int64_t k = picked[t], myc[SHOPS] = {}, mys[SHOPS] = {}, myh[BINS] = {};
                for (int64_t i = a; i < b; i++)
                    if (day[i] >= lo && day[i] <= hi && quantity[i] > 0) {
                        double v = price[i] * (1.0 - discount[i]) * quantity[i];
                        z[k] = v;
                        key[k++] = shop[i];
                        myc[shop[i]]++;
                        mys[shop[i]] += int64_t(100.0 * v + 0.5);
                    }
#pragma omp critical
                for (int s = 0; s < SHOPS; s++) cnt[s] += myc[s], cents[s] += mys[s];
#pragma omp barrier
#pragma omp single
                for (int s = 0; s < SHOPS; s++) mean[s] = cnt[s] ? 0.01 * cents[s] / cnt[s] : 0.0;
#pragma omp for simd schedule(static) reduction(+ : sum)
                for (int64_t q = 0; q < m; q++) {
                    z[q] -= mean[key[q]];
                    sum += z[q] * z[q];
                }
#pragma omp single
                spread = std::sqrt(sum / m);
#pragma omp for schedule(static)
                for (int64_t q = 0; q < m; q++) {
                    z[q] /= spread;
                    int p = int((z[q] + REACH) / (2.0 * REACH) * BINS);
                    myh[std::max(0, std::min(BINS - 1, p))]++;
                }
#pragma omp critical
                for (int s = 0; s < BINS; s++) hist[s] += myh[s];
#pragma omp barrier
#pragma omp single
                {
                    int64_t run = 0;
                    int l = -1, h = -1;
                    for (int s = 0; s < BINS; s++) {
                        run += hist[s];
                        if (l < 0 && double(run) / m >= 0.05) l = s;
                        if (h < 0 && double(run) / m >= 0.95) h = s;
                    }
                    low = l * (2.0 * REACH / BINS) - REACH;
                    high = (h + 1) * (2.0 * REACH / BINS) - REACH;
                }
#pragma omp for simd schedule(static) reduction(+ : m1, m2, m3, out)
                for (int64_t q = 0; q < m; q++) {
                    double v = z[q];
                    out += v < low || v > high;
                    v = v < high ? v : high;
                    v = v > low ? v : low;
                    z[q] = v;
                    m1 += v, m2 += v * v, m3 += v * v * v;
                }
            }
            means.insert(means.end(), mean, mean + SHOPS);
            counts.insert(counts.end(), hist.begin(), hist.end());
            for (double x : {double(m), spread, low, high, double(out), m1 / m, m2 / m, m3 / m}) rows.push_back(x);
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("means", means.data(), means.size());
        s.add("counts", counts.data(), counts.size());
        s.add("rows", rows.data(), rows.size());
        s.add("z", Z.p, m);
    });
}
