#include "common.hpp"
static long n; static V y, x, tr, g, d, us[4], vs[4]; static double value, nrm; static long tries; static const double W = 0.3;
#define PF _Pragma("omp parallel for simd schedule(static) reduction(+ : s)")
#define PR _Pragma("omp parallel for simd schedule(static) reduction(+ : s, f)")
void setup(long size) { n = size; y = rndv(n, 10); for (long i = 0; i < n; i++) y[i] = (i / 50 * 7 % 11) * 0.3 + y[i] - 0.5; x = tr = g = d = V(n); for (auto& v : us) v = V(n); for (auto& v : vs) v = V(n); }
static double attempt(double* R o, const double* R x, const double* R d, double a, const double* R y) {
  double s = 0, f = 0;
  PR for (long i = 0; i < n - 1; i++) { double v = x[i] + a * d[i], e = (x[i + 1] + a * d[i + 1]) - v; o[i] = v; f += 0.5 * (v - y[i]) * (v - y[i]); s += sqrt(e * e + 0.01); }
  long i = n - 1; double v = x[i] + a * d[i]; o[i] = v; f += 0.5 * (v - y[i]) * (v - y[i]); s += sqrt(0.01); return f + W * s;
}
static inline double sl(const double* x, long i) { double e = x[i + 1] - x[i]; return e / sqrt(e * e + 0.01); }
static double pair_(double* R u, double* R v, const double* R z, const double* R x, const double* R y, double* R g) {
  double s = 0;
  auto px = [&](long i, double b, double t, double& s) { double h = z[i] - y[i] + W * (b - t), p = z[i] - x[i], q = h - g[i]; u[i] = p; v[i] = q; g[i] = h; s += p * q; };
  px(0, 0.0, sl(z, 0), s);
  PF for (long i = 1; i < n - 1; i++) px(i, sl(z, i - 1), sl(z, i), s);
  px(n - 1, sl(z, n - 2), 0.0, s); return s;
}
static void grad(double* R g, const double* R x, const double* R y) {
  g[0] = x[0] - y[0] + W * (0.0 - sl(x, 0));
  #pragma omp parallel for simd schedule(static)
  for (long i = 1; i < n - 1; i++) g[i] = x[i] - y[i] + W * (sl(x, i - 1) - sl(x, i));
  g[n - 1] = x[n - 1] - y[n - 1] + W * sl(x, n - 2);
}
static double negdot(double* R d, const double* g, const double* u) { double s = 0; PF for (long i = 0; i < n; i++) { d[i] = -g[i]; s += u[i] * d[i]; } return s; }
static double axdot(double* R d, double a, const double* v, double f, const double* u) { double s = 0; PF for (long i = 0; i < n; i++) { double e = f * (d[i] + a * v[i]); d[i] = e; s += u[i] * e; } return s; }
static double dot(const double* a, const double* b) { double s = 0; PF for (long i = 0; i < n; i++) s += a[i] * b[i]; return s; }
struct P { double *u, *v, rho; };
void run() {
  double *X = x.data(), *T = tr.data(), *G = g.data(), *D = d.data(), *Y = y.data();
  #pragma omp parallel for
  for (long i = 0; i < n; i++) { X[i] = Y[i]; D[i] = 0; }
  double val = attempt(X, Y, D, 0.0, Y); grad(G, X, Y); vector<P> ps; tries = 0;
  for (int it = 0; it < 7; it++) {
    double desc; int k = ps.size();
    if (k) {
      double al[4]; al[k - 1] = ps[k - 1].rho * negdot(D, G, ps[k - 1].u);
      for (int j = k - 1; j > 0; j--) al[j - 1] = ps[j - 1].rho * axdot(D, -al[j], ps[j].v, 1.0, ps[j - 1].u);
      double beta = ps[0].rho * axdot(D, -al[0], ps[0].v, 1.0 / (ps[k - 1].rho * dot(ps[k - 1].v, ps[k - 1].v)), ps[0].v);
      for (int j = 0; j < k; j++) { double r = axdot(D, al[j] - beta, ps[j].u, 1.0, j + 1 < k ? ps[j + 1].v : G); beta = j + 1 < k ? ps[j + 1].rho * r : r; }
      desc = beta;
    } else desc = negdot(D, G, G);
    double a = 1, nv;
    while (true) { tries++; nv = attempt(T, X, D, a, Y); if (nv <= val + 1e-4 * a * desc || a < 1e-6) break; a *= 0.5; }
    val = nv; P p; if (k == 4) { p = ps[0]; ps.erase(ps.begin()); } else p = {us[k].data(), vs[k].data(), 0};
    p.rho = 1.0 / pair_(p.u, p.v, T, X, Y, G); ps.push_back(p); swap(X, T);
  }
  value = val; nrm = sqrt(dot(G, G)); if (X != x.data()) swap(x, tr);
}
double checksum() { return chk(x) + value + nrm + tries; }
