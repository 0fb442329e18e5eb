#include "common.hpp"
static long n; static V u, u2, c, c2, w; static double mass, energy;
static const double DT = 0.02, GROW = 0.3, SQ = 1.2, MIX = 0.4, STIR = 0.8;
void setup(long size) {
  n = size; u = V(n * n); c = V(n * n); u2 = c2 = w = V(n * n);
  for (long k = 0; k < n * n; k++) { u[k] = rnd(k, 2) - 0.5; c[k] = rnd(k, 3); }
}
template <class F> void rows(F f) {
  #pragma omp for schedule(static)
  for (long i = 0; i < n; i++) {
    long up = i ? i - 1 : n - 1, dn = i < n - 1 ? i + 1 : 0;
    auto cell = f(i, up, dn);
    cell(0l, n - 1, 1l);
    #pragma omp simd
    for (long j = 1; j < n - 1; j++) cell(j, j - 1, j + 1);
    cell(n - 1, n - 2, 0l);
  }
}
void run() {
  #pragma omp parallel
  for (int k = 0; k < 4; k++) {
    rows([&](long i, long up, long dn) {
      const double *R a = &u[up * n], *R m = &u[i * n], *R b = &u[dn * n]; double* R o = &w[i * n];
      return [=](long j, long l, long r) { o[j] = a[j] + b[j] + m[l] + m[r] - 3.0 * m[j]; }; });
    rows([&](long i, long up, long dn) {
      const double *R a = &w[up * n], *R m = &w[i * n], *R b = &w[dn * n], *R uu = &u[i * n]; double* R o = &u2[i * n];
      return [=](long j, long l, long r) { double x = uu[j], h = a[j] + b[j] + m[l] + m[r] - 3.0 * m[j];
        o[j] = x + DT * (GROW * x + SQ * x * x - x * x * x - h); }; });
    rows([&](long i, long up, long dn) {
      const double *R ua = &u2[up * n], *R um = &u2[i * n], *R ub = &u2[dn * n], *R ca = &c[up * n], *R cm = &c[i * n], *R cb = &c[dn * n];
      double* R o = &c2[i * n];
      return [=](long j, long l, long r) {
        auto fx = [=](long j, long r) { double v = 0.25 * STIR * (ub[j] + ub[r] - ua[j] - ua[r]); return v > 0.0 ? v * cm[j] : v * cm[r]; };
        double v0 = -0.25 * STIR * (um[r] + ub[r] - um[l] - ub[l]), f0 = v0 > 0.0 ? v0 * cm[j] : v0 * cb[j];
        double v1 = -0.25 * STIR * (ua[r] + um[r] - ua[l] - um[l]), f1 = v1 > 0.0 ? v1 * ca[j] : v1 * cm[j];
        double lap = ca[j] + cb[j] + cm[l] + cm[r] - 4.0 * cm[j], div = fx(j, r) - fx(l, j) + f0 - f1;
        o[j] = cm[j] + DT * (MIX * lap - div); }; });
    #pragma omp single
    { swap(u, u2); swap(c, c2); }
  }
  double a = 0, b = 0;
  #pragma omp parallel for simd schedule(static) reduction(+ : a, b)
  for (long k = 0; k < n * n; k++) { a += c[k]; b += u[k] * u[k] + c[k] * c[k]; }
  mass = a; energy = b;
}
double checksum() { return chk(u) + chk(c) + mass + energy; }
