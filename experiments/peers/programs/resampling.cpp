// One pass moves and weighs the particles; then each thread knows what the weights before its own
// particles add up to, and another pass writes their copies side by side.
#include <cmath>
#include <omp.h>

#include "vector_maths.h"

struct Sums {
    long weight;
    double x, y;
    char line[40];
};

extern "C" void run(long n, double* __restrict now, double* __restrict then,
                    unsigned* __restrict seed, int* __restrict weight, double d0, double d1,
                    double d2, double offset, double* estimate) {
    double *x = now, *y = now + n, *vx = now + 2 * n, *vy = now + 3 * n;
    static Sums sums[4096];
#pragma omp parallel
    {
        const long threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const long begin = n * thread / threads, end = n * (thread + 1) / threads;
        long mine = 0;
        double mine_x = 0, mine_y = 0;
#pragma omp simd reduction(+ : mine, mine_x, mine_y)
        for (long i = begin; i < end; ++i) {
            const unsigned first = seed[i] * 1664525u + 1013904223u;
            const unsigned second = seed[i] = first * 1664525u + 1013904223u;
            vx[i] += STEERING * (first * 0x1p-32 - 0.5);
            vy[i] += STEERING * (second * 0x1p-32 - 0.5);
            const double px = x[i] += DT * vx[i], py = y[i] += DT * vy[i];
            const double o0 = sqrt((px - X0) * (px - X0) + (py - Y0) * (py - Y0)) - d0;
            const double o1 = sqrt((px - X1) * (px - X1) + (py - Y1) * (py - Y1)) - d1;
            const double o2 = sqrt((px - X2) * (px - X2) + (py - Y2) * (py - Y2)) - d2;
            const double off = (o0 * o0 + o1 * o1 + o2 * o2) * (-0.5 / (ERROR * ERROR));
            const int w = (int)(ONE * exp(off));
            weight[i] = w;
            mine += w, mine_x += w * px, mine_y += w * py;
        }
        sums[thread].weight = mine, sums[thread].x = mine_x, sums[thread].y = mine_y;
#pragma omp barrier
        long before = 0, all = 0;
        double all_x = 0, all_y = 0;
        for (long t = 0; t < threads; ++t) {
            if (t == thread) before = all;
            all += sums[t].weight, all_x += sums[t].x, all_y += sums[t].y;
        }
        if (thread == 0) estimate[0] = all_x / all, estimate[1] = all_y / all;
        const double scale = (double)n / (double)all;
        long copy = (long)std::ceil(scale * (double)before - offset);
        for (long i = begin; i < end; ++i) {
            if (!weight[i]) continue;
            before += weight[i];
            const long last = (long)std::ceil(scale * (double)before - offset);
            for (; copy < last; ++copy)
                for (long field = 0; field < 4; ++field) then[field * n + copy] = now[field * n + i];
        }
    }
}
