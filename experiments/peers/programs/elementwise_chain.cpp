#include "vector_maths.h"

extern "C" void run(long n, const double* __restrict raw, const double* __restrict dark,
                    const double* __restrict flat, double* __restrict out) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) {
        const double even = (raw[i] - dark[i]) / flat[i];
        const double electrons = GAIN * (even + CURVATURE * even * even);
        const double ratio = (electrons - SKY) / sqrt(electrons + FLOOR2);
        const double below = ratio > LIMIT ? LIMIT : ratio;
        out[i] = below < -LIMIT ? -LIMIT : below;
    }
}
