#include "common.hpp"
static long n, m; static V x, y, angle, eta, mean; static VI cell; static VL parts; static double order;
void setup(long size) {
  n = size; m = max(8l, (long)sqrt(size / 8.0));
  x = rndv(n, 10); y = rndv(n, 11); angle = rndv(n, 12); eta = rndv(n, 13); for (auto& a : angle) a *= 6.0;
  mean = V(m * m); cell = VI(n); parts = VL(2 * 2 * m * m);
}
static double wrap(double p) { if (p < 0.0) p += 1.0; if (p >= 1.0) p -= 1.0; return p; }
void run() {
  double level = 2.0;
  for (int step = 0; step < 3; step++) {
    double a = 0, b = 0; int P = 2;
    #pragma omp parallel num_threads(2) reduction(+ : a, b)
    {
      int t = omp_get_thread_num(); int64_t* q = &parts[t * 2 * m * m]; memset(q, 0, 16 * m * m);
      for (long i = n * t / P; i < n * (t + 1) / P; i++) {
        int k = (int)(y[i] * m) * m + (int)(x[i] * m); cell[i] = k;
        q[2 * k] += (int64_t)(cos(angle[i]) * 1048576.0); q[2 * k + 1] += (int64_t)(sin(angle[i]) * 1048576.0);
      }
      #pragma omp barrier
      #pragma omp for schedule(static)
      for (long row = 0; row < m; row++) for (long col = 0; col < m; col++) {
        int64_t s = 0, c = 0; long rr[3] = {(row + m - 1) % m * m, row * m, (row + 1) % m * m}, cc[3] = {(col + m - 1) % m, col, (col + 1) % m};
        for (long r : rr) for (long d : cc) for (int p = 0; p < P; p++) { c += parts[p * 2 * m * m + 2 * (r + d)]; s += parts[p * 2 * m * m + 2 * (r + d) + 1]; }
        mean[row * m + col] = atan2((double)s, (double)c);
      }
      #pragma omp for schedule(static)
      for (long i = 0; i < n; i++) {
        double g = mean[cell[i]] + level * (eta[i] - 0.5); angle[i] = g;
        double hx = cos(g), hy = sin(g); x[i] = wrap(x[i] + 0.003 * hx); y[i] = wrap(y[i] + 0.003 * hy); a += hx; b += hy;
      }
    }
    order = sqrt(a * a + b * b) / n; level = order > 0.1 ? 3.0 : 1.0;
  }
}
double checksum() { return chk(x) + chk(y) + chk(angle) + order; }
