#include "vector_maths.h"

// A block in vectors, then its particles into the thread's own density one by one.
static const long BLOCK = 1024;

static inline double wrapped(double place) {
    place = place < 0 ? place + BOX : place;
    return place >= BOX ? place - BOX : place;
}

extern "C" void run(long n, double* __restrict x, double* __restrict v, unsigned* __restrict seed,
                    double* __restrict density, double impulse, double rate, double* energy) {
    double *__restrict y = x + n, *__restrict z = x + 2 * n;
    double *__restrict vy = v + n, *__restrict vz = v + 2 * n, sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : density[:CELLS], sum)
    for (long begin = 0; begin < n; begin += BLOCK) {
        const long end = begin + BLOCK < n ? begin + BLOCK : n;
        double part = 0;
#pragma omp simd reduction(+ : part)
        for (long i = begin; i < end; ++i) {
            const double u = v[i] + impulse, w = vy[i], q = vz[i];
            x[i] = wrapped(x[i] + DT * u);
            y[i] = wrapped(y[i] + DT * w);
            z[i] = wrapped(z[i] + DT * q);
            const unsigned s0 = seed[i] * 1664525u + 1013904223u;
            const unsigned s1 = s0 * 1664525u + 1013904223u, s2 = s1 * 1664525u + 1013904223u;
            seed[i] = s2;
            const double speed = sqrt(u * u + w * w + q * q);
            const bool hit = s0 / 4294967296.0 < 1.0 - exp(-rate * DT * speed);
            const double mu = 1.0 - 2.0 * (s1 / 4294967296.0);
            const double phi = 6.283185307179586 * (s2 / 4294967296.0);
            const double away = LOSS * speed * sqrt(1.0 - mu * mu);
            const double cx = away * cos(phi), cy = away * sin(phi), cz = LOSS * speed * mu;
            const double a = hit ? cx : u, b = hit ? cy : w, c = hit ? cz : q;
            v[i] = a, vy[i] = b, vz[i] = c;
            part += 0.5 * (a * a + b * b + c * c);
        }
        sum += part;
        for (long i = begin; i < end; ++i) {
            const int cell = x[i] * (CELLS / BOX);
            density[cell < CELLS ? cell : CELLS - 1] += 1.0;
        }
    }
    *energy = sum;
}
