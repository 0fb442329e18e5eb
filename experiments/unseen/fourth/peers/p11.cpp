#include "common.hpp"
static const int O = 4; static long n0; static V x0, outs[O], xs[O], raw; static vector<double> lev;
void setup(long n) {
  n0 = n; x0 = V(n); raw = V(n);
  for (long t = 0; t < n; t++) x0[t] = rnd(t, 100) - 0.5 + 0.5 * ((t / 64) % 3 - 1.0) + 0.8 * ((t % 4096) < 300) * (rnd(t, 101) - 0.5);
  for (int k = 0; k < O; k++) { outs[k] = V(n >> k); xs[k] = V(n >> (k + 1)); }
}
void run() {
  lev.clear(); const double* x = x0.data(); long n = n0; double p = 0;
  for (int k = 0; k < O; k++) {
    p = 0; double *R b = raw.data(), *R d = xs[k].data(), *R o = outs[k].data();
    auto one = [&](long i) { auto at = [&](long q) { return x[min(max(q, 0l), n - 1)]; };
      return 0.5 * x[i] + 0.28125 * (at(i - 1) + at(i + 1)) - 0.03125 * (at(i - 3) + at(i + 3)); };
    auto edge = [&](long q) { double u = one(2 * q), v = one(2 * q + 1); d[q] = u; b[2 * q] = x[2 * q] - u; b[2 * q + 1] = x[2 * q + 1] - v;
      p += b[2 * q] * b[2 * q] + b[2 * q + 1] * b[2 * q + 1]; };
    edge(0); edge(1); edge(n / 2 - 1); edge(n / 2 - 2);
    #pragma omp parallel for simd schedule(static) reduction(+ : p)
    for (long q = 2; q < n / 2 - 2; q++) {
      long i = 2 * q;
      double u = 0.5 * x[i] + 0.28125 * (x[i - 1] + x[i + 1]) - 0.03125 * (x[i - 3] + x[i + 3]);
      double v = 0.5 * x[i + 1] + 0.28125 * (x[i] + x[i + 2]) - 0.03125 * (x[i - 2] + x[i + 4]);
      double s = x[i] - u, t = x[i + 1] - v; d[q] = u; b[i] = s; b[i + 1] = t; p += s * s + t * t;
    }
    double l = sqrt(p / n);
    auto gain = [=](double e) { return e > l ? sqrt(l / e) : 1.0; };
    auto border = [&](long i) { double t = 0; for (long q = -4; q < 5; q++) t += fabs(b[min(max(i + q, 0l), n - 1)]); o[i] = b[i] * gain(t / 9.0); };
    for (long i = 0; i < 4; i++) { border(i); border(n - 1 - i); }
    #pragma omp parallel for simd schedule(static)
    for (long i = 4; i < n - 4; i++) { double t = 0.0; for (long q = -4; q < 5; q++) t += fabs(b[i + q]); o[i] = b[i] * gain(t / 9.0); }
    lev.push_back(p); x = d; n /= 2;
  }
  for (int k = O - 1; k >= 0; k--) {
    p = 0; double* R o = outs[k].data(); const double* R c = x;
    #pragma omp parallel for simd schedule(static) reduction(+ : p)
    for (long q = 0; q < n; q++) { double s = o[2 * q] + c[q], t = o[2 * q + 1] + 0.5 * (c[q] + c[q + 1 < n ? q + 1 : n - 1]); o[2 * q] = s; o[2 * q + 1] = t; p += s * s + t * t; }
    x = o; n *= 2;
  }
  double f = sqrt(p / n), *R o = outs[0].data();
  #pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; i++) o[i] = o[i] / f;
  lev.push_back(p);
}
double checksum() { return chk(outs[0]) + chk(lev); }
