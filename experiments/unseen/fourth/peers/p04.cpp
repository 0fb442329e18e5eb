#include "common.hpp"
static long n; static V x, p, z; static double like; static long hits;
static const double DT = 0.1, DRIFT = 0.05, NOISE = 0.3, GATE = 9.0;
void setup(long size) {
  n = size; x = rndv(4 * n, 4); p = V(16 * n); z = V(4 * n * 2);
  for (long i = 0; i < n; i++) for (int k = 0; k < 4; k++) p[16 * i + 5 * k] = 1.0;
  for (long t = 0; t < 4; t++) for (long k = 0; k < 2 * n; k++) z[t * 2 * n + k] = 0.3 * t * DT + 2.0 * rnd(t * 2 * n + k, 5);
}
void run() {
  like = 0; hits = 0;
  for (int t = 0; t < 4; t++) {
    double l = 0; long h = 0; const double* zt = &z[t * 2 * n];
    #pragma omp parallel for schedule(static) reduction(+ : l, h)
    for (long i = 0; i < n; i++) {
      double q[4][4], y[4], g[4][2]; memcpy(q, &p[16 * i], 128); memcpy(y, &x[4 * i], 32);
      y[0] += DT * y[2]; y[1] += DT * y[3];
      for (int k = 0; k < 4; k++) { q[0][k] += DT * q[2][k]; q[1][k] += DT * q[3][k]; }
      for (int k = 0; k < 4; k++) { q[k][0] += DT * q[k][2]; q[k][1] += DT * q[k][3]; q[k][k] += DRIFT; }
      double r0 = zt[2 * i] - y[0], r1 = zt[2 * i + 1] - y[1];
      double a = q[0][0] + NOISE, b = 0.5 * (q[0][1] + q[1][0]), c = q[1][1] + NOISE, d = a * c - b * b;
      double s0 = c / d, s1 = -b / d, s2 = a / d, d2 = r0 * (s0 * r0 + 2.0 * s1 * r1) + s2 * r1 * r1;
      if (d2 <= GATE) {
        for (int k = 0; k < 4; k++) { g[k][0] = q[k][0] * s0 + q[k][1] * s1; g[k][1] = q[k][0] * s1 + q[k][1] * s2; }
        double top[2][4]; memcpy(top, q, 64);
        for (int k = 0; k < 4; k++) { y[k] += g[k][0] * r0 + g[k][1] * r1; for (int e = 0; e < 4; e++) q[k][e] -= g[k][0] * top[0][e] + g[k][1] * top[1][e]; }
        h++;
      }
      l += 0.5 * (d2 + log(d));
      memcpy(&p[16 * i], q, 128); memcpy(&x[4 * i], y, 32);
    }
    like += l; hits += h;
  }
}
double checksum() { return chk(x) + chk(p) + like + hits; }
