#include "common.h"
int main(int, char **argv) { folder = argv[1]; long m = atol(argv[2]), n = m * m * m;
    auto tets = load<int>("tets"), first = load<int>("first"), corners = load<int>("corners"); auto shape = load<double>("shape"), volume = load<double>("volume"), eps = load<double>("eps"), diag = load<double>("diag"), rhs = load<double>("rhs");
    auto fixed = load<uint8_t>("fixed"); long ne = volume.size();
    vector<double> x(n), r(n), z(n), p(n), q(n), res(4 * ne); double residual, energy;
    auto elements = [&](const vector<double> &u) { double w = 0;
#pragma omp parallel for schedule(static) reduction(+ : w)
        for (long e = 0; e < ne; e++) {
            double g[3] = {0}; const double *S = &shape[12 * e]; double k = eps[e] * volume[e];
            for (int a = 0; a < 4; a++) { double v = u[tets[4 * e + a]]; for (int d = 0; d < 3; d++) g[d] += S[3 * a + d] * v; }
            w += 0.5 * k * (g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
            for (int a = 0; a < 4; a++) res[4 * e + a] = k * (S[3 * a] * g[0] + S[3 * a + 1] * g[1] + S[3 * a + 2] * g[2]);
        }
        return w; };
    auto nodes = [&](const vector<double> &u) { double w = 0;
#pragma omp parallel for schedule(static) reduction(+ : w)
        for (long i = 0; i < n; i++) { double t = 0; if (!fixed[i]) for (int k = first[i]; k < first[i + 1]; k++) t += res[corners[k]]; q[i] = t; w += t * u[i]; }
        return w; };
    auto run = [&] {
        double rz = 0;
#pragma omp parallel for schedule(static) reduction(+ : rz)
        for (long i = 0; i < n; i++) { x[i] = 0; r[i] = rhs[i]; p[i] = r[i] / diag[i]; rz += r[i] * p[i]; }
        for (int s = 0; s < 6; s++) {
            elements(p); double alpha = rz / nodes(p), nw = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : nw)
            for (long i = 0; i < n; i++) { x[i] += alpha * p[i]; r[i] -= alpha * q[i]; double t = r[i] / diag[i]; z[i] = t; nw += r[i] * t; }
            double beta = nw / rz; rz = nw;
#pragma omp parallel for simd schedule(static)
            for (long i = 0; i < n; i++) p[i] = z[i] + beta * p[i];
        }
        energy = elements(x); nodes(x); residual = rz;
    };
    return bench(run, [&] { return sum(x) + sum(r) + sum(p) + sum(q) + residual + energy; });
}
