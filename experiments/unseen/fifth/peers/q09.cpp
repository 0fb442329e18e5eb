#include "common.hpp"
static const int D = 24; static const short P1 = 3; static long h, w; static vector<uint8_t> L, Ri, valid, cost; static vector<int> bl, br; static vector<short> tot; static V raw, out; static int p2; static double mean_;
void setup(long size) {
  w = size; h = 3 * w / 4; long n = h * w; L.resize(n); Ri.resize(n); valid.resize(n); cost.resize(n * D); bl.resize(n); br.resize(n); tot.resize(n * D); raw = out = V(n); p2 = 30;
  V a(n), r(n); for (long i = 0; i < n; i++) a[i] = 255 * rnd(i, 16);
  for (long y = 0; y < h; y++) for (long x = 0; x < w; x++) { r[y * w + x] = (a[y * w + x] + a[(y + h - 1) % h * w + x] + a[y * w + (x + w - 1) % w]) / 3; Ri[y * w + x] = (uint8_t)r[y * w + x]; }
  for (long y = 0; y < h; y++) for (long x = 0; x < w; x++) { long sh = 4 + (x / 37 + y / 29) % 14; double v = r[y * w + max(x - sh, 0L)] + 6 * (rnd(y * w + x, 17) - 0.5); L[y * w + x] = (uint8_t)max(0.0, min(255.0, v)); }
}
static void census(int* R o, const uint8_t* R im) {
  #pragma omp parallel for schedule(static)
  for (long y = 0; y < h; y++) {
    const uint8_t* r[5]; for (int a = -2; a <= 2; a++) r[a + 2] = im + max(0L, min(h - 1, y + a)) * w;
    auto px = [&](int x, int m2, int m1, int p1, int p2) { int v = 0, c = r[2][x]; for (int a = 0; a < 5; a++) { const uint8_t* q = r[a]; v = 2 * v + (q[m2] < c); v = 2 * v + (q[m1] < c); v = 2 * v + (q[x] < c); v = 2 * v + (q[p1] < c); v = 2 * v + (q[p2] < c); } o[y * w + x] = v; };
    int W = w; auto cl = [&](int x) { px(x, max(x - 2, 0), max(x - 1, 0), min(x + 1, W - 1), min(x + 2, W - 1)); };
    for (int x = 0; x < min(2, W); x++) cl(x);
    #pragma omp simd
    for (int x = 2; x < W - 2; x++) px(x, x - 2, x - 1, x + 1, x + 2);
    for (int x = max(2, W - 2); x < W; x++) cl(x);
  }
}
static inline void relax(short* R nw, const short* R old, const uint8_t* R c, short p1, short p2) {
  short least = old[1]; for (int d = 2; d <= D; d++) least = min(least, old[d]);
  short lp = least + p2;
  for (int d = 0; d < D; d++) { short m = min(old[d], old[d + 2]); m += p1; short b = min(min(old[d + 1], lp), m); nw[d + 1] = c[d] + b - least; }
}
void run() {
  census(bl.data(), L.data()); census(br.data(), Ri.data()); short q2 = p2; long number = 0; double sum = 0;
  #pragma omp parallel for schedule(static)
  for (long y = 0; y < h; y++) {
    short A[D + 2], B[D + 2]; A[0] = A[D + 1] = B[0] = B[D + 1] = 10000; short *a = A, *b = B;
    for (long x = 0; x < w; x++) {
      uint8_t* R c = &cost[(y * w + x) * D]; short* R t = &tot[(y * w + x) * D]; int l = bl[y * w + x]; const int* R rr = &br[y * w];
      if (x >= D) for (int d = 0; d < D; d++) c[d] = __builtin_popcount(l ^ rr[x - d]); else for (int d = 0; d < D; d++) c[d] = __builtin_popcount(l ^ rr[max(x - d, 0L)]);
      if (x == 0) for (int d = 0; d < D; d++) b[d + 1] = c[d]; else relax(b, a, c, P1, q2);
      swap(a, b); for (int d = 0; d < D; d++) t[d] = a[d + 1];
    }
    for (long x = w - 1; x >= 0; x--) {
      const uint8_t* R c = &cost[(y * w + x) * D]; short* R t = &tot[(y * w + x) * D];
      if (x == w - 1) for (int d = 0; d < D; d++) b[d + 1] = c[d]; else relax(b, a, c, P1, q2);
      swap(a, b); for (int d = 0; d < D; d++) t[d] += a[d + 1];
    }
  }
  #pragma omp parallel for schedule(static)
  for (long x0 = 0; x0 < w; x0 += 32) {
    long x1 = min(x0 + 32, w); short A[2][32][D + 2];
    for (int way = 0; way < 2; way++) {
      for (auto& p : A) for (auto& q : p) { q[0] = q[D + 1] = 10000; }
      for (long k = 0; k < h; k++) { long y = way == 0 ? k : h - 1 - k;
        for (long x = x0; x < x1; x++) {
          const uint8_t* R c = &cost[(y * w + x) * D]; short* R t = &tot[(y * w + x) * D]; short *o = A[(k + 1) & 1][x - x0], *b = A[k & 1][x - x0];
          if (k == 0) for (int d = 0; d < D; d++) b[d + 1] = c[d]; else relax(b, o, c, P1, q2);
          for (int d = 0; d < D; d++) t[d] += b[d + 1];
        } }
    }
  }
  #pragma omp parallel for schedule(static) reduction(+ : number)
  for (long y = 0; y < h; y++) {
    vector<int> right(w); double* R rw = &raw[y * w];
    for (long x = 0; x < w; x++) {
      const short* R s = &tot[(y * w + x) * D]; int best = 0; for (int d = 1; d < D; d++) if (s[d] < s[best]) best = d;
      double v = best; if (best > 0 && best < D - 1) { double p = s[best - 1] - s[best], q = s[best + 1] - s[best]; v += 0.5 * (p - q) / max(p + q, 1.0); } rw[x] = v;
      best = 0; const short* t = &tot[(y * w + x) * D]; short least = t[0]; for (long d = 1; d < min((long)D, w - x); d++) { short u = t[d * (D + 1)]; if (u < least) { least = u; best = d; } } right[x] = best;
    }
    for (long x = 0; x < w; x++) { int d = rw[x] + 0.5; bool ok = x - d >= 0 && fabs(rw[x] - right[max(x - d, 0L)]) <= 1.25; valid[y * w + x] = ok; number += ok; }
  }
  #pragma omp parallel for schedule(static) reduction(+ : sum)
  for (long y = 0; y < h; y++) {
    const double *R a = &raw[y * w], *R U = &raw[max(y - 1, 0L) * w], *R DN = &raw[min(y + 1, h - 1) * w]; double* R o = &out[y * w]; const uint8_t* R vd = &valid[y * w];
    auto px = [&](long x, long xm, long xp) { double u = U[x], d = DN[x], l = a[xm], r = a[xp], f = max(min(u, d), min(l, r)), g = min(max(u, d), max(l, r)), v = max(min(f, g), min(max(f, g), a[x])); o[x] = v; return v * vd[x]; };
    sum += px(0, 0, 1); double s = 0;
    #pragma omp simd reduction(+ : s)
    for (long x = 1; x < w - 1; x++) s += px(x, x - 1, x + 1);
    sum += s + px(w - 1, w - 2, w - 1);
  }
  mean_ = sum / max(number, 1L); p2 = number > 0.6 * h * w ? 30 : 40;
}
double checksum() { double s = chk(out) + mean_ + p2; return s + chk(valid); }
