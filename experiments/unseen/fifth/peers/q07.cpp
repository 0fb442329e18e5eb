#include "common.hpp"
static long n; static VI start, col; static V val, b, x, p, q, v, r, w, z, t, inv; static double norm_; static int its;
void setup(long size) {
  n = size; vector<long> len(n); long nn = 0; for (long i = 0; i < n; i++) nn += len[i] = 3 + (int)(rnd(i, 11) * 7);
  start = VI(n + 1); col.clear(); val.clear(); long k = 0;
  for (long i = 0; i < n; i++) {
    long diag = val.size(); double sum = 0; start[i] = diag; col.push_back(i); val.push_back(0); k++;
    for (long j = 1; j < len[i]; j++, k++) { long c = ((i + (long)((rnd(k, 12) - 0.5) * 400)) % n + n) % n; if (c == i) continue; col.push_back(c); val.push_back(-rnd(k, 13)); sum += val.back(); }
    val[diag] = 0.15 - sum;
  }
  start[n] = val.size(); b = rndv(n, 14); for (auto& a : b) a -= 0.3; x = p = q = v = r = w = z = t = inv = V(n);
}
static void mult(double* R o, const double* R a, const double* R d, double& s, double& s2) {
  double S = 0, S2 = 0; const int *R st = start.data(), *R c = col.data(); const double* R m = val.data();
  #pragma omp parallel for schedule(static) reduction(+ : S, S2)
  for (long i = 0; i < n; i++) { double u = 0; for (int e = st[i]; e < st[i + 1]; e++) u += m[e] * a[c[e]]; o[i] = u; S += d[i] * u; S2 += u * u; }
  s = S; s2 = S2;
}
void run() {
  double *R X = x.data(), *R P = p.data(), *R Q = q.data(), *R VV = v.data(), *R RR = r.data(), *R W = w.data(), *R Z = z.data(), *R T = t.data(), *R I = inv.data(); const double* R B = b.data();
  double s = 0, rho = 1, alpha = 1, omega = 1, x1, x2;
  #pragma omp parallel for schedule(static) reduction(+ : s)
  for (long i = 0; i < n; i++) { for (int e = start[i]; e < start[i + 1]; e++) if (col[e] == i) I[i] = 1.0 / val[e]; X[i] = P[i] = VV[i] = 0; RR[i] = B[i]; s += B[i] * B[i]; }
  double first = s, now = s;
  for (int k = 0; k < 12; k++) {
    double before = rho; rho = now; double beta = (rho / before) * (alpha / omega);
    #pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) { double a = RR[i] + beta * (P[i] - omega * VV[i]); P[i] = a; Q[i] = I[i] * a; }
    mult(VV, Q, B, x1, x2); alpha = rho / x1;
    #pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; i++) { double a = RR[i] - alpha * VV[i]; W[i] = a; Z[i] = I[i] * a; }
    mult(T, Z, W, x1, x2); omega = x1 / x2; double s1 = 0, s0 = 0;
    #pragma omp parallel for simd schedule(static) reduction(+ : s1, s0)
    for (long i = 0; i < n; i++) { X[i] = (X[i] + alpha * Q[i]) + omega * Z[i]; double a = W[i] - omega * T[i]; RR[i] = a; s1 += a * a; s0 += a * B[i]; }
    norm_ = s1; now = s0; its = k + 1; if (norm_ < 1e-9 * first) break;
  }
}
double checksum() { return chk(x) + norm_ + its; }
