#include "common.hpp"
constexpr int STEPS = 2;
constexpr double LR = 1e-3, B1 = 0.9, B2 = 0.999, EPS = 1e-6, DECAY = 0.01, CLIP = 50;
struct L { i64 n; Arr<double> w, t, h, m, v; double w2, r2; };
struct S {
  std::vector<L> ls; int step = 0; Arr<double> scratch; double loss = 0, norm2 = 0;
  S(i64 z) : scratch(4 * z) {
    i64 ns[6] = {z, 2 * z, z / 4, 4 * z, z / 64, z};
    for (int k = 0; k < 6; ++k) {
      i64 n = ns[k]; L l{n, Arr<double>(n), Arr<double>(n), Arr<double>(n), Arr<double>(n), Arr<double>(n), 0, 0};
      Rnd a(3 * k + 1), b(3 * k + 2), c(3 * k + 3);
      for (i64 i = 0; i < n; ++i) { l.w[i] = a[i]; l.t[i] = 2.0 * b[i]; l.h[i] = c[i] + 0.1; }
      ls.push_back(l);
    }
  }
  void run() {
    double lo = 0, g2 = 0;
#pragma omp parallel
    for (auto& l : ls) {
      const double *w = l.w.p, *t = l.t.p, *h = l.h.p;
#pragma omp for simd reduction(+ : lo, g2) nowait
      for (i64 i = 0; i < l.n; ++i) {
        double d = w[i] - t[i], g = h[i] * d; lo += 0.5 * g * d; g2 += g * g;
      }
    }
    for (int s = 0; s < STEPS; ++s) {
      ++step; loss = lo; norm2 = g2;
      double c1 = 1 / (1 - std::pow(B1, step)), c2 = 1 / (1 - std::pow(B2, step));
      double sc = norm2 > CLIP * CLIP ? CLIP / std::sqrt(norm2) : 1.0;
      bool last = s == STEPS - 1;
      lo = g2 = 0;
      for (auto& l : ls) {
        double a = 0, b = 0, lo1 = 0, g1 = 0;
        double *__restrict R = scratch.p, *__restrict w = l.w.p, *__restrict m = l.m.p, *__restrict v = l.v.p;
        const double *__restrict t = l.t.p, *__restrict h = l.h.p;
#pragma omp parallel
        {
#pragma omp for simd reduction(+ : a, b)
          for (i64 i = 0; i < l.n; ++i) {
            double g = h[i] * (w[i] - t[i]) * sc;
            double mm = B1 * m[i] + (1 - B1) * g, vv = B2 * v[i] + (1 - B2) * g * g;
            m[i] = mm; v[i] = vv;
            double r = (mm * c1) / (std::sqrt(vv * c2) + EPS) + DECAY * w[i]; R[i] = r;
            a += w[i] * w[i]; b += r * r;
          }
          double rate = LR * std::sqrt(a / b);
#pragma omp for simd reduction(+ : lo1, g1)
          for (i64 i = 0; i < l.n; ++i) {
            double x = w[i] - rate * R[i]; w[i] = x;
            if (!last) { double d = x - t[i], g = h[i] * d; lo1 += 0.5 * g * d; g1 += g * g; }
          }
        }
        lo += lo1; g2 += g1;
      }
    }
  }
  double checksum() {
    double s = loss + norm2;
    for (auto& l : ls) s += chk(l.w) + chk(l.m) + chk(l.v);
    return s;
  }
};
int main(int c, char** v) { return drive<S>(c, v); }
