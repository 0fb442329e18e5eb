// One sweep a step over the rows: fluxes in rings of two rows, the new state to a second set of arrays.
#include "common.hpp"

static constexpr int STEPS = 3;
static constexpr double G = 9.81;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double k = d.number("k"), dt = d.number("dt"), friction = d.number("friction");
    auto h0 = d.array<double>("h0"), hu0 = d.array<double>("hu0"), hv0 = d.array<double>("hv0"), ht0 = d.array<double>("ht0");
    auto wet = d.array<uint8_t>("wet");
    auto stress = d.array<double>("stress"), cosine = d.array<double>("cosine"), sine = d.array<double>("sine");
    const int64_t W = (n + 16) / 8 * 8;
    std::vector<Array<double>> bufs;
    for (int i = 0; i < 8; i++) bufs.emplace_back(n * n);
    Array<double> history(3 * STEPS);
    double *last[4];
    auto run = [&] {
        double *from[4] = {h0.p, hu0.p, hv0.p, ht0.p};
        for (int step = 0; step < STEPS; step++) {
            double *to[4];
            for (int q = 0; q < 4; q++) to[q] = bufs[step % 2 * 4 + q].p;
            double energy = 0, mass = 0, tracer = 0;
#pragma omp parallel if (n * n >= PARALLEL_FROM) reduction(+ : energy, mass, tracer)
            {
                const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
                const int64_t i0 = 1 + (n - 2) * t / nt, i1 = 1 + (n - 2) * (t + 1) / nt;
                std::vector<double> mem(20 * W);
                auto row = [&](int r) { return mem.data() + r * W; };
                auto cells = [&](int64_t i) {
                    double *__restrict u = row(i % 2 * 4), *__restrict v = u + W, *__restrict T = v + W, *__restrict c = T + W;
                    const double *h = from[0] + i * n, *hu = from[1] + i * n, *hv = from[2] + i * n, *ht = from[3] + i * n;
                    const uint8_t *w = wet.p + i * n;
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) {
                        const double deep = w[j] == 1 ? h[j] : 1.0;  // contents are 0 on land
                        u[j] = hu[j] / deep, v[j] = hv[j] / deep, T[j] = ht[j] / deep;
                        c[j] = std::max(std::fabs(u[j]), std::fabs(v[j])) + std::sqrt(G * h[j]);
                    }
                };
                // The faces between cells at offset a and b = a + (step of the axis); m is normal momentum, o the other.
                auto faces = [&](double *f0, const double *ua, const double *va, const double *ub, const double *vb, int64_t a, int64_t b, int normal, int64_t j0) {
                    double *__restrict fm = f0, *__restrict fn = f0 + W, *__restrict fo = f0 + 2 * W, *__restrict ft = f0 + 3 * W;
                    const double *ha = from[0] + a, *hb = from[0] + b, *ma = from[normal] + a, *mb = from[normal] + b, *oa = from[3 - normal] + a, *ob = from[3 - normal] + b;
                    const double *na = normal == 1 ? ua : va, *nb = normal == 1 ? ub : vb;
                    const double *ta = ua + 2 * W, *tb = ub + 2 * W, *ca = ua + 3 * W, *cb = ub + 3 * W;
                    const uint8_t *wa = wet.p + a, *wb = wet.p + b;
#pragma omp simd
                    for (int64_t j = j0; j < n; j++) {
                        const bool both = wa[j] & wb[j];
                        const double fastest = 0.5 * std::max(ca[j], cb[j]);
                        const double pa = 0.5 * G * ha[j] * ha[j], pb = 0.5 * G * hb[j] * hb[j];
                        const double mass = 0.5 * (ma[j] + mb[j]) - fastest * (hb[j] - ha[j]);
                        const double mm = both ? mass : 0.0;
                        const double nn = 0.5 * ((ma[j] * na[j] + pa) + (mb[j] * nb[j] + pb)) - fastest * (mb[j] - ma[j]);
                        const double oo = 0.5 * (oa[j] * na[j] + ob[j] * nb[j]) - fastest * (ob[j] - oa[j]);
                        fm[j] = mm;
                        fn[j] = both ? nn : pa + pb;  // one of them is 0 beside land
                        fo[j] = both ? oo : 0.0;
                        ft[j] = mm * (mm > 0.0 ? ta[j] : tb[j]);
                    }
                };
                auto across = [&](int64_t i) {  // between rows i - 1 and i
                    double *a = row((i - 1) % 2 * 4), *b = row(i % 2 * 4);
                    faces(row(8 + i % 2 * 4), a, a + W, b, b + W, (i - 1) * n, i * n, 2, 1);
                };
                cells(i0 - 1), cells(i0), across(i0);
                for (int64_t i = i0; i < i1; i++) {
                    cells(i + 1), across(i + 1);
                    double *m = row(i % 2 * 4);
                    faces(row(16), m - 1, m - 1 + W, m, m + W, i * n - 1, i * n, 1, 1);
                    const double *__restrict up = row(8 + i % 2 * 4), *__restrict dn = row(8 + (i + 1) % 2 * 4), *__restrict al = row(16);
                    const double *h = from[0] + i * n, *hu = from[1] + i * n, *hv = from[2] + i * n, *ht = from[3] + i * n;
                    double *__restrict h2 = to[0] + i * n, *__restrict hu2 = to[1] + i * n, *__restrict hv2 = to[2] + i * n, *__restrict ht2 = to[3] + i * n;
                    const uint8_t *w = wet.p + i * n;
                    const double push = dt * stress[i], co = cosine[i], si = sine[i];
#pragma omp simd reduction(+ : energy, mass, tracer)
                    for (int64_t j = 1; j < n - 1; j++) {
                        const bool sea = w[j] == 1;
                        const double H = h[j] - k * (dn[j] - up[j] + al[j + 1] - al[j]);
                        const double U = hu[j] - k * (dn[j + 2 * W] - up[j + 2 * W] + al[j + 1 + W] - al[j + W]) + push;
                        const double V = hv[j] - k * (dn[j + W] - up[j + W] + al[j + 1 + 2 * W] - al[j + 2 * W]);
                        const double T = ht[j] - k * (dn[j + 3 * W] - up[j + 3 * W] + al[j + 1 + 3 * W] - al[j + 3 * W]);
                        const double x = co * U + si * V, y = co * V - si * U;
                        const double deep = sea ? H : 1.0;
                        const double slower = 1.0 + friction * std::sqrt(x * x + y * y) / (deep * deep);
                        const double x2 = sea ? x / slower : 0.0, y2 = sea ? y / slower : 0.0, hh = sea ? H : 0.0, tt = sea ? T : 0.0;
                        h2[j] = hh, hu2[j] = x2, hv2[j] = y2, ht2[j] = tt;
                        energy += 0.5 * (x2 * x2 + y2 * y2) / deep + 0.5 * G * hh * hh;
                        mass += hh, tracer += tt;
                    }
                }
            }
            history[3 * step] = energy, history[3 * step + 1] = mass, history[3 * step + 2] = tracer;
            for (int q = 0; q < 4; q++) from[q] = last[q] = to[q];
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("h", last[0], n * n), s.add("hu", last[1], n * n), s.add("hv", last[2], n * n), s.add("ht", last[3], n * n);
        s.add("history", history.p, 3 * STEPS);
    });
}
