// Three passes: the transformed links, three of a site together; plaquettes and staples, which share
// their products, to the new links; the new plaquettes. A quaternion is one vector.
#include "common.hpp"

typedef double d4 __attribute__((vector_size(32)));
typedef int64_t i4 __attribute__((vector_size(32)));

static inline d4 times(d4 a, d4 b) {
    const d4 s1 = {-1, 1, -1, 1}, s2 = {-1, 1, 1, -1}, s3 = {-1, -1, 1, 1};
    return a[0] * b + a[1] * (s1 * __builtin_shuffle(b, i4{1, 0, 3, 2})) + a[2] * (s2 * __builtin_shuffle(b, i4{2, 3, 0, 1})) +
           a[3] * (s3 * __builtin_shuffle(b, i4{3, 2, 1, 0}));
}
static inline d4 dagger(d4 a) { return a * d4{1, -1, -1, -1}; }
static inline double dot(d4 a, d4 b) {
    const d4 p = a * b;
    return p[0] + p[1] + p[2] + p[3];
}
static inline d4 unit(d4 q) {
    const double length = std::sqrt(dot(q, q));
    return length > 0.001 ? q / length : d4{1, 0, 0, 0};
}
static inline uint32_t scramble(uint32_t x) {
    x = (x ^ (x >> 16)) * 73244475u;
    x = (x ^ (x >> 16)) * 73244475u;
    return x ^ (x >> 16);
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), N = n * n * n;
    const uint32_t seed = d.number("seed");
    const Array<double> s0 = d.array<double>("start_0"), s1 = d.array<double>("start_1"), s2 = d.array<double>("start_2");
    const d4 *start[3] = {(const d4 *)s0.p, (const d4 *)s1.p, (const d4 *)s2.p};
    Array<d4> G(N), U(3 * N), VX(N), VY(N), VZ(N);
    d4 *V[3] = {VX.p, VY.p, VZ.p};
    Array<double> plaquettes(6);
    // Calls f(site, next sites, sites before) for all sites.
    auto sites = [n](auto f) {
#pragma omp for schedule(static)
        for (int64_t x = 0; x < n; x++)
            for (int64_t y = 0; y < n; y++) {
                const int64_t row = (x * n + y) * n;
                const int64_t xu = x == n - 1 ? -(n - 1) * n * n : n * n, xd = x == 0 ? (n - 1) * n * n : -n * n;
                const int64_t yu = y == n - 1 ? -(n - 1) * n : n, yd = y == 0 ? (n - 1) * n : -n;
                for (int64_t z = 0; z < n; z++) {
                    const int64_t i = row + z, up[3] = {i + xu, i + yu, z == n - 1 ? row : i + 1}, down[3] = {i + xd, i + yd, z == 0 ? row + n - 1 : i - 1};
                    f(i, up, down);
                }
            }
    };
    auto run = [&] {
        double before[3] = {}, after[3] = {};
#pragma omp parallel if (4 * N >= PARALLEL_FROM) reduction(+ : before, after)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < N; i++) {
                d4 q;
                for (int c = 0; c < 4; c++) q[c] = (double(scramble(scramble(uint32_t(4 * i + c)) + seed)) + 0.5) / 4294967296.0 - 0.5;
                G[i] = unit(q);
            }
            sites([&](int64_t i, const int64_t *up, const int64_t *) {
                for (int m = 0; m < 3; m++) U[3 * i + m] = times(times(G[i], start[m][i]), dagger(G[up[m]]));
            });
            sites([&](int64_t i, const int64_t *up, const int64_t *down) {
                const d4 *u = U.p;
                d4 staples[3] = {};
                d4 forward[3][3];  // [direction][other]
#pragma GCC unroll 3
                for (int plane = 0; plane < 3; plane++) {
                    const int m = plane / 2, v = plane == 0 ? 1 : 2;
                    const d4 um = u[3 * up[v] + m], uv = u[3 * up[m] + v];
                    const d4 p = times(u[3 * i + m], uv), q = times(u[3 * i + v], um);
                    before[plane] += dot(p, q);
                    forward[m][v] = times(q, dagger(uv)), forward[v][m] = times(p, dagger(um));
                }
#pragma GCC unroll 3
                for (int m = 0; m < 3; m++) {
#pragma GCC unroll 3
                    for (int v = 0; v < 3; v++) {
                        if (v == m) continue;
                        const int64_t j = down[v];
                        // The site ahead of j along m is the one below up[m].
                        const int64_t corner = up[m] + j - i;
                        staples[m] += forward[m][v];
                        staples[m] += times(times(dagger(u[3 * j + v]), u[3 * j + m]), u[3 * corner + v]);
                    }
                    V[m][i] = unit(0.6 * u[3 * i + m] + 0.1 * staples[m]);
                }
            });
            sites([&](int64_t i, const int64_t *up, const int64_t *) {
#pragma GCC unroll 3
                for (int plane = 0; plane < 3; plane++) {
                    const int m = plane / 2, v = plane == 0 ? 1 : 2;
                    after[plane] += dot(times(V[m][i], V[v][up[m]]), times(V[v][i], V[m][up[v]]));
                }
            });
        }
        for (int k = 0; k < 3; k++) plaquettes[k] = before[k] / N, plaquettes[3 + k] = after[k] / N;
    };
    bench(run, [&](Checksum &s) {
        s.add("x", (double *)VX.p, 4 * N), s.add("y", (double *)VY.p, 4 * N), s.add("z", (double *)VZ.p, 4 * N);
        s.add("plaquettes", plaquettes.p, 6);
    });
}
