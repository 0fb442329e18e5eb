// ChaCha20: sixteen columns of words for 16 blocks at a time in registers; the cipher's bits and the
// differences are counted in the same loops. The message's words come in rows.
#include "common.hpp"

static inline uint32_t turn(uint32_t x, int r) { return (x << r) | (x >> (32 - r)); }

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto text = d.array<uint32_t>("text");
    uint32_t words[16];
    for (int w = 0; w < 16; w++) words[w] = uint32_t(d.number("words_" + std::to_string(w)));
    Array<uint32_t> cipher(16 * n), plain(16 * n);
    int64_t counts[2];
    constexpr int B = 16;
    auto blocks = [&](int64_t i0, int64_t lanes, uint32_t (*x)[B]) {
        for (int w = 0; w < 16; w++)
            for (int l = 0; l < B; l++) x[w][l] = words[w] + (w == 12 ? uint32_t(i0 + l) : 0u);
        auto quarter = [&](int a, int b, int c, int e) {
#pragma omp simd
            for (int l = 0; l < B; l++) {
                uint32_t p = x[a][l], q = x[b][l], r = x[c][l], s = x[e][l];
                p += q, s = turn(s ^ p, 16), r += s, q = turn(q ^ r, 12);
                p += q, s = turn(s ^ p, 8), r += s, q = turn(q ^ r, 7);
                x[a][l] = p, x[b][l] = q, x[c][l] = r, x[e][l] = s;
            }
        };
        for (int round = 0; round < 10; round++) {
            quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
            quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
        }
        for (int w = 0; w < 16; w++)
            for (int l = 0; l < B; l++) x[w][l] += words[w] + (w == 12 ? uint32_t(i0 + l) : 0u);
        (void)lanes;
    };
    auto run = [&] {
        int64_t bits = 0, wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : bits) if (16 * n >= PARALLEL_FROM)
        for (int64_t i0 = 0; i0 < n; i0 += B) {
            alignas(64) uint32_t x[16][B];
            const int64_t lanes = std::min<int64_t>(B, n - i0);
            blocks(i0, lanes, x);
            for (int w = 0; w < 16; w++)
                for (int64_t l = 0; l < lanes; l++) {
                    uint32_t v = text[w * n + i0 + l] ^ x[w][l];
                    cipher[w * n + i0 + l] = v;
                    bits += __builtin_popcount(v);
                }
        }
#pragma omp parallel for schedule(static) reduction(+ : wrong) if (16 * n >= PARALLEL_FROM)
        for (int64_t i0 = 0; i0 < n; i0 += B) {
            alignas(64) uint32_t x[16][B];
            const int64_t lanes = std::min<int64_t>(B, n - i0);
            blocks(i0, lanes, x);
            for (int w = 0; w < 16; w++)
                for (int64_t l = 0; l < lanes; l++) {
                    uint32_t v = cipher[w * n + i0 + l] ^ x[w][l];
                    plain[w * n + i0 + l] = v;
                    wrong += v != text[w * n + i0 + l];
                }
        }
        counts[0] = bits, counts[1] = wrong;
    };
    bench(run, [&](Checksum &s) {
        s.add("cipher", cipher.p, 16 * n);
        s.add("counts", counts, 2);
    });
}
