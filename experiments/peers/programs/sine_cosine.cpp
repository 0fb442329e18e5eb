#include "vector_maths.h"

// By their own names g++ joins both of one argument into sincos, which has no vector version.
VECTOR double vector_sin(double) __asm__("sin");
VECTOR double vector_cos(double) __asm__("cos");

extern "C" void run(long n, const double* __restrict x, double* __restrict total) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) {
        const double s = vector_sin(x[i]), c = vector_cos(x[i]);
        total[i] = s * s + c * c;
    }
}
