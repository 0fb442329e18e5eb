// One sweep over the rows for the structure tensors, and one an iteration; windows keep their rows in
// rings, and each thread repeats the rows around its own that it needs.
#include "common.hpp"

static constexpr int STEPS = 3;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), N = n * n, W = (n + 4 + 31) / 16 * 16;
    auto fixed = d.array<uint8_t>("fixed"), moving = d.array<uint8_t>("moving");
    Array<float> A(N), Bi(N), IX(N), IY(N), XX(N), XY(N), YY(N), U(2 * N), V(2 * N);
    Array<uint8_t> aligned(N);
    Array<double> residual(STEPS);
    const float scale = float(1 / 255.0), ridge = 0.01, lowest = 0.002, top = n - 1;
    auto clamp = [n](int64_t i) { return i < 0 ? 0 : i >= n ? n - 1 : i; };
    auto edges = [n](float *r) { r[-1] = r[-2] = r[0], r[n] = r[n + 1] = r[n - 1]; };
    auto warp = [&](float *__restrict o, const float *u, const float *v, int64_t y) {
        const float *__restrict b = Bi.p;
        const int m = n - 1, s = n;
        const float fy0 = y;
#pragma omp simd
        for (int x = 0; x < s; x++) {
            const float px = std::min(std::max(x + u[x], 0.0f), top), py = std::min(std::max(fy0 + v[x], 0.0f), top);
            const int l = int(px), t = int(py), r = std::min(l + 1, m), w = std::min(t + 1, m);
            const float fx = px - l, fy = py - t;
            const float tl = b[t * s + l], tr = b[t * s + r], bl = b[w * s + l], br = b[w * s + r];
            const float upper = tl + fx * (tr - tl), lower = bl + fx * (br - bl);
            o[x] = upper + fy * (lower - upper);
        }
    };
    auto across = [&](float *__restrict o, const float *f) {
#pragma omp simd
        for (int64_t x = 0; x < n; x++) o[x] = f[x - 2] + f[x - 1] + f[x] + f[x + 1] + f[x + 2];
    };
    auto down = [&](float *__restrict o, const float *const *f) {
        const float *a = f[0], *b = f[1], *c = f[2], *e = f[3], *g = f[4];
#pragma omp simd
        for (int64_t x = 0; x < n; x++) o[x] = a[x] + b[x] + c[x] + e[x] + g[x];
    };
    auto run = [&] {
        float *u = U.p, *v = V.p, *u2 = U.p + N, *v2 = V.p + N;
#pragma omp parallel if (N >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), y0 = n * t / nt, y1 = n * (t + 1) / nt;
            for (int64_t i = y0 * n; i < y1 * n; i++) A[i] = fixed[i] * scale, Bi[i] = moving[i] * scale, u[i] = v[i] = 0;
#pragma omp barrier
            std::vector<float> rings(3 * 8 * W), line(W);
            float *p = line.data() + 2;
            int64_t ready = std::max<int64_t>(y0 - 2, 0);
            for (int64_t y = y0; y < y1; y++) {
                for (; ready <= std::min(y + 2, n - 1); ready++) {
                    const float *a = A.p + ready * n, *up = A.p + clamp(ready - 1) * n, *dn = A.p + clamp(ready + 1) * n;
                    float *gx = IX.p + ready * n, *gy = IY.p + ready * n;
                    std::vector<float> spare(ready < y0 || ready >= y1 ? 2 * n : 0);  // the other thread's rows
                    if (spare.size()) gx = spare.data(), gy = gx + n;
                    gx[0] = (a[1] - a[0]) * 0.5f, gx[n - 1] = (a[n - 1] - a[n - 2]) * 0.5f;
#pragma omp simd
                    for (int64_t x = 1; x < n - 1; x++) gx[x] = (a[x + 1] - a[x - 1]) * 0.5f;
#pragma omp simd
                    for (int64_t x = 0; x < n; x++) gy[x] = (dn[x] - up[x]) * 0.5f;
                    for (int q = 0; q < 3; q++) {
                        const float *f = q < 2 ? gx : gy, *g = q < 1 ? gx : gy;
#pragma omp simd
                        for (int64_t x = 0; x < n; x++) p[x] = f[x] * g[x];
                        edges(p), across(rings.data() + (q * 8 + ready % 8) * W, p);
                    }
                }
                float *out[3] = {XX.p, XY.p, YY.p};
                for (int q = 0; q < 3; q++) {
                    const float *f[5];
                    for (int k = 0; k < 5; k++) f[k] = rings.data() + (q * 8 + clamp(y + k - 2) % 8) * W;
                    down(out[q] + y * n, f);
                }
            }
        }
        for (int step = 0; step < STEPS; step++) {
            double sum = 0;
#pragma omp parallel if (N >= PARALLEL_FROM) reduction(+ : sum)
            {
                const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), y0 = n * t / nt, y1 = n * (t + 1) / nt;
                std::vector<float> mem((2 * 8 + 4 + 4 * 4) * W);
                auto ring = [&](int q, int64_t y) { return mem.data() + (q * 8 + y % 8) * W; };
                float *it = mem.data() + 16 * W, *p = it + W + 2, *xt = p + W, *yt = xt + W;
                // The four rings of displacements: u, v after the step (0, 1) and after one smoothing (2, 3).
                auto flow = [&](int q, int64_t y) { return mem.data() + (20 + q * 4 + y % 4) * W + 2; };
                auto smooth = [&](float *__restrict o, int q, int64_t y) {
                    const float *a = flow(q, clamp(y - 1)), *b = flow(q, y), *c = flow(q, clamp(y + 1));
#pragma omp simd
                    for (int64_t x = 0; x < n; x++)
                        o[x] = (a[x - 1] + a[x] + a[x + 1] + b[x - 1] + b[x] + b[x + 1] + c[x - 1] + c[x] + c[x + 1]) / 9.0f;
                };
                int64_t windowed = std::max<int64_t>(y0 - 4, 0), solved = std::max<int64_t>(y0 - 2, 0), once = std::max<int64_t>(y0 - 1, 0);
                for (int64_t y = y0; y < y1; y++) {
                    for (; once <= std::min(y + 1, n - 1); once++) {
                        for (; solved <= std::min(once + 1, n - 1); solved++) {
                            for (; windowed <= std::min(solved + 2, n - 1); windowed++) {
                                const int64_t at = windowed * n;
                                warp(it, u + at, v + at, windowed);
                                const float *a = A.p + at;
                                double s = 0;
#pragma omp simd reduction(+ : s)
                                for (int64_t x = 0; x < n; x++) it[x] -= a[x], s += it[x] * it[x];
                                if (windowed >= y0 && windowed < y1) sum += s;
                                for (int q = 0; q < 2; q++) {
                                    const float *g = (q ? IY.p : IX.p) + at;
#pragma omp simd
                                    for (int64_t x = 0; x < n; x++) p[x] = g[x] * it[x];
                                    edges(p), across(ring(q, windowed), p);
                                }
                            }
                            for (int q = 0; q < 2; q++) {
                                const float *f[5];
                                for (int k = 0; k < 5; k++) f[k] = ring(q, clamp(solved + k - 2));
                                down(q ? yt : xt, f);
                            }
                            const int64_t at = solved * n;
                            const float *xx = XX.p + at, *xy = XY.p + at, *yy = YY.p + at, *us = u + at, *vs = v + at;
                            float *__restrict un = flow(0, solved), *__restrict vn = flow(1, solved);
#pragma omp simd
                            for (int64_t x = 0; x < n; x++) {
                                const float r = yy[x] + ridge, q = xx[x] + ridge, det = q * r - xy[x] * xy[x];
                                const float du = (xy[x] * yt[x] - r * xt[x]) / det, dv = (xy[x] * xt[x] - q * yt[x]) / det;
                                const float un1 = us[x] + std::min(std::max(du, -1.0f), 1.0f), vn1 = vs[x] + std::min(std::max(dv, -1.0f), 1.0f);
                                un[x] = det > lowest ? un1 : us[x], vn[x] = det > lowest ? vn1 : vs[x];
                            }
                            edges(un), edges(vn);
                        }
                        for (int q = 0; q < 2; q++) smooth(flow(2 + q, once), q, once), edges(flow(2 + q, once));
                    }
                    smooth(u2 + y * n, 2, y), smooth(v2 + y * n, 3, y);
                }
            }
            residual[step] = sum / (double(n) * n);
            std::swap(u, u2), std::swap(v, v2);
        }
#pragma omp parallel if (N >= PARALLEL_FROM)
        {
            std::vector<float> line(n);
#pragma omp for schedule(static)
            for (int64_t y = 0; y < n; y++) {
                warp(line.data(), u + y * n, v + y * n, y);
                uint8_t *o = aligned.p + y * n;
#pragma omp simd
                for (int64_t x = 0; x < n; x++) o[x] = int(std::min(std::max(line[x] * 255.0f + 0.5f, 0.0f), 255.0f));
            }
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("u", U.p + STEPS % 2 * N, N), s.add("v", V.p + STEPS % 2 * N, N);
        s.add("aligned", aligned.p, N), s.add("residual", residual.p, STEPS);
    });
}
