// Colouring: two sweeps a round, one that draws and one that compares, which stops at the first greater.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto row = d.array<int32_t>("row"), column = d.array<int32_t>("column");
    auto seed = d.array<uint32_t>("seed");
    Array<int32_t> colour(n), priority(n);
    Array<uint32_t> random(n);
    std::vector<double> sizes;
    int64_t wrong = 0;
    auto run = [&] {
        sizes.clear();
        int64_t left = n;
        while (left > 0 && sizes.size() < 60) {
            const int now = sizes.size();
            int64_t number = 0;
#pragma omp parallel if (n >= 2048)
            {
                const uint32_t *from = now ? random.p : seed.p;
#pragma omp for simd schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    uint32_t r = from[i] * 1664525u + 1013904223u;
                    random.p[i] = r;
                    int32_t c = now ? colour.p[i] : -1;
                    priority.p[i] = c < 0 ? int32_t(r >> 4) : -1;
                    colour.p[i] = c;
                }
#pragma omp for schedule(static) reduction(+ : number)
                for (int64_t i = 0; i < n; i++) {
                    const int32_t mine = priority.p[i];
                    if (mine < 0) continue;
                    bool wins = true;
                    for (int32_t e = row.p[i]; e < row.p[i + 1]; e++) {
                        const int32_t o = column.p[e], p = priority.p[o];
                        if (p > mine || (p == mine && o < i)) { wins = false; break; }
                    }
                    if (wins) colour.p[i] = now, number++;
                }
            }
            sizes.push_back(number);
            left -= number;
        }
        int64_t bad = 0;
#pragma omp parallel for schedule(static) reduction(+ : bad) if (n >= 2048)
        for (int64_t i = 0; i < n; i++)
            for (int32_t e = row.p[i]; e < row.p[i + 1]; e++) bad += colour.p[column.p[e]] == colour.p[i];
        wrong = bad;
    };
    bench(run, [&](Checksum &c) {
        c.add("colour", colour.p, n);
        c.add("sizes", sizes.data(), sizes.size());
        c.add("wrong", double(wrong));
    });
}
