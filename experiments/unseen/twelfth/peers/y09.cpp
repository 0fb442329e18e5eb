// Camera: two sweeps a frame by rows: colours and luminance from a window of three developed rows;
// then sharpening (five rows of luminance blurred downwards, then along), saturation and bytes.
#include "common.hpp"

static const float M[3][3] = {{1.5f, -0.3f, -0.2f}, {-0.25f, 1.45f, -0.2f}, {-0.05f, -0.45f, 1.5f}};

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), N = n * n;
    auto raw = d.array<int32_t>("raw");
    Array<float> C(3 * N), Y(N);
    Array<uint8_t> picture(3 * N);
    std::vector<double> means, counts;
    std::vector<float> across(n);
    for (int64_t j = 0; j < n; j++) across[j] = float(((j - 0.5 * n) / n) * ((j - 0.5 * n) / n));
    auto reflect = [n](int64_t i) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
    auto run = [&] {
        double gain = 1.0;
        means.clear(), counts.clear();
        for (int frame = 0; frame < 6; frame++) {
            const int32_t *in = raw + frame * N;
            double sum = 0;
            std::vector<int64_t> count(64);
#pragma omp parallel if (N >= PARALLEL_FROM) reduction(+ : sum)
            {
                const int64_t T = omp_get_num_threads(), t = omp_get_thread_num();
                const int64_t first = n * t / T, end = n * (t + 1) / T, w = n + 2;
                std::vector<float> store(3 * w + 4);
                float *line[3] = {&store[1], &store[1 + w], &store[1 + 2 * w]};
                
                auto develop = [&](int64_t i, float *o) {
                    i = reflect(i);
                    const int32_t *p = in + i * n;
                    const float g = float(gain / (1023.0 - 64.0));
                    const float dy = float(((i - 0.5 * n) / n) * ((i - 0.5 * n) / n));
                    const float even = i % 2 ? 1.f : 1.8f, odd = i % 2 ? 1.5f : 1.f;
                    const float *a = across.data();
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) {
                        float v = float(p[j]) - 64.f;
                        v = g * (v > 0.f ? v : 0.f) * (1.f + 0.5f * (a[j] + dy));
                        o[j] = v * (j & 1 ? odd : even);
                    }
                    o[-1] = o[1];
                    o[n] = o[n - 2];
                };
                develop(first - 1, line[0]);
                develop(first, line[1]);
                for (int64_t i = first; i < end; i++) {
                    develop(i + 1, line[2]);
                    const float *u = line[0], *x = line[1], *v = line[2];
                    float *r = C + i * n, *g = r + N, *b = g + N, *y = Y + i * n;
                    const bool io = i & 1;
                    auto curve = [](float z) {
                        z = z > 0.f ? z : 0.f;
                        return std::sqrt(z * (1.f + 0.1f * z) / (1.f + z) * 1.2f);
                    };
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) {
                        const bool jo = j & 1;
                        float sides = x[j - 1] + x[j + 1], ends = u[j] + v[j];
                        float corners = u[j - 1] + u[j + 1] + v[j - 1] + v[j + 1];
                        float g0 = io != jo ? x[j] : 0.25f * (sides + ends);
                        float mine = io == jo ? x[j] : 0.5f * sides;
                        float other = io == jo ? 0.25f * corners : 0.5f * ends;
                        float r0 = io ? other : mine, b0 = io ? mine : other;
                        float c0 = curve(M[0][0] * r0 + M[0][1] * g0 + M[0][2] * b0);
                        float c1 = curve(M[1][0] * r0 + M[1][1] * g0 + M[1][2] * b0);
                        float c2 = curve(M[2][0] * r0 + M[2][1] * g0 + M[2][2] * b0);
                        r[j] = c0, g[j] = c1, b[j] = c2;
                        y[j] = 0.299f * c0 + 0.587f * c1 + 0.114f * c2;
                    }
                    std::rotate(line, line + 1, line + 3);
                }
#pragma omp barrier
                int64_t mine[64] = {};
                float *down = &store[2];  // as wide as n + 4
                std::vector<int32_t> level(n);
                for (int64_t i = first; i < end; i++) {
                    auto row = [&](int64_t k) { return Y + std::max<int64_t>(0, std::min(k, n - 1)) * n; };
                    const float *a = row(i - 2), *b = row(i - 1), *c = row(i), *e = row(i + 1), *f = row(i + 2);
#pragma omp simd
                    for (int64_t j = 0; j < n; j++)
                        down[j] = 0.375f * c[j] + 0.25f * (b[j] + e[j]) + 0.0625f * (a[j] + f[j]);
                    down[-1] = down[-2] = down[0];
                    down[n] = down[n + 1] = down[n - 1];
                    float *R = C + i * n, *G = R + N, *B = G + N;
                    uint8_t *pr = picture + i * n, *pg = pr + N, *pb = pg + N;
                    int32_t *lv = level.data();
                    double part = 0;
#pragma omp simd reduction(+ : part)
                    for (int64_t j = 0; j < n; j++) {
                        float s = 0.375f * down[j] + 0.25f * (down[j - 1] + down[j + 1]) +
                                  0.0625f * (down[j - 2] + down[j + 2]);
                        float dd = 0.6f * (c[j] - s), y = c[j] + dd;
                        float r = y + 1.2f * (R[j] + dd - y), g = y + 1.2f * (G[j] + dd - y);
                        float bl = y + 1.2f * (B[j] + dd - y);
                        R[j] = r, G[j] = g, B[j] = bl;
                        auto byte = [](float v) {
                            v = v < 1.f ? v : 1.f;
                            v = v > 0.f ? v : 0.f;
                            return uint8_t(int32_t(255.f * v + 0.5f));
                        };
                        pr[j] = byte(r), pg[j] = byte(g), pb[j] = byte(bl);
                        int32_t l = int32_t(y * 64.f);
                        l = l < 63 ? l : 63;
                        lv[j] = l > 0 ? l : 0;
                        part += y;
                    }
                    sum += part;
                    for (int64_t j = 0; j < n; j++) mine[lv[j]]++;
                }
#pragma omp critical
                for (int k = 0; k < 64; k++) count[k] += mine[k];
            }
            const double mean = sum / N;
            means.push_back(mean);
            counts.insert(counts.end(), count.begin(), count.end());
            gain *= std::min(2.0, std::max(0.5, (0.42 / mean) * (0.42 / mean)));
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("channels", C.p, 3 * N);
        s.add("picture", picture.p, 3 * N);
        s.add("means", means.data(), means.size());
        s.add("counts", counts.data(), counts.size());
    });
}
