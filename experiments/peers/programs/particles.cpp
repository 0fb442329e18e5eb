// Each thread moves its particles and counts those that stay; then it knows where they go.
#include <omp.h>

extern "C" void run(long n, long room, double* __restrict now, double* __restrict then,
                    unsigned char* __restrict inside, long* __restrict count) {
    double *x = now, *y = now + room, *vx = now + 2 * room, *vy = now + 3 * room;
#pragma omp parallel
    {
        const long threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const long begin = n * thread / threads, end = n * (thread + 1) / threads;
        long stay = 0;
#pragma omp simd reduction(+ : stay)
        for (long i = begin; i < end; ++i) {
            vx[i] = (vx[i] + DT * (x[i] - 0.5)) * (1.0 - DRAG * DT);
            vy[i] = (vy[i] + DT * (y[i] - 0.5)) * (1.0 - DRAG * DT);
            x[i] += DT * vx[i];
            y[i] += DT * vy[i];
            inside[i] = (x[i] >= 0.0) & (x[i] < 1.0) & (y[i] >= 0.0) & (y[i] < 1.0);
            stay += inside[i];
        }
        count[thread] = stay;
#pragma omp barrier
        long place = 0, all = 0;
        for (long t = 0; t < threads; ++t) {
            if (t == thread) place = all;
            all += count[t];
        }
        for (long i = begin; i < end; ++i)
            if (inside[i]) {
                for (long field = 0; field < 4; ++field)
                    then[field * room + place] = now[field * room + i];
                ++place;
            }
#pragma omp barrier
        if (thread == 0) count[0] = all;
    }
}
