extern "C" void run(long n, const double* __restrict ez, const double* __restrict hx,
                    const double* __restrict hy, const double* __restrict rate, double* energy) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 1; i < n - 1; ++i) {
        const double *e = ez + i * n, *x = hx + i * (n - 1), *y = hy + i * n, *r = rate + i * n;
        double row = 0;
#pragma omp simd reduction(+ : row)
        for (long j = 1; j < n - 1; ++j)
            row += COURANT / r[j] * e[j] * e[j] + x[j] * x[j] + y[j] * y[j];
        sum += row;
    }
    *energy = 0.5 * sum;
}
