#pragma once
#include <omp.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
using i64 = long;
struct Rnd {
  uint64_t s;
  explicit Rnd(uint64_t seed) : s(seed * 0x632BE59BD9B4E019ull) {}
  double operator[](uint64_t i) const {
    uint64_t z = i + s;
    z = (z + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return double(z >> 11) * (1.0 / 9007199254740992.0);
  }
};
// 64-byte aligned memory, first touched by the threads
template <class T> struct Arr {
  T* p = nullptr; size_t n = 0;
  Arr() = default;
  explicit Arr(size_t n) : n(n) {
    p = (T*)aligned_alloc(2 << 20, (n * sizeof(T) + (2 << 20) - 1) / (2 << 20) * (2 << 20));
#pragma omp parallel for
    for (size_t i = 0; i < n; ++i) p[i] = T(0);
  }
  T& operator[](size_t i) const { return p[i]; }
};
template <class T> double chk(const T* a, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; ++i) s += double(a[i]) * double(1 + i % 7);
  return s;
}
template <class T> double chk(const Arr<T>& a) { return chk(a.p, a.n); }
inline double chk1(double v) { return v; }
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
#include <dirent.h>
// nanoseconds that this process' threads have waited for a processor
inline double waited() {
  double sum = 0; DIR* d = opendir("/proc/self/task");
  while (dirent* e = readdir(d)) {
    if (e->d_name[0] == '.') continue;
    char name[300]; snprintf(name, 300, "/proc/self/task/%s/schedstat", e->d_name);
    if (FILE* f = fopen(name, "r")) { double a, b; if (fscanf(f, "%lf %lf", &a, &b) == 2) sum += b; fclose(f); }
  }
  closedir(d); return sum;
}
// size: median of 5 warm runs and the checksum after the first; "serve": runs as asked on stdin
template <class S> int drive(int c, char** v) {
  i64 size = atol(v[1]);
  auto s = std::make_unique<S>(size);
  s->run();
  double sum = s->checksum();
  if (c > 2) {
    printf("%.15g\n", sum);
    fflush(stdout);
    int k;
    while (scanf("%d", &k) == 1) {
      for (int i = 0; i < k; ++i) {
        double t = now();
        s->run();
        printf("%.9f ", now() - t);
      }
      printf("\n");
      fflush(stdout);
    }
    return 0;
  }
  double t0 = now();
  do s->run(); while (now() - t0 < 0.3);
  std::vector<double> t;
  double late = now() + 8;
  while (t.size() < 5) {
    double w = waited(), a = now(); s->run(); double e = now() - a;
    if (waited() - w < 0.02e9 * e + 2e3 || now() > late) t.push_back(e);
  }
  std::sort(t.begin(), t.end());
  printf("%.9f %.15g %s\n", t[2], sum, now() > late ? "disturbed" : "");
  return 0;
}
