// Micromagnetics: two fused sweeps a step (predict; correct and scale), field and torque in registers.
#include "common.hpp"

static const double DT = 0.05, DAMPING = 0.3, EASY = 0.2, APPLIED = -0.4;
static const int L = 6;

struct Fields { double *x, *y, *z; };

static inline double exchange(const double *m, int64_t u, int64_t d, int64_t b, int64_t f, int64_t l, int64_t r) {
    double here = *m;  // an offset of 0 where there is no neighbour adds 0
    return m[u] - here + (m[d] - here) + (m[b] - here) + (m[f] - here) + (m[l] - here) + (m[r] - here);
}

// KIND 0: predict, out = m + dt t, t is stored; 1: correct, out = normalised(m + dt/2 (t + torque(half)))
template <int KIND>
static double part_of_row(int64_t n, const double *X, const double *Y, const double *Z, const double *ax,
                          const double *ay, const double *az, double *__restrict tx, double *__restrict ty,
                          double *__restrict tz, double *ox, double *oy, double *oz,
                          int64_t u, int64_t d, int64_t b, int64_t f, int64_t l, int64_t r) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < n; k++) {
        double x = X[k], y = Y[k], z = Z[k];
        double hx = exchange(X + k, u, d, b, f, l, r);
        double hy = exchange(Y + k, u, d, b, f, l, r);
        double hz = exchange(Z + k, u, d, b, f, l, r) + EASY * z + APPLIED;
        double px = y * hz - z * hy, py = z * hx - x * hz, pz = x * hy - y * hx;
        double qx = -px - DAMPING * (y * pz - z * py);
        double qy = -py - DAMPING * (z * px - x * pz);
        double qz = -pz - DAMPING * (x * py - y * px);
        if (KIND == 0) {
            tx[k] = qx, ty[k] = qy, tz[k] = qz;
            ox[k] = x + DT * qx, oy[k] = y + DT * qy, oz[k] = z + DT * qz;
            sum += x * hx + y * hy + z * hz;
        } else {
            x = ax[k] + 0.5 * DT * (tx[k] + qx);
            y = ay[k] + 0.5 * DT * (ty[k] + qy);
            z = az[k] + 0.5 * DT * (tz[k] + qz);
            double length = std::sqrt(x * x + y * y + z * z);
            ox[k] = x / length, oy[k] = y / length, oz[k] = z = z / length;
            sum += z;
        }
    }
    return sum;
}

template <int KIND>
static double sweep(int64_t n, const Fields &in, const Fields &m, const Fields &t, const Fields &out) {
    const int64_t plane = n * n;
    double sum = 0;
#pragma omp parallel for collapse(2) schedule(static) reduction(+ : sum) if (plane * L >= PARALLEL_FROM)
    for (int i = 0; i < L; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t u = i > 0 ? -plane : 0, d = i < L - 1 ? plane : 0, b = j > 0 ? -n : 0, f = j < n - 1 ? n : 0;
            auto part = [&](int64_t k, int64_t count, int64_t l, int64_t r) {
                const int64_t o = i * plane + j * n + k;
                return part_of_row<KIND>(count, in.x + o, in.y + o, in.z + o, m.x + o, m.y + o, m.z + o, t.x + o,
                                         t.y + o, t.z + o, out.x + o, out.y + o, out.z + o, u, d, b, f, l, r);
            };
            sum += part(0, 1, 0, 1) + part(1, n - 2, -1, 1) + part(n - 1, 1, -1, 0);
        }
    return sum;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), N = L * n * n;
    const int steps = d.number("steps");
    auto sx = d.array<double>("start_0"), sy = d.array<double>("start_1"), sz = d.array<double>("start_2");
    Array<double> mx(N), my(N), mz(N), tx(N), ty(N), tz(N), hx(N), hy(N), hz(N);
    Fields s{sx, sy, sz}, m{mx, my, mz}, t{tx, ty, tz}, half{hx, hy, hz};
    std::vector<double> energy(steps), mean(steps);
    auto run = [&] {
        for (int k = 0; k < steps; k++) {
            const Fields &now = k ? m : s;
            energy[k] = -sweep<0>(n, now, now, t, half);
            mean[k] = sweep<1>(n, half, now, t, m) / N;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("mx", mx.p, N);
        c.add("my", my.p, N);
        c.add("mz", mz.p, N);
        c.add("energy", energy.data(), steps);
        c.add("magnetisation", mean.data(), steps);
    });
}
