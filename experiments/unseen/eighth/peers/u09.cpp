#include "common.h"
static constexpr double SURF[6][5] = {{22.0, 22.0, 8.0, 1.60, 0.006}, {-400.0, -397.0, 8.0, 1.0, 0.0}, {-25.0, -16.0, 6.0, 1.62, 0.012},
    {20.0, 30.0, 6.0, 1.0, 0.0}, {120.0, 136.0, 7.0, 1.60, 0.006}, {-18.5, 0.5, 7.0, 1.0, 0.0}};

#define SURFACE(r, c, ap, ca, cb) { \
    double b = (c - Z) * W - X * U - Y * V, dz = Z - c, q = r * r - (X * X + Y * Y + dz * dz - b * b); \
    double rt = std::sqrt(q > 0.0 ? q : 0.0), t = r > 0 ? b - rt : b + rt; \
    X += t * U; Y += t * V; Z += t * W; \
    double mx = X / r, my = Y / r, mz = (Z - c) / r; \
    al &= !((q < 0.0) | (X * X + Y * Y > ap * ap)); \
    double behind = ca + cb / c2, mu = idx / behind; idx = behind; \
    double in = -(mx * U + my * V + mz * W); \
    if (r < 0) { mx = -mx; my = -my; mz = -mz; in = -in; } \
    double g0 = 1.0 - mu * mu * (1.0 - in * in), g = mu * in - std::sqrt(g0 > 0.0 ? g0 : 0.0); \
    U = mu * U + g * mx; V = mu * V + g * my; W = mu * W + g * mz; }
static int trace(long m, const double *__restrict sx, const double *__restrict sy, const float *__restrict col, double *__restrict x, double *__restrict y, double *__restrict z,
                 double *__restrict u, double *__restrict v, double *__restrict w, uint8_t *__restrict alive, double W0) {
    long c0 = 0;
#pragma omp simd reduction(+ : c0)
    for (long i = 0; i < m; i++) {
        double X = sx[i], Y = sy[i], Z = -10.0, U = 0.0, V = 0.05, W = W0, idx = 1.0; float cc = col[i] * col[i]; double c2 = cc; int al = 1;
        SURFACE(22.0, 22.0, 8.0, 1.60, 0.006) SURFACE(-400.0, -397.0, 8.0, 1.0, 0.0) SURFACE(-25.0, -16.0, 6.0, 1.62, 0.012)
        SURFACE(20.0, 30.0, 6.0, 1.0, 0.0) SURFACE(120.0, 136.0, 7.0, 1.60, 0.006) SURFACE(-18.5, 0.5, 7.0, 1.0, 0.0)
        x[i] = X; y[i] = Y; z[i] = Z; u[i] = U; v[i] = V; w[i] = W; alive[i] = al; c0 += al;
    }
    return c0;
}
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto sx = load<double>("start_x"); auto sy = load<double>("start_y"); auto col = load<float>("colour");
    vector<double> x(n), y(n), z(n), u(n), v(n), w(n); vector<uint8_t> alive(n);
    long passed = 0; double focus = 0, spot_ = 0; const double TILT = 0.05, W0 = std::sqrt(1 - TILT * TILT);
    auto spot = [&](double plane) {
        double mx = 0, my = 0, s = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : mx, my)
        for (long i = 0; i < n; i++) { double t = plane - z[i], a = x[i] + t * u[i] / w[i], b = y[i] + t * v[i] / w[i]; bool k = alive[i]; mx += k ? a : 0.0; my += k ? b : 0.0; }
        mx /= max(1L, passed); my /= max(1L, passed);
#pragma omp parallel for simd schedule(static) reduction(+ : s)
        for (long i = 0; i < n; i++) { double t = plane - z[i], a = x[i] + t * u[i] / w[i] - mx, b = y[i] + t * v[i] / w[i] - my; s += alive[i] ? a * a + b * b : 0.0; }
        return std::sqrt(s / max(1L, passed));
    };
    auto run = [&] {
        long ok = 0;
#pragma omp parallel for schedule(static) reduction(+ : ok)
        for (long k = 0; k < n; k += 1024) {
            long e = min(n, k + 1024); int c0 = trace(e - k, &sx[k], &sy[k], &col[k], &x[k], &y[k], &z[k], &u[k], &v[k], &w[k], &alive[k], W0);
            ok += c0;
        }
        passed = ok;
        const double G = 0.5 * (std::sqrt(5.0) - 1.0);
        double lo = 50, hi = 75, a = hi - G * (hi - lo), b = lo + G * (hi - lo), sa = spot(a), sb = spot(b);
        for (int k = 0; k < 6; k++) {
            if (sa < sb) { hi = b; b = a; sb = sa; a = hi - G * (hi - lo); sa = spot(a); }
            else { lo = a; a = b; sa = sb; b = lo + G * (hi - lo); sb = spot(b); }
        }
        focus = 0.5 * (lo + hi); spot_ = min(sa, sb);
    };
    return bench(run, [&] { return sum(x) + sum(y) + sum(z) + sum(u) + sum(v) + sum(w) + sum(alive) + passed + focus + spot_; });
}
