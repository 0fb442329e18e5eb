#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto u = load<double>("u"), kx = load<double>("kx"), ky = load<double>("ky"), mean = load<double>("mean"); vector<double> half(n * n), R(n * n), C(n * n); double ch[2];
    const double dt = 0.4, w = 0.5 * dt;
    auto run = [&] {
        for (int s = 0; s < 2; s++) { double e = 0;
#pragma omp parallel reduction(+ : e)
            {
                int t = omp_get_thread_num(), T = omp_get_num_threads(); long lo = n * t / T, hi = n * (t + 1) / T; const long B = 4;
                vector<double> r(B * n), c(B * n);
                // rows, four at a time
                for (long i0 = lo; i0 < hi; i0 += B) { long m = min(B, hi - i0);
                    for (long b = 0; b < m; b++) { long i = i0 + b;
#pragma omp simd
                        for (long j = 0; j < n; j++) { long q = i * n + j; double v = u[q], f1 = i + 1 < n ? kx[q + n] * (u[q + n] - v) : 0, f0 = i ? kx[q] * (v - u[q - n]) : 0; r[j * B + b] = v + w * (f1 - f0 + 0.3 * v * (1 - v)); } }
                    double pc[4] = {0}, pr[4] = {0};
                    for (long j = 0; j < n; j++)
                        for (long b = 0; b < m; b++) { const double *k = &ky[(i0 + b) * (n + 1) + j]; double l = -w * k[0], h = -w * k[1], d = 1 - l - h, p = d - l * pc[b]; pc[b] = c[j * B + b] = h / p; pr[b] = r[j * B + b] = (r[j * B + b] - l * pr[b]) / p; }
                    for (long b = 0; b < m; b++) pr[b] = 0;
                    for (long j = n - 1; j >= 0; j--) for (long b = 0; b < m; b++) half[(i0 + b) * n + j] = pr[b] = r[j * B + b] - c[j * B + b] * pr[b];
                }
#pragma omp barrier
                // columns, a strip of each thread
                for (long i = 0; i < n; i++)
#pragma omp simd
                    for (long j = lo; j < hi; j++) { long q = i * n + j; const double *k = &ky[i * (n + 1) + j]; double v = half[q], f1 = j + 1 < n ? k[1] * (half[q + 1] - v) : 0, f0 = j ? k[0] * (v - half[q - 1]) : 0;
                        double rhs = v + w * (f1 - f0 + 0.3 * v * (1 - v)), l = -w * kx[q], h = -w * kx[q + n], d = 1 - l - h, cp = i ? C[q - n] : 0, rp = i ? R[q - n] : 0, p = d - l * cp; C[q] = h / p; R[q] = (rhs - l * rp) / p; }
                for (long i = n - 1; i >= 0; i--)
#pragma omp simd reduction(+ : e)
                    for (long j = lo; j < hi; j++) { long q = i * n + j; double v = R[q] - (i + 1 < n ? C[q] * u[q + n] : 0), d = v - u[q]; e += d * d; u[q] = v; }
#pragma omp barrier
#pragma omp for schedule(static)
                for (long i = 0; i < n; i++) { double m = 0;
#pragma omp simd reduction(+ : m)
                    for (long j = 0; j < n; j++) m += u[i * n + j]; mean[i] = m / n; }
            }
            ch[s] = e;
        }
    };
    return bench(run, [&] { return sum(u) + sum(mean) + ch[0] + ch[1]; });
}
