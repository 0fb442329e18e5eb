#include "common.hpp"
static long n; static V z, s, cash; static double value;
void setup(long size) {
  n = size; z = V(6 * n); s = V(6 * n); cash = V(n);
  for (long k = 0; k < 6 * n; k++) z[k] = (rnd(k, 60) + rnd(k, 61) + rnd(k, 62) + rnd(k, 63)) * sqrt(3.0) - 2.0 * sqrt(3.0);
}
void run() {
  double dt = 1.0 / 6.0, drift = (0.05 - 0.5 * 0.09) * dt, vol = 0.3 * sqrt(dt), f = exp(-0.05 * dt);
  #pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i++) { double v = 1.0; for (int t = 0; t < 6; t++) { v *= exp(drift + vol * z[t * n + i]); s[t * n + i] = v; } cash[i] = max(1.0 - v, 0.0); }
  double* R C = cash.data();
  for (int t = 5; t > 0; t--) {
    const double* R S = &s[(t - 1) * n]; double m0 = 0, m1 = 0, m2 = 0, m3 = 0, m4 = 0, r0 = 0, r1 = 0, r2 = 0;
    #pragma omp parallel for simd schedule(static) reduction(+ : m0, m1, m2, m3, m4, r0, r1, r2)
    for (long i = 0; i < n; i++) {
      double c = C[i] * f, x = 1.0 - S[i], g = x > 0.0 ? 1.0 : 0.0; C[i] = c; x = x > 0.0 ? x : 0.0;
      m0 += g; m1 += x; m2 += x * x; m3 += x * x * x; m4 += x * x * x * x; r0 += g * c; r1 += x * c; r2 += x * x * c;
    }
    double A[3][4] = {{m0, m1, m2, r0}, {m1, m2, m3, r1}, {m2, m3, m4, r2}};
    for (int k = 0; k < 3; k++) { int p = k; for (int r = k + 1; r < 3; r++) if (fabs(A[r][k]) > fabs(A[p][k])) p = r;
      for (int c = 0; c < 4; c++) swap(A[k][c], A[p][c]);
      for (int r = k + 1; r < 3; r++) { double q = A[r][k] / A[k][k]; for (int c = k; c < 4; c++) A[r][c] -= q * A[k][c]; } }
    double c = A[2][3] / A[2][2], b = (A[1][3] - A[1][2] * c) / A[1][1], a = (A[0][3] - A[0][1] * b - A[0][2] * c) / A[0][0];
    #pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) { double x = 1.0 - S[i], o = C[i]; C[i] = x > 0.0 && x > a + x * (b + c * x) ? x : o; }
  }
  double v = 0;
  #pragma omp parallel for simd schedule(static) reduction(+ : v)
  for (long i = 0; i < n; i++) { C[i] *= f; v += C[i]; }
  value = v / n;
}
double checksum() { return chk(cash) + value; }
