// Dendrite: one sweep a step by rows; each thread keeps the fluxes of three rows. The angle's cosine
// and sine come from the gradient by algebra.
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"))) double atan(double) noexcept;
}
static const double DX = 0.03, DT = 1e-4, TAU = 3e-4, EPS = 0.01, DEL = 0.04, ALPHA = 0.9, GAMMA = 10.0,
                    LATENT = 1.8;

static void fluxes(int64_t n, const double *u, const double *p, const double *d, double *__restrict qx,
                   double *__restrict qy) {  // of the row p, from the rows above and below it
    const double C = std::cos(0.8), S = std::sin(0.8), h = 0.5 / DX;
    auto one = [&](int64_t j, int64_t l, int64_t r) {
        double gx = (p[r] - p[l]) * h, gy = (d[j] - u[j]) * h, x2 = gx * gx, y2 = gy * gy, g = x2 + y2;
        double s = 1.0 / (g * g), c4 = (x2 * x2 - 6.0 * x2 * y2 + y2 * y2) * s, s4 = 4.0 * gx * gy * (x2 - y2) * s;
        c4 = g > 1e-150 ? c4 : 1.0;
        s4 = g > 1e-150 ? s4 : 0.0;
        double e = EPS * (1.0 + DEL * (c4 * C + s4 * S)), de = -4.0 * EPS * DEL * (s4 * C - c4 * S);
        qx[j] = e * (e * gx - de * gy);
        qy[j] = e * (e * gy + de * gx);
    };
    one(0, n - 1, 1);
    one(n - 1, n - 2, 0);
#pragma omp simd
    for (int64_t j = 1; j < n - 1; j++) one(j, j - 1, j + 1);
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps");
    auto p0 = d.array<double>("p0"), t0 = d.array<double>("t0");
    Array<double> pa(n * n), pb(n * n), ta(n * n), tb(n * n);
    std::vector<double> amount(steps);
    double *P = pa, *T = ta;
    auto run = [&] {
        const double *p = p0, *t = t0;
        for (int64_t k = 0; k < steps; k++) {
            double *po = p == pa.p ? pb.p : pa.p, *to = t == ta.p ? tb.p : ta.p, sum = 0;
#pragma omp parallel reduction(+ : sum) if (n * n >= PARALLEL_FROM)
            {
                const int64_t N = omp_get_num_threads(), w = omp_get_thread_num();
                const int64_t first = n * w / N, end = n * (w + 1) / N;
                std::vector<double> store(6 * n);
                double *qx[3], *qy[3];
                for (int q = 0; q < 3; q++) qx[q] = &store[2 * q * n], qy[q] = qx[q] + n;
                auto make = [&](int64_t i, int q) {
                    i = (i + n) % n;
                    fluxes(n, p + (i + n - 1) % n * n, p + i * n, p + (i + 1) % n * n, qx[q], qy[q]);
                };
                make(first - 1, 0);
                make(first, 1);
                const double h = 0.5 / DX, h2 = 1.0 / (DX * DX);
                for (int64_t i = first; i < end; i++) {
                    make(i + 1, 2);
                    const double *p1 = p + i * n, *t1 = t + i * n;
                    const double *tu = t + (i + n - 1) % n * n, *td = t + (i + 1) % n * n;
                    const double *x = qx[1], *up = qy[0], *down = qy[2];
                    double *__restrict pn = po + i * n, *__restrict tn = to + i * n;
                    auto one = [&](int64_t j, int64_t l, int64_t r) {
                        double div = (x[r] - x[l] + down[j] - up[j]) * h;
                        double m = ALPHA / M_PI * atan(GAMMA * (1.0 - t1[j]));
                        double rate = (div + p1[j] * (1.0 - p1[j]) * (p1[j] - 0.5 + m)) / TAU;
                        double lap = (t1[r] + t1[l] + td[j] + tu[j] - 4.0 * t1[j]) * h2;
                        double v = p1[j] + DT * rate;
                        pn[j] = v;
                        tn[j] = t1[j] + DT * lap + LATENT * DT * rate;
                        return v;
                    };
                    sum += one(0, n - 1, 1) + one(n - 1, n - 2, 0);
#pragma omp simd reduction(+ : sum)
                    for (int64_t j = 1; j < n - 1; j++) sum += one(j, j - 1, j + 1);
                    std::rotate(qx, qx + 1, qx + 3);
                    std::rotate(qy, qy + 1, qy + 3);
                }
            }
            amount[k] = sum;
            p = P = po;
            t = T = to;
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("p", P, n * n);
        s.add("t", T, n * n);
        s.add("amount", amount.data(), steps);
    });
}
