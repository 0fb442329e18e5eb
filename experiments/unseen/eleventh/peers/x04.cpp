// Minimizers: words roll by one letter, hashes and windows by blocks that stay in the cache.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto base = d.array<int32_t>("base");
    Array<int64_t> hash(n);
    Array<int32_t> chosen(n);
    std::vector<int32_t> count(3 * 1024);
    std::vector<double> table(12);
    const int64_t W = 10, block = 4096;
    auto run = [&] {
        std::fill(count.begin(), count.end(), 0);
        for (int row = 0; row < 3; row++) {
            const int64_t k = 11 + 2 * row, words = n - k + 1, mask = (int64_t(1) << 2 * k) - 1, odd = mask / 3;
            const int64_t windows = words - W + 1;
            int64_t picked = 0, all = 0, mine = 0;
            int64_t *H = hash;
            int32_t *C = chosen;
            const int32_t *B = base;
#pragma omp parallel reduction(+ : picked, all, mine) if (n >= PARALLEL_FROM)
            {
                std::vector<int32_t> local(1024);
                std::vector<int64_t> least(block + 2 * W), h(block + 2 * W);
                std::vector<int32_t> best(block + 2 * W), gc(block);
#pragma omp for schedule(static)
                for (int64_t from = 0; from < n; from += block) {
                    // words of [from - W + 1, to + W - 1), so that no window needs another block
                    const int64_t to = std::min(n, from + block);
                    const int64_t a = std::max<int64_t>(0, from - W + 1), b = std::min(words, to + W - 1);
                    int64_t f = 0, r = 0;
                    if (a < b)
                        for (int64_t j = 0; j < k - 1; j++) {
                            f = (f << 2) | B[a + j];
                            r = (r >> 2) | (int64_t(3 - B[a + j]) << 2 * (k - 1));
                        }
                    for (int64_t i = a; i < b; i++) {
                        f = ((f << 2) | B[i + k - 1]) & mask;
                        r = (r >> 2) | (int64_t(3 - B[i + k - 1]) << 2 * (k - 1));
                        least[i - a] = std::min(f, r);
                    }
                    const int64_t *l = least.data();
                    int64_t *x = h.data();
#pragma omp simd
                    for (int64_t q = 0; q < b - a; q++) {
                        int64_t y = l[q];
                        y = (~y + (y << 21)) & mask;
                        y ^= y >> 24;
                        y = (y + (y << 3) + (y << 8)) & mask;
                        y ^= y >> 14;
                        y = (y + (y << 2) + (y << 4)) & mask;
                        y ^= y >> 28;
                        x[q] = (y + (y << 31)) & mask;
                    }
                    const int64_t end = std::min(words, to);
                    for (int64_t i = from; i < to; i++) C[i] = 0;
                    for (int64_t i = from; i < end; i++) H[i] = x[i - a];
                    const int64_t last = std::min(windows, to);
                    int64_t at = -1;
                    for (int64_t i = a; i < last; i++) {  // the leftmost least, rolling
                        if (at < i) {
                            at = i;
                            for (int64_t j = 1; j < W; j++)
                                if (x[i + j - a] < x[at - a]) at = i + j;
                        } else if (x[i + W - 1 - a] < x[at - a]) {
                            at = i + W - 1;
                        }
                        if (at >= from && at < to) C[at] = 1;
                    }
                    for (int64_t i = from; i < end; i++) {
                        const int64_t y = l[i - a];
                        const int g = __builtin_popcountll((y ^ (y >> 1)) & odd);
                        all += g;
                        if (C[i]) {
                            picked++;
                            mine += g;
                            local[x[i - a] & 1023]++;
                        }
                    }
                }
#pragma omp critical
                for (int b = 0; b < 1024; b++) count[1024 * row + b] += local[b];
            }
            int64_t unused = 0;
            for (int b = 0; b < 1024; b++) unused += count[1024 * row + b] == 0;
            double out[4] = {double(picked), double(all), double(mine), double(unused)};
            std::copy(out, out + 4, &table[4 * row]);
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("h", hash.p, n - 14);
        c.add("chosen", chosen.p, n);
        c.add("count", count.data(), count.size());
        c.add("table", table.data(), 12);
    });
}
