// Condensate: one sweep a step over two buffers. The scale that makes the norm 1 is applied as the
// wave is read; the norm of the new wave is summed as it is stored.
#include "common.hpp"

static const double LENGTH = 16.0, DT_SHARE = 0.2, OMEGA = 0.7, STRENGTH = 120.0;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps"), N = n * n;
    auto noise = d.array<double>("noise");
    Array<double> ua(N), va(N), ub(N), vb(N);
    std::vector<double> norms, energies, spins, axis(n);
    const double h = LENGTH / (n - 1), h2 = h * h, dt = DT_SHARE * h * h;
    for (int64_t i = 0; i < n; i++) axis[i] = (i - 0.5 * (n - 1)) * h;
    double *U = ua, *V = va;
    auto run = [&] {
        norms.clear(), energies.clear(), spins.clear();
        double *u = ua, *v = va, *un = ub, *vn = vb, norm = 0;
#pragma omp parallel for schedule(static) reduction(+ : norm) if (N >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) {
            double part = 0;
            const bool rim = i == 0 || i == n - 1;
#pragma omp simd reduction(+ : part)
            for (int64_t j = 0; j < n; j++) {
                double x = axis[j], y = axis[i];
                double g = exp(-0.25 * (x * x + y * y)) * (1.0 + noise[i * n + j]);
                g = rim || j == 0 || j == n - 1 ? 0.0 : g;
                double a = g * (1.0 + 0.3 * x), b = g * 0.3 * y;
                u[i * n + j] = a, v[i * n + j] = b;
                un[i * n + j] = 0, vn[i * n + j] = 0;
                part += a * a + b * b;
            }
            norm += part;
        }
        double by = 1.0;
        for (int64_t step = 0; step < steps; step++) {
            norms.push_back(norm * h2);
            by = 1.0 / std::sqrt(norms.back());
            double sum = 0, energy = 0, spin = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum, energy, spin) if (N >= PARALLEL_FROM)
            for (int64_t i = 1; i < n - 1; i++) {
                const double *a = u + i * n, *b = v + i * n, *x = axis.data();
                double *__restrict ao = un + i * n, *__restrict bo = vn + i * n;
                const double y2 = 1.1 * axis[i] * axis[i], q = by / h2, k = i - 0.5 * (n - 1);
                double s = 0, e = 0, m = 0;
#pragma omp simd reduction(+ : s, e, m)
                for (int64_t j = 1; j < n - 1; j++) {
                    double c = j - 0.5 * (n - 1), p = a[j] * by, o = b[j] * by;
                    double w = 0.5 * (x[j] * x[j] + y2) + STRENGTH * (p * p + o * o);
                    double lp = (a[j - n] + a[j + n] + a[j - 1] + a[j + 1] - 4.0 * a[j]) * q;
                    double lo = (b[j - n] + b[j + n] + b[j - 1] + b[j + 1] - 4.0 * b[j]) * q;
                    double tp = 0.5 * by * (c * (a[j + n] - a[j - n]) - k * (a[j + 1] - a[j - 1]));
                    double to = 0.5 * by * (c * (b[j + n] - b[j - n]) - k * (b[j + 1] - b[j - 1]));
                    double hp = -0.5 * lp + w * p - OMEGA * to, ho = -0.5 * lo + w * o + OMEGA * tp;
                    e += p * hp + o * ho;
                    m += p * to - o * tp;
                    p -= dt * hp, o -= dt * ho;
                    ao[j] = p, bo[j] = o;
                    s += p * p + o * o;
                }
                sum += s, energy += e, spin += m;
            }
            if (step % 4 == 3) energies.push_back(h2 * energy), spins.push_back(h2 * spin);
            norm = sum;
            std::swap(u, un), std::swap(v, vn);
        }
        U = u, V = v;
    };
    bench(run, [&](Checksum &s) {
        s.add("u", U, N);
        s.add("v", V, N);
        s.add("norms", norms.data(), norms.size());
        s.add("energies", energies.data(), energies.size());
        s.add("spins", spins.data(), spins.size());
    });
}
