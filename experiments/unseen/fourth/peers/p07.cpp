#include "common.hpp"
static long n; static VI start, col; static V val, v, f, ta, tb, tc; static vector<double> mu;
void setup(long size) {
  n = size; start = VI(n + 1); vector<int> row;
  for (long i = 0; i < n; i++) start[i + 1] = start[i] + 3 + (int)(6 * rnd(i, 50));
  long nnz = start[n]; col = VI(nnz); val = V(nnz);
  for (long i = 0; i < n; i++) for (long k = start[i]; k < start[i + 1]; k++) {
    col[k] = (i + (long)(2001.0 * rnd(k, 51)) - 1000 + n * 4) % n; val[k] = (2.0 * rnd(k, 52) - 1.0) / 8.0; }
  v = rndv(n, 53); for (auto& x : v) x = 2.0 * x - 1.0;
  f = ta = tb = tc = V(n);
}
static double jackson(int k, int c) { double x = M_PI / (c + 1); return ((c - k + 1) * cos(k * x) + sin(k * x) / tan(x)) / (c + 1); }
static void step1(double* R t2, const double* t1, const double* t0, double w, bool first, double& pa, double& pb) {
  double a = 0, b = 0; double* R F = f.data();
  #pragma omp parallel for schedule(static) reduction(+ : a, b)
  for (long i = 0; i < n; i++) {
    double s = 0, x = t1[i]; for (int k = start[i]; k < start[i + 1]; k++) s += val[k] * t1[col[k]];
    double y = first ? s : 2.0 * s - t0[i]; t2[i] = y; F[i] = first ? w * x : F[i] + w * x; a += x * x; b += y * x;
  }
  pa = a; pb = b;
}
void run() {
  double p, q; mu.clear(); step1(ta.data(), v.data(), v.data(), jackson(0, 6), true, p, q); mu = {p, q};
  double *t0 = v.data(), *t1 = ta.data(), *t2 = tb.data();
  for (int k = 0; k < 6; k++) {
    step1(t2, t1, t0, 2.0 * jackson(k, 6), false, p, q); mu.push_back(2.0 * p - mu[0]); mu.push_back(2.0 * q - mu[1]);
    double* x = k == 0 ? tc.data() : t0; t0 = t1; t1 = t2; t2 = x;
  }
}
double checksum() { return chk(f) + chk(mu); }
