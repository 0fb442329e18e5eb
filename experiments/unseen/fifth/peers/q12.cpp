#include "common.hpp"
static const int C = 6, RG = 64, DAYS = 5; static long n, side; static VI contact, cell, region; static V start, virus, nw, shield, air, spare; static vector<uint64_t> seeds, seed; static VL parts[2]; static vector<double> story;
void setup(long size) {
  n = size; side = max((long)sqrt(n / 8.0), 8L); long m = side * side; contact = VI(n * C); cell = region = VI(n); start = virus = nw = shield = V(n); air = spare = V(m); seeds.resize(n); seed.resize(n); for (auto& p : parts) p = VL(m);
  for (long i = 0; i < n; i++) {
    for (int k = 0; k < C; k++) { long a = (long)((rnd(i * C + k, 22) - 0.5) * (k == 5 ? 20000 : 60)); contact[i * C + k] = ((i + a) % n + n) % n; }
    cell[i] = (i * m / n + (long)(rnd(i, 23) * side * 4)) % m; region[i] = i * RG / n; start[i] = rnd(i, 24) < 0.02 ? 0.3 : 0.0; seeds[i] = (uint64_t)(rnd(i, 25) * 9007199254740992.0) + 1;
  }
}
static inline double gr(double v, double s) { return v * (1.2 * (1.0 - v) - 2.5 * s); }
static inline double re(double v, double s) { return 0.8 * v * (1.0 - s) - 0.01 * s; }
void run() {
  double beta = 0.3; int cases[2][RG]; story.clear(); std::fill(air.begin(), air.end(), 0.0);
  #pragma omp parallel num_threads(2)
  { int t = omp_get_thread_num(); int64_t* R p = parts[t].data(); std::fill(p, p + side * side, 0);
    for (long i = t * n / 2; i < (t + 1) * n / 2; i++) { virus[i] = start[i]; seed[i] = seeds[i]; shield[i] = 0; if (start[i] > 0.05) p[cell[i]] += (int)(1000.0 * start[i]); } }
  for (int d = 0; d < DAYS; d++) {
    #pragma omp parallel for schedule(static)
    for (long y = 0; y < side; y++) {
      const double *R A = &air[y * side], *R U = &air[(y > 0 ? y - 1 : side - 1) * side], *R D = &air[(y < side - 1 ? y + 1 : 0) * side]; double* R O = &spare[y * side]; const int64_t *R p = &parts[0][y * side], *R q = &parts[1][y * side];
      auto px = [&](long x, long l, long r) { O[x] = 0.6 * (A[x] + 0.15 * (A[l] + A[r] + U[x] + D[x] - 4.0 * A[x])) + 0.001 * (p[x] + q[x]); };
      px(0, side - 1, 1);
      #pragma omp simd
      for (long x = 1; x < side - 1; x++) px(x, x - 1, x + 1);
      px(side - 1, side - 2, 0);
    }
    swap(air, spare); double immune = 0; long sick = 0;
    #pragma omp parallel num_threads(2) reduction(+ : immune, sick)
    {
      int t = omp_get_thread_num(), *R q = cases[t]; int64_t* R p = parts[t].data(); std::fill(p, p + side * side, 0); std::fill(q, q + RG, 0); const double *R A = air.data(), *R vi = virus.data(); double *R ne = nw.data(), *R sh = shield.data(); const int *R ct = contact.data(), *R ce = cell.data(), *R rg = region.data(); uint64_t* R se = seed.data();
      for (long i = t * n / 2; i < (t + 1) * n / 2; i++) {
        double pr = 0; for (int k = 0; k < C; k++) { double w = vi[ct[i * C + k]]; pr += w > 0.05 ? w : 0.0; }
        pr += 0.1 * A[ce[i]]; uint64_t s = se[i]; s ^= s << 13; s ^= s >> 7; s ^= s << 17; se[i] = s; double u = (double)(int64_t)(s >> 12) * 2.220446049250313e-16;
        double v = vi[i], h = sh[i]; if (v < 0.05 && u < 1.0 - exp(-beta * pr * (1.0 - h))) v = 0.1;
        double a = v + 0.5 * gr(v, h), b = h + 0.5 * re(v, h); v += gr(a, b); h += re(a, b); if (v < 0.01) v = 0; ne[i] = v; sh[i] = h; immune += h;
        if (v > 0.05) { sick++; q[rg[i]]++; p[ce[i]] += (int)(1000.0 * v); }
      }
    }
    swap(virus, nw); int worst = 0; for (int g = 1; g < RG; g++) if (cases[0][g] + cases[1][g] > cases[0][worst] + cases[1][worst]) worst = g;
    #pragma omp parallel for simd
    for (long i = 0; i < n; i++) if (region[i] == worst) shield[i] = max(shield[i], 0.5);
    double share = (double)sick / n; beta = share > 0.2 ? 0.15 : 0.3; story.push_back(share); story.push_back(immune / n); story.push_back(worst);
  }
}
double checksum() { return chk(virus) + chk(shield) + chk(air) + chk(story); }
