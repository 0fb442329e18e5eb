// The direction p is stored with a rim of zeros: the stencil has no branches.
extern "C" void run(long n, const double* __restrict b, double* __restrict x, double* __restrict r,
                    double* __restrict ap, double* __restrict p, double* result) {
    const long w = n + 2;
    double rr = 0, pap = 0, before, alpha = 0, beta = 0;
#pragma omp parallel
    {
#pragma omp for schedule(static) reduction(+ : rr)
        for (long i = 0; i < n; ++i) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long j = 0; j < n; ++j) {
                const double value = b[i * n + j];
                x[i * n + j] = 0, r[i * n + j] = value, p[(i + 1) * w + j + 1] = value;
                sum += value * value;
            }
            rr += sum;
        }
        for (int k = 0; k < ITERATIONS; ++k) {
#pragma omp for schedule(static) reduction(+ : pap)
            for (long i = 0; i < n; ++i) {
                const double *here = p + (i + 1) * w + 1, *above = here - w, *below = here + w;
                double* to = ap + i * n;
                double sum = 0;
#pragma omp simd reduction(+ : sum)
                for (long j = 0; j < n; ++j) {
                    to[j] = 4.0 * here[j] - above[j] - below[j] - here[j - 1] - here[j + 1];
                    sum += here[j] * to[j];
                }
                pap += sum;
            }
#pragma omp single
            alpha = rr / pap, before = rr, rr = 0, pap = 0;
#pragma omp for simd schedule(static) reduction(+ : rr)
            for (long i = 0; i < n * n; ++i) {
                r[i] -= alpha * ap[i];
                rr += r[i] * r[i];
            }
#pragma omp single
            beta = rr / before;
#pragma omp for schedule(static)
            for (long i = 0; i < n; ++i) {
                double* __restrict direction = p + (i + 1) * w + 1;
#pragma omp simd
                for (long j = 0; j < n; ++j) {
                    x[i * n + j] += alpha * direction[j];
                    direction[j] = r[i * n + j] + beta * direction[j];
                }
            }
        }
    }
    *result = rr;
}
