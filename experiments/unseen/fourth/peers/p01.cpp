#include "common.hpp"
static long n; static V image, best, g, sm, bg; static double area;
void setup(long size) {
  n = size; for (V* v : {&image, &best, &g, &sm, &bg}) v->assign(n * n, 0.0);
  for (long i = 0; i < n; i++) for (long j = 0; j < n; j++)
    image[i * n + j] = ((i + 2 * j) % 37 < 3) * 0.7 + ((3 * i - j + 3 * n) % 53 < 5) * 0.5 + 0.25 * rnd(i * n + j, 1);
}
void run() {
  bool first = true;
  for (long s : {1, 2, 4}) {
    double total = 0.0;
    #pragma omp parallel
    {
      V tb(n); double* R t = tb.data();
      #pragma omp for schedule(static)
      for (long i = 0; i < n; i++) {
        auto row = [&](long k) { return image.data() + min(max(k, 0l), n - 1) * n; };
        const double *a = row(i - 2 * s), *b = row(i - s), *c = row(i), *d = row(i + s), *e = row(i + 2 * s);
        double* R o = &g[i * n];
        for (long j = 0; j < n; j++) t[j] = (a[j] + 4.0 * b[j] + 6.0 * c[j] + 4.0 * d[j] + e[j]) / 16.0;
        auto edge = [&](long j) { auto at = [&](long k) { return t[min(max(k, 0l), n - 1)]; };
          o[j] = (at(j - 2 * s) + 4.0 * at(j - s) + 6.0 * t[j] + 4.0 * at(j + s) + at(j + 2 * s)) / 16.0; };
        for (long j = 0; j < min(2 * s, n); j++) edge(j);
        for (long j = 2 * s; j < n - 2 * s; j++) o[j] = (t[j - 2 * s] + 4.0 * t[j - s] + 6.0 * t[j] + 4.0 * t[j + s] + t[j + 2 * s]) / 16.0;
        for (long j = max(n - 2 * s, 2 * s); j < n; j++) edge(j);
      }
    }
    #pragma omp parallel for schedule(static) reduction(+ : total)
    for (long i = 0; i < n; i++) {
      const double *R u = &g[max(i - 1, 0l) * n], *R c = &g[i * n], *R d = &g[min(i + 1, n - 1) * n];
      double *R os = &sm[i * n], *R ob = &bg[i * n];
      double part = 0.0;
      auto cell = [&](long l, long j, long r) {
        double xx = c[l] - 2.0 * c[j] + c[r], yy = u[j] - 2.0 * c[j] + d[j], xy = 0.25 * (d[r] - d[l] - u[r] + u[l]);
        double mean = 0.5 * (xx + yy), half = 0.5 * (xx - yy), root = sqrt(half * half + xy * xy), p = mean + root, q = mean - root;
        bool w = fabs(p) > fabs(q); double a = w ? q : p, b = w ? p : q;
        os[j] = a; ob[j] = b; part += a * a + b * b;
      };
      cell(0, 0, 1);
      #pragma omp simd reduction(+ : part)
      for (long j = 1; j < n - 1; j++) cell(j - 1, j, j + 1);
      cell(n - 2, n - 1, n - 1);
      total += part;
    }
    double cells = (double)n * n, ar = 0.0;
    #pragma omp parallel for schedule(static) reduction(+ : ar)
    for (long k = 0; k < n * n; k++) {
      double a = sm[k], b = bg[k], v = 0.0;
      if (b < 0.0) { double ratio = a / b, s2 = (a * a + b * b) * cells / total; v = exp(-2.0 * ratio * ratio) * (1.0 - exp(-0.5 * s2)); }
      if (!first) v = max(best[k], v);
      best[k] = v; ar += v > 0.3;
    }
    area = ar; first = false;
  }
}
double checksum() { return chk(best) + area; }
