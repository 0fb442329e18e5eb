#include "common.hpp"
extern "C" __attribute__((simd("notinbranch"), const)) double log(double) noexcept;  // libmvec's
constexpr i64 W = 64; constexpr double FEE = 1e-5;
struct S {
  i64 n; Arr<double> p, vol, pos, eq, obv, r, pnl; double mean = 0, sharpe = 0, turn = 0;
  S(i64 n) : n(n), p(n), vol(n), pos(n), eq(n), obv(n), r(n), pnl(n) {
    Rnd a(7), b(8);
    for (i64 t = 0; t < n; ++t) { p[t] = 100 + 10 * std::sin(t * 0.001) + a[t]; vol[t] = 100 + 900 * b[t]; }
  }
  void run() {
    static double part[64][8];
    double tn = 0, var = 0, tot = 0;
#pragma omp parallel reduction(+ : tn, var, tot)
    {
      int t = omp_get_thread_num(), T = omp_get_num_threads();
      i64 lo = n * t / T, hi = n * (t + 1) / T;
      double a = 0;
      r[0] = 0;
      double *__restrict R = r.p; const double* __restrict V = vol.p;
#pragma omp simd
      for (i64 i = std::max(lo, 1l); i < hi; ++i) R[i] = ::log(p.p[i] / p.p[i - 1]);
#pragma omp simd reduction(+ : a)
      for (i64 i = std::max(lo, 1l); i < hi; ++i) {
        double x = R[i];
        a += x > 0 ? V[i] : x < 0 ? -V[i] : 0.0;
      }
      part[t][0] = a;
#pragma omp barrier
      double ov = 0, e = 0;
      for (int k = 0; k < t; ++k) ov += part[k][0];
      // window sums slide; they start afresh at each thread's first index
      i64 st = std::max(lo, W);
      double s1 = 0, s2 = 0;
      for (i64 i = st - W; i < st; ++i) { if (i >= lo) { double x = r[i]; ov += x > 0 ? vol[i] : x < 0 ? -vol[i] : 0.0; obv[i] = ov; eq[i] = 0; pnl[i] = 0; } s1 += r[i]; s2 += r[i] * r[i]; }
      auto pv = [&](double x) {
        double m = s1 / W, v = s2 / W - m * m, s = std::sqrt(v > 1e-12 ? v : 1e-12), z = -((x - m) / s);
        z = z < -1 ? -1 : z; return z > 1 ? 1.0 : z;
      };
      double prev = st > W ? pv(r[st - 1]) : 0.0;
      double *__restrict PO = pos.p, *__restrict PN = pnl.p, *__restrict EQ = eq.p, *__restrict OB = obv.p;
      for (i64 bl = st; bl < hi; bl += 512) {
        i64 m = std::min(512l, hi - bl); double b1[512], b2[512], q[513], sv[512];
        for (i64 k = 0; k < m; ++k) {
          double x = R[bl + k], y = R[bl + k - W];
          s1 += x - y; s2 += x * x - y * y; b1[k] = s1; b2[k] = s2;
        }
        q[0] = prev;
#pragma omp simd
        for (i64 k = 0; k < m; ++k) {
          double x = R[bl + k], mm = b1[k] / W, v = b2[k] / W - mm * mm, sd = std::sqrt(v > 1e-12 ? v : 1e-12), z = -((x - mm) / sd);
          z = z < -1 ? -1 : z; z = z > 1 ? 1 : z; q[k + 1] = z; PO[bl + k] = z;
          sv[k] = x > 0 ? V[bl + k] : x < 0 ? -V[bl + k] : 0.0;
        }
        if (bl == W) q[0] = q[1];
#pragma omp simd reduction(+ : tn)
        for (i64 k = 0; k < m; ++k) {
          double d = std::fabs(q[k + 1] - q[k]); tn += d; PN[bl + k] = q[k] * R[bl + k] - FEE * d;
        }
        if (bl == W) PN[W] = 0;
        for (i64 k = 0; k < m; ++k) { e += PN[bl + k]; EQ[bl + k] = e; ov += sv[k]; OB[bl + k] = ov; }
        prev = q[m];
      }
      part[t][1] = e; tot += e;
#pragma omp barrier
      double off = 0, all = 0;
      for (int k = 0; k < T; ++k) { if (k < t) off += part[k][1]; all += part[k][1]; }
      double mu = all / n;
      double vv = 0;
#pragma omp simd reduction(+ : vv)
      for (i64 i = lo; i < hi; ++i) { double d = pnl[i] - mu; vv += d * d; }
      if (t)
#pragma omp simd
        for (i64 i = lo; i < hi; ++i) eq[i] += off;
      var += vv;
    }
    mean = tot / n; sharpe = mean / std::sqrt(var / n); turn = tn;
  }
  double checksum() { return chk(pos) + chk(eq) + chk(obv) + mean + sharpe + turn; }
};
int main(int c, char** v) { return drive<S>(c, v); }
