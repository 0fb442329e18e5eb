#include "vector_maths.h"

extern "C" void run(long n, float* __restrict w, const float* __restrict target,
                    float* __restrict m, float* __restrict v, const double* __restrict first,
                    const double* __restrict second, double* loss) {
    double p[STEPS], q[STEPS], sum = 0;
    for (int k = 0; k < STEPS; ++k) p[k] = first[k], q[k] = second[k];
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (long i = 0; i < n; ++i) {
        float wi = w[i], mi = m[i], vi = v[i];
#pragma GCC unroll 8
        for (int k = 0; k < STEPS; ++k) {
            const float g = wi - target[i];
            mi = BETA1 * mi + (1.0 - BETA1) * g;
            vi = BETA2 * vi + (1.0 - BETA2) * g * g;
            const double d = (mi / p[k]) / (sqrt(vi / q[k]) + EPSILON);
            wi = (1.0 - RATE * DECAY) * wi - RATE * d;
        }
        w[i] = wi, m[i] = mi, v[i] = vi;
        const double error = wi - target[i];
        sum += 0.5 * error * error;
    }
    *loss = sum;
}
