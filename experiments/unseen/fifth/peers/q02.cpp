#include "common.hpp"
static long n; static V c, h, c2, h2, mu, us, vs; static double DT, E, mass;
void setup(long size) {
  n = size; long m = n * n; c = rndv(m, 2); for (auto& v : c) v = 0.2 * (v - 0.5) + 0.1; h = rndv(m, 3); for (auto& v : h) v *= 0.1;
  c2 = V(m); h2 = V(m); mu = V(m); us = V(m); vs = V(m); DT = 0.02; E = 1e300; double q = 2 * M_PI / n;
  for (long y = 0; y < n; y++) for (long x = 0; x < n; x++) { us[y * n + x] = 0.5 * sin(x * q) * cos(y * q); vs[y * n + x] = -0.5 * cos(x * q) * sin(y * q); }
}
void run() {
  long m = n * n;
  for (int k = 0; k < 10; k++) {
    double dt = DT, e = 0, ms = 0;
    #pragma omp parallel reduction(+ : e, ms)
    {
      #pragma omp for schedule(static)
      for (long y = 0; y < n; y++) {
        const double *R A = &c[y * n], *R U = &c[(y > 0 ? y - 1 : n - 1) * n], *R D = &c[(y < n - 1 ? y + 1 : 0) * n], *R H = &h[y * n]; double* R M = &mu[y * n];
        auto px = [&](long x, long l, long r) { double v = A[x]; M[x] = v * v * v - (1.0 - H[x]) * v - 0.6 * (A[l] + A[r] + U[x] + D[x] - 4.0 * v); };
        px(0, n - 1, 1);
        #pragma omp simd
        for (long x = 1; x < n - 1; x++) px(x, x - 1, x + 1);
        px(n - 1, n - 2, 0);
      }
      #pragma omp for schedule(static)
      for (long y = 0; y < n; y++) {
        long up = (y > 0 ? y - 1 : n - 1) * n, dn = (y < n - 1 ? y + 1 : 0) * n, o = y * n;
        const double *R A = &c[o], *R U = &c[up], *R D = &c[dn], *R H = &h[o], *R HU = &h[up], *R HD = &h[dn], *R M = &mu[o], *R MU = &mu[up], *R MD = &mu[dn], *R a_ = &us[o], *R b_ = &vs[o];
        double *R C2 = &c2[o], *R H2 = &h2[o], es = 0, mm = 0;
        auto px = [&](long x, long l, long r, double& es, double& mm) {
          double a = a_[x], b = b_[x], v = A[x], w = H[x];
          double wc = a * (a > 0.0 ? v - A[l] : A[r] - v) + b * (b > 0.0 ? v - U[x] : D[x] - v), wh = a * (a > 0.0 ? w - H[l] : H[r] - w) + b * (b > 0.0 ? w - HU[x] : HD[x] - w);
          double dc = (M[l] + M[r] + MU[x] + MD[x] - 4.0 * M[x]) - wc, dh = 0.8 * (H[l] + H[r] + HU[x] + HD[x] - 4.0 * w) - wh + 0.3 * v * dc;
          v += dt * dc; C2[x] = v; H2[x] = w + dt * dh; es += 0.5 * v * M[x] - 0.25 * v * v * v * v; mm += v; };
        px(0, n - 1, 1, es, mm);
        #pragma omp simd reduction(+ : es, mm)
        for (long x = 1; x < n - 1; x++) px(x, x - 1, x + 1, es, mm);
        px(n - 1, n - 2, 0, es, mm);
        e += es; ms += mm;
      }
    }
    swap(c, c2); swap(h, h2);
    if (k % 5 == 4) { e /= m; DT = e < E ? min(0.03, dt * 1.05) : dt * 0.7; E = e; }
    mass = ms / m;
  }
}
double checksum() { return chk(c) + chk(h) + DT + E + mass; }
