// Lattice Boltzmann: one sweep a step, which reads the nine populations of a row and pushes what
// they become to the rows around.
#include "common.hpp"

static const int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const int BACK[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
static const double OMEGA = 1.4;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t R = d.number("rows"), C = d.number("columns"), steps = d.number("steps"), N = R * C;
    auto f0 = d.array<double>("f0"), weight = d.array<double>("weight"), profile = d.array<double>("profile");
    auto solid = d.array<int32_t>("solid");
    Array<double> fa(9 * N), fb(9 * N), ux(N);
    std::vector<double> drag(steps), kinetic(steps);
    double W[9];
    for (int q = 0; q < 9; q++) W[q] = weight[q];
    double *F = fa;
    auto run = [&] {
        const double *in = f0;
        for (int64_t k = 0; k < steps; k++) {
            double *out = in == fa.p ? fb.p : fa.p;
            double take = 0, kin = 0;
#pragma omp parallel if (N >= PARALLEL_FROM) reduction(+ : take, kin)
            {
                std::vector<double> line(9 * C);
                double *l = line.data();
#pragma omp for schedule(static)
                for (int64_t i = 0; i < R; i++) {
                    const double *f = in + i * C;
                    const int32_t *sol = solid.p + i * C;
                    double *u = ux.p + i * C;
#pragma omp simd reduction(+ : take, kin)
                    for (int64_t j = 0; j < C; j++) {
                        double g[9];
                        for (int q = 0; q < 9; q++) g[q] = f[q * N + j];
                        double rho = g[0] + g[1] + g[2] + g[3] + g[4] + g[5] + g[6] + g[7] + g[8];
                        double mx = g[1] - g[3] + g[5] - g[6] - g[7] + g[8];
                        double my = g[2] - g[4] + g[5] + g[6] - g[7] - g[8];
                        double x = mx / rho, y = my / rho, uu = x * x + y * y;
                        bool s = sol[j] == 1;
                        u[j] = x;
                        take += s ? 2.0 * mx : 0.0;
                        kin += s ? 0.0 : 0.5 * rho * uu;
                        for (int q = 0; q < 9; q++) {
                            double cu = CX[q] * x + CY[q] * y;
                            double e = W[q] * rho * (1.0 + 3.0 * cu + 4.5 * cu * cu - 1.5 * uu);
                            l[q * C + j] = s ? g[BACK[q]] : g[q] + OMEGA * (e - g[q]);
                        }
                    }
                    for (int q = 0; q < 9; q++) {
                        double *o = out + q * N + (i + CY[q] + R) % R * C;
                        const double *from = l + q * C;
                        std::memcpy(o + 1, from + 1 - CX[q], (C - 2) * sizeof(double));
                        o[0] = profile[q];
                        o[C - 1] = o[C - 2];
                    }
                }
            }
            drag[k] = take;
            kinetic[k] = kin;
            in = F = out;
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("f", F, 9 * N);
        s.add("ux", ux.p, N);
        s.add("drag", drag.data(), steps);
        s.add("kinetic", kinetic.data(), steps);
    });
}
