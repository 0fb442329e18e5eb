#include "common.hpp"
constexpr int K = 4, LIMIT = 30; constexpr double ALPHA = 0.8, TOL = 1e-4;
typedef double V4 __attribute__((vector_size(32)));
struct S {
  i64 n; Arr<int> start, nb, given, label; Arr<double> wt, sure, f, h0, h1, isd; int iters = 0; double weak = 0;
  S(i64 n) : n(n), start(n + 1), given(n), label(n), sure(n), f(K * n), h0(K * n), h1(K * n), isd(n) {
    Rnd c(11), g(16);
    start[0] = 0;
    for (i64 i = 0; i < n; ++i) { start[i + 1] = start[i] + 4 + int(c[i] * 9); given[i] = g[i] < 0.05 ? int(i * K / n) : -1; }
    i64 m = start[n]; nb = Arr<int>(m); wt = Arr<double>(m);
    Rnd a(12), b(13), d(14), e(15);
    for (i64 i = 0; i < n; ++i) for (i64 q = start[i]; q < start[i + 1]; ++q) {
      nb[q] = d[q] < 0.8 ? int((i + 1 + i64(a[q] * 40)) % n) : int(b[q] * n);
      wt[q] = 0.1 + e[q];
    }
  }
  void run() {
    double *__restrict F = f.p, *__restrict sd = isd.p; double *h = h0.p, *g = h1.p;
    const int *__restrict st = start.p, *__restrict N = nb.p; const double* __restrict W = wt.p;
#pragma omp parallel for schedule(static)
    for (i64 i = 0; i < n; ++i) {
      double v = 0;
      for (int e = st[i]; e < st[i + 1]; ++e) v += W[e];
      sd[i] = 1.0 / std::sqrt(v);
      for (int c = 0; c < K; ++c) { double y = given[i] == c; F[K * i + c] = y; h[K * i + c] = sd[i] * y; }
    }
    int it = 0;
    for (; it < LIMIT; ++it) {
      double change = 0;
#pragma omp parallel for schedule(static) reduction(+ : change)
      for (i64 i = 0; i < n; ++i) {
        V4 q = {};
        for (int e = st[i], z = st[i + 1]; e < z; ++e) q += W[e] * *(const V4*)(h + K * N[e]);
        double s = sd[i];
        for (int c = 0; c < K; ++c) {
          double v = ALPHA * (s * q[c]) + (1.0 - ALPHA) * (given[i] == c ? 1.0 : 0.0);
          change += std::fabs(v - F[K * i + c]);
          F[K * i + c] = v; g[K * i + c] = s * v;
        }
      }
      std::swap(h, g);
      if (change < TOL * n) break;
    }
    iters = std::min(it, LIMIT - 1);
    double wk = 0;
#pragma omp parallel for reduction(+ : wk)
    for (i64 i = 0; i < n; ++i) {
      int b = 0; double s = 0;
      for (int c = 0; c < K; ++c) { s += F[K * i + c]; if (F[K * i + c] > F[K * i + b]) b = c; }
      label[i] = b; sure[i] = F[K * i + b] / std::max(s, 1e-30); wk += sure[i] < 0.5;
    }
    weak = wk;
  }
  double checksum() { return chk(f) + chk(label) + chk(sure) + iters + weak; }
};
int main(int c, char** v) { return drive<S>(c, v); }
