// Registration: bins as bytes, histograms of each thread's own (four in turn, against stalls).
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int n = d.number("n");
    const int B = 16, RIM = 8, most = 10;
    auto one = d.array<float>("one"), two = d.array<float>("two");
    Array<float> out(int64_t(n) * n);
    Array<uint8_t> b1(int64_t(n) * n), b2(int64_t(n) * n);
    std::vector<double> walk;
    double shift[2];
    const double total = double(n - 2 * RIM) * (n - 2 * RIM);
    const bool threads = int64_t(n) * n >= PARALLEL_FROM;
    auto information = [&](int dy, int dx) {
        int32_t joint[256] = {};
#pragma omp parallel if (threads)
        {
            alignas(64) int32_t h[4][256] = {};
#pragma omp for schedule(static) nowait
            for (int i = RIM; i < n - RIM; i++) {
                const uint8_t *p = &b1[int64_t(i) * n], *q = &b2[int64_t(i + dy) * n + dx];
                int j = RIM;
                for (; j + 4 <= n - RIM; j += 4) {
                    h[0][p[j] | q[j]]++;
                    h[1][p[j + 1] | q[j + 1]]++;
                    h[2][p[j + 2] | q[j + 2]]++;
                    h[3][p[j + 3] | q[j + 3]]++;
                }
                for (; j < n - RIM; j++) h[0][p[j] | q[j]]++;
            }
#pragma omp critical
            for (int k = 0; k < 256; k++) joint[k] += h[0][k] + h[1][k] + h[2][k] + h[3][k];
        }
        double h1 = 0, h2 = 0, h12 = 0;
        for (int a = 0; a < B; a++) {
            int r = 0, c = 0;
            for (int b = 0; b < B; b++) {
                r += joint[a * B + b];
                c += joint[b * B + a];
                if (joint[a * B + b]) {
                    double p = joint[a * B + b] / total;
                    h12 -= p * std::log(p);
                }
            }
            if (r) h1 -= r / total * std::log(r / total);
            if (c) h2 -= c / total * std::log(c / total);
        }
        return h1 + h2 - h12;
    };
    auto run = [&] {
#pragma omp parallel for schedule(static) if (threads)
        for (int64_t i = 0; i < int64_t(n) * n; i++) {
            int a = int(one.p[i] * 16), b = int(two.p[i] * 16);
            b1.p[i] = std::min(std::max(a, 0), 15) << 4;
            b2.p[i] = std::min(std::max(b, 0), 15);
        }
        int y = 0, x = 0;
        double best = information(0, 0);
        walk.assign(1, best);
        const int steps[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
        for (int k = 0; k < most; k++) {
            double found = best;
            int fy = y, fx = x;
            for (auto &s : steps)
                if (std::abs(y + s[0]) <= RIM && std::abs(x + s[1]) <= RIM) {
                    double v = information(y + s[0], x + s[1]);
                    walk.push_back(v);
                    if (v > found) found = v, fy = y + s[0], fx = x + s[1];
                }
            if (found == best) break;
            best = found, y = fy, x = fx;
        }
        shift[0] = y, shift[1] = x;
#pragma omp parallel for schedule(static) if (threads)
        for (int i = RIM; i < n - RIM; i++) {
            const float *p = &one[int64_t(i) * n], *q = &two[int64_t(i + y) * n + x];
            float *o = &out[int64_t(i) * n];
            for (int j = RIM; j < n - RIM; j++) o[j] = p[j] - q[j];
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("out", out.p, int64_t(n) * n);
        c.add("walk", walk.data(), walk.size());
        c.add("shift", shift, 2);
    });
}
