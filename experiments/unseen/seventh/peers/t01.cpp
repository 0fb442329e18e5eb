#include "vec.hpp"
constexpr int STEPS = 3; constexpr double DT = 1e-4, H = 0.03, EPS = 0.01, DELTA = 0.04, TAU = 3e-4, LATENT = 1.6;
struct S {
  i64 n; Arr<double> p, t, pn, tn; double solid = 0;
  S(i64 n) : n(n), p(n * n), t(n * n), pn(n * n), tn(n * n) {
    Rnd r(1);
    for (i64 i = 0; i < n; ++i) for (i64 j = 0; j < n; ++j) {
      double x = i - n / 2.0, y = j - n / 2.0;
      p[i * n + j] = x * x + y * y < n * n / 100.0 ? 0.9 : 0.1 * r[i * n + j];
      t[i * n + j] = 0.2 * p[i * n + j];
    }
  }
  double step() {
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
      int k = omp_get_thread_num(), K = omp_get_num_threads();
      i64 lo = n * k / K, hi = n * (k + 1) / K;
      std::vector<double> buf(9 * n);
      double *E[3], *X[3], *Y[3];
      for (int q = 0; q < 3; ++q) { E[q] = &buf[3 * q * n]; X[q] = E[q] + n; Y[q] = X[q] + n; }
      auto aniso = [&](i64 r, double* __restrict e, double* __restrict fx, double* __restrict fy) {
        r = (r + n) % n;
        const double *c = p.p + r * n, *u = p.p + (r + 1) % n * n, *d = p.p + (r + n - 1) % n * n;
        auto at = [&](i64 j, i64 jm, i64 jp) {
          double gx = (u[j] - d[j]) * (1 / (2 * H)), gy = (c[jp] - c[jm]) * (1 / (2 * H));
          double a = gx * gx, b = gy * gy, q = (a + b) * (a + b), w = q > 1e-12 ? 1.0 / q : 0.0;
          double c4 = 1.0 - 8.0 * a * b * w, s4 = 4.0 * gx * gy * (a - b) * w;
          double ee = EPS * (1 + DELTA * c4), de = -4.0 * EPS * DELTA * s4;
          e[j] = ee * ee; fx[j] = ee * de * gy; fy[j] = ee * de * gx;
        };
        at(0, n - 1, 1); at(n - 1, n - 2, 0);
#pragma omp simd
        for (i64 j = 1; j < n - 1; ++j) at(j, j - 1, j + 1);
      };
      if (lo < hi) { aniso(lo - 1, E[0], X[0], Y[0]); aniso(lo, E[1], X[1], Y[1]); }
      for (i64 i = lo; i < hi; ++i) {
        aniso(i + 1, E[2], X[2], Y[2]);
        const double *em = E[0], *e = E[1], *ep = E[2], *xm = X[0], *xp = X[2], *y = Y[1];
        i64 ip = (i + 1) % n * n, im = (i + n - 1) % n * n;
        const double *c = p.p + i * n, *u = p.p + ip, *d = p.p + im, *tc = t.p + i * n, *tu = t.p + ip, *td = t.p + im;
        double *__restrict po = pn.p + i * n, *__restrict to = tn.p + i * n;
        auto at = [&](i64 j, i64 jm, i64 jp) {
          double v = c[j];
          double a = (e[j] + ep[j]) * (u[j] - v) + (e[j] + em[j]) * (d[j] - v);
          double b = (e[j] + e[jp]) * (c[jp] - v) + (e[j] + e[jm]) * (c[jm] - v);
          double r = 0.5 * (a + b) * (1 / (H * H)) + (y[jp] - y[jm] - xp[j] + xm[j]) * (1 / (2 * H));
          double m = 0.9 / 3.14159265358979 * atan(10.0 * (1.0 - tc[j]));
          r = (r + v * (1.0 - v) * (v - 0.5 + m)) * (1 / TAU);
          double lap = (tu[j] + td[j] + tc[jp] + tc[jm] - 4.0 * tc[j]) * (1 / (H * H));
          double q = v + DT * r;
          po[j] = q; to[j] = tc[j] + DT * (lap + LATENT * r);
          return q;
        };
        double s = at(0, n - 1, 1) + at(n - 1, n - 2, 0);
#pragma omp simd reduction(+ : s)
        for (i64 j = 1; j < n - 1; ++j) s += at(j, j - 1, j + 1);
        sum += s;
        std::swap(E[0], E[1]); std::swap(E[1], E[2]); std::swap(X[0], X[1]); std::swap(X[1], X[2]); std::swap(Y[0], Y[1]); std::swap(Y[1], Y[2]);
      }
    }
    std::swap(p.p, pn.p); std::swap(t.p, tn.p);
    return sum;
  }
  void run() { for (int s = 0; s < STEPS; ++s) solid = step(); }
  double checksum() { return chk(p) + chk(t) + solid; }
};
int main(int c, char** v) { return drive<S>(c, v); }
