// Mixture: a sweep for responsibilities and first sums, one for the variances; labels at the end.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto sample = d.array<double>("x");
    Array<double> r0(n), r1(n), r2(n), out(3 * n);
    Array<int32_t> label(n);
    std::vector<double> likelihood, parameters(9);
    const bool par = n >= 1024;
    auto run = [&] {
        double w[3] = {1. / 3, 1. / 3, 1. / 3}, m[3] = {-1.5, 0.5, 3.0}, v[3] = {1.5, 1.5, 1.5};
        likelihood.clear();
        const double *__restrict x = sample;
        double *__restrict a = r0, *__restrict b = r1, *__restrict c = r2;
        for (int k = 0; k < 15; k++) {
            double con[3], pre[3];
            for (int q = 0; q < 3; q++) {
                con[q] = std::log(w[q]) - 0.5 * std::log(2.0 * M_PI * v[q]);
                pre[q] = 1.0 / v[q];
            }
            const double c0 = con[0], c1 = con[1], c2 = con[2], p0 = pre[0], p1 = pre[1], p2 = pre[2];
            const double m0 = m[0], m1 = m[1], m2 = m[2];
            double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, t2 = 0, like = 0;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : s0, s1, s2, t0, t1, t2, like)
            for (int64_t i = 0; i < n; i++) {
                double y = x[i], d0 = y - m0, d1 = y - m1, d2 = y - m2;
                double l0 = c0 - 0.5 * p0 * d0 * d0, l1 = c1 - 0.5 * p1 * d1 * d1, l2 = c2 - 0.5 * p2 * d2 * d2;
                double top = l0 > l1 ? l0 : l1;
                top = top > l2 ? top : l2;
                double norm = top + log(exp(l0 - top) + exp(l1 - top) + exp(l2 - top));
                double e0 = exp(l0 - norm), e1 = exp(l1 - norm), e2 = exp(l2 - norm);
                a[i] = e0;
                b[i] = e1;
                c[i] = e2;
                like += norm;
                s0 += e0, s1 += e1, s2 += e2;
                t0 += e0 * y, t1 += e1 * y, t2 += e2 * y;
            }
            m[0] = t0 / s0, m[1] = t1 / s1, m[2] = t2 / s2;
            const double n0 = m[0], n1 = m[1], n2 = m[2];
            double u0 = 0, u1 = 0, u2 = 0;
#pragma omp parallel for simd schedule(static) if (par) reduction(+ : u0, u1, u2)
            for (int64_t i = 0; i < n; i++) {
                double y = x[i];
                u0 += a[i] * (y - n0) * (y - n0);
                u1 += b[i] * (y - n1) * (y - n1);
                u2 += c[i] * (y - n2) * (y - n2);
            }
            v[0] = u0 / s0, v[1] = u1 / s1, v[2] = u2 / s2;
            w[0] = s0 / n, w[1] = s1 / n, w[2] = s2 / n;
            likelihood.push_back(like / n);
            if (k && likelihood[k] - likelihood[k - 1] < 2e-5) break;
        }
        double *__restrict o = out;
        int32_t *__restrict l = label;
#pragma omp parallel for schedule(static) if (par)
        for (int64_t i = 0; i < n; i++) {
            double best = a[i];
            int32_t w = 0;
            if (b[i] > best) best = b[i], w = 1;
            if (c[i] > best) w = 2;
            l[i] = w;
            o[3 * i] = a[i], o[3 * i + 1] = b[i], o[3 * i + 2] = c[i];
        }
        for (int q = 0; q < 3; q++) parameters[q] = w[q], parameters[3 + q] = m[q], parameters[6 + q] = v[q];
    };
    bench(run, [&](Checksum &s) {
        s.add("label", label.p, n);
        s.add("r", out.p, 3 * n);
        s.add("likelihood", likelihood.data(), likelihood.size());
        s.add("parameters", parameters.data(), 9);
    });
}
