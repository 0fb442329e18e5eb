#include "common.hpp"
static const int LV = 5, TP = 12; static long n; static V x, lows[LV], bands[LV], outs[LV]; static vector<int16_t> y; static double taps[TP], scale, clip_, en[LV];
void setup(long size) {
  n = size; x = rndv(n, 21); for (long t = 0; t < n; t++) x[t] = 0.4 * sin(t * 0.013) * (1 + sin(t * 0.0007)) + 0.2 * sin(t * 0.31) + 0.3 * (x[t] - 0.5);
  double s = 0; for (int k = 0; k < TP; k++) { double a = M_PI * ((k - 5.5) / 2); taps[k] = sin(a) / a * (0.5 - 0.5 * cos(2 * M_PI * (k + 1) / (TP + 1))); s += taps[k]; } for (auto& t : taps) t /= s;
  y.resize(n); scale = 30000.0; for (int k = 0; k < LV; k++) { lows[k] = V(n >> (k + 1)); bands[k] = V(n >> k); outs[k] = V(n >> k); }
}
static inline double ev(const double* L, long a, long b, long c, long d) { return 0.0625 * (9.0 * (L[b] + L[c]) - L[a] - L[d]); }
static inline double inter(const double* L, long i, long m) { long j = i / 2, o = i & 1; j += o; return ev(L, max(j - 2, 0L), max(j - 1, 0L), min(j, m - 1), min(j + 1, m - 1)); }
static inline double comp(const double* b, long i, long n, double lv) { double v = 0; for (int k = -4; k <= 4; k++) v += fabs(b[max(0L, min(n - 1, i + k))]); double r = v / 9 / lv; return b[i] * (1.0 / sqrt(1.0 + 0.5 * r * r)); }
static inline double compi(const double* b, long i, double lv) { double v = 0; for (int k = -4; k <= 4; k++) v += fabs(b[i + k]); double r = v / 9 / lv; return b[i] * (1.0 / sqrt(1.0 + 0.5 * r * r)); }
void run() {
  const double* X = x.data();
  for (int k = 0; k < LV; k++) {
    long N = n >> k, m = N / 2; double *R L = lows[k].data(), *R B = bands[k].data(), e = 0, e2 = 0;
    auto slow = [&](long i) { double v = 0; for (int t = 0; t < TP; t++) v += taps[t] * X[max(0L, min(N - 1, 2 * i + t - 5))]; L[i] = v; };
    for (long i = 0; i < min(3L, m); i++) slow(i); for (long i = max(3L, m - 4); i < m; i++) slow(i);
    #pragma omp parallel for simd schedule(static)
    for (long i = 3; i < m - 4; i++) { double v = 0; for (int t = 0; t < TP; t++) v += taps[t] * X[2 * i + t - 5]; L[i] = v; }
    #pragma omp parallel for simd schedule(static) reduction(+ : e, e2)
    for (long j = 2; j < m - 2; j++) { double d = X[2 * j] - ev(L, j - 2, j - 1, j, j + 1), f = X[2 * j + 1] - ev(L, j - 1, j, j + 1, j + 2); B[2 * j] = d; B[2 * j + 1] = f; e += d * d; e2 += f * f; }
    auto sl = [&](long i) { double d = X[i] - inter(L, i, m); B[i] = d; e += d * d; };
    for (long i = 0; i < min(4L, N); i++) sl(i); for (long i = max(4L, 2 * (m - 2)); i < N; i++) sl(i);
    en[k] = e + e2; X = L;
  }
  const double* Wh = X; long c = 0;
  for (int k = LV - 1; k >= 0; k--) {
    long N = n >> k, m = N / 2; const double* R B = bands[k].data(); double lv = sqrt(en[k] / N) + 0.000001, sc = scale; double* R O = outs[k].data(); int16_t* R Y = y.data();
    auto fin = [&](long i, double v, long& c) { if (k) O[i] = v; else { double w = max(-32767.0, min(32767.0, v * sc)); int q = w; Y[i] = q; c += q == 32767 || q == -32767; } };
    for (long i = 0; i < min(4L, N); i++) fin(i, inter(Wh, i, m) + comp(B, i, N, lv), c);
    for (long i = max(4L, 2 * (m - 2)); i < N; i++) fin(i, inter(Wh, i, m) + comp(B, i, N, lv), c);
    if (k) {
      #pragma omp parallel for simd schedule(static)
      for (long j = 2; j < m - 2; j++) { O[2 * j] = ev(Wh, j - 2, j - 1, j, j + 1) + compi(B, 2 * j, lv); O[2 * j + 1] = ev(Wh, j - 1, j, j + 1, j + 2) + compi(B, 2 * j + 1, lv); }
    } else {
      #pragma omp parallel for simd schedule(static) reduction(+ : c)
      for (long j = 2; j < m - 2; j++) for (int o = 0; o < 2; o++) { double w = (ev(Wh, j - 2 + o, j - 1 + o, j + o, j + 1 + o) + compi(B, 2 * j + o, lv)) * sc; w = max(-32767.0, min(32767.0, w)); int q = w; Y[2 * j + o] = q; c += q == 32767 || q == -32767; }
    }
    Wh = O;
  }
  clip_ = c; scale *= clip_ > 0.001 * n ? 0.98 : 1.01;
}
double checksum() { return chk(y) + scale + clip_ + chk(en, LV); }
