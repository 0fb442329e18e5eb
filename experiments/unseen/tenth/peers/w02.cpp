// Canny: bands of rows; the smoothed rows and the gradients live in small rolling buffers.
#include "common.hpp"

static void smooth_row(int n, const uint8_t *r0, int32_t *__restrict s, int32_t *__restrict o) {
    const uint8_t *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n, *r4 = r3 + n;
#pragma omp simd
    for (int j = 0; j < n; j++) s[j] = r0[j] + 4 * r1[j] + 6 * r2[j] + 4 * r3[j] + r4[j];
#pragma omp simd
    for (int j = 2; j < n - 2; j++)
        o[j] = (s[j - 2] + 4 * s[j - 1] + 6 * s[j] + 4 * s[j + 1] + s[j + 2]) >> 8;
}

static void gradient_row(int n, const int32_t *u, const int32_t *m, const int32_t *l,
                         int32_t *__restrict gx, int32_t *__restrict gy, int32_t *__restrict g) {
    g[2] = g[n - 3] = 0;
#pragma omp simd
    for (int j = 3; j < n - 3; j++) {
        int x = u[j + 1] + 2 * m[j + 1] + l[j + 1] - u[j - 1] - 2 * m[j - 1] - l[j - 1];
        int y = l[j - 1] + 2 * l[j] + l[j + 1] - u[j - 1] - 2 * u[j] - u[j + 1];
        gx[j] = x;
        gy[j] = y;
        g[j] = std::abs(x) + std::abs(y);
    }
}

static void edge_row(int n, const int32_t *gx, const int32_t *gy, const int32_t *u, const int32_t *m,
                     const int32_t *l, uint8_t *__restrict e, int low, int high) {
#pragma omp simd
    for (int j = 4; j < n - 4; j++) {
        int ax = std::abs(gx[j]), ay = std::abs(gy[j]);
        bool row = 5 * ay < 2 * ax, column = 5 * ax < 2 * ay, down = gx[j] * gy[j] > 0;
        int u0 = u[j - 1], u1 = u[j], u2 = u[j + 1], m0 = m[j - 1], m2 = m[j + 1], g = m[j];
        int l0 = l[j - 1], l1 = l[j], l2 = l[j + 1];
        int one = down ? u0 : u2, other = down ? l2 : l0;
        one = column ? u1 : one;
        other = column ? l1 : other;
        one = row ? m0 : one;
        other = row ? m2 : other;
        int keep = (g >= one) & (g > other);
        e[j] = (keep & (g >= low)) + (keep & (g >= high));
    }
}

static int grow_row(int n, const uint8_t *m, uint8_t *__restrict o) {
    const uint8_t *u = m - n, *l = m + n;
    int total = 0;
    for (int from = 4; from < n - 4; from += 240) {
        const int end = std::min(n - 4, from + 240);
        int row = 0;
#pragma omp simd reduction(+ : row)
        for (int j = from; j < end; j++) {
            uint8_t near = u[j - 1] | u[j] | u[j + 1] | m[j - 1] | m[j + 1] | l[j - 1] | l[j] | l[j + 1];
            uint8_t up = (near >> 1) & (m[j] & 1);  // 1: weak; 2 has no lowest bit
            o[j] = m[j] + up;
            row += up;
        }
        total += row;
    }
    return total;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int n = d.number("n");
    auto image = d.array<uint8_t>("image");
    Array<uint8_t> out(int64_t(n) * n), a(int64_t(n) * n), b(int64_t(n) * n);
    const int low = 40, high = 110, most = 12;
    int64_t pixels = 0;
    int rounds = 0;
    const bool threads = int64_t(n) * n >= PARALLEL_FROM;

    auto detect = [&](uint8_t *edge) {
#pragma omp parallel if (threads)
        {
            const int T = omp_get_num_threads(), t = omp_get_thread_num();
            const int first = 4 + int64_t(n - 8) * t / T, end = 4 + int64_t(n - 8) * (t + 1) / T;
            std::vector<int32_t> sums(n), smooth(3 * n), gxs(3 * n), gys(3 * n), gs(3 * n);
            auto at = [&](std::vector<int32_t> &v, int i) { return &v[i % 3 * n]; };
            auto blur = [&](int i) { smooth_row(n, &image.p[int64_t(i - 2) * n], sums.data(), at(smooth, i)); };
            auto gradient = [&](int i) {
                if (i < 3 || i >= n - 3)
                    std::fill(at(gs, i), at(gs, i) + n, 0);
                else
                    gradient_row(n, at(smooth, i - 1), at(smooth, i), at(smooth, i + 1), at(gxs, i), at(gys, i), at(gs, i));
            };
            if (first < end) {
                for (int i = first - 2; i <= first; i++) blur(i);
                gradient(first - 1);
                blur(first + 1);
                gradient(first);
                for (int i = first; i < end; i++) {
                    if (i + 2 < n - 2) blur(i + 2);
                    gradient(i + 1);
                    edge_row(n, at(gxs, i), at(gys, i), at(gs, i - 1), at(gs, i), at(gs, i + 1),
                             edge + int64_t(i) * n, low, high);
                }
            }
        }
    };
    auto grow = [&](const uint8_t *edge, uint8_t *after) {
        int64_t changed = 0;
#pragma omp parallel for schedule(static) reduction(+ : changed) if (threads)
        for (int i = 4; i < n - 4; i++) changed += grow_row(n, edge + int64_t(i) * n, after + int64_t(i) * n);
        return changed;
    };
    auto run = [&] {
        uint8_t *edge = a, *after = b;
        detect(edge);
        rounds = 0;
        while (rounds < most) {
            int64_t changed = grow(edge, after);
            std::swap(edge, after);
            rounds++;
            if (!changed) break;
        }
        int64_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count) if (threads)
        for (int i = 0; i < n; i++) {
            const uint8_t *e = edge + int64_t(i) * n;
            uint8_t *__restrict o = out.p + int64_t(i) * n;
            int row = 0;
#pragma omp simd reduction(+ : row)
            for (int j = 0; j < n; j++) {
                o[j] = e[j] == 2 ? 255 : 0;
                row += e[j] >> 1;
            }
            count += row;
        }
        pixels = count;
    };
    bench(run, [&](Checksum &c) {
        c.add("out", out.p, int64_t(n) * n);
        c.add("pixels", double(pixels));
        c.add("rounds", double(rounds));
    });
}
