#include "common.hpp"
static long n; static V x; static double mean_[40], spread;
void setup(long size) { n = size; x = rndv(n * 40, 9); for (long i = 0; i < n * 40; i++) x[i] += 8.0 * sin((double)(i % 40)); }
static inline void tend(double* R k, const double* R y) {
  k[0] = (y[1] - y[38]) * y[39] - y[0] + 8.0; k[1] = (y[2] - y[39]) * y[0] - y[1] + 8.0;
  #pragma omp simd
  for (int j = 2; j < 39; j++) k[j] = (y[j + 1] - y[j - 2]) * y[j - 1] - y[j] + 8.0;
  k[39] = (y[0] - y[37]) * y[38] - y[39] + 8.0;
}
void run() {
  const double h = 0.01;
  for (int s = 0; s < 3; s++) {
    double part[40] = {0}, sq = 0;
    #pragma omp parallel for schedule(static) reduction(+ : part)
    for (long m = 0; m < n; m++) {
      double k[40], mid[40], tot[40], *R y = &x[m * 40];
      tend(k, y); for (int j = 0; j < 40; j++) { tot[j] = k[j]; mid[j] = y[j] + 0.5 * h * k[j]; }
      tend(k, mid); for (int j = 0; j < 40; j++) { tot[j] += 2.0 * k[j]; mid[j] = y[j] + 0.5 * h * k[j]; }
      tend(k, mid); for (int j = 0; j < 40; j++) { tot[j] += 2.0 * k[j]; mid[j] = y[j] + h * k[j]; }
      tend(k, mid); for (int j = 0; j < 40; j++) { y[j] += h / 6.0 * (tot[j] + k[j]); part[j] += y[j]; }
    }
    for (int j = 0; j < 40; j++) mean_[j] = part[j] / n;
    #pragma omp parallel for schedule(static) reduction(+ : sq)
    for (long m = 0; m < n; m++) { double* R y = &x[m * 40]; double q = 0;
      #pragma omp simd reduction(+ : q)
      for (int j = 0; j < 40; j++) { double d = y[j] - mean_[j]; q += d * d; }
      sq += q; }
    spread = sqrt(sq / (n * 40));
    if (spread < 0.3) { double f = 0.05 * (0.3 - spread) / spread;
      #pragma omp parallel for schedule(static)
      for (long m = 0; m < n; m++) for (int j = 0; j < 40; j++) x[m * 40 + j] += f * (x[m * 40 + j] - mean_[j]); }
  }
}
double checksum() { return chk(x) + chk(mean_, 40) + spread; }
