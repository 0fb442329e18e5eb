extern "C" void run(long n, const double* __restrict u, double* __restrict next,
                    const double* __restrict source, double* residual) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 1; i < n - 1; ++i) {
        const double *here = u + i * n, *above = here - n, *below = here + n;
        const double* heating = source + i * n;
        double* to = next + i * n;
        double row = 0;
#pragma omp simd reduction(+ : row)
        for (long j = 1; j < n - 1; ++j) {
            const double rate = above[j] + below[j] + here[j - 1] + here[j + 1] - 4.0 * here[j];
            to[j] = here[j] + DT * (rate + heating[j]);
            const double change = to[j] - here[j];
            row += change * change;
        }
        sum += row;
    }
    *residual = sum;
}
