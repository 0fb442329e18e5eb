#include "common.hpp"
constexpr int ITER = 4; constexpr double SIGMA = 0.25, TAU = 0.25, RADIUS = 0.15;
struct S {
  i64 n; Arr<double> f, u, b0, b1, px, py, pz; double misfit = 0, dual = 0;
  S(i64 n) : n(n), f(n * n * n), u(n * n * n), b0(n * n * n), b1(n * n * n), px(n * n * n), py(n * n * n), pz(n * n * n) {
    Rnd q(2);
    auto x = [&](i64 i) { double v = i / double(n) - 0.5; return v * v; };
    for (i64 i = 0; i < n; ++i) for (i64 j = 0; j < n; ++j) for (i64 k = 0; k < n; ++k)
      f[(i * n + j) * n + k] = (x(i) + x(j) + x(k) < 0.1 ? 1.0 : 0.0) + 0.4 * q[(i * n + j) * n + k];
  }
  template <bool FIRST, bool LAST> void iterate(const double* bar, double* barn) {
    double ms = 0, du = 0;
#pragma omp parallel reduction(+ : ms, du)
    {
      int t = omp_get_thread_num(), T = omp_get_num_threads();
      i64 lo = n * t / T, hi = n * (t + 1) / T;
      auto ascend = [&](i64 i, i64 j) {
        i64 o = (i * n + j) * n;
        const double *__restrict b = bar + o, *bi = bar + o + (i < n - 1 ? n * n : 0), *bj = bar + o + (j < n - 1 ? n : 0);
        double *__restrict x = px.p + o, *__restrict y = py.p + o, *__restrict z = pz.p + o;
        auto at = [&](i64 k, double dz) {
          double X = (FIRST ? 0 : x[k]) + SIGMA * (bi[k] - b[k]), Y = (FIRST ? 0 : y[k]) + SIGMA * (bj[k] - b[k]), Z = (FIRST ? 0 : z[k]) + SIGMA * dz;
          double m = std::sqrt(X * X + Y * Y + Z * Z) * (1 / RADIUS);
          double r = 1.0 / (m > 1.0 ? m : 1.0);
          x[k] = X * r; y[k] = Y * r; z[k] = Z * r;
        };
#pragma omp simd
        for (i64 k = 0; k < n - 1; ++k) at(k, b[k + 1] - b[k]);
        at(n - 1, 0.0);
      };
      auto descend = [&](i64 i, i64 j) {
        i64 o = (i * n + j) * n;
        const double *x = px.p + o, *y = py.p + o, *z = pz.p + o, *xm = x - n * n, *ym = y - n, *F = f.p + o;
        double* __restrict U = u.p + o; double* __restrict B = barn + o;
        double a = 0, c = 0;
        auto at = [&](i64 k, double d) {
          if (i > 0) d -= xm[k];
          if (j > 0) d -= ym[k];
          if (k > 0) d -= z[k - 1];
          double old = FIRST ? F[k] : U[k];
          double v = (old + TAU * (d + F[k])) / (1.0 + TAU);
          U[k] = v;
          if (!LAST) B[k] = 2.0 * v - old;
          if (LAST) { a += 0.5 * (v - F[k]) * (v - F[k]); c += d * (F[k] + 0.5 * d); }
        };
        at(0, x[0] + y[0] + z[0]);
#pragma omp simd reduction(+ : a, c)
        for (i64 k = 1; k < n; ++k) at(k, x[k] + y[k] + z[k]);
        ms += a; du += c;
      };
      for (i64 i = lo; i < hi; ++i) for (i64 j = 0; j < n; ++j) { ascend(i, j); if (i > lo) descend(i, j); }
#pragma omp barrier
      if (lo < hi) for (i64 j = 0; j < n; ++j) descend(lo, j);
    }
    misfit = ms; dual = du;
  }
  void run() {
    iterate<true, false>(f.p, b0.p);
    double *a = b0.p, *b = b1.p;
    for (int k = 1; k < ITER - 1; ++k) { iterate<false, false>(a, b); std::swap(a, b); }
    iterate<false, true>(a, b);
  }
  double checksum() { return chk(u) + misfit + dual; }
};
int main(int c, char** v) { return drive<S>(c, v); }
