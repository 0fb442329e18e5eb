#include "common.hpp"
static long n, len, hsh, wrong; static VL v, back; static VI w; static vector<uint8_t, Huge<uint8_t>> out;
void setup(long size) {
  n = size; v = VL(n); back = VL(n); w = VI(n); out = vector<uint8_t, Huge<uint8_t>>(5 * n);
  for (long i = 0; i < n; i++) { double u = rnd(i, 140), s = u < 0.6 ? 100.0 : u < 0.9 ? 20000.0 : u < 0.99 ? 3e6 : 8e8; v[i] = (int64_t)(1e9 + s * (rnd(i, 141) - 0.5)); }
}
void run() {
  long first[3] = {}, sums[3] = {}, h = 0, bad = 0; uint8_t* R O = out.data(); const int64_t* R A = v.data(); int* R W = w.data(); int64_t* R B = back.data();
  auto zig = [=](long i) { int64_t d = i ? A[i] - A[i - 1] : A[i]; return (d << 1) ^ (d >> 63); };
  #pragma omp parallel num_threads(2) reduction(+ : h, bad)
  {
    int t = omp_get_thread_num(); long lo = n * t / 2, hi = n * (t + 1) / 2, s = 0;
    for (long i = lo; i < hi; i++) { int64_t z = zig(i); int k = 1 + (z >= 128) + (z >= 16384) + (z >= 2097152) + (z >= 268435456); W[i] = k; s += k; }
    first[t + 1] = s;
    #pragma omp barrier
    #pragma omp single
    { first[2] += first[1]; len = first[2]; }
    long at = first[t];
    for (long i = lo; i < hi; i++) { int64_t r = zig(i); for (int k = W[i] - 1; k > 0; k--) { O[at++] = (r & 127) | 128; r >>= 7; } O[at++] = r & 127; }
    for (long i = first[t]; i < at; i++) { int64_t x = ((int64_t)O[i] + 1) * ((i & 1023) + 17); x = (x ^ (x >> 5)) * 40503; h += (x ^ (x >> 11)) & 65535; }
    at = first[t]; s = 0;
    for (long i = lo; i < hi; i++) { int64_t x = 0; for (int k = 0; k < W[i]; k++) x |= ((int64_t)O[at++] & 127) << (7 * k); s += (x >> 1) ^ -(x & 1); B[i] = s; }
    sums[t + 1] = s;
    #pragma omp barrier
    s = t ? sums[1] : 0;
    for (long i = lo; i < hi; i++) { B[i] += s; bad += B[i] != A[i]; }
  }
  hsh = h; wrong = bad;
}
double checksum() { VL d(n); for (long i = 0; i < n; i++) d[i] = back[i] - v[i]; return chk(d) + len + hsh + chk(out.data(), len) + wrong; }
