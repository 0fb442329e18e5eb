// Viterbi: frame by frame in the cache, the states vectorised.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), L = d.number("length");
    auto received = d.array<int32_t>("received"), sent = d.array<int32_t>("sent"), symbol = d.array<int32_t>("symbol");
    Array<int32_t> metric(n * 64), bit(n * L);
    std::vector<double> counts(3);
    alignas(64) int32_t s1[2][64], s2[2][64];  // the signs with which both values count
    for (int w = 0; w < 2; w++)
        for (int s = 0; s < 64; s++) {
            s1[w][s] = symbol[w * 64 + s] & 1 ? -1 : 1;
            s2[w][s] = symbol[w * 64 + s] & 2 ? -1 : 1;
        }
    auto run = [&] {
        int64_t gaps = 0, bits = 0, frames = 0;
#pragma omp parallel for schedule(static) if (n >= 64) reduction(+ : gaps, bits, frames)
        for (int64_t b = 0; b < n; b++) {
            alignas(64) int32_t m[64], even[32], odd[32];
            uint8_t dec[64][64];
            for (int s = 0; s < 64; s++) m[s] = s ? 10000 : 0;
            for (int64_t t = 0; t < L; t++) {
                const int32_t r1 = received[(2 * t) * n + b], r2 = received[(2 * t + 1) * n + b];
                for (int s = 0; s < 32; s++) even[s] = m[2 * s], odd[s] = m[2 * s + 1];
                int32_t least = INT32_MAX;
                for (int half = 0; half < 64; half += 32) {
                    const int32_t *a1 = s1[0] + half, *a2 = s2[0] + half, *b1 = s1[1] + half, *b2 = s2[1] + half;
#pragma omp simd reduction(min : least)
                    for (int s = 0; s < 32; s++) {
                        int32_t x = even[s] + a1[s] * r1 + a2[s] * r2, y = odd[s] + b1[s] * r1 + b2[s] * r2;
                        dec[t][half + s] = y < x;
                        int32_t v = y < x ? y : x;
                        m[half + s] = v;
                        least = v < least ? v : least;
                    }
                }
#pragma omp simd
                for (int s = 0; s < 64; s++) m[s] -= least;
            }
            int zeros = 0, second = 1000000, at = 0, wrong = 0;
            for (int s = 0; s < 64; s++) {
                metric[b * 64 + s] = m[s];
                zeros += m[s] == 0;
                second = std::min(second, m[s] ? m[s] : 1000000);
            }
            if (zeros == 1) gaps += second;
            for (int64_t t = L - 1; t >= 0; t--) {
                bit[b * L + t] = at >> 5;
                wrong += (at >> 5) != sent[b * L + t];
                at = ((at & 31) << 1) | dec[t][at];
            }
            bits += wrong;
            frames += wrong > 0;
        }
        counts = {double(gaps), double(bits), double(frames)};
    };
    bench(run, [&](Checksum &s) {
        s.add("metric", metric.p, n * 64);
        s.add("bit", bit.p, n * L);
        s.add("counts", counts.data(), 3);
    });
}
