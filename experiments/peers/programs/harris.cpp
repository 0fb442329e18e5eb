// Strips of rows: the gradients' products of three rows are kept, and their box sums never stored.
#include <cstdlib>

static const long STRIP = 16;

// Products of the flat pixels row * w - 1 ... row * w + w: one more on either side of the row.
static void products(const double* __restrict p, long w, long row, double* __restrict xx,
                     double* __restrict yy, double* __restrict xy) {
    const long first = row * w - 1, low = first > w + 1 ? first : w + 1;
    const long high = first + w + 2 < w * w - w - 1 ? first + w + 2 : w * w - w - 1;
#pragma omp simd
    for (long i = low; i < high; ++i) {
        const double left = p[i - w - 1] + 2.0 * p[i - 1] + p[i + w - 1];
        const double right = p[i - w + 1] + 2.0 * p[i + 1] + p[i + w + 1];
        const double above = p[i - w - 1] + 2.0 * p[i - w] + p[i - w + 1];
        const double below = p[i + w - 1] + 2.0 * p[i + w] + p[i + w + 1];
        const double gx = 0.125 * (right - left), gy = 0.125 * (below - above);
        xx[i - first] = gx * gx, yy[i - first] = gy * gy, xy[i - first] = gx * gy;
    }
}

extern "C" void run(long w, const double* __restrict image, double* __restrict response,
                    double* corners) {
    const long n = w * w, length = w + 2;
    double strength = 0;
#pragma omp parallel reduction(+ : strength)
    {
        double* const buffer = static_cast<double*>(std::calloc(12 * length, sizeof(double)));
        double *sums = buffer + 9 * length, *line[3];
#pragma omp for schedule(static)
        for (long begin = 2; begin < w - 2; begin += STRIP) {
            const long end = begin + STRIP < w - 2 ? begin + STRIP : w - 2;
            for (int k = 0; k < 3; ++k) line[k] = buffer + 3 * k * length;
            for (long row = begin - 1; row <= begin; ++row) {
                double* to = line[row % 3];
                products(image, w, row, to, to + length, to + 2 * length);
            }
            for (long row = begin; row < end; ++row) {
                double* to = line[(row + 1) % 3];
                products(image, w, row + 1, to, to + length, to + 2 * length);
                const double *__restrict a = line[0], *__restrict b = line[1];
                const double* __restrict c = line[2];
#pragma omp simd
                for (long k = 0; k < 3 * length; ++k) sums[k] = a[k] + b[k] + c[k];
                const long low = row * w + RIM > 2 * w + 2 ? row * w + RIM : 2 * w + 2;
                const long last = n - 2 * w - 2, stop = (row + 1) * w - RIM;
                const double *__restrict xx = sums + 1 - row * w, *__restrict yy = xx + length;
                const double* __restrict xy = yy + length;
                double part = 0;
#pragma omp simd reduction(+ : part)
                for (long i = low; i < (stop < last ? stop : last); ++i) {
                    const double sxx = xx[i - 1] + xx[i] + xx[i + 1];
                    const double syy = yy[i - 1] + yy[i] + yy[i + 1];
                    const double sxy = xy[i - 1] + xy[i] + xy[i + 1];
                    const double trace = sxx + syy;
                    const double r = sxx * syy - sxy * sxy - KAPPA * trace * trace;
                    response[i] = r;
                    part += r > THRESHOLD ? r : 0.0;
                }
                strength += part;
            }
        }
        std::free(buffer);
    }
    *corners = strength;
}
