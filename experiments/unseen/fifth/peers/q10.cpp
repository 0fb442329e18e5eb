#include "common.hpp"
static long n; static VI start, target, label, nw, out, sz, parts[2]; static double fnd[5];
void setup(long size) {
  n = size; vector<vector<int>> dummy; vector<std::pair<int, int>> es; 
  for (long i = 0; i < n - 1; i++) if (rnd(i, 18) < 0.97) { es.push_back({(int)i, (int)i + 1}); }
  long a = es.size(); for (long i = 0; i < a; i++) es.push_back({es[i].second, es[i].first});
  vector<std::pair<int, int>> far; long q = 0; for (long k = 0; k < n; k++) if (rnd(k, 19) < 0.05) { double r = rnd(q++, 20); far.push_back({(int)k, (int)min(k + 2 + (long)(r * r * r * 3000), n - 1)}); }
  for (auto& e : far) es.push_back(e); for (auto& e : far) es.push_back({e.second, e.first});
  std::stable_sort(es.begin(), es.end(), [](auto& x, auto& y) { return x.first < y.first; });
  start = VI(n + 1); target = VI(es.size()); for (auto& e : es) start[e.first + 1]++; for (long i = 0; i < n; i++) start[i + 1] += start[i]; for (size_t i = 0; i < es.size(); i++) target[i] = es[i].second;
  label = nw = out = sz = parts[0] = parts[1] = VI(n);
}
static inline void amin(int* p, int v) { int o = __atomic_load_n(p, __ATOMIC_RELAXED); while (v < o && !__atomic_compare_exchange_n(p, &o, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} }
void run() {
  int rounds = 0; const int *R st = start.data(), *R tg = target.data();
  #pragma omp parallel for simd
  for (long i = 0; i < n; i++) label[i] = i;
  while (true) {
    long c = 0; const int* R l = label.data(); int *R w = nw.data(), *R o = out.data();
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) w[i] = l[i];
    #pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) { int v = l[i]; for (int e = st[i]; e < st[i + 1]; e++) v = min(v, l[tg[e]]); if (v < l[i]) { amin(w + l[i], v); amin(w + i, v); } }
    #pragma omp parallel for schedule(static) reduction(+ : c)
    for (long i = 0; i < n; i++) { int v = w[w[i]], u = w[w[v]]; o[i] = u; c += u != l[i]; }
    swap(label, out); rounds++; if (c == 0) break;
  }
  const int* R l = label.data();
  #pragma omp parallel for num_threads(2)
  for (int t = 0; t < 2; t++) { int* R p = parts[t].data(); std::fill(p, p + n, 0); for (long i = t * n / 2; i < (t + 1) * n / 2; i++) p[l[i]]++; }
  long cnt = 0, ed = 0; double sq = 0; int big = 0; int* R z = sz.data();
  #pragma omp parallel for simd reduction(+ : cnt, sq) reduction(max : big)
  for (long i = 0; i < n; i++) { int v = parts[0][i] + parts[1][i]; z[i] = v; sq += (double)v * v; cnt += l[i] == i; big = max(big, v); }
  int lim = max(big / 4, 2);
  #pragma omp parallel for reduction(+ : ed)
  for (long i = 0; i < n; i++) if (z[l[i]] >= lim) ed += st[i + 1] - st[i];
  fnd[0] = cnt; fnd[1] = sq; fnd[2] = big; fnd[3] = ed; fnd[4] = rounds;
}
double checksum() { double s = chk(sz); for (long i = 0; i < n; i++) s += label[i] * 1e-3 * (1.0 + i % 7); for (double f : fnd) s += f; return s; }
