#include "common.hpp"
typedef vector<float> F;
static long n; static vector<uint16_t> raw; static vector<uint8_t> o[3]; static double gain, burnt;
void setup(long size) {
  n = size; raw.resize(n * n); for (auto& v : o) v.resize(n * n); gain = 0.001; burnt = 0;
  for (long y = 0; y < n; y++) for (long x = 0; x < n; x++) raw[y * n + x] = (uint16_t)(64 + 300 * rnd(y * n + x, 1) + ((x / 9) * 37 + (y / 7) * 53) % 600);
}
static const int TH = 16;
void run() {
  double mean = 0; long bur = 0; const double gn = gain;
  #pragma omp parallel reduction(+ : mean, bur)
  {
    F lin((TH + 10) * n), g((TH + 6) * n), d((TH + 6) * n), o0((TH + 4) * n), o1((TH + 4) * n), o2((TH + 4) * n), lu((TH + 4) * n), ro((TH + 4) * n);
    #pragma omp for schedule(dynamic, 1)
    for (long st = 0; st < (n + TH - 1) / TH; st++) {
      long y0 = st * TH, y1 = min(y0 + TH, n), a = max(y0 - 5, 0L), z = min(y1 + 5, n);
      for (long y = a; y < z; y++) {
        double p = gn * (y % 2 == 0 ? 1.9 : 1.0), q = gn * (y % 2 == 0 ? 1.0 : 1.5);
        float* R l = &lin[(y - a) * n]; const uint16_t* R r = &raw[y * n];
        #pragma omp simd
        for (int x = 0; x < n; x++) l[x] = max((int)r[x] - 64, 0) * (x % 2 == 0 ? p : q);
      }
      long b = max(y0 - 3, 0L), e = min(y1 + 3, n);
      for (long y = b; y < e; y++) {
        const float *R L = &lin[(y - a) * n], *R U = &lin[(max(y - 1, 0L) - a) * n], *R D = &lin[(min(y + 1, n - 1) - a) * n], *R U2 = &lin[(max(y - 2, 0L) - a) * n], *R D2 = &lin[(min(y + 2, n - 1) - a) * n];
        float *R G = &g[(y - b) * n], *R DD = &d[(y - b) * n];
        auto px = [&](int x, int m2, int m1, int p1, int p2) {
          float c = L[x], l = L[m1], r = L[p1], u = U[x], w = D[x];
          double ch = 2.0 * c - L[m2] - L[p2], cv = 2.0 * c - U2[x] - D2[x];
          double vh = 0.5 * (l + r) + 0.25 * ch, vv = 0.5 * (u + w) + 0.25 * cv;
          double v = (fabsf(l - r) + fabs(ch) < fabsf(u - w) + fabs(cv)) ? vh : vv;
          G[x] = (x + y) % 2 == 1 ? c : (float)v; DD[x] = c - G[x]; };
        int N = n;
        for (int x = 0; x < min(2, N); x++) px(x, max(x - 2, 0), max(x - 1, 0), min(x + 1, N - 1), min(x + 2, N - 1));
        #pragma omp simd
        for (int x = 2; x < N - 2; x++) px(x, x - 2, x - 1, x + 1, x + 2);
        for (int x = max(2, N - 2); x < N; x++) px(x, max(x - 2, 0), max(x - 1, 0), min(x + 1, N - 1), min(x + 2, N - 1));
      }
      long s = max(y0 - 2, 0L), t = min(y1 + 2, n); int N = n;
      for (long y = s; y < t; y++) {
        const float *R K = &d[(y - b) * n], *R M = &d[(max(y - 1, 0L) - b) * n], *R P = &d[(min(y + 1, n - 1) - b) * n], *R G = &g[(y - b) * n];
        float *R a0 = &o0[(y - s) * n], *R a1 = &o1[(y - s) * n], *R a2 = &o2[(y - s) * n], *R LU = &lu[(y - s) * n], *R RO = &ro[(y - s) * n];
        auto px = [&](int x, int xm, int xp) {
          double h = 0.5 * (K[xm] + K[xp]), v = 0.5 * (M[x] + P[x]), q = 0.25 * (M[xm] + M[xp] + P[xm] + P[xp]), c = K[x];
          double dr = y % 2 == 0 ? (x % 2 == 0 ? c : h) : (x % 2 == 0 ? v : q), db = y % 2 == 0 ? (x % 2 == 0 ? q : v) : (x % 2 == 0 ? h : c);
          float gg = G[x], r = gg + dr, bb = gg + db;
          a0[x] = max(1.55 * r + -0.40 * gg + -0.15 * bb, 0.0); a1[x] = max(-0.20 * r + 1.45 * gg + -0.25 * bb, 0.0); a2[x] = max(0.02 * r + -0.52 * gg + 1.50 * bb, 0.0);
          LU[x] = max(0.2126 * a0[x] + 0.7152 * a1[x] + 0.0722 * a2[x], 0.0); };
        px(0, 0, min(1, N - 1));
        #pragma omp simd
        for (int x = 1; x < N - 1; x++) px(x, x - 1, x + 1);
        if (N > 1) px(N - 1, N - 2, N - 1);
        auto bl = [&](int x, int m2, int m1, int p1, int p2) { RO[x] = 0.0625 * (LU[m2] + LU[p2]) + 0.25 * (LU[m1] + LU[p1]) + 0.375 * LU[x]; };
        for (int x = 0; x < min(2, N); x++) bl(x, max(x - 2, 0), max(x - 1, 0), min(x + 1, N - 1), min(x + 2, N - 1));
        #pragma omp simd
        for (int x = 2; x < N - 2; x++) bl(x, x - 2, x - 1, x + 1, x + 2);
        for (int x = max(2, N - 2); x < N; x++) bl(x, max(x - 2, 0), max(x - 1, 0), min(x + 1, N - 1), min(x + 2, N - 1));
      }
      for (long y = y0; y < y1; y++) {
        long j = (y - s) * n; const float *R A2 = &ro[(max(y - 2, 0L) - s) * n], *R A1 = &ro[(max(y - 1, 0L) - s) * n], *R Z1 = &ro[(min(y + 1, n - 1) - s) * n], *R Z2 = &ro[(min(y + 2, n - 1) - s) * n], *R A0 = &ro[j], *R LU = &lu[j];
        const float *R a0 = &o0[j], *R a1 = &o1[j], *R a2 = &o2[j]; uint8_t *R r0 = &o[0][y * n], *R r1 = &o[1][y * n], *R r2 = &o[2][y * n];
        double m = 0; int bu = 0;
        #pragma omp simd reduction(+ : m, bu)
        for (int x = 0; x < N; x++) {
          float soft = 0.0625 * (A2[x] + Z2[x]) + 0.25 * (A1[x] + Z1[x]) + 0.375 * A0[x], l = LU[x];
          float ra = max(1.0 + 0.8 * (l - soft) / (l + 0.001), 0.0); m += l;
          int p = (int)(255.0 * sqrt(min((double)(a0[x] * ra), 1.0)) + 0.5), q = (int)(255.0 * sqrt(min((double)(a1[x] * ra), 1.0)) + 0.5), r = (int)(255.0 * sqrt(min((double)(a2[x] * ra), 1.0)) + 0.5);
          r0[x] = p; r1[x] = q; r2[x] = r; bu += (p == 255) + (q == 255) + (r == 255);
        }
        mean += m; bur += bu;
      }
    }
  }
  burnt = bur; gain *= 0.7 + 0.3 * 0.4 / (mean / (n * n));
}
double checksum() { double s = gain + burnt; for (auto& v : o) s += chk(v); return s; }
