#include "common.hpp"
static const int L = 40, W = 64; static long n; static VI x, y, score; static long result;
void setup(long size) {
  n = size; x = VI(L * n); y = VI(L * n); score = VI(n);
  for (long k = 0; k < L * n; k++) { x[k] = (int)(4.0 * rnd(k, 70)); y[k] = (int)(4.0 * rnd(k, 71)); }
}
static inline int mx(int a, int b) { return a > b ? a : b; }
void run() {
  long sum = 0;
  #pragma omp parallel for schedule(static) reduction(+ : sum)
  for (long lo = 0; lo < n; lo += W) {
    int h[L + 1][W] = {}, f[L + 1][W] = {}, best[W] = {}; long w = min((long)W, n - lo);
    for (int i = 0; i < L; i++) {
      int e[W] = {}, diag[W] = {}; const int* X = &x[i * n + lo];
      for (int j = 0; j < L; j++) {
        const int* Y = &y[j * n + lo];
        #pragma omp simd
        for (long b = 0; b < w; b++) {
          int up = h[j + 1][b], ee = mx(e[b] - 1, h[j][b] - 5), ff = mx(f[j + 1][b] - 1, up - 5);
          int v = mx(mx(diag[b] + (X[b] == Y[b] ? 3 : -2), 0), mx(ee, ff));
          e[b] = ee; f[j + 1][b] = ff; diag[b] = up; h[j + 1][b] = v; best[b] = mx(best[b], v);
        }
      }
    }
    for (long b = 0; b < w; b++) { score[lo + b] = best[b]; sum += best[b]; }
  }
  result = sum;
}
double checksum() { return chk(score) + result; }
