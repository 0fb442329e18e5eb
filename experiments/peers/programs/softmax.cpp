#include "vector_maths.h"

extern "C" void run(long rows, const double* __restrict x, double* __restrict weight,
                    double* entropy) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < rows; ++i) {
        const double* __restrict from = x + i * COLUMNS;
        double* __restrict to = weight + i * COLUMNS;
        const long seen = i % COLUMNS + 1;
        double top = SCALE * from[0], total = 0, plogp = 0;
#pragma omp simd reduction(max : top)
        for (long j = 0; j < seen; ++j) top = SCALE * from[j] > top ? SCALE * from[j] : top;
#pragma omp simd reduction(+ : total)
        for (long j = 0; j < seen; ++j) total += to[j] = exp(SCALE * from[j] - top);
#pragma omp simd reduction(+ : plogp)
        for (long j = 0; j < seen; ++j) {
            const double w = to[j] /= total;
            plogp += w * log(w > 0 ? w : 1.0);
        }
        for (long j = seen; j < COLUMNS; ++j) to[j] = 0;
        sum -= plogp;
    }
    *entropy = sum;
}
