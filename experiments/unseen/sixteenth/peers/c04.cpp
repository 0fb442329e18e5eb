// Particles in cells: one sweep a step over the particles (field, push, and the charge of the next
// step), in blocks so that the push is vectorised; each thread adds charge to a grid of its own.
#include "common.hpp"

static constexpr int STEPS = 3, SWEEPS = 6, UNITS = 65536, B = 256;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), g = d.number("g"), gg = g * g;
    const double dt = d.number("dt"), turn = d.number("turn");
    auto x0 = d.array<double>("x0"), y0 = d.array<double>("y0"), vx0 = d.array<double>("vx0"), vy0 = d.array<double>("vy0");
    Array<double> X(n), Y(n), VX(n), VY(n), phi(gg), other(gg), rho(gg), field(2 * gg), history(2 * STEPS);
    Array<int32_t> charges(gg * omp_get_max_threads());
    auto run = [&] {
        const double c = std::cos(turn), s = std::sin(turn), scale = double(gg) / (double(n) * UNITS), length = g;
        double kinetic = 0, electric = 0;
#pragma omp parallel if (n >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
            const int64_t n0 = n * t / nt, n1 = n * (t + 1) / nt, r0 = g * t / nt, r1 = g * (t + 1) / nt;
            int32_t *mine = charges.p + t * gg;
            auto deposit = [&](const double *x, const double *y, int64_t m) {
                for (int64_t i = 0; i < m; i++) {
                    const int cx = int(x[i]), cy = int(y[i]);
                    const double fx = x[i] - cx, fy = y[i] - cy;
                    const int right = cx + 1 == g ? 0 : cx + 1, high = cy + 1 == g ? 0 : cy + 1;
                    const int a = int((1.0 - fx) * (1.0 - fy) * UNITS), b = int((1.0 - fx) * fy * UNITS);
                    const int e = int(fx * (1.0 - fy) * UNITS);
                    mine[cx * g + cy] += a, mine[cx * g + high] += b;
                    mine[right * g + cy] += e, mine[right * g + high] += UNITS - a - b - e;
                }
            };
            std::memset(mine, 0, gg * 4);
            deposit(x0.p + n0, y0.p + n0, n1 - n0);
            std::fill(phi.p + r0 * g, phi.p + r1 * g, 0.0);
#pragma omp barrier
            for (int step = 0; step < STEPS; step++) {
#pragma omp single nowait
                kinetic = electric = 0;
                for (int64_t i = r0 * g; i < r1 * g; i++) {
                    int32_t sum = 0;
                    for (int64_t k = 0; k < nt; k++) sum += charges[k * gg + i];
                    rho[i] = sum * scale - 1.0;
                }
                for (int sweep = 0; sweep < SWEEPS; sweep++) {
                    const double *p = sweep % 2 ? other.p : phi.p;
                    double *to = sweep % 2 ? phi.p : other.p;
                    for (int64_t i = r0; i < r1; i++) {
                        const double *l = p + (i == 0 ? g - 1 : i - 1) * g, *r = p + (i + 1 == g ? 0 : i + 1) * g, *m = p + i * g, *q = rho.p + i * g;
                        double *__restrict o = to + i * g;
                        o[0] = 0.25 * (l[0] + r[0] + m[g - 1] + m[1] + q[0]);
#pragma omp simd
                        for (int64_t j = 1; j < g - 1; j++) o[j] = 0.25 * (l[j] + r[j] + m[j - 1] + m[j + 1] + q[j]);
                        o[g - 1] = 0.25 * (l[g - 1] + r[g - 1] + m[g - 2] + m[0] + q[g - 1]);
                    }
#pragma omp barrier
                }
                double sum = 0;
                for (int64_t i = r0; i < r1; i++) {
                    const double *l = phi.p + (i == 0 ? g - 1 : i - 1) * g, *r = phi.p + (i + 1 == g ? 0 : i + 1) * g, *m = phi.p + i * g;
                    for (int64_t j = 0; j < g; j++) {
                        const double ex = 0.5 * (l[j] - r[j]), ey = 0.5 * (m[j == 0 ? g - 1 : j - 1] - m[j + 1 == g ? 0 : j + 1]);
                        field[2 * (i * g + j)] = ex, field[2 * (i * g + j) + 1] = ey;
                        sum += 0.5 * (ex * ex + ey * ey);
                    }
                }
#pragma omp atomic
                electric += sum;
                std::memset(mine, 0, gg * 4);  // read by all before the barriers of the sweeps
#pragma omp barrier
                const double *xs = step ? X.p : x0.p, *ys = step ? Y.p : y0.p, *us = step ? VX.p : vx0.p, *vs = step ? VY.p : vy0.p;
                const double *__restrict e = field.p;
                const int G = g;
                sum = 0;
                for (int64_t b = n0; b < n1; b += B) {
                    const int64_t m = std::min<int64_t>(B, n1 - b);
#pragma omp simd reduction(+ : sum)
                    for (int64_t i = b; i < b + m; i++) {
                        const double x = xs[i], y = ys[i];
                        const int cx = int(x), cy = int(y), right = cx + 1 == G ? 0 : cx + 1, high = cy + 1 == G ? 0 : cy + 1;
                        const double fx = x - cx, fy = y - cy;
                        const int ll = 2 * (cx * G + cy), rl = 2 * (right * G + cy), lh = 2 * (cx * G + high), rh = 2 * (right * G + high);
                        const double xl = (1.0 - fx) * e[ll] + fx * e[rl], xh = (1.0 - fx) * e[lh] + fx * e[rh];
                        const double yl = (1.0 - fx) * e[ll + 1] + fx * e[rl + 1], yh = (1.0 - fx) * e[lh + 1] + fx * e[rh + 1];
                        const double u = us[i] - dt * ((1.0 - fy) * xl + fy * xh), v = vs[i] - dt * ((1.0 - fy) * yl + fy * yh);
                        const double un = c * u - s * v, vn = s * u + c * v;
                        double px = x + dt * un, py = y + dt * vn;
                        px = px < 0.0 ? px + length : px, px = px >= length ? px - length : px;
                        py = py < 0.0 ? py + length : py, py = py >= length ? py - length : py;
                        X[i] = px, Y[i] = py, VX[i] = un, VY[i] = vn;
                        sum += 0.5 * (un * un + vn * vn);
                    }
                    if (step < STEPS - 1) deposit(X.p + b, Y.p + b, m);
                }
#pragma omp atomic
                kinetic += sum;
#pragma omp barrier
#pragma omp single
                history[2 * step] = kinetic / n, history[2 * step + 1] = electric / n;
            }
        }
    };
    bench(run, [&](Checksum &sum) {
        sum.add("x", X.p, n), sum.add("y", Y.p, n), sum.add("vx", VX.p, n), sum.add("vy", VY.p, n);
        sum.add("phi", phi.p, gg), sum.add("history", history.p, 2 * STEPS);
    });
}
