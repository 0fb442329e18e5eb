#include "common.h"

static void row(int n, int8_t *s, const int8_t *up, const int8_t *dn, uint32_t *v, int first, uint32_t t2, uint32_t t4, int &a, int &b, int &c) {
    // flags of the generators, then bytes only; neighbours' old values are in buffers, so nothing aliases
    static thread_local int8_t buf[3][8192]; int8_t *__restrict f2 = buf[0], *__restrict f4 = buf[1], *__restrict old = buf[2];
    memcpy(old, s, n);
    for (int j = 1; j < n - 1; j++) { uint32_t x = v[j]; x ^= x << 13; x ^= x >> 17; x ^= x << 5; v[j] = x; f2[j] = x < t2; f4[j] = x < t4; }
    int aa = 0, bb = 0, cc = 0; int8_t *__restrict out = s; const int8_t *__restrict u = up; const int8_t *__restrict d = dn;
    for (int j = 1; j < n - 1; j++) {
        int8_t o = old[j], e = (int8_t)(o * (int8_t)(u[j] + d[j] + old[j - 1] + old[j + 1]));
        int8_t mine = (int8_t)((int8_t)(j & 1) == (int8_t)first), acc = (int8_t)((e <= 0) | (e == 2 ? f2[j] : f4[j])), f = mine & acc;
        int8_t q = f ? (int8_t)-o : o; out[j] = q; f2[j] = f; f4[j] = mine ? e : (int8_t)0;
    }
    for (int j = 1; j < n - 1; j++) { aa += f2[j]; bb += f4[j]; cc += out[j]; }
    a += aa; b += bb; c += cc;
}
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto spin = load<int8_t>("spin"); auto seeds = load<uint32_t>("seeds");
    double temp = 2.5; uint32_t t[5]; long mag = 0, energy = 0, flips = 0;
    auto thresholds = [&] { for (int e = 0; e < 5; e++) t[e] = (uint32_t)min(4294967295.0, std::floor(4294967296.0 * std::exp(-2.0 * e / temp))); };
    thresholds();
    auto run = [&] {
        long fl = 0, en = 0, mg = 0;
        for (int sweep = 0; sweep < 2; sweep++) {
            for (int colour = 0; colour < 2; colour++) {
                en = mg = 0;
#pragma omp parallel for schedule(static) reduction(+ : fl, en, mg)
                for (long i = 0; i < n; i++) {
                    int8_t *s = &spin[i * n]; const int8_t *up = &spin[(i ? i - 1 : n - 1) * n], *dn = &spin[(i < n - 1 ? i + 1 : 0) * n];
                    uint32_t *v = &seeds[i * n]; const uint32_t t2 = t[2], t4 = t[4]; int a = 0, b = 0, c = 0;
                    const int first = (i + colour) & 1;   // j has the colour where j % 2 == first
                    auto site = [&](long j, int left, int right) __attribute__((always_inline)) {
                        uint32_t x = v[j]; x ^= x << 13; x ^= x >> 17; x ^= x << 5; v[j] = x;
                        int e = s[j] * (up[j] + dn[j] + left + right);
                        int mine = ((int)(j & 1) == first);
                        int f = mine & ((e <= 0) | (x < (e == 2 ? t2 : t4)));
                        s[j] = f ? -s[j] : s[j];
                        a += f; b += mine ? e : 0; c += s[j];
                    };
                    site(0, s[n - 1], s[1]);
                    row(n, s, up, dn, v, first, t2, t4, a, b, c);
                    site(n - 1, s[n - 2], s[0]);
                    fl += a; en += 2 * b; mg += c;
                }
            }
            mag = mg; temp *= std::labs(mg) < 0.5 * n * n ? 0.99 : 1.01; thresholds();
        }
        energy = en; flips = fl;
    };
    return bench(run, [&] { return sum(spin) + sum(seeds) + mag + energy + flips + temp; });
}
