// Traffic: one fused, vectorised sweep a step over two density arrays, sums alongside.
#include "common.hpp"

static const double jam = 1.0, ratio = 0.45;

static inline void roads(double r, double l, double &send, double &take) {
    double q = r * (l * (1.0 - r / jam)), c = 0.25 * l * jam;
    bool open = r < 0.5 * jam;
    send = open ? q : c;
    take = open ? c : q;
}

static inline double lower(double a, double b) { return a < b ? a : b; }

static void step(int64_t n, const double *__restrict in, double *__restrict out,
                 const double *__restrict lim, const double *__restrict ramp, double inflow,
                 double &lost_time, double &fuel) {
    double lost = 0, gas = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : lost, gas) if (n >= PARALLEL_FROM)
    for (int64_t i = 1; i < n - 1; i++) {
        double sl, tl, s, t, sr, tr;
        roads(in[i - 1], lim[i - 1], sl, tl);
        roads(in[i], lim[i], s, t);
        roads(in[i + 1], lim[i + 1], sr, tr);
        double r = in[i], v = lim[i] * (1.0 - r / jam);
        lost += r * (1.0 - v / lim[i]);
        gas += r * (0.2 + 0.3 * v * v);
        r += ratio * (lower(sl, t) - lower(s, tr));
        out[i] = r + ratio * ramp[i] * r * (1.0 - r / jam);
    }
    for (int64_t i : {int64_t(0), n - 1}) {
        double sl = 0, s, t, tr = 0, none;
        roads(in[i], lim[i], s, t);
        if (i) roads(in[i - 1], lim[i - 1], sl, none);
        else roads(in[1], lim[1], none, tr);
        double r = in[i], v = lim[i] * (1.0 - r / jam);
        lost += r * (1.0 - v / lim[i]);
        gas += r * (0.2 + 0.3 * v * v);
        r += ratio * ((i ? lower(sl, t) : lower(inflow, t)) - (i ? s : lower(s, tr)));
        out[i] = r + ratio * ramp[i] * r * (1.0 - r / jam);
    }
    lost_time = lost;
    fuel = gas;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps");
    auto rho0 = d.array<double>("rho0"), limit = d.array<double>("limit"), ramp = d.array<double>("ramp");
    Array<double> a(n), b(n);
    std::vector<double> delay(steps), burnt(steps);
    double *out = a;
    auto run = [&] {
        const double *in = rho0;
        for (int64_t k = 0; k < steps; k++) {
            out = in == a.p ? b.p : a.p;
            step(n, in, out, limit, ramp, 0.1 + 0.01 * (k % 5), delay[k], burnt[k]);
            in = out;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("rho", out, n);
        c.add("delay", delay.data(), steps);
        c.add("burnt", burnt.data(), steps);
    });
}
