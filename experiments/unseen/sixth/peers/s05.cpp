#include "common.hpp"
constexpr int STEPS = 2; constexpr double DT = 2e-3;
struct S {
  i64 z, m, side, n; Arr<double> u, g11, g12, g22, imass, mass, rl; Arr<int> ids, place;
  double D[5][5], T[5][5], ht = 0, ch = 0;
  S(i64 z) : z(z), m(z * z), side(4 * z + 1), n(side * side), u(n), g11(m * 25), g12(m * 25), g22(m * 25),
             imass(n), mass(n), rl(m * 25), ids(m * 25), place(n * 4) {
    double c = std::pow(3.0 / 7.0, 0.5), x[5] = {-1, -c, 0, c, 1};
    double w[5] = {0.1, 49.0 / 90, 32.0 / 45, 49.0 / 90, 0.1}, b[5];
    for (int i = 0; i < 5; ++i) { double p = 1; for (int j = 0; j < 5; ++j) if (j != i) p *= x[i] - x[j]; b[i] = 1 / p; }
    for (int i = 0; i < 5; ++i) {
      double s = 0;
      for (int j = 0; j < 5; ++j) if (i != j) { D[i][j] = b[j] / b[i] / (x[i] - x[j]); s += D[i][j]; }
      D[i][i] = -s;
    }
    for (int i = 0; i < 5; ++i) for (int j = 0; j < 5; ++j) T[i][j] = D[j][i];
    for (i64 i = 0; i < 4 * n; ++i) place[i] = -1;
    Rnd r5(5), r6(6);
    for (i64 i = 0; i < n; ++i) u[i] = r6[i];
    for (i64 e = 0; e < m; ++e) for (int a = 0; a < 5; ++a) for (int q = 0; q < 5; ++q) {
      i64 k = e * 25 + a * 5 + q, id = (4 * (e / z) + a) * side + 4 * (e % z) + q;
      ids[k] = id;
      double kk = 0.5 + 0.5 * r5[k], ww = w[a] * w[q];
      g11[k] = kk * ww; g22[k] = 0.8 * kk * ww; g12[k] = 0.2 * kk * ww; mass[id] += ww;
      int o = 0; while (place[4 * id + o] >= 0) ++o; place[4 * id + o] = k;
    }
  }
  void run() {
    for (int s = 0; s < STEPS; ++s) {
      double h = 0, c = 0; bool last = s == STEPS - 1;
#pragma omp parallel
      {
#pragma omp for
        for (i64 e = 0; e < m; ++e) {
          double U[5][5], R[5][5], V[5][5];
          const int* id = ids.p + e * 25;
          for (int a = 0; a < 5; ++a) for (int b = 0; b < 5; ++b) U[a][b] = u[id[a * 5 + b]];
          for (int a = 0; a < 5; ++a) for (int b = 0; b < 5; ++b) {
            double x = 0, y = 0;
            for (int k = 0; k < 5; ++k) { x += D[a][k] * U[k][b]; y += T[k][b] * U[a][k]; }
            i64 q = e * 25 + a * 5 + b;
            R[a][b] = g11[q] * x + g12[q] * y; V[a][b] = g12[q] * x + g22[q] * y;
          }
          for (int a = 0; a < 5; ++a) for (int b = 0; b < 5; ++b) {
            double x = 0;
            for (int k = 0; k < 5; ++k) x += D[k][a] * R[k][b] + D[k][b] * V[a][k];
            rl[e * 25 + a * 5 + b] = x;
          }
        }
#pragma omp for reduction(+ : h, c)
        for (i64 i = 0; i < n; ++i) {
          double x = 0;
          for (int k = 0; k < 4; ++k) { int q = place[4 * i + k]; if (q >= 0) x += rl[q]; }
          x /= mass[i];
          double y = u[i] - DT * x; u[i] = y;
          if (last) { h += mass[i] * y; c += x * x; }
        }
      }
      ht = h; ch = c;
    }
  }
  double checksum() { return chk(u) + ht + ch; }
};
int main(int c, char** v) { return drive<S>(c, v); }
