// Bands of rows make DEPTH steps before they leave the cache: each step follows the one before by a
// row, and keeps three rows. A thread's band begins and ends with rows that its neighbours make, too.
#include <omp.h>

#include <cstdlib>

static const long DEPTH = 5;

// A row of the next step from three rows; its ends are on the hot and the cold side.
static void step(long n, const double* __restrict above, const double* __restrict here,
                 const double* __restrict below, double* __restrict to, double hot) {
#pragma omp simd
    for (long j = 1; j < n - 1; ++j)
        to[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
    to[0] = hot;
    to[n - 1] = COLD;
}

// DEPTH steps from u to next; the change in the last one is added up.
extern "C" void run(long n, const double* __restrict u, double* __restrict next,
                    const double* __restrict heater, double* residual) {
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        double* const rows = static_cast<double*>(std::malloc(3 * DEPTH * n * sizeof(double)));
        const long threads = omp_get_num_threads(), me = omp_get_thread_num();
        const long first = 1 + (n - 2) * me / threads, last = 1 + (n - 2) * (me + 1) / threads;
        // Level 0 is u; level k has rows [first - (DEPTH - k), last + DEPTH - k) inside the plate.
        auto row = [&](long level, long i) -> const double* {
            i = i < 1 ? 1 : i > n - 2 ? n - 2 : i;  // nothing flows through top and bottom
            return level == 0 ? u + i * n : rows + (3 * (level - 1) + i % 3) * n;
        };
        for (long front = first - DEPTH + 1; front < last + 2 * DEPTH; ++front)
            for (long level = 1; level <= DEPTH; ++level) {
                const long i = front - level + 1, more = DEPTH - level;
                const long low = first - more > 1 ? first - more : 1;
                const long high = last + more < n - 1 ? last + more : n - 1;
                if (i < low || i >= high) continue;
                double* const to =
                    level == DEPTH ? next + i * n : const_cast<double*>(row(level, i));
                const double* here = row(level - 1, i);
                step(n, row(level - 1, i - 1), here, row(level - 1, i + 1), to, heater[i]);
                if (level < DEPTH) continue;
                double part = 0;
#pragma omp simd reduction(+ : part)
                for (long j = 1; j < n - 1; ++j) part += (to[j] - here[j]) * (to[j] - here[j]);
                sum += part;
            }
        std::free(rows);
    }
    for (long j = 0; j < n; ++j) {
        next[j] = next[n + j];
        next[(n - 1) * n + j] = next[(n - 2) * n + j];
    }
    next[0] = heater[0], next[(n - 1) * n] = heater[n - 1];
    next[n - 1] = next[n * n - 1] = COLD;
    *residual = sum;
}
