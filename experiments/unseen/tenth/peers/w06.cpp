// Sessions: each thread counts the starts in its part, then walks its part once more, writing the
// numbers and closing sessions as they end; no atomics are needed where the events are sorted.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto user = d.array<int32_t>("user"), size = d.array<int32_t>("size");
    auto time = d.array<int64_t>("time");
    Array<int32_t> session(n);
    Array<int64_t> volume(n);
    const int64_t timeouts[4] = {300, 900, 1800, 3600};
    std::vector<int64_t> histogram(80);
    std::vector<double> table(16);
    auto run = [&] {
        std::fill(histogram.begin(), histogram.end(), 0);
        for (int k = 0; k < 4; k++) {
            const int64_t timeout = timeouts[k];
            std::vector<int64_t> counts(omp_get_max_threads() + 1);
            int64_t left = 0, big = 0, spent = 0, sessions = 0;
            int64_t *hist = &histogram[20 * k];
            auto starts = [&](int64_t i) {
                return i == 0 || user[i] != user[i - 1] || time[i] - time[i - 1] > timeout;
            };
#pragma omp parallel reduction(+ : left, big, spent) if (n >= PARALLEL_FROM)
            {
                const int T = omp_get_num_threads(), t = omp_get_thread_num();
                const int64_t first = n * t / T, end = n * (t + 1) / T;
                const int32_t *u = user;
                const int64_t *w = time;
                if (T > 1) {
                    int64_t mine = first == 0;
                    for (int64_t i = std::max<int64_t>(first, 1); i < end; i++)
                        mine += (u[i] != u[i - 1]) | (w[i] - w[i - 1] > timeout);
                    counts[t + 1] = mine;
#pragma omp barrier
                }
                int64_t s = -1, bins[20] = {};
                for (int q = 1; q <= t; q++) s += counts[q];
                int64_t i = first;
                while (i < end && !starts(i)) session[i++] = s;  // the one before finishes these sums
                while (i < end) {
                    const int64_t begin = i;
                    int64_t bytes = 0;
                    s++;
                    do {
                        bytes += size[i];
                        if (i < end) session[i] = s;
                        i++;
                    } while (i < n && !((u[i] != u[i - 1]) | (w[i] - w[i - 1] > timeout)));
                    volume[s] = bytes;
                    const int64_t duration = w[i - 1] - w[begin];
                    left += i - begin == 1;
                    big += bytes >= 200000;
                    spent += duration;
                    bins[duration ? std::min(19, 64 - __builtin_clzll(duration)) : 0]++;
                }
#pragma omp critical
                {
                    for (int b = 0; b < 20; b++) hist[b] += bins[b];
                    sessions = std::max(sessions, s + 1);
                }
            }
#pragma omp parallel for if (n >= PARALLEL_FROM)
            for (int64_t s = sessions; s < n; s++) volume[s] = 0;
            double row[4] = {double(sessions), double(left), double(big), double(spent)};
            std::copy(row, row + 4, &table[4 * k]);
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("session", session.p, n);
        c.add("volume", volume.p, n);
        c.add("histogram", histogram.data(), 80);
        c.add("table", table.data(), 16);
    });
}
