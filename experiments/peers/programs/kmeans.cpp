// Labels of a block, then each cluster's sums over the block while it is in the cache.
static const long BLOCK = 1024;

extern "C" void run(long n, const double* __restrict points, double* __restrict centre,
                    int* __restrict label, double* inertia) {
    const double *__restrict x = points, *__restrict y = points + n, *__restrict z = points + 2 * n;
    double sums[CLUSTERS * 4] = {0}, total = 0;
#pragma omp parallel for schedule(static) reduction(+ : sums[:CLUSTERS * 4], total)
    for (long begin = 0; begin < n; begin += BLOCK) {
        const long end = begin + BLOCK < n ? begin + BLOCK : n;
        double part = 0, nearest[BLOCK];  // as doubles: lanes of one width
#pragma omp simd reduction(+ : part)
        for (long i = begin; i < end; ++i) {
            double best = 1e300, which = 0;
#pragma GCC unroll 16
            for (int c = 0; c < CLUSTERS; ++c) {
                const double dx = x[i] - centre[3 * c], dy = y[i] - centre[3 * c + 1];
                const double dz = z[i] - centre[3 * c + 2], d2 = dx * dx + dy * dy + dz * dz;
                which = d2 < best ? c : which;
                best = d2 < best ? d2 : best;
            }
            nearest[i - begin] = which;
            part += best;
        }
        total += part;
        for (long i = begin; i < end; ++i) label[i] = nearest[i - begin];
        for (int c = 0; c < CLUSTERS; ++c) {
            double sx = 0, sy = 0, sz = 0, number = 0;
#pragma omp simd reduction(+ : sx, sy, sz, number)
            for (long i = begin; i < end; ++i) {
                const bool member = nearest[i - begin] == c;
                sx += member ? x[i] : 0.0, sy += member ? y[i] : 0.0, sz += member ? z[i] : 0.0;
                number += member ? 1.0 : 0.0;
            }
            sums[4 * c] += sx, sums[4 * c + 1] += sy, sums[4 * c + 2] += sz;
            sums[4 * c + 3] += number;
        }
    }
    for (int c = 0; c < CLUSTERS; ++c)
        for (int axis = 0; axis < 3; ++axis)
            if (sums[4 * c + 3] > 0) centre[3 * c + axis] = sums[4 * c + axis] / sums[4 * c + 3];
    *inertia = total;
}
