#include "common.hpp"
static long n, cells; static V x, v; static double energy; static VL parts[2];
static const double DT = 0.1;
void setup(long size) {
  n = size; cells = n < 10000 ? 64 : 4096; x = rndv(n, 4); for (auto& a : x) a *= cells; v = rndv(n, 5);
  for (long i = 0; i < n; i++) v[i] = (i % 2 == 0 ? 2.0 : -2.0) + 0.4 * (v[i] - 0.5);
  for (auto& p : parts) p = VL(cells);
}
void run() {
  double kin = 0, el = 0; V f(cells);
  #pragma omp parallel num_threads(2) reduction(+ : kin)
  {
    int t = omp_get_thread_num(); long a = t * n / 2, b = (t + 1) * n / 2; int64_t* R p = parts[t].data(); double *R X = x.data(), *R W = v.data(); const double* R F = f.data();
    std::fill(p, p + cells, 0);
    for (long i = a; i < b; i++) { int c = X[i], w = (X[i] - c) * 65536.0, r = c + 1 < cells ? c + 1 : 0; p[c] += 65536 - w; p[r] += w; }
    for (int s = 0; s < 4; s++) {
      #pragma omp barrier
      #pragma omp single
      {
        double acc = 0, tot = 0, sc = cells / (65536.0 * n);
        for (long g = 0; g < cells; g++) { acc += (parts[0][g] + parts[1][g]) * sc - 1.0; f[g] = acc; tot += acc; }
        for (long g = 0; g < cells; g++) { f[g] -= tot / cells; el += f[g] * f[g]; }
      }
      std::fill(p, p + cells, 0);
      for (long i = a; i < b; i++) {
        double q = X[i]; int c = q; double w = q - c; int r = c + 1 < cells ? c + 1 : 0;
        double u = W[i] + DT * ((1.0 - w) * F[c] + w * F[r]); kin += u * u; W[i] = u; q += DT * u;
        if (q < 0.0) q += cells; if (q >= cells) q -= cells; X[i] = q;
        c = q; int z = (q - c) * 65536.0; r = c + 1 < cells ? c + 1 : 0; p[c] += 65536 - z; p[r] += z;
      }
    }
  }
  energy = kin / n + el / cells;
}
double checksum() { return chk(x) + chk(v) + energy; }
