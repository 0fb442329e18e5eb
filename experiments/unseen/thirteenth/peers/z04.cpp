// LDPC: two loops a round: over bits (belief, decision, messages), over checks (parity, the two
// weakest, and the messages back).
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), words = d.number("words"), edges = 3 * n, checks = edges / 6;
    auto received = d.array<float>("received");
    auto edge = d.array<int32_t>("edge");
    Array<float> llr(n), b2c(edges), c2b(edges), beliefs(words * n);
    std::vector<int64_t> rounds, failing, errors;
    std::vector<double> certainties;
    auto run = [&] {
        rounds.clear(), failing.clear(), errors.clear(), certainties.clear();
        for (int64_t word = 0; word < words; word++) {
            const float *y = received + word * n;
            float *total = beliefs + word * n;
            const double variance = 0.76 * 0.76;
            int64_t round = 0, wrong = 0;
            double sure = 0;
            for (;; round++) {
                int64_t bad = 0;
                wrong = 0, sure = 0;
#pragma omp parallel if (n >= PARALLEL_FROM)
                {
#pragma omp for schedule(static) reduction(+ : wrong, sure)
                    for (int64_t b = 0; b < n; b++) {
                        float l, m0, m1, m2;
                        if (round == 0) {
                            l = llr[b] = float(2.0 * y[b] / variance);
                            m0 = m1 = m2 = 0.f;
                        } else {
                            l = llr[b], m0 = c2b[3 * b], m1 = c2b[3 * b + 1], m2 = c2b[3 * b + 2];
                        }
                        float t = l + m0 + m1 + m2;
                        total[b] = t;
                        wrong += t < 0.f;
                        sure += std::fabs(t);
                        b2c[3 * b] = t - m0, b2c[3 * b + 1] = t - m1, b2c[3 * b + 2] = t - m2;
                    }
#pragma omp for schedule(static) reduction(+ : bad)
                    for (int64_t c = 0; c < checks; c++) {
                        const int32_t *e = edge + 6 * c;
                        float q[6], low = 1e30f, next = 1e30f;
                        int parity = 0, place = 0;
                        uint32_t sign = 0;
                        for (int k = 0; k < 6; k++) {
                            q[k] = b2c[e[k]];
                            parity ^= total[uint32_t(e[k]) / 3] < 0.f;
                        }
                        for (int k = 0; k < 6; k++) {
                            sign ^= q[k] < 0.f;
                            float s = std::fabs(q[k]);
                            place = s < low ? k : place;
                            next = std::min(next, std::max(s, low));
                            low = std::min(low, s);
                        }
                        bad += parity;
                        low *= 0.75f, next *= 0.75f;
                        for (int k = 0; k < 6; k++) {
                            float s = k == place ? next : low;
                            c2b[e[k]] = (sign ^ (q[k] < 0.f)) ? -s : s;
                        }
                    }
                }
                failing.push_back(bad);
                if (bad == 0 || round == 30) break;
            }
            rounds.push_back(round), errors.push_back(wrong), certainties.push_back(sure / n);
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("beliefs", beliefs.p, words * n);
        s.add("rounds", rounds.data(), rounds.size());
        s.add("failing", failing.data(), failing.size());
        s.add("errors", errors.data(), errors.size());
        s.add("certainties", certainties.data(), certainties.size());
    });
}
