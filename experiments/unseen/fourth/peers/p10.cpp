#include "common.hpp"
static long n, rounds; static VI start, to, pr, colour, fresh; static vector<long> hist;
void setup(long size) {
  n = size; start = VI(n + 1); pr = VI(n); colour = VI(n); fresh = VI(n); long off[5] = {1, 3, 17, 171, 4003};
  to.clear();
  for (long i = 0; i < n; i++) {
    for (int k = 0; k < 5; k++) { long b = ((i - off[k]) % n + n) % n;
      if (rnd(i, 80 + k) < 0.7) to.push_back((i + off[k]) % n);
      if (rnd(b, 80 + k) < 0.7) to.push_back(b); }
    start[i + 1] = to.size(); pr[i] = (int)(1e9 * rnd(i, 90));
  }
}
void run() {
  int* R C = colour.data();
  #pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i++) C[i] = -1;
  long left = 1; rounds = 0;
  while (left) {
    left = 0; const int* R c = colour.data(); int* R o = fresh.data();
    #pragma omp parallel for schedule(static) reduction(+ : left)
    for (long i = 0; i < n; i++) {
      int x = c[i];
      if (x < 0) {
        int p = pr[i], used = 0; bool ok = true;
        for (int k = start[i]; k < start[i + 1]; k++) { int j = to[k], cj = c[j];
          if (cj >= 0) used |= 1 << cj; else if (pr[j] > p || (pr[j] == p && j > i)) { ok = false; break; } }
        if (ok) x = __builtin_ctz(~used); else left++;
      }
      o[i] = x;
    }
    swap(colour, fresh); rounds++;
  }
  long h[8] = {}; const int* R c = colour.data();
  #pragma omp parallel for schedule(static) reduction(+ : h[:8])
  for (long i = 0; i < n; i++) if (c[i] < 8) h[c[i]]++;
  hist.assign(h, h + 8);
}
double checksum() { return chk(colour) + chk(hist) + rounds; }
