// Traffic: a step is one vectorised sweep in place (a car needs the old place of the next one only);
// detectors are counted by threads in the last one.
#include "common.hpp"

static constexpr int STEPS = 5, SECTIONS = 100;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const int cells = int(d.number("cells")), length = cells / SECTIONS;
    auto x0 = d.array<int32_t>("x0"), v0 = d.array<int32_t>("v0");
    auto lorry = d.array<uint8_t>("lorry");
    Array<int32_t> x(n), v(n);
    int32_t count[SECTIONS];
    int64_t numbers[2 * STEPS];
    auto run = [&] {
        std::fill(count, count + SECTIONS, 0);
        std::fill(numbers, numbers + 2 * STEPS, 0);
        std::vector<int32_t> edge(omp_get_max_threads() + 1);
#pragma omp parallel if (n >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
            const int64_t i0 = n * t / nt, i1 = n * (t + 1) / nt;
            for (int step = 0; step < STEPS; step++) {
                const int32_t *px = step ? x.p : x0.p, *pv = step ? v.p : v0.p;
                int32_t *nx = x.p, *nv = v.p;
                const uint8_t *slow = lorry.p;
                const uint32_t seed = 104729u * (step + 1);
                edge[t] = px[i0];
#pragma omp barrier
                const int32_t next = edge[(t + 1) % nt];
                auto car = [&](int64_t i, int32_t ahead, int64_t &flow, int64_t &jam) __attribute__((always_inline)) {
                    int32_t gap = ahead - px[i] - 1;
                    gap = gap < 0 ? gap + cells : gap;
                    uint32_t h = uint32_t(i) + seed;
                    h = (h ^ (h >> 16)) * 2146121005u;
                    h = (h ^ (h >> 15)) * 2221713035u;
                    const uint32_t roll = (h ^ (h >> 16)) % 1000u, odds = pv[i] == 0 ? 450u : 150u;
                    const int32_t limit = slow[i] == 1 ? 3 : 5;
                    int32_t s = pv[i] < limit ? pv[i] + 1 : pv[i];
                    s = std::min(s, gap);
                    s -= (s > 0) & (roll < odds);
                    int32_t place = px[i] + s;
                    place = place >= cells ? place - cells : place;
                    nx[i] = place, nv[i] = s;
                    flow += s, jam += s == 0;
                };
                int64_t flow = 0, jam = 0;
                for (int64_t b = i0; b < i1 - 1; b += 4096) {
                    const int64_t end = std::min(b + 4096, i1 - 1);
                    int32_t f = 0, j = 0;
#pragma omp simd reduction(+ : f, j)
                    for (int64_t i = b; i < end; i++) {
                        int64_t one = 0, two = 0;
                        car(i, px[i + 1], one, two);
                        f += int32_t(one), j += int32_t(two);
                    }
                    flow += f, jam += j;
                }
                car(i1 - 1, next, flow, jam);
#pragma omp atomic
                numbers[step] += flow;
#pragma omp atomic
                numbers[STEPS + step] += jam;
#pragma omp barrier
            }
            int32_t mine[SECTIONS] = {};
            int32_t section = -1, low = 0, high = 0;
            for (int64_t i = i0; i < i1; i++) {  // the cars are in order: a section changes seldom
                if (section < 0 || x[i] < low || x[i] >= high) {
                    section = x[i] / length;
                    low = section * length, high = low + length;
                }
                mine[section]++;
            }
#pragma omp critical
            for (int k = 0; k < SECTIONS; k++) count[k] += mine[k];
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("x", x.p, n);
        s.add("v", v.p, n);
        s.add("count", count, SECTIONS);
        s.add("numbers", numbers, 2 * STEPS);
    });
}
