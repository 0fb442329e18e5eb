// A parallel copy, by the C library's memcpy: what the memory of this machine gives.
#include <cstring>
#include <omp.h>

extern "C" void run(long n, const double* source, double* target) {
#pragma omp parallel
    {
        const long threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const long begin = n * thread / threads, end = n * (thread + 1) / threads;
        std::memcpy(target + begin, source + begin, (end - begin) * sizeof(double));
    }
}
