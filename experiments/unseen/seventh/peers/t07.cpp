#include "vec.hpp"
constexpr int D = 32, B = 512, WINDOW = 12, C = 512;
struct S {
  i64 n; Arr<uint32_t> word; Arr<i64> time; Arr<double> off, gain, quad, energy, spec, cdf; Arr<int> hist, half; i64 kept = 0; double dose = 0;
  std::vector<int> priv[64];
  S(i64 n) : n(n), word(n), time(n), off(D), gain(D), quad(D), energy(n), spec(D * B), cdf(D * B), hist(D * B), half(D) {
    Rnd a(21), b(22), c(23), t(24), o(25), g(26), q(27); i64 now = 0;
    for (i64 i = 0; i < n; ++i) { double r = a[i]; word[i] = uint32_t(b[i] * 32) << 14 | uint32_t(c[i] * 4) << 12 | uint32_t(r * r * 4095); now += 2 + i64(t[i] * 100); time[i] = now; }
    for (int i = 0; i < D; ++i) { off[i] = o[i]; gain[i] = 0.9 + 0.2 * g[i]; quad[i] = 1e-6 * q[i]; }
  }
  void run() {
    i64 k = 0; double ds = 0;
#pragma omp parallel reduction(+ : k, ds)
    {
      auto& H = priv[omp_get_thread_num()]; H.assign(D * B, 0);
      const double *__restrict o = off.p, *__restrict g = gain.p, *__restrict q = quad.p; const i64* __restrict T = time.p; const uint32_t* __restrict w = word.p; double* __restrict E = energy.p;
      int* __restrict h = H.data();
#pragma omp for schedule(static)
      for (i64 b = 0; b < n; b += C) {
        i64 e = std::min(n, b + C); int place[C], m = 0; double s = 0, drift[C], val[C];
        const i64* Tb = T + b; const uint32_t* wb = w + b; double* __restrict Eb = E + b; int len = int(e - b), lo = b == 0, hi = e == n ? len - 1 : len;
#pragma omp simd
        for (int i = 0; i < len; ++i) drift[i] = 1.0 + 0.01 * sin(1e-6 * double(Tb[i]));
#pragma omp simd
        for (int i = 0; i < len; ++i) {
          uint32_t d = wb[i] >> 14 & 31;
          double v = (o[d] + g[d] * double(int(wb[i] & 4095))) * drift[i];
          v += q[d] * v * v;
          val[i] = v; Eb[i] = v;
        }
        auto near = [&](i64 i) { return (i > 0 && T[i] - T[i - 1] < WINDOW) || (i < n - 1 && T[i + 1] - T[i] < WINDOW); };
#pragma omp simd
        for (int i = lo; i < hi; ++i) place[i] = (Tb[i] - Tb[i - 1] < WINDOW) | (Tb[i + 1] - Tb[i] < WINDOW);
        if (lo) place[0] = near(b);
        if (hi < len) place[hi] = near(e - 1);
#pragma omp simd reduction(+ : m, s)
        for (int i = 0; i < len; ++i) {
          uint32_t d = wb[i] >> 14 & 31; double v = val[i];
          bool ok = ((wb[i] >> 12 & 3) != 3) & (v >= 20.0) & (v < 4096.0) & (place[i] == 0);
          place[i] = ok ? int(d) * B + int(v * 0.125) : -1;
          m += ok; s += ok ? v : 0.0;
        }
        for (i64 i = 0; i < e - b; ++i) if (place[i] >= 0) ++h[place[i]];
        k += m; ds += s;
      }
#pragma omp for schedule(static)
      for (int d = 0; d < D; ++d) {
        int T2 = omp_get_num_threads(); int* __restrict hh = hist.p + d * B;
        for (int b = 0; b < B; ++b) { int v = 0; for (int t = 0; t < T2; ++t) v += priv[t][d * B + b]; hh[b] = v; }
        double v = 0;
        for (int b = 0; b < B; ++b) {
          double x = 0.25 * hh[std::max(b - 1, 0)] + 0.5 * hh[b] + 0.25 * hh[std::min(b + 1, B - 1)];
          spec[d * B + b] = x; v += x; cdf[d * B + b] = v;
        }
        int b = 0; while (b < B - 1 && cdf[d * B + b] < 0.5 * v) ++b;
        half[d] = b;
      }
    }
    kept = k; dose = ds;
  }
  double checksum() { return chk(hist) + chk(spec) + chk(cdf) + chk(half) + chk(energy) + kept + dose; }
};
int main(int c, char** v) { return drive<S>(c, v); }
