#include "vector_maths.h"

// The errors of a block, then the block's part of every slope while it is in the cache.
static const long BLOCK = 512;

extern "C" void run(long n, const double* __restrict x, const double* __restrict y,
                    double* __restrict w, double* loss) {
    double slope[FEATURES] = {0}, total = 0;
#pragma omp parallel for schedule(static) reduction(+ : slope[:FEATURES], total)
    for (long begin = 0; begin < n; begin += BLOCK) {
        const long length = begin + BLOCK < n ? BLOCK : n - begin;
        const double *__restrict xb = x + begin, *__restrict yb = y + begin;
        double error[BLOCK], part = 0;
#pragma omp simd reduction(+ : part)
        for (long k = 0; k < length; ++k) {
            double z = 0;
#pragma GCC unroll 16
            for (int f = 0; f < FEATURES; ++f) z += w[f] * xb[f * n + k];
            const double e = exp(-fabs(z));
            part += log1p(e) + (z > 0 ? z : 0.0) - z * yb[k];
            error[k] = (z >= 0 ? 1.0 : e) / (1.0 + e) - yb[k];
        }
        total += part;
        for (int f = 0; f < FEATURES; ++f) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long k = 0; k < length; ++k) sum += error[k] * xb[f * n + k];
            slope[f] += sum;
        }
    }
    for (int f = 0; f < FEATURES; ++f) w[f] = KEEP * w[f] - RATE / n * slope[f];
    *loss = total;
}
