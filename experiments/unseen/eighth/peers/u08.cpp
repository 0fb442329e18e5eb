#include "common.h"

static void score(long m, const float *__restrict p, uint8_t *__restrict q, float *__restrict z, double mid, double scale, uint8_t &any_, double &s1_, double &s2_, double &s3_) {
    double s1 = 0, s2 = 0, s3 = 0; int any = 0;
#pragma omp simd reduction(+ : s1, s2, s3) reduction(| : any)
    for (long i = 0; i < m; i++) {
        float zz = (p[i] - mid) / scale; z[i] = zz; any |= std::fabs(zz) > 3.5f;
        float w = zz < -4.0f ? -4.0f : zz; w = w > 4.0f ? 4.0f : w; int bin = (w + 4.0) * 32.0; q[i] = bin < 255 ? bin : 255;
        double t = w; s1 += t; s2 += t * t; s3 += t * t * t;
    }
    any_ = any; s1_ = s1; s2_ = s2; s3_ = s3;
}
static void calibrate(long m, const int32_t *__restrict raw, const uint8_t *__restrict sensor, const float *__restrict gain, const float *__restrict offset, float *__restrict x) {
    for (long i = 0; i < m; i++) { int k = sensor[i]; x[i] = raw[i] * gain[k] + offset[k]; }
}
static void look_up(long m, const uint8_t *__restrict b, const float *__restrict cdf, float *__restrict r) { for (long i = 0; i < m; i++) r[i] = cdf[b[i]]; }
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto raw = load<int32_t>("raw"); auto sensor = load<uint8_t>("sensor"); auto gain = load<float>("gain"); auto offset = load<float>("offset");
    vector<float> x(n), d(n), ranks(n); vector<uint8_t> b(n); vector<int32_t> index(n), hist(256);
    double quart[3], mad = 0, mom[3]; long outliers = 0;
    auto ceilf32 = [](double level) { float f = level; return (double)f < level ? nextafterf(f, INFINITY) : f; };
    auto count3 = [&](const vector<float> &v, const float *l, long *c) {
        long c0 = 0, c1 = 0, c2 = 0; float a0 = l[0], a1 = l[1], a2 = l[2];
#pragma omp parallel for schedule(static) reduction(+ : c0, c1, c2)
        for (long k = 0; k < n; k += 8192) { int k0 = 0, k1 = 0, k2 = 0; const float *p = &v[k]; int m = min(8192L, n - k);
            for (int i = 0; i < m; i++) { k0 += p[i] < a0; k1 += p[i] < a1; k2 += p[i] < a2; }
            c0 += k0; c1 += k1; c2 += k2; }
        c[0] = c0; c[1] = c1; c[2] = c2;
    };
    auto count1 = [&](const vector<float> &v, float a) {
        long c = 0;
#pragma omp parallel for schedule(static) reduction(+ : c)
        for (long k = 0; k < n; k += 8192) { int q = 0; const float *p = &v[k]; int m = min(8192L, n - k);
            for (int i = 0; i < m; i++) q += p[i] < a;
            c += q; }
        return c;
    };
    auto run = [&] {
#pragma omp parallel for schedule(static)
        for (long k = 0; k < n; k += 8192) calibrate(min(8192L, n - k), &raw[k], &sensor[k], gain.data(), offset.data(), &x[k]);
        double lo[3] = {-50, -50, -50}, hi[3] = {50, 50, 50}, share[3] = {0.25, 0.5, 0.75};
        for (int t = 0; t < 14; t++) {
            double lev[3]; float f[3]; long c[3];
            for (int k = 0; k < 3; k++) { lev[k] = 0.5 * (lo[k] + hi[k]); f[k] = ceilf32(lev[k]); }
            count3(x, f, c);
            for (int k = 0; k < 3; k++) (double(c[k]) < share[k] * n ? lo : hi)[k] = lev[k];
        }
        for (int k = 0; k < 3; k++) quart[k] = 0.5 * (lo[k] + hi[k]);
        const double mid = quart[1];
        double l = 0, h = 50;
        for (int t = 0; t < 14; t++) {
            double lev = 0.5 * (l + h); long c = 0; float f = ceilf32(lev);
            if (t == 0) {
#pragma omp parallel for schedule(static) reduction(+ : c)
                for (long i = 0; i < n; i++) { float q = std::fabs(x[i] - mid); d[i] = q; c += q < f; }
            } else c = count1(d, f);
            (double(c) < 0.5 * n ? l : h) = lev;
        }
        mad = 0.5 * (l + h);
        const double scale = 1.4826 * mad;
        int32_t H[256] = {0}, H2[256] = {0}; double m1 = 0, m2 = 0, m3 = 0; vector<int32_t> found[2];
#pragma omp parallel num_threads(2) reduction(+ : H, H2, m1, m2, m3)
        {
            auto &mine = found[omp_get_thread_num()];
#pragma omp for schedule(static)
            for (long k = 0; k < n; k += 1024) {
                long m = min(1024L, n - k); float z[1024]; uint8_t any = 0; double s1 = 0, s2 = 0, s3 = 0;
                uint8_t *q = &b[k]; score(m, &x[k], q, z, mid, scale, any, s1, s2, s3);
                m1 += s1; m2 += s2; m3 += s3;
                for (long i = 0; i < m; i++) { if (i & 1) H2[q[i]]++; else H[q[i]]++; }
                if (any) for (long i = 0; i < m; i++) if (std::fabs(z[i]) > 3.5f) mine.push_back(k + i);
            }
        }
        float cdf[256]; long c = 0;
        for (int k = 0; k < 256; k++) { hist[k] = H[k] + H2[k]; c += hist[k]; cdf[k] = c / double(n); }
        std::copy(found[0].begin(), found[0].end(), index.begin());
        std::copy(found[1].begin(), found[1].end(), index.begin() + found[0].size());
        outliers = found[0].size() + found[1].size();
#pragma omp parallel for schedule(static)
        for (long k = 0; k < n; k += 8192) look_up(min(8192L, n - k), &b[k], cdf, &ranks[k]);
        mom[0] = m1 / n; mom[1] = m2 / n; mom[2] = m3 / n;
    };
    return bench(run, [&] {
        double s = sum(ranks) + sum(hist) + quart[0] + quart[1] + quart[2] + mad + mom[0] + mom[1] + mom[2] + outliers;
        for (long i = 0; i < outliers; i++) s += index[i];
        return s;
    });
}
