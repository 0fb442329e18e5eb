// Two raw exposures to a photograph: one pass to the merged mosaic with its sums, one to the bytes;
// both keep their last rows in rings, mirrored at both ends.
#include "common.hpp"

extern "C" __attribute__((const)) float sqrtf(float) noexcept;  // no errno: sqrt can be vectorised

static constexpr float BLACK = 8, HALF = 0.5f, QUARTER = 0.25f;

// Square root as tone curve. In two loops, as g++ makes a branch of max before sqrt.
static void develop(uint8_t *__restrict o, float *__restrict value, const float *__restrict li, const float *__restrict gain,
                    const float *const *f, const float *k, float exposure, int64_t n) {
    const float k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3], k4 = k[4];
    const float *f0 = f[0], *f1 = f[1], *f2 = f[2], *f3 = f[3], *f4 = f[4];
#pragma omp simd
    for (int64_t x = 0; x < n; x++) {
        const float smooth = k0 * f0[x] + k1 * f1[x] + k2 * f2[x] + k3 * f3[x] + k4 * f4[x];
        value[x] = std::max((li[x] + smooth) * gain[x] * exposure, 0.0f);
    }
#pragma omp simd
    for (int64_t x = 0; x < n; x++) {
        const float level = 255.0 * sqrtf(value[x]) + 0.5;
        o[x] = int(level < 255.0f ? level : 255.0f);
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), W = (n + 4 + 15) / 16 * 16;
    auto shorter = d.array<uint8_t>("short"), longer = d.array<uint8_t>("long");
    auto vignette = d.array<float>("vignette"), c = d.array<float>("matrix"), share = d.array<float>("share"), k = d.array<float>("window");
    Array<float> mosaic(n * n), trust(256);
    Array<uint8_t> out_r(n * n), out_g(n * n), out_b(n * n);
    uint8_t *outs[3] = {out_r.p, out_g.p, out_b.p};
    for (int v = 0; v < 256; v++) trust[v] = v < 24 ? (v + 1.0) / 25.0 : v > 230 ? (256.0 - v) / 26.0 : 1.0;
    auto mirror = [n](int64_t i) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
    auto edges = [n](float *r) { r[-1] = r[1], r[-2] = r[2], r[n] = r[n - 2], r[n + 1] = r[n - 3]; };
    auto run = [&] {
        double s00 = 0, s01 = 0, s10 = 0, s11 = 0;
        const float gains[2] = {float(1 / 90.0), float(1 / 360.0)};
#pragma omp parallel if (n * n >= PARALLEL_FROM) reduction(+ : s00, s01, s10, s11)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), y0 = n * t / nt, y1 = n * (t + 1) / nt;
            std::vector<float> rings(2 * 8 * W), good(2 * W);
            auto ring = [&](int f, int64_t y) { return rings.data() + (f * 8 + y % 8) * W + 2; };
            int64_t ready = std::max<int64_t>(y0 - 2, 0);
            for (int64_t y = y0; y < y1; y++) {
                for (; ready <= std::min(y + 2, n - 1); ready++)
                    for (int f = 0; f < 2; f++) {
                        const uint8_t *raw = (f ? longer.p : shorter.p) + ready * n;
                        const float *vig = vignette.p + ready * n, gain = gains[f];
                        float *__restrict row = ring(f, ready);
#pragma omp simd
                        for (int64_t x = 0; x < n; x++) row[x] = std::max(raw[x] - BLACK, 0.0f) * gain * vig[x];
                        edges(row);
                    }
                for (int f = 0; f < 2; f++) {
                    const float *u = ring(f, mirror(y - 2)), *l = ring(f, mirror(y + 2)), *m = ring(f, y);
                    float *__restrict g = good.data() + f * W;
#pragma omp simd
                    for (int64_t x = 0; x < n; x++) {
                        const float a = m[x - 2], b = m[x + 2], highest = std::max(std::max(u[x], l[x]), std::max(a, b));
                        const float mean = (u[x] + l[x] + a + b) * QUARTER;
                        g[x] = m[x] > highest + highest ? mean : m[x];
                    }
                }
                const uint8_t *ra = shorter.p + y * n, *rb = longer.p + y * n;
                const float *__restrict a = good.data(), *__restrict b = good.data() + W, *__restrict w = trust.p;
                float *__restrict out = mosaic.p + y * n;
#pragma omp simd
                for (int64_t x = 0; x < n; x++) {
                    const float wa = w[ra[x]], wb = w[rb[x]];
                    out[x] = (a[x] * wa + b[x] * wb) / (wa + wb);
                }
                double even = 0, odd = 0;
#pragma omp simd reduction(+ : even, odd)
                for (int64_t x = 0; x < n; x += 2) even += out[x], odd += out[x + 1];
                (y % 2 ? s10 : s00) += even, (y % 2 ? s11 : s01) += odd;
            }
        }
        const double grey = 0.5 * (s01 + s10);
        const float red = grey / s00, blue = grey / s11, exposure = n * n / 4.0 * 0.35 / grey, amount = 0.7f;
