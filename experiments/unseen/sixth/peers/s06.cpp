#include "common.hpp"
constexpr int BINS = 64; constexpr double LIM = 2.5;
struct S {
  i64 n; Arr<double> x, z, score; i64 h[BINS]; double mean[4], sd[4], sk[4], ku[4], cor[6]; i64 outl = 0;
  S(i64 n) : n(n), x(4 * n), z(4 * n), score(n) {
    Rnd r(9);
    for (i64 i = 0; i < n; ++i) {
      double a = r[4 * i], b = r[4 * i + 1], c = r[4 * i + 2], d = r[4 * i + 3];
      x[4 * i] = 5 + a + b; x[4 * i + 1] = b * b * 3; x[4 * i + 2] = c - a; x[4 * i + 3] = std::pow(d, 8) * 40;
    }
  }
  void run() {
    double s1[4] = {}, s2[4] = {}, s3[4] = {}, s4[4] = {}; const double* __restrict X = x.p;
#pragma omp parallel for reduction(+ : s1)
    for (i64 i = 0; i < n; ++i) for (int c = 0; c < 4; ++c) s1[c] += X[4 * i + c];
    for (int c = 0; c < 4; ++c) mean[c] = s1[c] / n;
#pragma omp parallel for reduction(+ : s2, s3, s4)
    for (i64 i = 0; i < n; ++i) for (int c = 0; c < 4; ++c) {
      double d = X[4 * i + c] - mean[c], q = d * d; s2[c] += q; s3[c] += q * d; s4[c] += q * q;
    }
    double inv[4];
    for (int c = 0; c < 4; ++c) {
      double m2 = s2[c] / n; sd[c] = std::sqrt(m2); inv[c] = 1 / sd[c];
      sk[c] = s3[c] / n / (sd[c] * m2); ku[c] = s4[c] / n / (m2 * m2) - 3;
    }
    double p0 = 0, p1 = 0, p2 = 0, p3 = 0, p4 = 0, p5 = 0; i64 o = 0; i64 H[BINS] = {};
    double *__restrict Z = z.p, *__restrict SC = score.p;
#pragma omp parallel for reduction(+ : p0, p1, p2, p3, p4, p5, o, H)
    for (i64 i = 0; i < n; ++i) {
      double v[4], s = 0;
      for (int c = 0; c < 4; ++c) {
        double t = (X[4 * i + c] - mean[c]) * inv[c];
        t = t < -LIM ? -LIM : t; t = t > LIM ? LIM : t; v[c] = t; Z[4 * i + c] = t;
      }
      for (int c = 0; c < 4; ++c) s += v[c] * v[c];
      p0 += v[1] * v[0]; p1 += v[2] * v[0]; p2 += v[2] * v[1]; p3 += v[3] * v[0]; p4 += v[3] * v[1]; p5 += v[3] * v[2];
      SC[i] = s; o += s > 9.0;
      int b = int((v[0] + LIM) / (2 * LIM) * BINS); b = b < 0 ? 0 : b > BINS - 1 ? BINS - 1 : b; ++H[b];
    }
    double p[6] = {p0, p1, p2, p3, p4, p5};
    for (int k = 0; k < 6; ++k) cor[k] = p[k] / n;
    outl = o; memcpy(h, H, sizeof h);
  }
  double checksum() {
    double s = chk(z) + chk(score) + chk(h, BINS) + double(outl);
    for (int c = 0; c < 4; ++c) s += mean[c] + sd[c] + sk[c] + ku[c];
    for (double c : cor) s += c;
    return s;
  }
};
int main(int c, char** v) { return drive<S>(c, v); }
