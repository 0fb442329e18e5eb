#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    const double L = 12.0; const double DT = 0.05; const double ONE = 1 << 20;
    auto x = load<double>("x"); auto v = load<double>("v"); auto e = load<double>("e");
    const long m = e.size(); const double dx = L / m; const double per = 1 / dx;
    vector<int64_t> part(2 * (m + 1)); double kin = 0; double fld = 0; vector<double> ee(m + 1);
    auto deposit = [&](int64_t *rho, double xi) __attribute__((always_inline)) {
        int c = xi * per; double f = xi * per - c; int r = f * ONE; rho[c] += (int)ONE - r; rho[c + 1] += r;
    };
    auto run = [&] {
        for (int step = 0; step < 3; step++) {
            kin = 0;
            if (step == 0) {
#pragma omp parallel num_threads(2)
                { int64_t *rho = part.data() + omp_get_thread_num() * (m + 1); std::fill(rho, rho + m + 1, 0);
#pragma omp for schedule(static)
                for (long i = 0; i < n; i++) deposit(rho, x[i]); }
            }
            double s = 0, mean = 0; const double scale = m / (n * ONE);
            for (long k = 0; k < m; k++) {
                int64_t r = part[k] + part[m + 1 + k]; if (k == 0) r += part[m] + part[2 * m + 1];
                s += (1.0 - scale * r) * dx; ee[k] = s; mean += s;
            }
            mean /= m; fld = 0;
            for (long k = 0; k < m; k++) { ee[k] -= mean; fld += 0.5 * ee[k] * ee[k] * dx; }
            ee[m] = ee[0];
            double ks = 0;
#pragma omp parallel num_threads(2) reduction(+ : ks)
            { int64_t *rho = part.data() + omp_get_thread_num() * (m + 1); std::fill(rho, rho + m + 1, 0);
#pragma omp for schedule(static)
            for (long i = 0; i < n; i++) {
                double xi = x[i], p = xi * per; int c = p; double f = p - c;
                double vi = v[i] - DT * ((1.0 - f) * ee[c] + f * ee[c + 1]);
                v[i] = vi; xi += DT * vi; if (xi < 0) xi += L; if (xi >= L) xi -= L; x[i] = xi;
                ks += 0.5 * vi * vi;
                if (step < 2) deposit(rho, xi);
            } }
            kin = ks;
        }
        std::copy(ee.begin(), ee.begin() + m, e.begin());
        kin = kin * L / n;
    };
    return bench(run, [&] { return sum(x) + sum(v) + sum(e) + kin + fld; });
}
