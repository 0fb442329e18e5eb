#include "common.hpp"
constexpr int STEPS = 2; constexpr double CFL = 0.2;
static inline double vl(double a, double b) { return a * b > 0 ? 2.0 * a * b / (a + b) : 0.0; }
struct S {
  i64 n; Arr<double> q, q1, u, v; double mass = 0, tv = 0;
  S(i64 n) : n(n), q(n * n), q1(n * n), u(n * n), v(n * n) {
    for (i64 i = 0; i < n; ++i) for (i64 j = 0; j < n; ++j) {
      double cx = (i - n / 2.0) / n, cy = (j - n / 2.0) / n;
      q[i * n + j] = (std::max(std::fabs(cx - 0.2), std::fabs(cy)) < 0.1 ? 1.0 : 0.1) + 0.2 * cx * cy;
      q1[i * n + j] = q[i * n + j];
      u[i * n + j] = -(j + 0.5 - n / 2.0) / n * 2; v[i * n + j] = (i + 0.5 - n / 2.0) / n * 2;
    }
  }
  // one stage by bands of rows: slopes and fluxes live in rows that stay in L1
  template <bool SECOND> void stage(const double* __restrict Q, double* __restrict out) {
#pragma omp parallel
    {
      int t = omp_get_thread_num(), T = omp_get_num_threads();
      i64 lo = 2 + (n - 4) * t / T, hi = 2 + (n - 4) * (t + 1) / T;
      std::vector<double> buf(5 * n);
      double *sa = &buf[0], *sb = sa + n, *fa = sb + n, *fb = fa + n, *sy = fb + n;
      static thread_local std::vector<double> fyv; fyv.resize(n);
      double* fy = fyv.data();
      auto slopes = [&](i64 i, double* __restrict s) {
        const double *m = Q + (i - 1) * n, *c = Q + i * n, *p = Q + (i + 1) * n;
#pragma omp simd
        for (i64 j = 2; j < n - 2; ++j) s[j] = vl(c[j] - m[j], p[j] - c[j]);
      };
      auto fluxx = [&](i64 i, const double* __restrict s0, const double* __restrict s1, double* __restrict f) {
        const double *m = Q + (i - 1) * n, *c = Q + i * n, *uu = u.p + i * n;
#pragma omp simd
        for (i64 j = 2; j < n - 2; ++j) {
          double l = uu[j] * (m[j] + 0.5 * s0[j]), r = uu[j] * (c[j] - 0.5 * s1[j]);
          f[j] = uu[j] > 0 ? l : r;
        }
      };
      if (lo < hi) {
        slopes(lo - 1, sa); slopes(lo, sb); fluxx(lo, sa, sb, fa); std::swap(sa, sb);
        for (i64 i = lo; i < hi; ++i) {
          slopes(i + 1, sb); fluxx(i + 1, sa, sb, fb);
          const double *c = Q + i * n, *vv = v.p + i * n; double* o = out + i * n;
#pragma omp simd
          for (i64 j = 1; j < n - 1; ++j) sy[j] = vl(c[j] - c[j - 1], c[j + 1] - c[j]);
#pragma omp simd
          for (i64 j = 2; j < n - 1; ++j) {
            double l = vv[j] * (c[j - 1] + 0.5 * sy[j - 1]), r = vv[j] * (c[j] - 0.5 * sy[j]);
            fy[j] = vv[j] > 0 ? l : r;
          }
#pragma omp simd
          for (i64 j = 2; j < n - 2; ++j) {
            double r = fa[j] - fb[j] + fy[j] - fy[j + 1];
            o[j] = SECOND ? 0.5 * (o[j] + c[j] + CFL * r) : c[j] + CFL * r;
          }
          std::swap(sa, sb); std::swap(fa, fb);
        }
      }
    }
  }
  void run() {
    for (int s = 0; s < STEPS; ++s) {
      stage<false>(q.p, q1.p);
      stage<true>(q1.p, q.p);
      if (s < STEPS - 1) continue;  // only the last step's sums are kept
      double a = 0, b = 0; const double* Q = q.p;
#pragma omp parallel for reduction(+ : a, b)
      for (i64 i = 2; i < n - 2; ++i) {
#pragma omp simd reduction(+ : a, b)
        for (i64 j = 2; j < n - 2; ++j) {
          double c = Q[i * n + j];
          a += c; b += std::fabs(c - Q[(i - 1) * n + j]) + std::fabs(c - Q[i * n + j - 1]);
        }
      }
      mass = a; tv = b;
    }
  }
  double checksum() { return chk(q) + mass + tv; }
};
int main(int c, char** v) { return drive<S>(c, v); }
