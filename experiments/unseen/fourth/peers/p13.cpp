#include "common.hpp"
static const int C = 6; static const double LIM = 1.4; static long n, groups, cnt; static VI start; static V x[C], z[C], s; static vector<double> corr;
void setup(long size) {
  n = size; start.assign(1, 0); vector<int> gr(n);
  for (long g = 0;; g++) { long e = start.back() + 20 + (long)(41.0 * rnd(g, 120)); start.push_back(min(e, n)); if (e >= n) break; }
  groups = start.size() - 1;
  for (long g = 0; g < groups; g++) for (long k = start[g]; k < start[g + 1]; k++) gr[k] = g;
  for (int c = 0; c < C; c++) { x[c] = V(n); z[c] = V(n); for (long k = 0; k < n; k++) x[c][k] = 0.3 * c * rnd(k, 130) + rnd(k, 131 + c) + 0.01 * (gr[k] % 10); }
  s = V(n);
}
void run() {
  double m1[C] = {}, m2[C * C] = {};
  #pragma omp parallel for schedule(static) reduction(+ : m1[:C], m2[:C * C])
  for (long g = 0; g < groups; g++) {
    long lo = start[g], hi = start[g + 1]; double num = hi - lo;
    for (int c = 0; c < C; c++) {
      const double* R X = x[c].data(); double *R Z = z[c].data(), m = 0, v = 0, t = 0;
      #pragma omp simd reduction(+ : m)
      for (long k = lo; k < hi; k++) m += X[k];
      m /= num;
      #pragma omp simd reduction(+ : v)
      for (long k = lo; k < hi; k++) v += (X[k] - m) * (X[k] - m);
      double sd = sqrt(v / num) + 1e-9;
      #pragma omp simd reduction(+ : t)
      for (long k = lo; k < hi; k++) { double w = (X[k] - m) / sd; w = w > -LIM ? w : -LIM; w = w < LIM ? w : LIM; Z[k] = w; t += w; }
      m1[c] += t;
      for (int b = 0; b <= c; b++) { const double* Y = z[b].data(); double q = 0;
        #pragma omp simd reduction(+ : q)
        for (long k = lo; k < hi; k++) q += Z[k] * Y[k];
        m2[c * C + b] += q; }
    }
  }
  double cov[C][C], w[C]; corr.assign(C * C, 0.0);
  for (int a = 0; a < C; a++) for (int b = 0; b <= a; b++) cov[a][b] = cov[b][a] = m2[a * C + b] / n - m1[a] / n * (m1[b] / n);
  for (int a = 0; a < C; a++) { w[a] = 0; for (int b = 0; b < C; b++) { corr[a * C + b] = cov[a][b] / (sqrt(cov[a][a]) * sqrt(cov[b][b])); w[a] += corr[a * C + b]; } w[a] /= C; }
  long k = 0; double* R S = s.data(); const double *z0 = z[0].data(), *z1 = z[1].data(), *z2 = z[2].data(), *z3 = z[3].data(), *z4 = z[4].data(), *z5 = z[5].data();
  #pragma omp parallel for simd schedule(static) reduction(+ : k)
  for (long i = 0; i < n; i++) { double v = w[0] * z0[i]; v += w[1] * z1[i]; v += w[2] * z2[i]; v += w[3] * z3[i]; v += w[4] * z4[i]; v += w[5] * z5[i]; S[i] = v; k += fabs(v) > 2.0; }
  cnt = k;
}
double checksum() { return chk(corr) + chk(s) + cnt; }
