// BiCGSTAB with a sparse matrix (CSR): the vector updates and dot products of a step share a pass,
// those of the products included: five passes an iteration.
#include "common.hpp"

static constexpr int ITERATIONS = 5;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), side = d.number("side");
    auto start = d.array<int32_t>("start"), column = d.array<int32_t>("column");
    auto value = d.array<double>("value"), b = d.array<double>("b"), k = d.array<double>("conductivity"), guess = d.array<double>("guess");
    Array<double> x(n), speed(n), norms(ITERATIONS), inverse(n), r(n), shadow(n), p(n), v(n), y(n), z(n), half(n), t(n);
    int64_t fast = 0;
    auto run = [&] {
        const bool par = n >= PARALLEL_FROM;
        const int32_t *__restrict from = start.p, *__restrict col = column.p;
        const double *__restrict val = value.p;
        auto row = [&](const double *f, int64_t i) {
            double sum = 0;
            for (int32_t e = from[i]; e < from[i + 1]; e++) sum += val[e] * f[col[e]];
            return sum;
        };
        double bb = 0, new_rho = 0, rho = 1, alpha = 1, omega = 1;
#pragma omp parallel for if (par) schedule(static) reduction(+ : bb, new_rho)
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int32_t e = from[i]; e < from[i + 1]; e++) {
                sum += val[e] * guess[col[e]];
                if (col[e] == i) inverse[i] = 1.0 / val[e];
            }
            const double res = b[i] - sum;
            x[i] = guess[i], r[i] = res, shadow[i] = res;
            bb += b[i] * b[i], new_rho += res * res;
        }
        for (int it = 0; it < ITERATIONS; it++) {
            const double beta = new_rho / rho * (alpha / omega);
            rho = new_rho;
            if (it == 0) {
#pragma omp parallel for simd if (par) schedule(static)
                for (int64_t i = 0; i < n; i++) p[i] = r[i], y[i] = r[i] * inverse[i];
            } else {
#pragma omp parallel for simd if (par) schedule(static)
                for (int64_t i = 0; i < n; i++) {
                    const double q = r[i] + beta * (p[i] - omega * v[i]);
                    p[i] = q, y[i] = q * inverse[i];
                }
            }
            double sv = 0, ts = 0, tt = 0, rr = 0;
            new_rho = 0;
#pragma omp parallel for if (par) schedule(static) reduction(+ : sv)
            for (int64_t i = 0; i < n; i++) v[i] = row(y, i), sv += shadow[i] * v[i];
            alpha = rho / sv;
#pragma omp parallel for simd if (par) schedule(static)
            for (int64_t i = 0; i < n; i++) {
                const double q = r[i] - alpha * v[i];
                half[i] = q, z[i] = q * inverse[i];
            }
#pragma omp parallel for if (par) schedule(static) reduction(+ : ts, tt)
            for (int64_t i = 0; i < n; i++) {
                const double q = row(z, i);
                t[i] = q, ts += q * half[i], tt += q * q;
            }
            omega = ts / tt;
#pragma omp parallel for simd if (par) schedule(static) reduction(+ : rr, new_rho)
            for (int64_t i = 0; i < n; i++) {
                x[i] += alpha * y[i] + omega * z[i];
                const double q = half[i] - omega * t[i];
                r[i] = q, rr += q * q, new_rho += shadow[i] * q;
            }
            norms[it] = std::sqrt(rr);
            if (norms[it] < 1e-9 * std::sqrt(bb)) break;
        }
        int64_t count = 0;
#pragma omp parallel for if (par) schedule(static) reduction(+ : count)
        for (int64_t j = 0; j < side; j++) {
            const double *h = x.p + j * side, *up = j < side - 1 ? h + side : h, *c = k.p + j * side;
            double *__restrict o = speed.p + j * side;
#pragma omp simd reduction(+ : count)
            for (int64_t i = 0; i < side - 1; i++) {
                o[i] = c[i] * (std::fabs(h[i] - h[i + 1]) + std::fabs(h[i] - up[i]));
                count += o[i] > 0.25;
            }
            o[side - 1] = c[side - 1] * std::fabs(h[side - 1] - up[side - 1]);
            count += o[side - 1] > 0.25;
        }
        fast = count;
    };
    bench(run, [&](Checksum &s) {
        s.add("x", x.p, n);
        s.add("speed", speed.p, n);
        s.add("norms", norms.p, ITERATIONS);
        s.add("fast", double(fast));
    });
}
