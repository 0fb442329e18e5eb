#include "common.hpp"
constexpr int BK = 65536;
struct S {
  i64 n; Arr<uint8_t> text, low; Arr<int> count; i64 words = 0, letters = 0, lines = 0, lng = 0, used = 0; std::vector<int> priv[64];
  S(i64 n) : n(n), text(n), low(n), count(BK) {
    Rnd a(31), b(32);
    for (i64 i = 0; i < n; ++i) {
      double r = a[i], q = b[i]; int l = 97 + int(q * q * 26);
      text[i] = r < 0.70 ? l : r < 0.78 ? l - 32 : r < 0.82 ? 48 + int(q * 10) : r < 0.83 ? 10 : 32;
    }
  }
  void run() {
    i64 W = 0, L = 0, N = 0, G = 0, U = 0;
#pragma omp parallel reduction(+ : W, L, N, G, U)
    {
      int t = omp_get_thread_num(), T = omp_get_num_threads(); i64 lo = n * t / T, hi = n * (t + 1) / T;
      auto& P = priv[t]; P.assign(BK, 0); int* __restrict h = P.data();
      const uint8_t* __restrict x = text.p; uint8_t* __restrict y = low.p;
      auto fold = [](uint8_t c) -> uint8_t { return c + (uint8_t(c - 65) <= 25 ? 32 : 0); };
      auto letter = [](uint8_t c) { return uint8_t(c - 97) <= 25; };
      i64 k = lo;
      constexpr i64 C = 16384;
      for (i64 b = lo; b < hi; b += C) {
        i64 e = std::min(hi, b + C); i64 l = 0, m = 0;
#pragma omp simd reduction(+ : l, m)
        for (i64 i = b; i < e; ++i) { uint8_t c = fold(x[i]); y[i] = c; l += letter(c); m += c == 10; }
        L += l; N += m;
      }
      if (k > 0 && letter(fold(x[k - 1]))) while (k < hi && letter(y[k])) ++k;
      while (k < hi) {
        if (!letter(y[k])) { ++k; continue; }
        uint32_t v = 2166136261u; i64 s = k;
        for (; k < n; ++k) { uint8_t c = k < hi ? y[k] : fold(x[k]); if (!letter(c)) break; v = (v ^ c) * 16777619u; }
        v ^= v >> 15; v *= 2246822519u; v ^= v >> 13;
        ++h[v & 65535]; ++W; G += k - s > 6;
      }
#pragma omp barrier
#pragma omp for schedule(static)
      for (int b = 0; b < BK; ++b) { int v = 0; for (int q = 0; q < T; ++q) v += priv[q][b]; count[b] = v; U += v > 0; }
    }
    words = W; letters = L; lines = N; lng = G; used = U;
  }
  double checksum() { return chk(low) + chk(count) + words + letters + lines + lng + used; }
};
int main(int c, char** v) { return drive<S>(c, v); }
