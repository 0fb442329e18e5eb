// Blocks of columns: matrix and right-hand sides stay in cache, all loops run along the columns.
#include <cmath>

static const long WIDTH = 64;

extern "C" void run(long n, double* __restrict u, double* __restrict v, double* __restrict theta,
                    double* __restrict q, double* __restrict u_rate, double* __restrict v_rate,
                    double* __restrict theta_rate, double* __restrict q_rate,
                    const double* __restrict theta_ground, const double* __restrict q_ground,
                    const double* __restrict thickness, const double* __restrict inverse,
                    const double* __restrict mixing, double* moisture) {
    double* const fields[] = {u, v, theta, q};
    double* const rates[] = {u_rate, v_rate, theta_rate, q_rate};
    const double* const grounds[] = {nullptr, nullptr, theta_ground, q_ground};
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long first = 0; first < n; first += WIDTH) {
        const long width = first + WIDTH < n ? WIDTH : n - first;
        alignas(64) double below[LEVELS][WIDTH + 8], above[LEVELS][WIDTH + 8];
        alignas(64) double pivot[LEVELS][WIDTH + 8], y[LEVELS][WIDTH + 8];
        for (long j = 0; j < width; ++j) {
            below[0][j] = DT * EXCHANGE / thickness[0];
            above[LEVELS - 1][j] = 0.0;
        }
        for (long k = 1; k < LEVELS; ++k) {
            const long here = k * n + first, lower = here - n;
            const double over = inverse[k], length = mixing[k] * mixing[k];
            const double down = DT * over / thickness[k], up = DT * over / thickness[k - 1];
#pragma omp simd
            for (long j = 0; j < width; ++j) {
                const double du = (u[here + j] - u[lower + j]) * over;
                const double dv = (v[here + j] - v[lower + j]) * over;
                const double squared = du * du + dv * dv + 1e-8;
                const double warm = theta[here + j], cold = theta[lower + j];
                const double ri = 2.0 * GRAVITY * over * (warm - cold) / ((warm + cold) * squared);
                const double f =
                    ri < 0.0 ? std::sqrt(1.0 - 16.0 * ri) : 1.0 / (1.0 + 10.0 * ri);
                const double d = length * std::sqrt(squared) * f;
                below[k][j] = down * d;
                above[k - 1][j] = up * d;
            }
        }
        for (long j = 0; j < width; ++j) pivot[0][j] = 1.0 / (1.0 + below[0][j] + above[0][j]);
        for (long k = 1; k < LEVELS; ++k)
#pragma omp simd
            for (long j = 0; j < width; ++j) {
                const double rest = 1.0 - above[k - 1][j] * pivot[k - 1][j];
                pivot[k][j] = 1.0 / (1.0 + above[k][j] + below[k][j] * rest);
            }
        for (int f = 0; f < 4; ++f) {
            double* const x = fields[f] + first;
            double* const rate = rates[f] + first;
            for (long j = 0; j < width; ++j) {
                const double ground = grounds[f] ? grounds[f][first + j] : 0.0;
                y[0][j] = (x[j] + below[0][j] * ground) * pivot[0][j];
            }
            for (long k = 1; k < LEVELS; ++k)
#pragma omp simd
                for (long j = 0; j < width; ++j)
                    y[k][j] = (x[k * n + j] + below[k][j] * y[k - 1][j]) * pivot[k][j];
            for (long k = LEVELS - 1; k >= 0; --k) {
                double part = 0;
#pragma omp simd reduction(+ : part)
                for (long j = 0; j < width; ++j) {
                    if (k < LEVELS - 1) y[k][j] += above[k][j] * pivot[k][j] * y[k + 1][j];
                    rate[k * n + j] = (y[k][j] - x[k * n + j]) * (1.0 / DT);
                    x[k * n + j] = y[k][j];
                    part += y[k][j];
                }
                if (f == 3) sum += thickness[k] * part;
            }
        }
    }
    *moisture = sum;
}
