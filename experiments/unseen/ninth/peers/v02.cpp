#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto text = load<uint8_t>("text"); auto table = load<int>("table"), hist = load<int>("hist"), mins = load<int>("minimizers");
    long kinds = table.size(); int k = kinds == 1024 ? 5 : 8; const int W = 5;
    long words = n - k + 1, windows = words - W + 1; uint32_t mask = kinds - 1; uint8_t map[256]; memset(map, 4, 256); map['A'] = 0; map['C'] = 1; map['G'] = 2; map['T'] = 3;
    vector<uint32_t> h(words); vector<int> part(omp_get_max_threads() * kinds);
    long gc, distinct, picked; double bits, gaps;
    auto run = [&] {
        gc = distinct = picked = 0; bits = gaps = 0; std::fill(hist.begin(), hist.end(), 0);
        vector<long> count(omp_get_max_threads() + 1, 0);
#pragma omp parallel
        {
            int t = omp_get_thread_num(), T = omp_get_num_threads();
            int *mine = &part[t * kinds]; memset(mine, 0, 4 * kinds);
            long lo = words * t / T, hi = words * (t + 1) / T, g = 0; uint32_t f = 0, r = 0; int bad = k;
            auto feed = [&](int c) { bad = c > 3 ? k : max(0, bad - 1); c &= 3; f = (f << 2 | c) & mask; r = r >> 2 | (uint32_t)(3 - c) << (2 * k - 2); };
            for (long i = lo; i < lo + k - 1; i++) feed(map[text[i]]);
            for (long i = lo; i < hi; i++) {
                int c = map[text[i + k - 1]]; feed(c);
                int first = map[text[i]]; g += first == 1 || first == 2;
                uint32_t w = min(f, r), x = 0xffffffffu;
                if (!bad) { mine[w]++; x = w * 2654435761u; x ^= x >> 15; x *= 2246822519u; x ^= x >> 13; }
                h[i] = x;
            }
            if (t == T - 1) for (long i = words; i < n; i++) { int c = map[text[i]]; g += c == 1 || c == 2; }
#pragma omp atomic
            gc += g;
#pragma omp barrier
#pragma omp for schedule(static) reduction(+ : distinct, bits)
            for (long w = 0; w < kinds; w++) {
                int c = 0; for (int q = 0; q < T; q++) c += part[q * kinds + w];
                table[w] = c;
                if (c) { distinct++; double p = c * (1.0 / words); bits -= p * log2(p);
#pragma omp atomic
                    hist[min(c, 64) - 1]++; }
            }
            auto best = [&](long i) { long b = i; for (int q = 1; q < W; q++) if (h[i + q] < h[b]) b = i + q; return (int)b; };
            long a = windows * t / T, b = windows * (t + 1) / T, m = 0; int before = a ? best(a - 1) : -1;
            vector<int> found; found.reserve(b - a);
            for (long i = a; i < b; i++) { int x = best(i); if (x != before) found.push_back(x), m++; before = x; }
            count[t + 1] = m;
#pragma omp barrier
#pragma omp single
            { for (int q = 0; q < T; q++) count[q + 1] += count[q]; picked = count[T]; }
            memcpy(&mins[count[t]], found.data(), 4 * m);
#pragma omp barrier
#pragma omp for schedule(static)
            for (long i = picked; i < n; i++) mins[i] = 0;
#pragma omp for schedule(static) reduction(+ : gaps)
            for (long i = 0; i < picked - 1; i++) { double d = mins[i + 1] - mins[i]; gaps += d * d; }
        }
    };
    return bench(run, [&] { return sum(table) + sum(hist) + sum(mins) + gc + distinct + picked + bits + gaps; });
}
