#include "common.hpp"
constexpr int LV = 5; constexpr double FACTOR = 1.8;
struct S {
  i64 n; Arr<double> x, out; Arr<double> s[LV], d[LV], y[LV]; double noise = 0, kept = 0, err = 0;
  S(i64 n) : n(n), x(n), out(n) {
    Rnd a(4), b(5);
    for (i64 t = 0; t < n; ++t)
      x[t] = std::sin(t * 0.002) + 0.5 * std::cos(t * 0.0131) + (t % 5000 > 2500) + 0.3 * (a[t] + b[t] - 1);
    for (int k = 0; k < LV; ++k) { i64 h = n >> (k + 1); s[k] = Arr<double>(h); d[k] = Arr<double>(h); y[k] = Arr<double>(h); }
  }
  void run() {
    double nz = 0;
#pragma omp parallel
    for (int k = 0; k < LV; ++k) {
      i64 h = n >> (k + 1);
      const double* __restrict p = k ? s[k - 1].p : x.p;
      double *__restrict S = s[k].p, *__restrict D = d[k].p;
      auto det = [&](i64 i) { return p[2 * i + 1] - 0.5 * (p[2 * i] + p[2 * std::min(i + 1, h - 1)]); };
#pragma omp for reduction(+ : nz)
      for (i64 b = 0; b < h; b += 1024) {
        i64 e = std::min(b + 1024, h), em = std::min(e, h - 1);
#pragma omp simd
        for (i64 i = b; i < em; ++i) D[i] = p[2 * i + 1] - 0.5 * (p[2 * i] + p[2 * i + 2]);
        if (e > em) D[e - 1] = det(e - 1);
        S[b] = p[2 * b] + 0.25 * (det(std::max(b - 1, 0l)) + D[b]);
#pragma omp simd
        for (i64 i = b + 1; i < e; ++i) S[i] = p[2 * i] + 0.25 * (D[i - 1] + D[i]);
        if (k == 0)
#pragma omp simd reduction(+ : nz)
          for (i64 i = b; i < e; ++i) nz += std::fabs(D[i]);
      }
    }
    noise = nz / (n / 2);
    double t = FACTOR * noise, kp = 0, er = 0;
    auto shr = [t](double v) { return v > t ? v - t : v < -t ? v + t : 0.0; };
#pragma omp parallel
    for (int k = LV - 1; k >= 0; --k) {
      i64 h = n >> (k + 1);
      const double *__restrict q = k == LV - 1 ? s[k].p : y[k + 1].p, *__restrict D = d[k].p;
      double* __restrict o = k ? y[k].p : out.p; const double* __restrict X = x.p;
      auto ev = [&](i64 i) { return q[i] - 0.25 * (shr(D[std::max(i - 1, 0l)]) + shr(D[i])); };
#pragma omp for reduction(+ : kp, er)
      for (i64 b = 0; b < h; b += 512) {
        i64 e = std::min(b + 512, h), m = e - b; double E[513], W[513]; double kk = 0, ee = 0;
        W[0] = shr(D[std::max(b - 1, 0l)]);
#pragma omp simd reduction(+ : kk)
        for (i64 i = 0; i < m; ++i) { double w = shr(D[b + i]); W[i + 1] = w; kk += w != 0.0; }
#pragma omp simd
        for (i64 i = 0; i < m; ++i) E[i] = q[b + i] - 0.25 * (W[i] + W[i + 1]);
        E[m] = e < h ? ev(e) : E[m - 1];
#pragma omp simd
        for (i64 i = 0; i < m; ++i) { o[2 * (b + i)] = E[i]; o[2 * (b + i) + 1] = W[i + 1] + 0.5 * (E[i] + E[i + 1]); }
        if (k == 0)
#pragma omp simd reduction(+ : ee)
          for (i64 i = 2 * b; i < 2 * e; ++i) ee += (X[i] - o[i]) * (X[i] - o[i]);
        kp += kk; er += ee;
      }
    }
    kept = kp; err = er;
  }
  double checksum() { return chk(out) + noise + kept + err; }
};
int main(int c, char** v) { return drive<S>(c, v); }
