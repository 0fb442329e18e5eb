#pragma once
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <omp.h>
using std::vector; using std::max; using std::min; using std::swap;
#include <sys/mman.h>
template <class T> struct Huge {  // huge pages, as NumPy asks for
  typedef T value_type; Huge() {} template <class U> Huge(const Huge<U>&) {}
  T* allocate(size_t n) { size_t b = (n * sizeof(T) + (2u << 20) - 1) & ~(size_t)((2u << 20) - 1);
    if (n * sizeof(T) < (4u << 20)) return (T*)aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64);
    void* p = aligned_alloc(2u << 20, b); madvise(p, b, MADV_HUGEPAGE); return (T*)p; }
  void deallocate(T* p, size_t) { free(p); }
  template <class U> bool operator==(const Huge<U>&) const { return true; }
  template <class U> bool operator!=(const Huge<U>&) const { return false; }
};
typedef vector<double, Huge<double>> V; typedef vector<int32_t, Huge<int32_t>> VI; typedef vector<int64_t, Huge<int64_t>> VL;
#define R __restrict__
inline double rnd(uint64_t i, uint64_t seed) {
  uint64_t z = i + seed * 0x632BE59BD9B4E019ull;
  z = (z + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return (double)(z >> 11) * (1.0 / 9007199254740992.0);
}
inline V rndv(size_t n, uint64_t seed) { V a(n); for (size_t i = 0; i < n; i++) a[i] = rnd(i, seed); return a; }
template <class T> double chk(const T* a, size_t n) { double s = 0; for (size_t i = 0; i < n; i++) s += (double)a[i] * (1.0 + i % 7); return s; }
template <class T, class A> double chk(const vector<T, A>& a) { return chk(a.data(), a.size()); }
inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
void setup(long size); void run(); double checksum();
int main(int argc, char** argv) {
  for (int a = 1; a < argc; a++) {
    if (!strcmp(argv[a], "serve")) {  // then one size; a run per line of stdin
      setup(atol(argv[a + 1])); run(); printf("%.15g\n", checksum()); fflush(stdout);
      char line[64];
      while (fgets(line, 64, stdin)) { double t = now(); run(); printf("%.9g\n", now() - t); fflush(stdout); }
      return 0;
    }
    setup(atol(argv[a])); run(); double c = checksum(); vector<double> t;
    for (int k = 0; k < 5; k++) { double s = now(); run(); t.push_back(now() - s); }
    std::sort(t.begin(), t.end()); printf("%s %.6f s checksum %.15g\n", argv[a], t[2], c);
  }
}