#pragma omp parallel if (n * n >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), y0 = n * t / nt, y1 = n * (t + 1) / nt;
            std::vector<float> raws(4 * W), lights(8 * W), blurs(4 * 8 * W), rows(4 * W);
            auto raw = [&](int64_t y) { return raws.data() + y % 4 * W + 2; };
            auto light = [&](int64_t y) { return lights.data() + y % 8 * W + 2; };
            auto blur = [&](int p, int64_t y) { return blurs.data() + (p * 8 + y % 8) * W; };
            int64_t balanced = std::max<int64_t>(y0 - 3, 0), ready = std::max<int64_t>(y0 - 2, 0);
            float *r = rows.data() + 2, *g = r + W, *b = g + W;
            for (int64_t y = y0; y < y1; y++) {
                for (; ready <= std::min(y + 2, n - 1); ready++) {
                    for (; balanced <= std::min(ready + 1, n - 1); balanced++) {
                        float *__restrict o = raw(balanced);
                        const float *__restrict m = mosaic.p + balanced * n;
                        const float even = balanced % 2 ? 1.0f : red, odd = balanced % 2 ? blue : 1.0f;
#pragma omp simd
                        for (int64_t x = 0; x < n; x += 2) o[x] = m[x] * even, o[x + 1] = m[x + 1] * odd;
                        edges(o);
                    }
                    const float *u = raw(mirror(ready - 1)), *m = raw(ready), *l = raw(mirror(ready + 1));
                    // Both rows have a colour of their own (red, blue) beside green, at places of one parity.
                    const int64_t own = ready % 2;
                    float *__restrict mine = own ? b : r, *__restrict other = own ? r : b, *__restrict gg = g;
#pragma omp simd
                    for (int64_t x = own; x < n; x += 2) {
                        mine[x] = m[x];
                        gg[x] = (m[x - 1] + m[x + 1] + (u[x] + l[x])) * QUARTER;
                        other[x] = (u[x - 1] + u[x + 1] + l[x - 1] + l[x + 1]) * QUARTER;
                    }
#pragma omp simd
                    for (int64_t x = 1 - own; x < n; x += 2) {
                        mine[x] = (m[x - 1] + m[x + 1]) * HALF;
                        gg[x] = m[x];
                        other[x] = (u[x] + l[x]) * HALF;
                    }
                    float *__restrict li = light(ready);
#pragma omp simd
                    for (int64_t x = 0; x < n; x++) {
                        const float R = r[x], G = g[x], B = b[x];
                        const float rr = c[0] * R + c[1] * G + c[2] * B, g2 = c[3] * R + c[4] * G + c[5] * B, bb = c[6] * R + c[7] * G + c[8] * B;
                        const float L = share[0] * rr + share[1] * g2 + share[2] * bb;
                        li[x] = L, r[x] = rr - L, g[x] = g2 - L, b[x] = bb - L;
                    }
                    for (int p = 0; p < 4; p++) {
                        float *f = p < 3 ? r + p * W : li;
                        float *__restrict o = blur(p, ready);
                        edges(f);
#pragma omp simd
                        for (int64_t x = 0; x < n; x++) o[x] = k[0] * f[x - 2] + k[1] * f[x - 1] + k[2] * f[x] + k[3] * f[x + 1] + k[4] * f[x + 2];
                    }
                }
                const float *__restrict li = light(y);
                float *__restrict gain = rows.data();  // r, g and b of this row are no longer needed
                for (int p = 3; p >= 0; p--) {
                    const float *f[5];
                    for (int j = 0; j < 5; j++) f[j] = blur(p, mirror(y + j - 2));
                    const float k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3], k4 = k[4];
                    const float *f0 = f[0], *f1 = f[1], *f2 = f[2], *f3 = f[3], *f4 = f[4];
                    if (p < 3) {
                        develop(outs[p] + y * n, rows.data() + W, li, gain, f, k.p, exposure, n);
                        continue;
                    }
#pragma omp simd
                    for (int64_t x = 0; x < n; x++) {
                        const float base = k0 * f0[x] + k1 * f1[x] + k2 * f2[x] + k3 * f3[x] + k4 * f4[x];
                        gain[x] = 1.0 + amount * (li[x] - base) / (base + 0.01);
                    }
                }
            }
        }
    };
    bench(run, [&](Checksum &s) { s.add("r", out_r.p, n * n), s.add("g", out_g.p, n * n), s.add("b", out_b.p, n * n); });
}
