// One pass a step: a row's H is ready when its E is due. Where threads meet, H_y comes first.
#include <omp.h>

extern "C" void run(long n, double* __restrict ez, double* __restrict hx, double* __restrict hy,
                    const double* __restrict rate, const double* __restrict keep, long row,
                    long column, double current) {
    const auto update_hy = [=](long i) {
        const double *here = ez + i * n, *below = here + n;
        double* to = hy + i * n;
#pragma omp simd
        for (long j = 0; j < n; ++j)
            to[j] = (to[j] + COURANT * (below[j] - here[j])) * (keep[i] * keep[j]);
    };
#pragma omp parallel
    {
        const long threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const long begin = n * thread / threads, end = n * (thread + 1) / threads;
        if (begin < end && end < n) update_hy(end - 1);
#pragma omp barrier
        for (long i = begin; i < end; ++i) {
            double *e = ez + i * n, *x = hx + i * (n - 1);
            const double *y = hy + i * n, *above = y - n, *r = rate + i * n;
            const double k = keep[i];
#pragma omp simd
            for (long j = 0; j < n - 1; ++j)
                x[j] = (x[j] - COURANT * (e[j + 1] - e[j])) * (k * keep[j]);
            if (i < end - 1) update_hy(i);
            if (i == 0 || i == n - 1) continue;
#pragma omp simd
            for (long j = 1; j < n - 1; ++j)
                e[j] = (e[j] + r[j] * (y[j] - above[j] - x[j] + x[j - 1])) * (k * keep[j]);
            if (i == row) e[column] += current;
        }
    }
}
