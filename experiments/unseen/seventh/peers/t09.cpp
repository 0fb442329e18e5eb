#include "vec.hpp"
constexpr int W = 64, PERIOD = 128; constexpr float CAP = 5.0f;
struct S {
  i64 n; Arr<float> x, r, weight, cs, sn, h, dz; Arr<int> label; double loss = 0, spread = 0;
  static void fill(Arr<float>& a, int seed, double o, double s) { Rnd q(seed); for (size_t i = 0; i < a.n; ++i) a[i] = float(o + s * q[i]); }
  S(i64 n) : n(n), x(n * W), r(n * W), weight(W), cs(PERIOD * W / 2), sn(PERIOD * W / 2), h(n * W), dz(n * W), label(n) {
    Rnd q(41); for (i64 i = 0; i < n; ++i) label[i] = int(q[i] * W);
    fill(x, 42, -1, 2); fill(r, 43, -2, 4); fill(weight, 44, 0.5, 1); fill(cs, 45, 0, 1); fill(sn, 46, 0, 1);
  }
  void run() {
    double ls = 0, sp = 0; float scale = 1.0 / n;
#pragma omp parallel for schedule(static) reduction(+ : ls, sp)
    for (i64 i = 0; i < n; ++i) {
      alignas(64) float z[W], q[W], a[W]; const float *__restrict X = x.p + i * W, *__restrict R = r.p + i * W, *__restrict w = weight.p, *__restrict C = cs.p + i % PERIOD * (W / 2), *__restrict N = sn.p + i % PERIOD * (W / 2);
      float *__restrict H = h.p + i * W, *__restrict Z = dz.p + i * W;
      float ms = 0;
#pragma omp simd reduction(+ : ms)
      for (int j = 0; j < W; ++j) { float v = X[j] + R[j]; H[j] = v; ms += v * v; }
      float inv = 1.0f / std::sqrt(ms / W + 1e-6f);
#pragma omp simd
      for (int j = 0; j < W; ++j) z[j] = H[j] * inv * w[j];
#pragma omp simd
      for (int j = 0; j < W / 2; ++j) { q[j] = z[j] * C[j] - z[j + W / 2] * N[j]; q[j + W / 2] = z[j] * N[j] + z[j + W / 2] * C[j]; }
#pragma omp simd
      for (int j = 0; j < W; ++j) a[j] = CAP * tanhf(H[j] * q[j] / (1.0f + expf(-q[j])) * (1 / CAP));
      float m = a[0], t = 0;
#pragma omp simd reduction(max : m)
      for (int j = 0; j < W; ++j) m = a[j] > m ? a[j] : m;
#pragma omp simd reduction(+ : t)
      for (int j = 0; j < W; ++j) { float v = expf(a[j] - m); a[j] = v; t += v; }
      float it = 1.0f / t, s = 0;
#pragma omp simd reduction(+ : s)
      for (int j = 0; j < W; ++j) { float v = a[j] * it; a[j] = v; s += v * v; Z[j] = v * scale; }
      Z[label[i]] -= scale;
      ls -= std::log(a[label[i]] + 1e-9f); sp += s;
    }
    loss = ls / n; spread = sp / n;
  }
  double checksum() { return chk(h) + chk(dz) * n + loss + spread; }
};
int main(int c, char** v) { return drive<S>(c, v); }
