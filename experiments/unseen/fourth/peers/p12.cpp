#include "common.hpp"
static const int L = 5; static const double OM = 0.8, SC = 0.002; static long n0, cycles; static double nrm;
static V a, b, v[L], w[L], f[L];
void setup(long n) {
  n0 = n; a = V(n * n); b = V(n * n);
  for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) { a[i * n + j] = rnd(i * n + j, 110) + (i / 16 % 2); b[i * n + j] = rnd(i * n + j, 111) + (j / 32 % 2); }
  for (int k = 0; k < L; k++) v[k] = w[k] = f[k] = V((n >> k) * (n >> k));
}
template <class F> static double rows(long n, F make) {
  double s = 0;
  #pragma omp parallel for schedule(static) reduction(+ : s)
  for (long i = 0; i < n; i++) {
    auto cell = make(i * n, max(i - 1, 0l) * n, min(i + 1, n - 1) * n); double t = cell(0l, 0l, 1l);
    #pragma omp simd reduction(+ : t)
    for (long j = 1; j < n - 1; j++) t += cell(j, j - 1, j + 1);
    s += t + cell(n - 1, n - 2, n - 1);
  }
  return s;
}
#define LAP(v) (v##u[j] + v##d[j] + v##c[l] + v##c[r] - 4.0 * v##c[j])
static void relax(int k) {
  long n = n0 >> k; double c = pow(0.25, k), om = OM / (SC + 4.0 * c); const double *V0 = v[k].data(), *F = f[k].data(); double* W = w[k].data();
  rows(n, [=](long i, long u, long d) { const double *R vc = V0 + i, *R vu = V0 + u, *R vd = V0 + d, *R g = F + i; double* R o = W + i;
    return [=](long j, long l, long r) { o[j] = vc[j] + om * (g[j] - SC * vc[j] + c * LAP(v)); return 0.0; }; });
  swap(v[k], w[k]);
}
static void first(int k) {
  long n = n0 >> k; double om = OM / (SC + 4.0 * pow(0.25, k)), *R o = v[k].data(); const double* R g = f[k].data();
  #pragma omp parallel for simd schedule(static)
  for (long q = 0; q < n * n; q++) o[q] = om * g[q];
}
static void down(int k) {
  long n = n0 >> k, h = n / 2; double c = pow(0.25, k); const double *V0 = v[k].data(), *F = f[k].data(); double* O = f[k + 1].data();
  #pragma omp parallel
  {
    V buf(n); double* R t = buf.data();
    #pragma omp for schedule(static)
    for (long p = 0; p < h; p++) {
      for (int e = 0; e < 2; e++) {
        long i = 2 * p + e; const double *R vc = V0 + i * n, *R vu = V0 + max(i - 1, 0l) * n, *R vd = V0 + min(i + 1, n - 1) * n, *R g = F + i * n;
        auto cell = [=](long j, long l, long r) { double x = g[j] - SC * vc[j] + c * LAP(v); t[j] = e ? t[j] + x : x; };
        cell(0, 0, 1);
        #pragma omp simd
        for (long j = 1; j < n - 1; j++) cell(j, j - 1, j + 1);
        cell(n - 1, n - 2, n - 1);
      }
      double* R o = O + p * h;
      for (long q = 0; q < h; q++) o[q] = 0.25 * (t[2 * q] + t[2 * q + 1]);
    }
  }
}
static void correct(int k) {
  long n = n0 >> k; double* R o = v[k].data(); const double* R c = v[k + 1].data();
  #pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i++) for (long q = 0; q < n / 2; q++) { double x = c[i / 2 * (n / 2) + q]; o[i * n + 2 * q] += x; o[i * n + 2 * q + 1] += x; }
}
void run() {
  long n = n0; const double *A = a.data(), *B = b.data(); double* F = f[0].data();
  double goal = 0.02 * 0.02 * rows(n, [=](long i, long u, long d) { const double *R ac = A + i, *R au = A + u, *R ad = A + d, *R bc = B + i, *R bu = B + u, *R bd = B + d; double* R o = F + i;
    return [=](long j, long l, long r) { double x = LAP(a), y = LAP(b); x = fabs(x) < fabs(y) ? y : x; x = 0.5 * SC * (ac[j] + bc[j]) - x; o[j] = x; return x * x; }; });
  for (cycles = 1; cycles <= 4; cycles++) {
    for (int k = 0; k < L - 1; k++) { if (k || cycles == 1) first(k); else relax(k); relax(k); down(k); }
    first(L - 1); for (int q = 0; q < 11; q++) relax(L - 1);
    for (int k = L - 2; k >= 0; k--) { correct(k); relax(k); relax(k); }
    const double* V0 = v[0].data();
    nrm = rows(n, [=](long i, long u, long d) { const double *R vc = V0 + i, *R vu = V0 + u, *R vd = V0 + d, *R g = F + i;
      return [=](long j, long l, long r) { double x = g[j] - SC * vc[j] + LAP(v); return x * x; }; });
    if (nrm < goal) break;
  }
  cycles = min(cycles, 4l);
}
double checksum() { return chk(v[0]) + cycles + nrm; }
