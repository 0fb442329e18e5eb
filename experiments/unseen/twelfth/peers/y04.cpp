// Ensemble: a sweep a step, with all stages in registers; the first stage is computed anew.
#include "common.hpp"

static const double SIGMA = 10.0, BETA = 8.0 / 3.0, END = 0.2, TOL = 2e-5;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto u0 = d.array<double>("u0"), rho = d.array<double>("rho");
    Array<double> ua(3 * n), ub(3 * n);
    std::vector<double> lengths, stat;
    const double *U = ua;
    const bool par = n >= 1024;
    auto run = [&] {
        const double *in = u0, *r = rho;
        double t = 0, h = 0.1;
        lengths.clear();
        while (t < END - 1e-12) {
            h = std::min(h, END - t);
            double *out = in == ua.p ? ub.p : ua.p, sum = 0;
            const double *x = in, *y = in + n, *z = y + n;
            double *__restrict xo = out, *__restrict yo = out + n, *__restrict zo = out + 2 * n;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : sum)
            for (int64_t i = 0; i < n; i++) {
                double u[3] = {x[i], y[i], z[i]}, k1[3], k2[3], k3[3], k4[3], w[3], v[3];
                const double R = r[i];
#define SLOPE(k, u) \
    k[0] = SIGMA * (u[1] - u[0]), k[1] = u[0] * (R - u[2]) - u[1], k[2] = u[0] * u[1] - BETA * u[2]
                SLOPE(k1, u);
                for (int c = 0; c < 3; c++) w[c] = u[c] + 0.5 * h * k1[c];
                SLOPE(k2, w);
                for (int c = 0; c < 3; c++) w[c] = u[c] + 0.75 * h * k2[c];
                SLOPE(k3, w);
                for (int c = 0; c < 3; c++) v[c] = u[c] + h / 9.0 * (2.0 * k1[c] + 3.0 * k2[c] + 4.0 * k3[c]);
                SLOPE(k4, v);
                for (int c = 0; c < 3; c++) {
                    double e = h / 72.0 * (-5.0 * k1[c] + 6.0 * k2[c] + 8.0 * k3[c] - 9.0 * k4[c]);
                    double a = std::fabs(u[c]), b = std::fabs(v[c]);
                    e /= TOL * (1.0 + (a > b ? a : b));
                    sum += e * e;
                }
                xo[i] = v[0], yo[i] = v[1], zo[i] = v[2];
            }
            double error = std::sqrt(sum / (3 * n));
            lengths.push_back(error <= 1.0 ? h : -h);
            if (error <= 1.0) t += h, in = U = out;
            h *= std::min(2.0, std::max(0.3, 0.9 * std::pow(error, -1.0 / 3.0)));
        }
        stat.clear();
        for (int c = 0; c < 3; c++) {
            const double *x = U + c * n;
            double s = 0, q = 0;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : s)
            for (int64_t i = 0; i < n; i++) s += x[i];
            const double m = s / n;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : q)
            for (int64_t i = 0; i < n; i++) q += (x[i] - m) * (x[i] - m);
            stat.push_back(m);
            stat.push_back(std::sqrt(q / n));
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("u", U, 3 * n);
        s.add("lengths", lengths.data(), lengths.size());
        s.add("statistics", stat.data(), 6);
    });
}
