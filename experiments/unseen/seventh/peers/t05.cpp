#include "common.hpp"
constexpr int LIMIT = 30; constexpr double TOL = 1e-9;
struct S {
  i64 n; Arr<double> b1, b2, b3, d, w, old, share; int iters = 0; double risk = 0;
  S(i64 n) : n(n), b1(n), b2(n), b3(n), d(n), w(n), old(n), share(n) {
    Rnd r0(5), r1(6), r2(7), r3(9); double s = std::sqrt(double(n));
    for (i64 i = 0; i < n; ++i) { b1[i] = r0[i] * 1.5 / s; b2[i] = (r1[i] * 1.5 - 0.3) / s; b3[i] = (r2[i] * 1.5 - 0.6) / s; d[i] = 0.5 + r3[i]; }
  }
  void run() {
    double f1 = 0, f2 = 0, f3 = 0, g1 = 0, g2 = 0, g3 = 0, eta = 0.5;
    const double *__restrict B1 = b1.p, *__restrict B2 = b2.p, *__restrict B3 = b3.p, *__restrict D = d.p;
#pragma omp parallel for simd reduction(+ : f1, f2, f3)
    for (i64 i = 0; i < n; ++i) { w.p[i] = 1.0; f1 += B1[i]; f2 += B2[i]; f3 += B3[i]; }
    double *x = w.p, *o = old.p;
    int k = 0;
    for (;; ++k) {
      if (k == LIMIT) { k = LIMIT - 1; break; }
      double norm = 0, ss = 0, sy = 0;
      if (k == 0) {
#pragma omp parallel for simd reduction(+ : norm)
        for (i64 i = 0; i < n; ++i) {
          double v = x[i], r = 1.0 / v, g = B1[i] * f1 + B2[i] * f2 + B3[i] * f3 + D[i] * v - r, c = D[i] + r * r;
          norm += g * g / c;
        }
      } else {
#pragma omp parallel for simd reduction(+ : norm, ss, sy)
        for (i64 i = 0; i < n; ++i) {
          double v = x[i], q = o[i], r = 1.0 / v, g = B1[i] * f1 + B2[i] * f2 + B3[i] * f3 + D[i] * v - r, c = D[i] + r * r;
          double go = B1[i] * g1 + B2[i] * g2 + B3[i] * g3 + D[i] * q - 1.0 / q, s = v - q;
          norm += g * g / c; ss += s * s * c; sy += s * (g - go);
        }
      }
      if (norm / n < TOL) break;
      if (k > 0) eta = ss / sy;
      double h1 = 0, h2 = 0, h3 = 0;
      double* __restrict t = o;
#pragma omp parallel for simd reduction(+ : h1, h2, h3)
      for (i64 i = 0; i < n; ++i) {
        double v = x[i], r = 1.0 / v, g = B1[i] * f1 + B2[i] * f2 + B3[i] * f3 + D[i] * v - r, c = D[i] + r * r;
        double u = v - eta * (g / c), l = 0.2 * v;
        u = u > l ? u : l;
        t[i] = u; h1 += B1[i] * u; h2 += B2[i] * u; h3 += B3[i] * u;
      }
      std::swap(x, o);
      g1 = f1; g2 = f2; g3 = f3; f1 = h1; f2 = h2; f3 = h3;
    }
    iters = k;
    double a = 0, b = 0; double* __restrict sh = share.p;
#pragma omp parallel for simd reduction(+ : a, b)
    for (i64 i = 0; i < n; ++i) { double v = x[i], s = v * (B1[i] * f1 + B2[i] * f2 + B3[i] * f3 + D[i] * v); sh[i] = s; a += s; b += v; }
    risk = a / n; b /= n; double* __restrict out = w.p;
    if (x == w.p) {
#pragma omp parallel for simd
      for (i64 i = 0; i < n; ++i) out[i] /= b;
    } else {
#pragma omp parallel for simd
      for (i64 i = 0; i < n; ++i) out[i] = x[i] / b;
    }
  }
  double checksum() { return chk(w) + chk(share) + iters + risk; }
};
int main(int c, char** v) { return drive<S>(c, v); }
