// The four nodes of an element are one vector. One sweep a stage: fluxes, faces, update and limiter run
// one element behind the other, in a ring of elements; each stage writes to another set of arrays.
#include <immintrin.h>
#include "common.hpp"

typedef double v4 __attribute__((vector_size(32)));
static constexpr double GAMMA = 1.4;

struct Element {
    v4 q[3], f[3], c;
    double mean[3];
};

static inline double minmod(double a, double b, double c) {
    const double low = std::min(a, std::min(b, c)), high = std::max(a, std::max(b, c));
    return low > 0.0 ? low : high < 0.0 ? high : 0.0;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double dx = d.number("dx"), scale = 2.0 / dx;
    auto D = d.array<double>("d"), w = d.array<double>("weight"), node = d.array<double>("node");
    auto rho0 = d.array<double>("rho0"), mom0 = d.array<double>("mom0"), ene0 = d.array<double>("ene0");
    std::vector<Array<double>> mem;
    for (int i = 0; i < 6; i++) mem.emplace_back(4 * n);
    Array<double> sums(4);
    v4 column[4], places;
    for (int j = 0; j < 4; j++) {
        places[j] = node[j];
        for (int k = 0; k < 4; k++) column[j][k] = D[k * 4 + j];
    }
    const v4 *first[3] = {(v4 *)rho0.p, (v4 *)mom0.p, (v4 *)ene0.p};
    const v4 *result[3];
    auto nodes = [=](Element &x) {
        const v4 r = x.q[0], m = x.q[1], e = x.q[2];
        const v4 u = m / r, p = (GAMMA - 1.0) * (e - 0.5 * m * m / r);
        x.f[0] = m, x.f[1] = m * m / r + p, x.f[2] = (e + p) * m / r;
        x.c = (v4)_mm256_andnot_pd(_mm256_set1_pd(-0.0), (__m256d)u) + (v4)_mm256_sqrt_pd((__m256d)(GAMMA * p / r));
    };
    auto run = [&] {
        double norm = 0;
#pragma omp parallel for schedule(static) if (4 * n >= PARALLEL_FROM) reduction(+ : norm)
        for (int64_t e = 0; e < n; e++) {
            Element x;
            for (int q = 0; q < 3; q++) x.q[q] = first[q][e];
            nodes(x);
            const v4 square = x.c * x.c, fourth = square * square, eighth = fourth * fourth;
            norm += (eighth[0] + eighth[1]) + (eighth[2] + eighth[3]);
        }
        norm = std::pow(norm / double(4 * n), 0.125);
        const double dt = 0.1 * dx / norm;
        const double olds[3] = {0.0, 0.75, 1.0 / 3.0}, news[3] = {1.0, 0.25, 2.0 / 3.0};
        const v4 *from[3] = {first[0], first[1], first[2]};
        double t0 = 0, t1 = 0, t2 = 0;
        for (int stage = 0; stage < 3; stage++) {
            v4 *to[3];
            for (int q = 0; q < 3; q++) to[q] = (v4 *)mem[stage % 2 * 3 + q].p;
            const double old = olds[stage], fresh = news[stage];
            t0 = t1 = t2 = 0;
#pragma omp parallel if (4 * n >= PARALLEL_FROM) reduction(+ : t0, t1, t2)
            {
                const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), e0 = n * t / nt, e1 = n * (t + 1) / nt;
                Element ring[8];
                double face[2][3];
                auto wrap = [n](int64_t e) { return e < 0 ? e + n : e >= n ? e - n : e; };
                auto load = [&](int64_t e) {  // and the face before it
                    Element &x = ring[e & 7], &b = ring[(e - 1) & 7];
                    const int64_t at = wrap(e);
                    for (int q = 0; q < 3; q++) x.q[q] = from[q][at];
                    nodes(x);
                    const double a = std::max(b.c[3], x.c[0]);
                    for (int q = 0; q < 3; q++) face[e & 1][q] = 0.5 * (b.f[q][3] + x.f[q][0]) - 0.5 * a * (x.q[q][0] - b.q[q][3]);
                };
                auto update = [&](int64_t e) {
                    Element &x = ring[e & 7];
                    const int64_t at = wrap(e);
                    for (int q = 0; q < 3; q++) {
                        const v4 f = x.f[q];
                        v4 s = column[0] * f[0] + column[1] * f[1] + column[2] * f[2] + column[3] * f[3];
                        s[0] += (f[0] - face[e & 1][q]) / w[0];
                        s[3] -= (f[3] - face[(e + 1) & 1][q]) / w[3];
                        const v4 v = old * first[q][at] + fresh * (x.q[q] + dt * (-scale * s));
                        x.q[q] = v;
                        x.mean[q] = 0.5 * (w[0] * v[0] + w[1] * v[1] + w[2] * v[2] + w[3] * v[3]);
                    }
                };
                for (int q = 0; q < 3; q++) ring[(e0 - 3) & 7].f[q] = ring[(e0 - 3) & 7].q[q] = v4{};
                ring[(e0 - 3) & 7].c = v4{};
                load(e0 - 2), load(e0 - 1);
                // Element e - 1 is updated when e is loaded, and its predecessor limited then.
                for (int64_t e = e0; e < e1 + 2; e++) {
                    load(e);
                    // The new values replace what the face after it has used.
                    update(e - 1);
                    if (e < e0 + 2) continue;
                    Element &x = ring[(e - 2) & 7], &b = ring[(e - 3) & 7], &a = ring[(e - 1) & 7];
                    for (int q = 0; q < 3; q++) {
                        v4 v = x.q[q];
                        const double middle = x.mean[q], before = middle - b.mean[q], after = a.mean[q] - middle;
                        const double left = middle - v[0], right = v[3] - middle;
                        const double wrong = std::fabs(minmod(left, before, after) - left) + std::fabs(minmod(right, before, after) - right);
                        if (wrong > 0.001) v = middle + minmod(0.5 * (v[3] - v[0]), before, after) * places;
                        to[q][e - 2] = v;
                    }
                    t0 += x.mean[0], t1 += x.mean[1], t2 += x.mean[2];
                }
            }
            for (int q = 0; q < 3; q++) from[q] = result[q] = to[q];
        }
        sums[0] = t0 * dx, sums[1] = t1 * dx, sums[2] = t2 * dx, sums[3] = norm;
    };
    bench(run, [&](Checksum &s) {
        const char *names[3] = {"rho", "mom", "ene"};
        for (int q = 0; q < 3; q++) s.add(names[q], (const double *)result[q], 4 * n);
        s.add("sums", sums.p, 4);
    });
}
