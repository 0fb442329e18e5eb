// Geodesy: a station's whole transformation in one vectorised loop; residuals are packed by threads
// in order, with the trend removed on the way. Local coordinates are recomputed, not stored.
#include "common.hpp"
extern "C" {  // without errno, so that loops with them can be vectorised
__attribute__((const)) double sqrt(double) noexcept;
__attribute__((simd("notinbranch"), const)) double sin(double) noexcept;
__attribute__((simd("notinbranch"), const)) double cos(double) noexcept;
__attribute__((simd("notinbranch"), const)) double atan2(double, double) noexcept;
}

static constexpr double AXIS = 6378137.0, FLAT = 1 / 298.257222101, ECC = FLAT * (2 - FLAT), LAT0 = 0.82, LON0 = 0.15;
static constexpr int B = 64;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto lat0 = d.array<double>("lat"), lon0 = d.array<double>("lon"), height = d.array<double>("height");
    auto model = d.array<double>("model");
    Array<double> lat(n), lon(n), h(n), r(n), kept(n);
    int64_t count = 0;
    double numbers[7];
    auto run = [&] {
        const double rx = 2e-8, ry = -1e-8, rz = 5e-8, scale = 1.0 + 3e-9, ce = std::cos(LAT0);
        double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (n >= PARALLEL_FROM)
        for (int64_t i0 = 0; i0 < n; i0 += B) {
            const int64_t m = std::min<int64_t>(B, n - i0);
            alignas(64) double s[B], c[B], so[B], x[B], y[B], z[B], p[B], a[B];
            const double *la = lat0.p + i0, *lo = lon0.p + i0, *he = height.p + i0;
#pragma omp simd
            for (int64_t l = 0; l < m; l++) s[l] = sin(la[l]);
#pragma omp simd
            for (int64_t l = 0; l < m; l++) c[l] = cos(la[l]);
#pragma omp simd
            for (int64_t l = 0; l < m; l++) so[l] = sin(lo[l]);
#pragma omp simd
            for (int64_t l = 0; l < m; l++) {
                const double v = AXIS / std::sqrt(1.0 - ECC * s[l] * s[l]), q = (v + he[l]) * c[l];
                const double x0 = q * cos(lo[l]), y0 = q * so[l], z0 = (v * (1.0 - ECC) + he[l]) * s[l];
                x[l] = 0.05 + scale * (x0 - rz * y0 + ry * z0);
                y[l] = -0.11 + scale * (rz * x0 + y0 - rx * z0);
                z[l] = 0.42 + scale * (-ry * x0 + rx * y0 + z0);
                p[l] = std::sqrt(x[l] * x[l] + y[l] * y[l]);
                a[l] = atan2(z[l], p[l] * (1.0 - ECC));
            }
            for (int k = 0; k < 3; k++)
#pragma omp simd
                for (int64_t l = 0; l < m; l++) {
                    const double q = sin(a[l]), v = AXIS / std::sqrt(1.0 - ECC * q * q);
                    a[l] = atan2(z[l] + ECC * v * q, p[l]);
                }
#pragma omp simd
            for (int64_t l = 0; l < m; l++) s[l] = sin(a[l]);
            double part = 0;
#pragma omp simd reduction(+ : part)
            for (int64_t l = 0; l < m; l++) {
                lat[i0 + l] = a[l];
                lon[i0 + l] = atan2(y[l], x[l]);
                const double up = p[l] * cos(a[l]) + z[l] * s[l] - AXIS * std::sqrt(1.0 - ECC * s[l] * s[l]);
                h[i0 + l] = up, r[i0 + l] = up - model[i0 + l];
                part += r[i0 + l];
            }
            sum += part;
        }
        const double mean = sum / n;
        double spread = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : spread) if (n >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++) spread += (r[i] - mean) * (r[i] - mean);
        const double sigma = std::sqrt(spread / n), limit = 2.0 * sigma;
        double se = 0, sn = 0, sr = 0, ee = 0, en = 0, nn = 0, er = 0, nr = 0, squares = 0, A = 0, E = 0, Q = 0;
        std::vector<int64_t> first(omp_get_max_threads() + 1, 0);
        int64_t many = 0;
#pragma omp parallel reduction(+ : squares) if (n >= PARALLEL_FROM)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
            const int64_t i0 = n * t / nt, i1 = n * (t + 1) / nt;
            double v0 = 0, v1 = 0, v2 = 0, v3 = 0, v4 = 0, v5 = 0, v6 = 0, v7 = 0, v8 = 0;
#pragma omp simd reduction(+ : v0, v1, v2, v3, v4, v5, v6, v7, v8)
            for (int64_t i = i0; i < i1; i++) {
                const double good = std::fabs(r[i] - mean) <= limit ? 1.0 : 0.0, x = r[i];
                const double e = AXIS * (lon[i] - LON0) * ce * 0.001, q = AXIS * (lat[i] - LAT0) * 0.001;
                v0 += good * e, v1 += good * q, v2 += good * x, v3 += good * e * e, v4 += good * e * q;
                v5 += good * q * q, v6 += good * e * x, v7 += good * q * x, v8 += good;
            }
            first[t + 1] = int64_t(v8);
#pragma omp critical
            se += v0, sn += v1, sr += v2, ee += v3, en += v4, nn += v5, er += v6, nr += v7;
#pragma omp barrier
#pragma omp single
            {
                for (int64_t k = 0; k < nt; k++) first[k + 1] += first[k];
                many = first[nt];
                double M[3][4] = {{double(many), se, sn, sr}, {se, ee, en, er}, {sn, en, nn, nr}};
                for (int k = 0; k < 3; k++) {  // elimination with pivots
                    int best = k;
                    for (int q = k + 1; q < 3; q++)
                        if (std::fabs(M[q][k]) > std::fabs(M[best][k])) best = q;
                    for (int q = 0; q < 4; q++) std::swap(M[k][q], M[best][q]);
                    for (int q = k + 1; q < 3; q++)
                        for (int c = 3; c >= k; c--) M[q][c] -= M[q][k] / M[k][k] * M[k][c];
                }
                Q = M[2][3] / M[2][2];
                E = (M[1][3] - M[1][2] * Q) / M[1][1];
                A = (M[0][3] - M[0][1] * E - M[0][2] * Q) / M[0][0];
            }
            int64_t at = first[t];
            for (int64_t i = i0; i < i1; i++)
                if (std::fabs(r[i] - mean) <= limit) {
                    const double e = AXIS * (lon[i] - LON0) * ce * 0.001, q = AXIS * (lat[i] - LAT0) * 0.001;
                    const double x = r[i] - (A + E * e + Q * q);
                    kept[at++] = x;
                    squares += x * x;
                }
        }
        count = many;
        const double all[7] = {double(many), mean, sigma, A, E, Q, std::sqrt(squares / many)};
        std::copy(all, all + 7, numbers);
    };
    bench(run, [&](Checksum &s) {
        s.add("lat", lat.p, n);
        s.add("lon", lon.p, n);
        s.add("h", h.p, n);
        s.add("kept", kept.p, count);
        s.add("numbers", numbers, 7);
    });
}
