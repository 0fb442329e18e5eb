// Sandpile: one loop a round: a site's topplings come from the old heights of it and its neighbours,
// so heights go to and fro between two buffers and topplings are never stored.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), most = d.number("most"), w = n + 2, cells = w * w;
    auto first = d.array<int32_t>("first");
    Array<int32_t> a(cells), b(cells), odometer(cells);
    int32_t *z = a, *y = b;
    std::vector<int64_t> rounds, left;
    auto run = [&] {
        rounds.clear(), left.clear();
#pragma omp parallel for schedule(static) if (cells >= PARALLEL_FROM)
        for (int64_t i = 0; i < cells; i++) z[i] = first[i], y[i] = 0, odometer[i] = 0;
        for (int64_t heap = 0; heap < 4; heap++) {
            const int64_t row = 1 + (2 * heap + 1) * n / 8, column = 1 + (heap + 1) * n / 6;
            for (int k = 0; k < 3; k++) z[row * w + column + k] += 40;
            int64_t round = 0, toppled = 1;
            while (toppled > 0 && round < most) {
                int64_t active = 0;
#pragma omp parallel for schedule(static) reduction(+ : active) if (cells >= PARALLEL_FROM)
                for (int64_t i = 1; i <= n; i++) {
                    const int32_t *r = z + i * w, *up = r - w, *down = r + w;
                    int32_t *out = y + i * w, *o = odometer + i * w, count = 0;
#pragma omp simd reduction(+ : count)
                    for (int64_t j = 1; j <= n; j++) {  // heights are not negative: / 4 is a shift
                        int32_t t = r[j] >> 2;
                        out[j] = (r[j] & 3) + (up[j] >> 2) + (down[j] >> 2) + (r[j - 1] >> 2) +
                                 (r[j + 1] >> 2);
                        o[j] += t;
                        count += t > 0;
                    }
                    active += count;
                }
                std::swap(z, y);
                toppled = active, round++;
            }
            int64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (cells >= PARALLEL_FROM)
            for (int64_t i = 0; i < cells; i++) sum += z[i];
            rounds.push_back(round), left.push_back(sum);
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("z", z, cells);
        s.add("odometer", odometer.p, cells);
        s.add("rounds", rounds.data(), rounds.size());
        s.add("left", left.data(), left.size());
    });
}
