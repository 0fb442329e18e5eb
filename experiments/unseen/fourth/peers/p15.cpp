#include "common.hpp"
static long n, m, sweeps; static V u, v, heat, heat2, p, p2, dv, x, y, e; static vector<uint32_t, Huge<uint32_t>> seed; static VL tally; static double dt, en[4];
void setup(long size) {
  n = size; m = n * n; u = rndv(m, 150); v = rndv(m, 151); heat = rndv(m, 152);
  for (V* a : {&u, &v, &heat}) for (auto& q : *a) q -= 0.5;
  p = p2 = dv = heat2 = V(m); x = rndv(m, 160); y = rndv(m, 161); e = rndv(m, 162); for (V* a : {&x, &y}) for (auto& q : *a) q *= n;
  seed.resize(m); for (long k = 0; k < m; k++) seed[k] = (uint32_t)(4e9 * rnd(k, 170)) + 1u;
  tally = VL(2 * m); dt = 0.1;
}
template <class F> static double rows(F make) {
  double s = 0;
  #pragma omp parallel for schedule(static) reduction(+ : s)
  for (long i = 0; i < n; i++) {
    auto cell = make(i * n, (i ? i - 1 : n - 1) * n, (i < n - 1 ? i + 1 : 0) * n); double t = cell(0l, n - 1, 1l);
    #pragma omp simd reduction(+ : t)
    for (long j = 1; j < n - 1; j++) t += cell(j, j - 1, j + 1);
    s += t + cell(n - 1, n - 2, 0l);
  }
  return s;
}
void run() {
  sweeps = 0;
  for (int st = 0; st < 2; st++) {
    double *R U = u.data(), *R W = v.data(), *R D = dv.data(), *R H = heat.data(); double h = dt;
    #pragma omp parallel for simd schedule(static)
    for (long k = 0; k < m; k++) { W[k] = (W[k] + h * H[k]) * 0.99; U[k] *= 0.99; }
    double goal = 0.003 * rows([=](long i, long a, long) { return [=](long j, long l, long) { double d = U[i + j] - U[i + l] + W[i + j] - W[a + j]; D[i + j] = d; return d * d; }; });
    for (int k = 1; k <= 16; k++) {
      const double* R A = p.data(); double* R B = p2.data();
      double ch = rows([=](long i, long a, long b) { return [=](long j, long l, long r) {
        double q = 0.25 * (A[a + j] + A[b + j] + A[i + l] + A[i + r] - D[i + j]), d = q - A[i + j]; B[i + j] = q; return d * d; }; });
      swap(p, p2); sweeps++; if (k % 4 == 0 && ch < goal) break;
    }
    const double* R A = p.data();
    double s8 = rows([=](long i, long, long b) { return [=](long j, long, long r) {
      double f = U[i + j] - (A[i + r] - A[i + j]), g = W[i + j] - (A[b + j] - A[i + j]), q = f * f + g * g; U[i + j] = f; W[i + j] = g; q = q * q; return q * q; }; });
    h = dt = min(0.3, 0.5 / pow(s8, 0.125)); double w = n;
    #pragma omp parallel num_threads(2)
    {
      int t = omp_get_thread_num(); int64_t* R T = &tally[t * m]; memset(T, 0, 8 * m);
      for (long k = m * t / 2; k < m * (t + 1) / 2; k++) {
        long c = (long)y[k] * n + (long)x[k]; uint32_t s = seed[k]; s ^= s << 13; s ^= s >> 17; s ^= s << 5; seed[k] = s;
        double px = x[k] + h * U[c] + 0.5 * ((int)(s & 4095) - 2048) / 4096.0, py = y[k] + h * W[c] + 0.5 * ((int)(s >> 12 & 4095) - 2048) / 4096.0;
        if (px < 0.0) px += w; if (px >= w) px -= w; if (py < 0.0) py += w; if (py >= w) py -= w;
        x[k] = px; y[k] = py; double q = 0.1 * e[k]; T[c] += (int64_t)(q * 1048576.0); e[k] -= q;
      }
    }
    const int64_t *T0 = &tally[0], *T1 = &tally[m]; double* R G = heat2.data();
    rows([=](long i, long a, long b) { return [=](long j, long l, long r) {
      double c = H[i + j], f = U[i + j], fl = U[i + l], g = W[i + j], ga = W[a + j];
      f *= f > 0.0 ? c : H[i + r]; fl *= fl > 0.0 ? H[i + l] : c; g *= g > 0.0 ? c : H[b + j]; ga *= ga > 0.0 ? H[a + j] : c;
      G[i + j] = c - h * (f - fl + g - ga) + (double)(T0[i + j] + T1[i + j]) / 1048576.0; return 0.0; }; });
    swap(heat, heat2);
  }
  double a = 0, b = 0, c = 0, d = 0; const double* R E = e.data(); const uint32_t* R S = seed.data();
  #pragma omp parallel for simd schedule(static) reduction(+ : a, b, c, d)
  for (long k = 0; k < m; k++) { uint32_t g = S[k] & 3; double q = E[k]; a += g == 0 ? q : 0.0; b += g == 1 ? q : 0.0; c += g == 2 ? q : 0.0; d += g == 3 ? q : 0.0; }
  en[0] = a; en[1] = b; en[2] = c; en[3] = d;
}
double checksum() { return chk(u) + chk(v) + chk(heat) + chk(p) + chk(x) + chk(y) + chk(e) + sweeps + dt + chk(en, 4); }
