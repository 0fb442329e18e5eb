// Dust in a plasma: a loop that moves the particles, and one that finds forces, kicks and brakes (and
// sums energies where they are read). Pruning counts and fills at once, each thread in its own part.
#include "common.hpp"

static constexpr int STEPS = 6, EVERY = 3;
static constexpr double DT = 0.01, K = 2.0, CUT = 2.0, SKIN = 0.4, DRAG = 0.05, T0 = 0.02, TAU = 0.2;
static constexpr double REACH = (CUT + 0.5 * SKIN) * (CUT + 0.5 * SKIN);

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double box = d.number("box");
    auto start = d.array<int32_t>("start"), wide = d.array<int32_t>("wide");
    auto x0 = d.array<double>("x0"), y0 = d.array<double>("y0"), vx0 = d.array<double>("vx0"), vy0 = d.array<double>("vy0");
    Array<double> x(n), y(n), vx(n), vy(n), fx(n), fy(n), psi(n);
    Array<int32_t> first(n), last(n), close(wide.n);
    double energies[2 * (STEPS / EVERY)], order = 0;

    auto nearest = [box](double a) { return a > 0.5 * box ? a - box : a < -0.5 * box ? a + box : a; };
    auto prune = [&](int64_t i0, int64_t i1) {
        int32_t to = start[i0];
        for (int64_t i = i0; i < i1; i++) {
            const double xi = x[i], yi = y[i];
            first[i] = to;
            for (int32_t k = start[i]; k < start[i + 1]; k++) {
                const int32_t j = wide[k];
                const double dx = nearest(xi - x[j]), dy = nearest(yi - y[j]);
                close[to] = j;
                to += dx * dx + dy * dy < REACH;
            }
            last[i] = to;
        }
    };
    auto force = [&](int64_t i, bool energy) {
        const double xi = x[i], yi = y[i];
        double sx = 0, sy = 0, u = 0;
#pragma omp simd reduction(+ : sx, sy, u)
        for (int32_t k = first[i]; k < last[i]; k++) {
            const int32_t j = close[k];
            const double dx = nearest(xi - x[j]), dy = nearest(yi - y[j]), r2 = dx * dx + dy * dy, r = std::sqrt(r2);
            const double g = exp(-K * r), f = r2 < CUT * CUT ? g * (1.0 + K * r) / (r2 * r) : 0.0;
            sx += f * dx, sy += f * dy;
            if (energy) u += r2 < CUT * CUT ? g / r : 0.0;
        }
        fx[i] = sx, fy[i] = sy;
        return 0.5 * u;
    };
    auto run = [&] {
        double moving = 0, stored = 0, total = 0;
#pragma omp parallel if (n >= PARALLEL_FROM / 8)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), i0 = n * t / nt, i1 = n * (t + 1) / nt;
            for (int64_t i = i0; i < i1; i++) x[i] = x0[i], y[i] = y0[i], vx[i] = vx0[i], vy[i] = vy0[i];
#pragma omp barrier
            prune(i0, i1);
            for (int64_t i = i0; i < i1; i++) force(i, false);
            double factor = 1.0;
            for (int step = 0; step < STEPS; step++) {
                const bool read = step % EVERY == EVERY - 1;
#pragma omp barrier
#pragma omp simd
                for (int64_t i = i0; i < i1; i++) {
                    vx[i] = vx[i] * factor + 0.5 * DT * fx[i], vy[i] = vy[i] * factor + 0.5 * DT * fy[i];
                    double a = x[i] + DT * vx[i], b = y[i] + DT * vy[i];
                    a = a < 0.0 ? a + box : a, b = b < 0.0 ? b + box : b;
                    x[i] = a >= box ? a - box : a, y[i] = b >= box ? b - box : b;
                }
#pragma omp single
                moving = stored = 0;
                double mine = 0, held = 0;
                for (int64_t i = i0; i < i1; i++) {
                    const double u = read ? force(i, true) : force(i, false);
                    vx[i] = (vx[i] + 0.5 * DT * fx[i]) * (1.0 - DRAG * DT);
                    vy[i] = (vy[i] + 0.5 * DT * fy[i]) * (1.0 - DRAG * DT);
                    mine += 0.5 * (vx[i] * vx[i] + vy[i] * vy[i]), held += u;
                }
                factor = 1.0;
                if (!read) continue;
#pragma omp critical
                moving += mine, stored += held;
                prune(i0, i1);
#pragma omp barrier
                factor = std::sqrt(1.0 + EVERY * DT / TAU * (T0 / (moving / n) - 1.0));
#pragma omp single nowait
                energies[step / EVERY * 2] = moving / n, energies[step / EVERY * 2 + 1] = stored / n;
            }
#pragma omp single
            total = 0;
            double sum = 0;
            for (int64_t i = i0; i < i1; i++) {
                const double xi = x[i], yi = y[i];
                double around = 0;
                int bonds = 0;
#pragma omp simd reduction(+ : around, bonds)
                for (int32_t k = first[i]; k < last[i]; k++) {
                    const double dx = nearest(xi - x[close[k]]), dy = nearest(yi - y[close[k]]), r2 = dx * dx + dy * dy;
                    const double c = (dx * dx - dy * dy) / r2;
                    around += r2 < 1.7 ? 2.0 * c * c - 1.0 : 0.0, bonds += r2 < 1.7;
                }
                vx[i] *= factor, vy[i] *= factor;
                psi[i] = bonds ? around / bonds : 0.0;
                sum += psi[i];
            }
#pragma omp critical
            total += sum;
        }
        order = total / n;
    };
    bench(run, [&](Checksum &s) {
        s.add("x", x.p, n), s.add("y", y.p, n), s.add("vx", vx.p, n), s.add("vy", vy.p, n), s.add("psi", psi.p, n);
        s.add("energies", energies, 2 * (STEPS / EVERY));
        s.add("order", &order, 1);
    });
}
