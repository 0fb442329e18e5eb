#include "common.hpp"
constexpr int STEPS = 2, K = 18;
constexpr double DT = 0.02, STIFF = 50, DRAG = 0.1, G = 0.05, FLOOR = 200;
struct S {
  i64 n; Arr<double> x, x2, v, f, pot; Arr<int> nbr; double rest[K], kin = 0, spr = 0, com = 0;
  S(i64 m) : n(m * m * m), x(3 * n), x2(3 * n), v(3 * n), f(3 * n), pot(n), nbr(n * K) {
    Rnd r(1);
    for (i64 i = 0; i < n; ++i) {
      i64 g[3] = {i / (m * m), i / m % m, i % m};
      for (int d = 0; d < 3; ++d) x[3 * i + d] = g[d] + 0.1 * (r[3 * i + d] - 0.5);
      int k = 0;
      for (int a = -1; a < 2; ++a) for (int b = -1; b < 2; ++b) for (int c = -1; c < 2; ++c) {
        int q = a * a + b * b + c * c;
        if (q < 1 || q > 2) continue;
        rest[k] = std::sqrt(double(q));
        i64 h0 = g[0] + a, h1 = g[1] + b, h2 = g[2] + c;
        nbr[i * K + k++] = h0 >= 0 && h0 < m && h1 >= 0 && h1 < m && h2 >= 0 && h2 < m
          ? int((h0 * m + h1) * m + h2) : -1;
      }
    }
  }
  void run() {
#pragma omp parallel for
    for (i64 i = 0; i < 3 * n; ++i) { v[i] += 0.5 * DT * f[i]; x[i] += DT * v[i]; }
    for (int s = 0; s < STEPS; ++s) {
      double a = 0, b = 0, c = 0;
      const double* __restrict X = x.p; double* __restrict Y = x2.p;
      bool last = s == STEPS - 1;
#pragma omp parallel for reduction(+ : a, b, c)
      for (i64 i = 0; i < n; ++i) {
        double xi = X[3 * i], yi = X[3 * i + 1], zi = X[3 * i + 2], fx = 0, fy = 0, fz = 0, e = 0;
        for (int k = 0; k < K; ++k) {
          int j = nbr[i * K + k];
          if (j >= 0) {
            double dx = X[3 * j] - xi, dy = X[3 * j + 1] - yi, dz = X[3 * j + 2] - zi;
            double r = std::sqrt(dx * dx + dy * dy + dz * dz), t = r - rest[k], p = STIFF * t / r;
            fx += p * dx; fy += p * dy; fz += p * dz; e += 0.25 * STIFF * t * t;
          }
        }
        double vx = v[3 * i], vy = v[3 * i + 1], vz = v[3 * i + 2];
        fx -= DRAG * vx; fy -= DRAG * vy; fz -= G; fz -= DRAG * vz;
        if (zi < 0) fz -= FLOOR * zi;
        vx += 0.5 * DT * fx; vy += 0.5 * DT * fy; vz += 0.5 * DT * fz;
        a += 0.5 * (vx * vx + vy * vy + vz * vz); b += e; c += zi;
        if (last) { pot[i] = e; f[3 * i] = fx; f[3 * i + 1] = fy; f[3 * i + 2] = fz; }
        else {
          vx += 0.5 * DT * fx; vy += 0.5 * DT * fy; vz += 0.5 * DT * fz;
          Y[3 * i] = xi + DT * vx; Y[3 * i + 1] = yi + DT * vy; Y[3 * i + 2] = zi + DT * vz;
        }
        v[3 * i] = vx; v[3 * i + 1] = vy; v[3 * i + 2] = vz;
      }
      kin = a; spr = b; com = c;
      if (!last) std::swap(x, x2);
    }
  }
  double checksum() { return chk(x) + chk(v) + chk(f) + chk(pot) + kin + spr + com; }
};
int main(int c, char** v) { return drive<S>(c, v); }
