extern "C" void run(long n, double* __restrict a, double* __restrict b, double* __restrict c,
                    double* dot) {
    double sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (long i = 0; i < n; ++i) {
        double ai = a[i], bi, ci;
#pragma GCC unroll 8
        for (int k = 0; k < PASSES; ++k) {
            bi = SCALAR * ai;
            ci = ai + bi;
            ai = bi + SCALAR * ci;
        }
        a[i] = ai, b[i] = bi, c[i] = ci;
        sum += ai * bi;
    }
    *dot = sum;
}
