// Strips of rows: luminance and the rows of its blur stay in cache; each colour is read once.
#include <cmath>
#include <cstdlib>

#include "vector_maths.h"

static const long STRIP = 32;

static void luminance(const double* __restrict r, const double* __restrict g,
                      const double* __restrict b, long n, double scale, double* __restrict y,
                      double* __restrict t) {
#pragma omp simd
    for (long j = 0; j < n; ++j) y[j] = scale * (0.2126 * r[j] + 0.7152 * g[j] + 0.0722 * b[j]);
#pragma omp simd
    for (long j = 2; j < n - 2; ++j)
        t[j] = 0.0625 * (y[j - 2] + y[j + 2] + 4.0 * (y[j - 1] + y[j + 1]) + 6.0 * y[j]);
}

static double logarithms(const double* __restrict y, long n, double unscaled) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < n; ++j) sum += log(DARKEST + unscaled * y[j]);
    return sum;
}

static double display(const double* __restrict colour, const double* __restrict gain, long n,
                      double* __restrict out) {
    double clipped = 0;
#pragma omp simd reduction(+ : clipped)
    for (long j = 0; j < n; ++j) {
        const double value = colour[j] * gain[j];
        clipped += value >= 1.0 ? 1.0 : 0.0;
        out[j] = std::sqrt(value > 1.0 ? 1.0 : value);
    }
    return clipped;
}

extern "C" void run(long n, const double* __restrict colours, double* __restrict shown,
                    double scale, double* sums) {
    const long plane = n * n;
    double brightness = 0, clipped = 0;
#pragma omp parallel reduction(+ : brightness, clipped)
    {
        double* const memory = static_cast<double*>(std::malloc(17 * n * sizeof(double)));
        double *const y = memory, *const t = y + 8 * n, *const gain = t + 8 * n;  // rows by i % 8
#pragma omp for schedule(static)
        for (long begin = 0; begin < n; begin += STRIP) {
            const long end = begin + STRIP < n ? begin + STRIP : n;
            long ready = begin < 2 ? 0 : begin - 2;
            for (long i = begin; i < end; ++i) {
                for (; ready < (i + 3 < n ? i + 3 : n); ++ready) {
                    const double* r = colours + ready * n;
                    luminance(r, r + plane, r + 2 * plane, n, scale, y + ready % 8 * n,
                              t + ready % 8 * n);
                }
                const double* __restrict here = y + i % 8 * n;
                brightness += logarithms(here, n, 1.0 / scale);
                const bool inside = i > 1 && i < n - 2;
                const double *a = t + (i + 6) % 8 * n, *b = t + (i + 7) % 8 * n, *c = t + i % 8 * n;
                const double *d = t + (i + 1) % 8 * n, *e = t + (i + 2) % 8 * n;
#pragma omp simd
                for (long j = 0; j < n; ++j) {
                    const double blur = 0.0625 * (a[j] + e[j] + 4.0 * (b[j] + d[j]) + 6.0 * c[j]);
                    const double around = inside && j > 1 && j < n - 2 ? blur : here[j];
                    gain[j] = scale * (1.0 + here[j] * (1.0 / (WHITE * WHITE))) / (1.0 + around);
                }
                const double* colour = colours + i * n;
                double* out = shown + i * n;
                clipped += display(colour, gain, n, out);
                display(colour + plane, gain, n, out + plane);
                display(colour + 2 * plane, gain, n, out + 2 * plane);
            }
        }
        std::free(memory);
    }
    sums[0] = brightness;
    sums[1] = clipped;
}
