#include "vec.hpp"
constexpr int SWEEPS = 3, W = 16;
struct S {
  i64 n; Arr<double> sig, out, fa; double mean = 0;
  S(i64 n) : n(n), sig(6 * n), out(9 * n), fa(n) { Rnd r(3); for (i64 i = 0; i < 6 * n; ++i) sig[i] = 1.0 + 0.3 * r[i]; }
  using L = double[W];
  template <int P, int Q> static void rotate(double (*__restrict a)[W], double (*__restrict v)[W]) {
#pragma omp simd
    for (int l = 0; l < W; ++l) {
      double pq = a[3 * P + Q][l], th = (a[4 * Q][l] - a[4 * P][l]) / (2.0 * pq);
      double t = 1.0 / (std::fabs(th) + std::sqrt(th * th + 1.0));
      t = th < 0 ? -t : t;
      double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
      bool on = std::fabs(pq) > 1e-14;
      c = on ? c : 1.0; s = on ? s : 0.0;
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) { double x = a[3 * r + P][l], y = a[3 * r + Q][l]; a[3 * r + P][l] = c * x - s * y; a[3 * r + Q][l] = s * x + c * y; }
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) { double x = a[3 * P + r][l], y = a[3 * Q + r][l]; a[3 * P + r][l] = c * x - s * y; a[3 * Q + r][l] = s * x + c * y; }
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) { double x = v[3 * r + P][l], y = v[3 * r + Q][l]; v[3 * r + P][l] = c * x - s * y; v[3 * r + Q][l] = s * x + c * y; }
    }
  }
  void run() {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (i64 b = 0; b < n; b += W) {
      int m = std::min<i64>(W, n - b);
      alignas(64) double g[6][W], a[9][W], v[9][W], lam[3][W], lg[3][W], f[W];
      for (int l = 0; l < W; ++l) for (int q = 0; q < 6; ++q) g[q][l] = sig[(b + std::min(l, m - 1)) * 6 + q];
#pragma omp simd
      for (int l = 0; l < W; ++l) {
        a[0][l] = 0.5 * (g[2][l] + g[3][l] + g[4][l] + g[5][l] - g[0][l] - g[1][l]);
        a[4][l] = 0.5 * (g[0][l] + g[1][l] + g[4][l] + g[5][l] - g[2][l] - g[3][l]);
        a[8][l] = 0.5 * (g[0][l] + g[1][l] + g[2][l] + g[3][l] - g[4][l] - g[5][l]);
        a[5][l] = a[7][l] = 0.5 * (g[0][l] - g[1][l]); a[2][l] = a[6][l] = 0.5 * (g[2][l] - g[3][l]); a[1][l] = a[3][l] = 0.5 * (g[4][l] - g[5][l]);
        for (int q = 0; q < 9; ++q) v[q][l] = q % 4 == 0;
      }
      for (int s = 0; s < SWEEPS; ++s) { rotate<0, 1>(a, v); rotate<0, 2>(a, v); rotate<1, 2>(a, v); }
#pragma omp simd
      for (int l = 0; l < W; ++l) {
        double x = std::max(a[0][l], 1e-6), y = std::max(a[4][l], 1e-6), z = std::max(a[8][l], 1e-6), mu = (x + y + z) / 3.0;
        f[l] = std::sqrt(1.5 * ((x - mu) * (x - mu) + (y - mu) * (y - mu) + (z - mu) * (z - mu)) / (x * x + y * y + z * z));
        lam[0][l] = x; lam[1][l] = y; lam[2][l] = z;
      }
      for (int q = 0; q < 3; ++q)
#pragma omp simd
        for (int l = 0; l < W; ++l) lg[q][l] = log(lam[q][l]);
      for (int r = 0; r < 3; ++r) for (int c = r; c < 3; ++c) {
        alignas(64) double o[W];
#pragma omp simd
        for (int l = 0; l < W; ++l) o[l] = v[3 * r][l] * lg[0][l] * v[3 * c][l] + v[3 * r + 1][l] * lg[1][l] * v[3 * c + 1][l] + v[3 * r + 2][l] * lg[2][l] * v[3 * c + 2][l];
        for (int l = 0; l < m; ++l) out[(b + l) * 9 + 3 * r + c] = out[(b + l) * 9 + 3 * c + r] = o[l];
      }
      for (int l = 0; l < m; ++l) { fa[b + l] = f[l]; sum += f[l]; }
    }
    mean = sum / n;
  }
  double checksum() { return chk(out) + chk(fa) + mean; }
};
int main(int c, char** v) { return drive<S>(c, v); }
