// Photons: a sweep a round, vectorised by blocks but for the tallies, which are each thread's own.
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
}
static const double THICK = 4.0, ALBEDO = 0.9, G = 0.7, WEAK = 0.35, CHANCE = 0.2, UNIT = 1 << 30;
static const int BINS = 50, BLOCK = 512;

static inline double uniform(uint32_t i, uint32_t counter) {
    uint32_t x = i * 747796405u + counter;
    x ^= x >> 16;
    x *= 2146121005u;
    x ^= x >> 15;
    x *= 1845390219u;
    x ^= x >> 16;
    return (x + 0.5) * 2.3283064365386963e-10;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    Array<double> Z(n), M(n), W(n);
    Array<int32_t> A(n);
    std::vector<int64_t> tally(BINS);
    std::vector<double> rounds, shown(BINS);
    auto run = [&] {
        double *__restrict z = Z, *__restrict mu = M, *__restrict w = W;
        int32_t *__restrict alive = A;
        std::fill(tally.begin(), tally.end(), 0);
        rounds.clear();
        uint32_t draws = 0;
        for (int k = 0; k < 14; k++, draws += 4) {
            double up = 0, down = 0;
            int64_t left = 0;
            const uint32_t c1 = (draws + 1) * 2891336453u, c2 = (draws + 2) * 2891336453u;
            const uint32_t c3 = (draws + 3) * 2891336453u, c4 = (draws + 4) * 2891336453u;
#pragma omp parallel if (n >= 1024) reduction(+ : up, down, left)
            {
                int64_t mine[BINS] = {};
                double depth[BLOCK], part[BLOCK];
                int32_t was[BLOCK];
#pragma omp for schedule(static)
                for (int64_t from = 0; from < n; from += BLOCK) {
                    const int64_t m = std::min<int64_t>(BLOCK, n - from);
#pragma omp simd reduction(+ : up, down, left)
                    for (int64_t j = 0; j < m; j++) {
                        const int64_t i = from + j;
                        int32_t a = k ? alive[i] : 1;
                        double zz = k ? z[i] : 0.0, mm = k ? mu[i] : 1.0, ww = k ? w[i] : 1.0;
                        double path = -log(uniform(i, c1));
                        zz = a ? zz + mm * path : zz;
                        up += a && zz < 0.0 ? ww : 0.0;
                        down += a && zz > THICK ? ww : 0.0;
                        a = zz < 0.0 || zz > THICK ? 0 : a;
                        was[j] = a;
                        depth[j] = zz / THICK * BINS;
                        part[j] = ww * (1.0 - ALBEDO) * UNIT;
                        ww *= ALBEDO;
                        double t = (1.0 - G * G) / (1.0 - G + 2.0 * G * uniform(i, c2));
                        double c = (1.0 + G * G - t * t) / (2.0 * G);
                        double side = (1.0 - mm * mm) * (1.0 - c * c);
                        side = std::sqrt(side > 0.0 ? side : 0.0);
                        double nm = mm * c + side * cos(6.283185307179586 * uniform(i, c3));
                        nm = nm < 1.0 ? nm : 1.0;
                        mu[i] = nm > -1.0 ? nm : -1.0;
                        bool weak = a && ww < WEAK, wins = uniform(i, c4) < CHANCE;
                        w[i] = weak && wins ? ww / CHANCE : ww;
                        a = weak && !wins ? 0 : a;
                        z[i] = zz;
                        alive[i] = a;
                        left += a;
                    }
                    for (int64_t j = 0; j < m; j++)
                        if (was[j]) mine[std::min(int(depth[j]), BINS - 1)] += int64_t(part[j]);
                }
#pragma omp critical
                for (int b = 0; b < BINS; b++) tally[b] += mine[b];
            }
            rounds.push_back(up / n);
            rounds.push_back(down / n);
            rounds.push_back(double(left) / n);
            if (left < 0.05 * n) break;
        }
        for (int b = 0; b < BINS; b++) shown[b] = tally[b] / UNIT / n;
    };
    bench(run, [&](Checksum &s) {
        s.add("z", Z.p, n);
        s.add("mu", M.p, n);
        s.add("w", W.p, n);
        s.add("tally", shown.data(), BINS);
        s.add("rounds", rounds.data(), rounds.size());
    });
}
