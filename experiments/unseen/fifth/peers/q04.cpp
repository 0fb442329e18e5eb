#include "common.hpp"
static long n; static V sig, fa, md; static double D[12][7], level, mean_;
void setup(long size) {
  n = size; sig = V(n * 12); fa = V(n); md = V(n);
  for (int k = 0; k < 12; k++) {
    double q = k + 0.5, z = 1.0 - q / 12, phi = q * 2.399963229728653, g0 = sqrt(1 - z * z) * cos(phi), g1 = sqrt(1 - z * z) * sin(phi), g2 = z, b = k < 9 ? 1.0 : 0.1;
    double row[7] = {-b * g0 * g0, -b * g1 * g1, -b * g2 * g2, -2 * b * g0 * g1, -2 * b * g0 * g2, -2 * b * g1 * g2, 1.0}; memcpy(D[k], row, sizeof row);
  }
  for (long i = 0; i < n; i++) {
    double t[7] = {0.3 + rnd(3 * i, 6), 0.3 + rnd(3 * i + 1, 6), 0.3 + rnd(3 * i + 2, 6), 0.3 * (rnd(i, 7) - 0.5), 0, 0, 1.0};
    for (int k = 0; k < 12; k++) { double e = 0; for (int j = 0; j < 7; j++) e += t[j] * D[k][j]; sig[i * 12 + k] = exp(e) * (1.0 + 0.05 * (rnd(i * 12 + k, 8) - 0.5)); }
  }
}
void run() {
  static const int L = 8;  // voxels side by side
  #pragma omp parallel for schedule(static)
  for (long i0 = 0; i0 < n; i0 += L) {
    double a[28][L], b[7][L], w[12][L], y[12][L]; int m = min((long)L, n - i0);
    for (int j = 0; j < L; j++) for (int k = 0; k < 12; k++) { double s = sig[(i0 + min(j, m - 1)) * 12 + k]; w[k][j] = s * s; y[k][j] = log(max(s, 0.001)); }
    for (int r = 0; r < 7; r++) {
      double v[L];
      for (int c = 0; c <= r; c++) {
        for (int j = 0; j < L; j++) v[j] = 0;
        for (int k = 0; k < 12; k++) for (int j = 0; j < L; j++) v[j] += w[k][j] * D[k][r] * D[k][c];
        for (int j = 0; j < L; j++) a[r * (r + 1) / 2 + c][j] = v[j];
      }
      for (int j = 0; j < L; j++) v[j] = 0;
      for (int k = 0; k < 12; k++) for (int j = 0; j < L; j++) v[j] += w[k][j] * D[k][r] * y[k][j];
      for (int j = 0; j < L; j++) b[r][j] = v[j];
    }
    for (int r = 0; r < 7; r++) {
      int Rr = r * (r + 1) / 2;
      for (int c = 0; c <= r; c++) {
        int C = c * (c + 1) / 2; double v[L];
        for (int j = 0; j < L; j++) v[j] = a[Rr + c][j];
        for (int k = 0; k < c; k++) for (int j = 0; j < L; j++) v[j] -= a[Rr + k][j] * a[C + k][j];
        if (c == r) for (int j = 0; j < L; j++) a[Rr + c][j] = sqrt(max(v[j], 1e-30)); else for (int j = 0; j < L; j++) a[Rr + c][j] = v[j] / a[C + c][j];
      }
      for (int k = 0; k < r; k++) for (int j = 0; j < L; j++) b[r][j] -= a[Rr + k][j] * b[k][j];
      for (int j = 0; j < L; j++) b[r][j] /= a[Rr + r][j];
    }
    for (int r = 6; r >= 0; r--) {
      for (int k = r + 1; k < 7; k++) for (int j = 0; j < L; j++) b[r][j] -= a[k * (k + 1) / 2 + r][j] * b[k][j];
      for (int j = 0; j < L; j++) b[r][j] /= a[r * (r + 1) / 2 + r][j];
    }
    for (int j = 0; j < m; j++) {
      double q = (b[0][j] + b[1][j] + b[2][j]) / 3.0, xx = b[0][j] - q, yy = b[1][j] - q, zz = b[2][j] - q, xy = b[3][j], xz = b[4][j], yz = b[5][j];
      double off = xy * xy + xz * xz + yz * yz, p = sqrt((xx * xx + yy * yy + zz * zz + 2.0 * off) / 6.0 + 1e-30);
      double det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz); det += xz * (xy * yz - yy * xz);
      double g = acos(max(-1.0, min(1.0, 0.5 * det / (p * p * p)))) / 3.0, e0 = q + 2.0 * p * cos(g), e2 = q + 2.0 * p * cos(g + 2.0943951023931953), e1 = 3.0 * q - e0 - e2, mm = (e0 + e1 + e2) / 3.0;
      md[i0 + j] = mm; fa[i0 + j] = sqrt(1.5 * ((e0 - mm) * (e0 - mm) + (e1 - mm) * (e1 - mm) + (e2 - mm) * (e2 - mm)) / (e0 * e0 + e1 * e1 + e2 * e2 + 1e-30));
    }
  }
  double low = 0, high = 1; const double *R F = fa.data(), *R M = md.data();
  for (int k = 0; k < 6; k++) {
    double l = 0.5 * (low + high); long c = 0;
    #pragma omp parallel for simd reduction(+ : c)
    for (long i = 0; i < n; i++) c += F[i] > l;
    if (c * 3 > n) low = l; else high = l;
  }
  long c = 0; double s = 0;
  #pragma omp parallel for simd reduction(+ : c, s)
  for (long i = 0; i < n; i++) { c += F[i] > low; s += F[i] > low ? M[i] : 0.0; }
  level = low; mean_ = s / c;
}
double checksum() { return chk(fa) + chk(md) + level + mean_; }
