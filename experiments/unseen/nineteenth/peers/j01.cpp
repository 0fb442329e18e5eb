// Three passes a try: each gathers the angles of its stage, and writes those of the next; the last has
// also all sums.
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"), const)) double vsin(double) noexcept __asm__("sin");
}
static constexpr int TRIES = 12;
static constexpr double END = 0.3, D = 0.4, GAIN = 0.5, TOL = 1e-4;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double mass = d.number("mass");
    auto theta0 = d.array<double>("theta0"), omega0 = d.array<double>("omega0"), power = d.array<double>("power"), inertia = d.array<double>("inertia"), strength = d.array<double>("strength");
    auto links = d.array<int32_t>("links");
    Array<double> bufs[4], K1(n), K4(n), K2(n), K3(n), TB(n), history(TRIES * 6);
    for (auto &b : bufs) b.make(n);
    const double *theta, *omega;
    auto run = [&] {
        const double *__restrict P = power.p, *__restrict M = inertia.p, *__restrict S = strength.p;
        const int32_t *__restrict L = links.p;
        double t = 0, bias = 0, pace = 0.1;
        int tries = 0, here = -1;  // which pair of buffers holds the state; at first the start
        double *k1 = K1.p, *k4 = K4.p;
        theta = theta0.p, omega = omega0.p;
        std::fill(history.p, history.p + TRIES * 6, 0.0);
        {
            const double *__restrict th = theta, *__restrict om = omega;
            double *__restrict k = k1;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) {
                const double flow = S[3 * i] * vsin(th[L[3 * i]] - th[i]) + S[3 * i + 1] * vsin(th[L[3 * i + 1]] - th[i]) + S[3 * i + 2] * vsin(th[L[3 * i + 2]] - th[i]);
                k[i] = (P[i] + bias + flow - D * om[i]) / M[i];
            }
        }
        for (; t < END && tries < TRIES; tries++) {
            const double h = std::min(pace, END - t), half = 0.5 * h, most = 0.75 * h;
            const double *__restrict th = theta, *__restrict om = omega, *__restrict a1 = k1;
            const int to = here == 0 ? 1 : 0;
            double *__restrict tn = bufs[2 * to].p, *__restrict wn = bufs[2 * to + 1].p;
            double *__restrict k2 = K2.p, *__restrict k3 = K3.p, *__restrict tb = TB.p, *__restrict a4 = k4;
            double mean = 0, eight = 0, eight2 = 0, energy = 0, moment = 0;
            int64_t fast = 0;
#pragma omp parallel if (n >= PARALLEL_FROM)
            {
#pragma omp for simd schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    const int32_t a = L[3 * i], b = L[3 * i + 1], c = L[3 * i + 2];
                    const double x = th[i] + half * om[i];
                    const double flow = S[3 * i] * vsin(th[a] + half * om[a] - x) + S[3 * i + 1] * vsin(th[b] + half * om[b] - x) + S[3 * i + 2] * vsin(th[c] + half * om[c] - x);
                    const double w2 = om[i] + half * a1[i];
                    k2[i] = (P[i] + bias + flow - D * w2) / M[i];
                    tb[i] = th[i] + most * w2;
                }
#pragma omp for simd schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    const double x = tb[i];
                    const double flow = S[3 * i] * vsin(tb[L[3 * i]] - x) + S[3 * i + 1] * vsin(tb[L[3 * i + 1]] - x) + S[3 * i + 2] * vsin(tb[L[3 * i + 2]] - x);
                    const double w2 = om[i] + half * a1[i], w3 = om[i] + most * k2[i];
                    const double k = (P[i] + bias + flow - D * w3) / M[i];
                    k3[i] = k;
                    tn[i] = th[i] + h * (2.0 * om[i] + 3.0 * w2 + 4.0 * w3) / 9.0;
                    wn[i] = om[i] + h * (2.0 * a1[i] + 3.0 * k2[i] + 4.0 * k) / 9.0;
                }
#pragma omp for simd schedule(static) reduction(+ : mean, eight, eight2, energy, moment, fast)
                for (int64_t i = 0; i < n; i++) {
                    const double x = tn[i], w = wn[i];
                    const double flow = S[3 * i] * vsin(tn[L[3 * i]] - x) + S[3 * i + 1] * vsin(tn[L[3 * i + 1]] - x) + S[3 * i + 2] * vsin(tn[L[3 * i + 2]] - x);
                    const double k = (P[i] + bias + flow - D * w) / M[i];
                    a4[i] = k;
                    const double w2 = om[i] + half * a1[i], w3 = om[i] + most * k2[i];
                    const double e = h * (-5.0 * om[i] + 6.0 * w2 + 8.0 * w3 - 9.0 * w) / 72.0 / (TOL * (1.0 + std::fabs(x)));
                    const double f = h * (-5.0 * a1[i] + 6.0 * k2[i] + 8.0 * k3[i] - 9.0 * k) / 72.0 / (TOL * (1.0 + std::fabs(w)));
                    const double ee = e * e, ff = f * f;
                    mean += ee + ff, eight += ee * ee * ee * ee, eight2 += ff * ff * ff * ff;
                    energy += 0.5 * M[i] * w * w, moment += M[i] * w, fast += std::fabs(w) > 1.0;
                }
            }
            const double error = std::max(std::sqrt(mean / (2 * n)), 0.2 * std::pow(eight + eight2, 0.125));
            const bool good = error <= 1.0;
            pace *= std::min(std::max(0.9 * std::pow(error + 1e-10, -1.0 / 3.0), 0.3), good ? 2.0 : 1.0);
            if (!good) continue;
            t += h, here = to, theta = tn, omega = wn;
            std::swap(k1, k4);
            bias -= GAIN * h * (moment / mass);
            const double row[6] = {t, h, energy, moment / mass, double(fast), bias};
            std::copy(row, row + 6, history.p + 6 * tries);
        }
    };
    bench(run, [&](Checksum &s) { s.add("theta", theta, n), s.add("omega", omega, n), s.add("history", history.p, TRIES * 6); });
}
