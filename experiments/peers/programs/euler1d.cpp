#include "vector_maths.h"

static const long BLOCK = 1024;

extern "C" void run(long n, const double* __restrict q, double* __restrict next, double* mass) {
    const double *__restrict rho = q, *__restrict mom = q + n, *__restrict energy = q + 2 * n;
    double sum = next[0] + next[n - 1];
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long begin = 1; begin < n - 1; begin += BLOCK) {
        const long cells = begin + BLOCK < n - 1 ? BLOCK : n - 1 - begin;
        double f[3][BLOCK + 2], s[BLOCK + 2], face[BLOCK + 1];
#pragma omp simd
        for (long k = 0; k < cells + 2; ++k) {
            const long i = begin - 1 + k;
            const double u = mom[i] / rho[i];
            const double p = (GAMMA - 1.0) * (energy[i] - 0.5 * mom[i] * u);
            s[k] = fabs(u) + sqrt(GAMMA * p / rho[i]);
            f[0][k] = mom[i], f[1][k] = mom[i] * u + p, f[2][k] = u * (energy[i] + p);
        }
        for (int c = 0; c < 3; ++c) {
            const double* __restrict from = q + c * n + begin;
            double* __restrict to = next + c * n + begin;
#pragma omp simd
            for (long k = 0; k < cells + 1; ++k) {
                const double fastest = s[k + 1] > s[k] ? s[k + 1] : s[k];
                face[k] = 0.5 * (f[c][k] + f[c][k + 1]) - 0.5 * fastest * (from[k] - from[k - 1]);
            }
#pragma omp simd
            for (long k = 0; k < cells; ++k) to[k] = from[k] - RATIO * (face[k + 1] - face[k]);
        }
        double part = 0;
#pragma omp simd reduction(+ : part)
        for (long k = 0; k < cells; ++k) part += next[begin + k];
        sum += part;
    }
    *mass = sum;
}
