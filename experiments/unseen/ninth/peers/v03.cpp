#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto x = load<double>("x"), v = load<double>("v"), rho = load<double>("rho"); double h = load<double>("h")[0], mass = load<double>("mass")[0];
    int m = (int)load<double>("m")[0]; long cells = (long)m * m; double width = 1.0 / m, scale = mass * 4 / (M_PI * pow(h, 8)), dt = 0.005 * h, spiky = 30 / (M_PI * pow(h, 5));
    vector<int> cell(n), items(n), start(cells + 1), used(cells); vector<double> pr(n), sx(2 * n), sv(2 * n), srho(n); double energy[2], error[2];
    auto run = [&] {
        for (int s = 0; s < 2; s++) {
            double e = 0, d = 0;
            std::fill(start.begin(), start.end(), 0);
#pragma omp parallel
            {
#pragma omp for schedule(static)
                for (long p = 0; p < n; p++) { int a = x[2 * p] / width, b = x[2 * p + 1] / width; a = max(0, min(m - 1, a)); b = max(0, min(m - 1, b)); cell[p] = a * m + b; }
#pragma omp single
                {   // a stable counting sort by one thread: cells are in order without sorting
                    for (long p = 0; p < n; p++) start[cell[p] + 1]++;
                    for (long c = 0; c < cells; c++) { start[c + 1] += start[c]; used[c] = start[c]; }
                    for (long p = 0; p < n; p++) items[used[cell[p]]++] = p;
                }
#pragma omp for schedule(static)
                for (long k = 0; k < n; k++) { long q = items[k]; sx[2 * k] = x[2 * q]; sx[2 * k + 1] = x[2 * q + 1]; sv[2 * k] = v[2 * q]; sv[2 * k + 1] = v[2 * q + 1]; }
#pragma omp for schedule(static) reduction(+ : d)
                for (long k = 0; k < n; k++) {
                    int c = cell[items[k]], ca = c / m, cb = c % m; double px = sx[2 * k], py = sx[2 * k + 1], total = 0;
                    for (int a = max(0, ca - 1); a < min(m, ca + 2); a++) {
                        int lo = start[a * m + max(0, cb - 1)], hi = start[a * m + min(m, cb + 2)];
                        for (int q = lo; q < hi; q++) { double dx = sx[2 * q] - px, dy = sx[2 * q + 1] - py, w = h * h - (dx * dx + dy * dy); total += w > 0 ? w * w * w : 0.0; }
                    }
                    srho[k] = total * scale; pr[k] = 50.0 * max(srho[k] - 1.0, 0.0); rho[items[k]] = srho[k]; d += fabs(srho[k] - 1.0);
                }
#pragma omp for schedule(static) reduction(+ : e)
                for (long k = 0; k < n; k++) {
                    int c = cell[items[k]], ca = c / m, cb = c % m; double px = sx[2 * k], py = sx[2 * k + 1], ax = 0, ay = 0;
                    for (int a = max(0, ca - 1); a < min(m, ca + 2); a++) {
                        int lo = start[a * m + max(0, cb - 1)], hi = start[a * m + min(m, cb + 2)];
                        for (int q = lo; q < hi; q++) {
                            double dx = sx[2 * q] - px, dy = sx[2 * q + 1] - py, r2 = dx * dx + dy * dy;
                            if (r2 < h * h && q != k) {
                                double r = sqrt(r2); if (r <= 1e-9) continue;
                                double w = h - r, z = mass / srho[q] * spiky * w, push = -0.5 * (pr[k] + pr[q]) * z * w / r, drag = 5 * h * z;
                                ax += push * dx + drag * (sv[2 * q] - sv[2 * k]); ay += push * dy + drag * (sv[2 * q + 1] - sv[2 * k + 1]);
                            }
                        }
                    }
                    double acc[2] = {ax / srho[k], ay / srho[k] - 5.0}; long p = items[k];
                    for (int a = 0; a < 2; a++) {
                        double vv = sv[2 * k + a] + dt * acc[a], xx = sx[2 * k + a] + dt * vv;
                        if (xx < 0) { xx = 0; vv *= -0.5; } if (xx > 1) { xx = 1; vv *= -0.5; }
                        x[2 * p + a] = xx; v[2 * p + a] = vv; e += 0.5 * vv * vv;
                    }
                }
            }
            energy[s] = e / n; error[s] = d / n;
        }
    };
    return bench(run, [&] { return sum(x) + sum(v) + sum(rho) + energy[0] + energy[1] + error[0] + error[1]; });
}
