#include "common.hpp"
static const int L = 6; static V w[L], t[L], m[L], v[L], u; static long st; static double norm;
static const double RATE = 0.01, B1 = 0.9, B2 = 0.99, EPS = 1e-6, DECAY = 0.01, CLIP = 50.0;
void setup(long size) {
  long div[L] = {1, 4, 1, 2, 8, 1};
  for (int k = 0; k < L; k++) { long n = max(1l, size / div[k]); w[k] = rndv(n, 30 + k); t[k] = rndv(n, 40 + k);
    for (auto& x : w[k]) x = 2.0 * x - 1.0; for (auto& x : t[k]) x = 2.0 * x - 1.0; m[k] = V(n); v[k] = V(n); }
  u = V(size); st = 0;
}
void run() {
  for (int it = 0; it < 2; it++) {
    st++; double s = 0;
    for (int k = 0; k < L; k++) {
      const double *R W = w[k].data(), *R T = t[k].data(); long n = w[k].size();
      #pragma omp parallel for simd schedule(static) reduction(+ : s)
      for (long i = 0; i < n; i++) { double d = W[i] - T[i], g = d + 0.1 * d * d * d; s += g * g; }
    }
    norm = sqrt(s); double f = min(1.0, CLIP / norm), c1 = 1.0 - pow(B1, st), c2 = 1.0 - pow(B2, st);
    for (int k = 0; k < L; k++) {
      double *R W = w[k].data(), *R M = m[k].data(), *R Q = v[k].data(), *R U = u.data(); const double* R T = t[k].data(); long n = w[k].size();
      double a = 0, b = 0;
      #pragma omp parallel for simd schedule(static) reduction(+ : a, b)
      for (long i = 0; i < n; i++) {
        double d = W[i] - T[i], g = (d + 0.1 * d * d * d) * f, p = B1 * M[i] + (1.0 - B1) * g, q = B2 * Q[i] + (1.0 - B2) * g * g;
        M[i] = p; Q[i] = q; double x = p / c1 / (sqrt(q / c2) + EPS) + DECAY * W[i]; U[i] = x; a += W[i] * W[i]; b += x * x;
      }
      double r = RATE * sqrt(a) / sqrt(b + 1e-30);
      #pragma omp parallel for simd schedule(static)
      for (long i = 0; i < n; i++) W[i] -= r * U[i];
    }
  }
}
double checksum() { double s = norm; for (int k = 0; k < L; k++) s += chk(w[k]); return s; }
