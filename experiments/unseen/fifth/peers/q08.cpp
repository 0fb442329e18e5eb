#include "common.hpp"
static long n; static vector<uint64_t> seed; static double A[8], B[8], expo[8], cva;
static const int S = 8; static const double DT = 0.25, SPEED = 0.3, LEVEL = 0.03, SIGMA = 0.012, KAPPA = 0.5, THETA = 0.02, XI = 0.08, RHO = -0.4;
void setup(long size) {
  n = size; seed.resize(n); for (long i = 0; i < n; i++) seed[i] = (uint64_t)(rnd(i, 15) * 9007199254740992.0) + 1;
  for (int k = 0; k < S; k++) { double t = DT * (1 + k); B[k] = (1 - exp(-SPEED * t)) / SPEED; A[k] = exp((LEVEL - SIGMA * SIGMA / (2 * SPEED * SPEED)) * (B[k] - t) - SIGMA * SIGMA * B[k] * B[k] / (4 * SPEED)); }
}
static inline uint64_t nxt(uint64_t s) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s; }
void run() {
  double ex[8] = {0}, ls = 0;
  #pragma omp parallel for schedule(static) reduction(+ : ex, ls)
  for (long i = 0; i < n; i++) {
    uint64_t s = seed[i]; double r = 0.025, h = 0.015, d = 1, q = 1;
    for (int k = 0; k < S; k++) {
      s = nxt(s); double u1 = ((double)(int64_t)(s >> 12) + 0.5) * 2.220446049250313e-16; s = nxt(s); double u2 = ((double)(int64_t)(s >> 12) + 0.5) * 2.220446049250313e-16;
      double a = sqrt(-2.0 * log(u1)), sn, cs; sincos(6.283185307179586 * u2, &sn, &cs); double z1 = a * cs, z2 = RHO * z1 + sqrt(1.0 - RHO * RHO) * (a * sn);
      d *= exp(-r * DT); q *= exp(-h * DT); r += SPEED * (LEVEL - r) * DT + SIGMA * sqrt(DT) * z1;
      double g = max(h, 0.0); h += KAPPA * (THETA - g) * DT + XI * sqrt(g * DT) * z2;
      double v = 1.0; int m = S - 1 - k; for (int j = 0; j < m; j++) { double bond = A[j] * exp(-B[j] * r); v -= 0.0072 * bond; if (j == m - 1) v -= bond; }
      double e = max(v, 0.0) * d; ex[k] += e; ls += e * q * max(h, 0.0) * DT;
    }
    seed[i] = s;
  }
  for (int k = 0; k < S; k++) expo[k] = ex[k] / n; cva = 0.6 * ls / n;
}
double checksum() { double c = chk(expo, 8) + cva; for (long i = 0; i < n; i++) c += (double)(seed[i] >> 40) * 0x1p-24 * (1.0 + i % 7); return c; }
