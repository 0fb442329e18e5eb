// Morton order: keys in one sweep, a radix sort of two passes (of 9 bits), one sweep behind it.
#include "common.hpp"

static inline int32_t spread(int32_t v) {
    v = (v | (v << 8)) & 0x0300F00F;
    v = (v | (v << 4)) & 0x030C30C3;
    return (v | (v << 2)) & 0x09249249;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto xs = d.array<double>("x_0"), ys = d.array<double>("x_1"), zs = d.array<double>("x_2");
    Array<int32_t> key(n), key2(n), order(n), order2(n);
    Array<double> sorted(3 * n);
    std::vector<int32_t> begin;
    std::vector<double> means, summary(3);
    auto run = [&] {
        const double *x = xs, *y = ys, *z = zs;
        double *X = sorted, *Y = X + n, *Z = Y + n;
        int32_t *k1 = key, *k2 = key2, *o1 = order, *o2 = order2;
        const bool par = n >= PARALLEL_FROM;
        const int most = par ? omp_get_max_threads() : 1;
        std::vector<int32_t> hist(most * 512), counts(most + 1);
        double length = 0;
        int64_t crowds = 0;
#pragma omp parallel reduction(+ : length, crowds) if (par)
        {
            const int T = omp_get_num_threads(), t = omp_get_thread_num();
            const int64_t first = n * t / T, end = n * (t + 1) / T;
            int32_t *mine = &hist[512 * t];
            auto offsets = [&] {  // from counts of each thread to places
#pragma omp barrier
#pragma omp single
                {
                    int32_t sum = 0;
                    for (int b = 0; b < 512; b++)
                        for (int q = 0; q < T; q++) {
                            int32_t c = hist[512 * q + b];
                            hist[512 * q + b] = sum;
                            sum += c;
                        }
                }
            };
#pragma omp simd
            for (int64_t i = first; i < end; i++)
                k1[i] = spread(int32_t(x[i] * 64)) | (spread(int32_t(y[i] * 64)) << 1) |
                        (spread(int32_t(z[i] * 64)) << 2);
            for (int64_t i = first; i < end; i++) mine[k1[i] & 511]++;
            offsets();
            for (int64_t i = first; i < end; i++) {
                int32_t p = mine[k1[i] & 511]++;
                k2[p] = k1[i];
                o2[p] = i;
            }
#pragma omp barrier
            std::fill(mine, mine + 512, 0);
            for (int64_t i = first; i < end; i++) mine[k2[i] >> 9]++;
            offsets();
            for (int64_t i = first; i < end; i++) {
                int32_t p = mine[k2[i] >> 9]++;
                k1[p] = k2[i];
                o1[p] = o2[i];
                X[p] = x[o2[i]];
                Y[p] = y[o2[i]];
                Z[p] = z[o2[i]];
            }
#pragma omp barrier
            int32_t cells = 0;
            for (int64_t i = first; i < end; i++) cells += i == 0 || k1[i] != k1[i - 1];
            counts[t + 1] = cells;
#pragma omp barrier
#pragma omp single
            {
                for (int q = 0; q < T; q++) counts[q + 1] += counts[q];
                begin.resize(counts[T] + 1);
                begin[counts[T]] = n;
                means.resize(3 * int64_t(counts[T]));
            }
            int32_t c = counts[t];
            for (int64_t i = first; i < end; i++)
                if (i == 0 || k1[i] != k1[i - 1]) begin[c++] = i;
            for (int64_t i = std::max<int64_t>(first, 1); i < end; i++) {
                double dx = X[i] - X[i - 1], dy = Y[i] - Y[i - 1], dz = Z[i] - Z[i - 1];
                length += std::sqrt(dx * dx + dy * dy + dz * dz);
            }
#pragma omp barrier
            const int64_t all = counts[T];
#pragma omp for schedule(static)
            for (int64_t q = 0; q < all; q++) {
                const int32_t a = begin[q], b = begin[q + 1];
                double sx = 0, sy = 0, sz = 0;
                for (int32_t i = a; i < b; i++) sx += X[i], sy += Y[i], sz += Z[i];
                means[q] = sx / (b - a);
                means[all + q] = sy / (b - a);
                means[2 * all + q] = sz / (b - a);
                crowds += b - a >= 4;
            }
        }
        summary = {double(begin.size() - 1), double(crowds), length};
    };
    bench(run, [&](Checksum &c) {
        c.add("key", key.p, n);
        c.add("order", order.p, n);
        c.add("sorted", sorted.p, 3 * n);
        c.add("means", means.data(), means.size());
        c.add("summary", summary.data(), 3);
    });
}
