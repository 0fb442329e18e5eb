#include "vector_maths.h"

static inline double cdf(double x) { return 0.5 * (1.0 + erf(x / sqrt(2.0))); }

extern "C" void run(long n, const double* __restrict spot, const double* __restrict strike,
                    const double* __restrict maturity, double* __restrict call,
                    double* __restrict put) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) {
        const double sigma = VOLATILITY * sqrt(maturity[i]);
        const double d1 = (log(spot[i] / strike[i]) + DRIFT * maturity[i]) / sigma;
        const double discounted = strike[i] * exp(-RATE * maturity[i]);
        const double price = spot[i] * cdf(d1) - discounted * cdf(d1 - sigma);
        call[i] = price;
        put[i] = price - spot[i] + discounted;
    }
}
