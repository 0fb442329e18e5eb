#include <cmath>

extern "C" void run(long rows, double* __restrict x, const double* __restrict gain,
                    const double* __restrict bias) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < rows; ++i) {
        double* __restrict row = x + i * FEATURES;
        for (long layer = 0; layer < LAYERS; ++layer) {
            const double *g = gain + layer * FEATURES, *b = bias + layer * FEATURES;
            double total = 0, square = 0;
#pragma omp simd reduction(+ : total)
            for (long j = 0; j < FEATURES; ++j) total += row[j];
            const double mean = total / FEATURES;
#pragma omp simd reduction(+ : square)
            for (long j = 0; j < FEATURES; ++j) square += (row[j] - mean) * (row[j] - mean);
            const double inverse = 1.0 / std::sqrt(square / FEATURES + EPSILON);
#pragma omp simd
            for (long j = 0; j < FEATURES; ++j) row[j] += (row[j] - mean) * inverse * g[j] + b[j];
        }
    }
}
