// One pass a trial: value, gradient and information together, nothing stored but the logarithms.
#include "common.hpp"

static constexpr int STEPS = 12;

static void solve(double m[4][5], double *x) {
    for (int k = 0; k < 4; k++) {
        int best = k;
        for (int i = k + 1; i < 4; i++)
            if (std::fabs(m[i][k]) > std::fabs(m[best][k])) best = i;
        for (int j = 0; j < 5; j++) std::swap(m[k][j], m[best][j]);
        for (int i = k + 1; i < 4; i++) {
            const double f = m[i][k] / m[k][k];
            for (int j = k; j < 5; j++) m[i][j] -= f * m[k][j];
        }
    }
    for (int k = 3; k >= 0; k--) {
        x[k] = m[k][4];
        for (int j = k + 1; j < 4; j++) x[k] -= m[k][j] * x[j];
        x[k] /= m[k][k];
    }
}

struct Fit { double value, g[4], m[4][4]; };

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto time = d.array<double>("time"), age = d.array<double>("age"), dose = d.array<double>("dose");
    auto died = d.array<uint8_t>("died");
    Array<double> logs(n), expected(n), history(STEPS * 3);
    double theta[4];
    auto at = [&](const double *p, bool first) {
        const double b0 = p[0], b1 = p[1], b2 = p[2], ls = p[3], spread = std::exp(ls);
        const double *__restrict T = time.p, *__restrict A = age.p, *__restrict B = dose.p;
        const uint8_t *__restrict X = died.p;
        double *__restrict lt = logs.p;
        if (first) {
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) lt[i] = log(T[i]);
        }
        double L = 0, g0 = 0, g1 = 0, g2 = 0, g3 = 0, m00 = 0, m10 = 0, m11 = 0, m20 = 0, m21 = 0, m22 = 0, q0 = 0, q1 = 0, q2 = 0, q3 = 0;
        int64_t dead = 0;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM) reduction(+ : L, g0, g1, g2, g3, m00, m10, m11, m20, m21, m22, q0, q1, q2, q3, dead)
        for (int64_t i = 0; i < n; i++) {
            const double a = A[i], b = B[i], x = X[i];
            const double z = (lt[i] - (b0 + b1 * a + b2 * b)) / spread, w = exp(std::min(z, 60.0)), r = w - x, q = w * z + r;
            L += x * (z - ls) - w, dead += X[i];
            g0 += r, g1 += r * a, g2 += r * b, g3 += r * z;
            const double wa = w * a, wb = w * b;
            m00 += w, m10 += wa, m11 += wa * a, m20 += wb, m21 += wb * a, m22 += wb * b;
            q0 += q, q1 += q * a, q2 += q * b, q3 += q * z;
        }
        const double s2 = spread * spread;
        return Fit{L, {g0 / spread, g1 / spread, g2 / spread, g3 - dead},
                   {{m00 / s2, m10 / s2, m20 / s2, q0 / spread}, {m10 / s2, m11 / s2, m21 / s2, q1 / spread}, {m20 / s2, m21 / s2, m22 / s2, q2 / spread}, {q0 / spread, q1 / spread, q2 / spread, q3}}};
    };
    auto run = [&] {
        std::fill(history.p, history.p + STEPS * 3, 0.0);
        theta[0] = 1, theta[1] = theta[2] = theta[3] = 0;
        double damping = 0.05;
        Fit f = at(theta, true);
        for (int step = 0; step < STEPS; step++) {
            double m[4][5], move[4], tried[4], promised = 0;
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++) m[i][j] = f.m[i][j];
                m[i][i] += damping * std::fabs(f.m[i][i]), m[i][4] = f.g[i];
            }
            solve(m, move);
            for (int i = 0; i < 4; i++) {
                promised += f.g[i] * move[i], tried[i] = theta[i] + move[i];
                for (int j = 0; j < 4; j++) promised -= 0.5 * move[i] * f.m[i][j] * move[j];
            }
            history[3 * step] = f.value, history[3 * step + 1] = promised, history[3 * step + 2] = damping;
            if (std::fabs(promised) < 1e-10 * std::fabs(f.value)) break;
            const Fit next = at(tried, false);
            const double ratio = (next.value - f.value) / promised;
            const bool good = promised > 0.0 && ratio > 0.05;
            if (good) f = next, std::copy(tried, tried + 4, theta);
            if (!good || ratio < 0.25) damping = 8.0 * damping + 0.01;
            else if (ratio > 0.75) damping *= 0.02;
        }
        const double b0 = theta[0], b1 = theta[1], b2 = theta[2], shift = std::exp(theta[3]) * -0.36651292058166435;
        const double *__restrict A = age.p, *__restrict B = dose.p;
        double *__restrict E = expected.p;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) E[i] = exp(b0 + b1 * A[i] + b2 * B[i] + shift);
    };
    bench(run, [&](Checksum &s) { s.add("expected", expected.p, n), s.add("parameters", theta, 4), s.add("history", history.p, STEPS * 3); });
}
