// No transpose: columns are solved side by side, rows eight at a time, as each waits for itself.
static const long COLUMNS = 64, ROWS = 8;

extern "C" void run(long n, double* __restrict u, double* __restrict half,
                    const double* __restrict inverse) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (long first = 1; first < n - 1; first += COLUMNS) {
            const long last = first + COLUMNS < n - 1 ? first + COLUMNS : n - 1;
            for (long i = 1; i < n - 1; ++i) {
                const double *from = u + i * n, *before = half + (i - 1) * n;
                double* to = half + i * n;
#pragma omp simd
                for (long j = first; j < last; ++j)
                    to[j] = (from[j] + RATE * (from[j - 1] - 2.0 * from[j] + from[j + 1]) +
                             RATE * before[j]) * inverse[i];
            }
            for (long i = n - 3; i > 0; --i) {
                const double* after = half + (i + 1) * n;
                double* to = half + i * n;
#pragma omp simd
                for (long j = first; j < last; ++j) to[j] += RATE * inverse[i] * after[j];
            }
        }
#pragma omp for schedule(static)
        for (long first = 1; first < n - 1; first += ROWS) {
            const long rows = first + ROWS < n - 1 ? ROWS : n - 1 - first;
            double value[ROWS] = {0};
            for (long i = first; i < first + rows; ++i) {
                const double *here = half + i * n, *above = here - n, *below = here + n;
#pragma omp simd
                for (long j = 1; j < n - 1; ++j)
                    u[i * n + j] = here[j] + RATE * (above[j] - 2.0 * here[j] + below[j]);
            }
            double* to = u + first * n;
            for (long j = 1; j < n - 1; ++j)
                for (long k = 0; k < rows; ++k)
                    to[k * n + j] = value[k] = (to[k * n + j] + RATE * value[k]) * inverse[j];
            for (long j = n - 3; j > 0; --j)
                for (long k = 0; k < rows; ++k)
                    to[k * n + j] += RATE * inverse[j] * to[k * n + j + 1];
        }
    }
}
