// The mean conductivity times a difference of temperatures is a difference of potentials (Kirchhoff),
// which are cheap enough to be computed seven times.
static inline double potential(double u) { return u * (BASE + 0.5 * BASE * GROWTH * u); }

extern "C" void run(long n, const double* __restrict u, double* __restrict next, double* heat) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 1; i < n - 1; ++i)
        for (long j = 1; j < n - 1; ++j) {
            const double* here = u + (i * n + j) * n;
            double* to = next + (i * n + j) * n;
            double row = 0;
#pragma omp simd reduction(+ : row)
            for (long k = 1; k < n - 1; ++k) {
                const double around = potential(here[k - n * n]) + potential(here[k + n * n]) +
                                      potential(here[k - n]) + potential(here[k + n]) +
                                      potential(here[k - 1]) + potential(here[k + 1]);
                to[k] = here[k] + DT * (around - 6.0 * potential(here[k]));
                row += to[k];
            }
            sum += row;
        }
    *heat = sum;
}
