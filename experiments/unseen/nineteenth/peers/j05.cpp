// Blocks of games that stay in the first cache: fills as vectors of words, the choice of moves game by game.
#include "common.hpp"

static constexpr int PLIES = 4, B = 256;
static constexpr uint64_t INNER = 0x7E7E7E7E7E7E7E7E, ALL = ~0ull, CORNERS = 0x8100000000000081;

template <int S>
static inline uint64_t up(uint64_t from, uint64_t line) {
    uint64_t f = (from << S) & line;
    f |= (f << S) & line, f |= (f << S) & line, f |= (f << S) & line, f |= (f << S) & line, f |= (f << S) & line;
    return f;
}
template <int S>
static inline uint64_t down(uint64_t from, uint64_t line) {
    uint64_t f = (from >> S) & line;
    f |= (f >> S) & line, f |= (f >> S) & line, f |= (f >> S) & line, f |= (f >> S) & line, f |= (f >> S) & line;
    return f;
}
static inline uint64_t legal(uint64_t own, uint64_t other) {
    const uint64_t in = other & INNER;
    const uint64_t a = (up<1>(own, in) << 1) | (down<1>(own, in) >> 1) | (up<7>(own, in) << 7) | (down<7>(own, in) >> 7);
    const uint64_t b = (up<8>(own, other) << 8) | (down<8>(own, other) >> 8) | (up<9>(own, in) << 9) | (down<9>(own, in) >> 9);
    return (a | b) & ~(own | other);
}
static inline uint64_t flipped(uint64_t move, uint64_t own, uint64_t other) {
    const uint64_t in = other & INNER;
    uint64_t flips = 0, f;
    f = up<1>(move, in), flips |= (f << 1) & own ? f : 0;
    f = down<1>(move, in), flips |= (f >> 1) & own ? f : 0;
    f = up<7>(move, in), flips |= (f << 7) & own ? f : 0;
    f = down<7>(move, in), flips |= (f >> 7) & own ? f : 0;
    f = up<8>(move, other), flips |= (f << 8) & own ? f : 0;
    f = down<8>(move, other), flips |= (f >> 8) & own ? f : 0;
    f = up<9>(move, in), flips |= (f << 9) & own ? f : 0;
    f = down<9>(move, in), flips |= (f >> 9) & own ? f : 0;
    return flips;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto black = d.array<uint64_t>("black"), white = d.array<uint64_t>("white");
    auto seeds = d.array<uint32_t>("seeds");
    Array<uint64_t> own(n), other(n);
    Array<int32_t> score(n);
    Array<uint8_t> passes(n);
    auto run = [&] {
#pragma omp parallel for schedule(static) if (n >= PARALLEL_FROM)
        for (int64_t base = 0; base < n; base += B) {
            const int m = std::min<int64_t>(B, n - base);
            uint64_t a[B], b[B], moves[B];
            uint32_t dice[B];
            uint8_t *__restrict passed = passes.p + base;
            for (int i = 0; i < m; i++) a[i] = black[base + i], b[i] = white[base + i], dice[i] = seeds[base + i], passed[i] = 0;
            for (int ply = 0; ply < PLIES; ply++) {
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    moves[i] = legal(a[i], b[i]);
                    uint32_t x = dice[i];
                    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
                    dice[i] = x;
                }
                for (int i = 0; i < m; i++) {
                    uint64_t left = moves[i];
                    const uint32_t number = __builtin_popcountll(left);
                    passed[i] += number == 0;
                    if (number) {
                        for (uint32_t skip = dice[i] % number; skip; skip--) left &= left - 1;
                        left &= ~left + 1;
                    }
                    moves[i] = left;
                }
#pragma omp simd
                for (int i = 0; i < m; i++) {
                    const uint64_t flips = flipped(moves[i], a[i], b[i]), mine = a[i] | moves[i] | flips;
                    a[i] = b[i] & ~flips, b[i] = mine;
                }
            }
            uint64_t theirs[B];
#pragma omp simd
            for (int i = 0; i < m; i++) moves[i] = legal(a[i], b[i]), theirs[i] = legal(b[i], a[i]);
            for (int i = 0; i < m; i++) {
                auto count = [](uint64_t x) { return int32_t(__builtin_popcountll(x)); };
                own[base + i] = a[i], other[base + i] = b[i];
                score[base + i] = 8 * (count(moves[i]) - count(theirs[i])) + count(a[i]) - count(b[i]) + 25 * (count(a[i] & CORNERS) - count(b[i] & CORNERS));
            }
        }
    };
    bench(run, [&](Checksum &s) { s.add("own", own.p, n), s.add("other", other.p, n), s.add("score", score.p, n), s.add("passes", passes.p, n); });
}
