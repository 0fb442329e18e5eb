// All queries in one pass over the postings, with their weights side by side; histograms of each thread,
// then one pass that writes the hits of all queries.
#include "common.hpp"

static constexpr int QUERIES = 5, WORDS = 4, WANTED = 100, BINS = 1024, LANES = 8;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), V = d.number("vocabulary");
    auto start = d.array<int32_t>("start"), term = d.array<int32_t>("term"), day = d.array<int32_t>("day"), queries = d.array<int32_t>("queries");
    auto count = d.array<uint8_t>("count");
    const int T = omp_get_max_threads();
    Array<double> idf(V), weight(V * LANES), score(n * QUERIES), value(QUERIES * 4 * WANTED);
    Array<int32_t> hit(QUERIES * 4 * WANTED), found(QUERIES * 2), clicks(n), lengths(n), df(V * T), histogram(T * QUERIES * BINS);
    Array<int16_t> bin(n * QUERIES);
    auto run = [&] {
        const int threads = n >= PARALLEL_FROM ? T : 1;
        int64_t sum = 0;
        int bar[QUERIES], begin[QUERIES + 1];
        std::vector<int32_t> before((threads + 1) * QUERIES);
        std::fill(hit.p, hit.p + hit.n, 0), std::fill(value.p, value.p + value.n, 0.0);
#pragma omp parallel num_threads(threads)
        {
            const int t = omp_get_thread_num();
            const int64_t i0 = n * t / threads, i1 = n * (t + 1) / threads;
            int32_t *__restrict mine = df.p + V * t, *__restrict h = histogram.p + t * QUERIES * BINS;
            const int32_t *__restrict s = start.p, *__restrict w = term.p;
            const uint8_t *__restrict c = count.p;
            std::fill(mine, mine + V, 0), std::fill(h, h + QUERIES * BINS, 0);
            int64_t part = 0;
            for (int64_t e = s[i0]; e < s[i1]; e++) mine[w[e]]++;
            for (int64_t i = i0; i < i1; i++) {
                int32_t total = 0;
                for (int64_t e = s[i]; e < s[i + 1]; e++) total += c[e];
                lengths[i] = total, part += total;
            }
#pragma omp atomic
            sum += part;
#pragma omp barrier
#pragma omp for schedule(static)
            for (int64_t v = 0; v < V; v++) {
                int32_t f = 0;
                for (int k = 0; k < threads; k++) f += df[V * k + v];
                idf[v] = std::log(1.0 + (n - f + 0.5) / (f + 0.5));
                for (int q = 0; q < LANES; q++) weight[v * LANES + q] = 0.0;
            }
#pragma omp single
            for (int q = 0; q < QUERIES; q++)
                for (int k = 0; k < WORDS; k++) {
                    const int32_t v = queries[q * WORDS + k];
                    weight[v * LANES + q] = idf[v];
                }
            const double mean = double(sum) / n;
            for (int64_t i = i0; i < i1; i++) {
                const double norm = 1.2 * (1.0 - 0.75 + 0.75 * lengths[i] / mean), boost = 0.7 + 0.3 / (1.0 + 0.01 * (3650 - day[i]));
                double total[LANES] = {};
                for (int64_t e = s[i]; e < s[i + 1]; e++) {
                    const double tf = c[e], f = tf * 2.2 / (tf + norm);
                    const double *__restrict row = weight.p + int64_t(w[e]) * LANES;
#pragma omp simd
                    for (int q = 0; q < LANES; q++) total[q] += row[q] * f;
                }
                for (int q = 0; q < QUERIES; q++) {
                    const double v = total[q] * boost;
                    const int b = std::min(int(v * 30.0), BINS - 1);
                    score[i * QUERIES + q] = v, bin[i * QUERIES + q] = b, h[q * BINS + b]++;
                }
                clicks[i] = 0;
            }
#pragma omp barrier
#pragma omp single
            {
                begin[0] = 0;
                for (int q = 0; q < QUERIES; q++) {
                    int hits = 0, at = BINS;
                    auto all = [&](int b) {
                        int x = 0;
                        for (int k = 0; k < threads; k++) x += histogram[(k * QUERIES + q) * BINS + b];
                        return x;
                    };
                    while (at > 1 && hits < WANTED) {
                        const int more = all(at - 1);
                        if (hits + more > 4 * WANTED) break;
                        at--, hits += more;
                    }
                    bar[q] = at, begin[q + 1] = begin[q] + hits;
                    found[2 * q] = hits, found[2 * q + 1] = at;
                    int32_t place = begin[q];
                    for (int k = 0; k < threads; k++) {
                        before[k * QUERIES + q] = place;
                        for (int b = at; b < BINS; b++) place += histogram[(k * QUERIES + q) * BINS + b];
                    }
                }
            }
            int32_t place[QUERIES];
            for (int q = 0; q < QUERIES; q++) place[q] = before[t * QUERIES + q];
            for (int64_t i = i0; i < i1; i++)
                for (int q = 0; q < QUERIES; q++)
                    if (bin[i * QUERIES + q] >= bar[q]) {
                        hit[place[q]] = i, value[place[q]++] = score[i * QUERIES + q];
                        clicks[i]++;
                    }
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("idf", idf.p, V), s.add("hit", hit.p, hit.n), s.add("value", value.p, value.n), s.add("found", found.p, found.n), s.add("clicks", clicks.p, n);
    });
}
