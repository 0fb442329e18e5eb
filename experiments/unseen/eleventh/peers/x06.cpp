// Optical flow: a sweep for the derivatives (rows smoothed in the cache), then one a round.
#include "common.hpp"

struct Smooth {  // one row of a frame, smoothed in both directions
    static void row(int64_t n, const float *x, int64_t i, float *__restrict tmp, float *__restrict out) {
        const float *u = x + std::max<int64_t>(i - 1, 0) * n, *m = x + i * n,
                    *d = x + std::min(i + 1, n - 1) * n;
        // the rows first, as they were rounded, for the three rows
        const float *r[3] = {u, m, d};
        for (int k = 0; k < 3; k++) {
            const float *__restrict q = r[k];
            float *__restrict t = tmp + k * n;
            t[0] = 0.25f * (q[0] + 2.0f * q[0] + q[1]);
#pragma omp simd
            for (int64_t j = 1; j < n - 1; j++) t[j] = 0.25f * (q[j - 1] + 2.0f * q[j] + q[j + 1]);
            t[n - 1] = 0.25f * (q[n - 2] + 2.0f * q[n - 1] + q[n - 1]);
        }
#pragma omp simd
        for (int64_t j = 0; j < n; j++) out[j] = 0.25f * (tmp[j] + 2.0f * tmp[n + j] + tmp[2 * n + j]);
    }
};

#define IN const float *__restrict
#define OUT float *__restrict

static void derive(int64_t n, IN a, IN b, IN au, IN bu, IN ad, IN bd, OUT X, OUT Y, OUT G, OUT S, OUT u0,
                   OUT v0, float alpha2) {
#define AT(j, l, r)                                      \
    {                                                    \
        float x = 0.25f * (a[r] - a[l] + b[r] - b[l]);   \
        float y = 0.25f * (ad[j] - au[j] + bd[j] - bu[j]); \
        X[j] = x, Y[j] = y, G[j] = b[j] - a[j];          \
        S[j] = 1.0f / (alpha2 + x * x + y * y);          \
        u0[j] = 0, v0[j] = 0;                            \
    }
    AT(0, 0, 1)
#pragma omp simd
    for (int64_t j = 1; j < n - 1; j++) AT(j, j - 1, j + 1)
    AT(n - 1, n - 2, n - 1)
#undef AT
}

static void round_row(int64_t n, IN X, IN Y, IN G, IN S, IN u, IN uu, IN ud, IN v, IN vu, IN vd, OUT ou, OUT ov,
                      double &du, double &dv) {
    double su = 0, sv = 0;
#define AT(j, l, r)                                                          \
    {                                                                        \
        float um = 0.25f * (uu[j] + ud[j] + u[l] + u[r]);                    \
        float vm = 0.25f * (vu[j] + vd[j] + v[l] + v[r]);                    \
        float m = (X[j] * um + Y[j] * vm + G[j]) * S[j];                     \
        float p = um - X[j] * m, q = vm - Y[j] * m;                          \
        ou[j] = p, ov[j] = q;                                                \
        su += double((p - u[j]) * (p - u[j]));                               \
        sv += double((q - v[j]) * (q - v[j]));                               \
    }
    AT(0, 0, 1)
#pragma omp simd reduction(+ : su, sv)
    for (int64_t j = 1; j < n - 1; j++) AT(j, j - 1, j + 1)
    AT(n - 1, n - 2, n - 1)
#undef AT
    du = su;
    dv = sv;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto one = d.array<float>("one"), two = d.array<float>("two");
    const float alpha2 = 0.004f;
    Array<float> gx(n * n), gy(n * n), gt(n * n), s(n * n), ua(n * n), ub(n * n), va(n * n), vb(n * n);
    std::vector<double> changes;
    float *U = ua, *V = va;
    auto run = [&] {
        changes.clear();
        const bool par = n * n >= PARALLEL_FROM;
#pragma omp parallel if (par)
        {
            const int T = omp_get_num_threads(), t = omp_get_thread_num();
            const int64_t first = n * t / T, end = n * (t + 1) / T;
            std::vector<float> tmp(3 * n), rows(6 * n);  // three smoothed rows of both frames
            auto row = [&](int f, int64_t i) { return &rows[(f * 3 + (i + 3) % 3) * n]; };
            auto make = [&](int64_t i) {
                Smooth::row(n, one, i, tmp.data(), row(0, i));
                Smooth::row(n, two, i, tmp.data(), row(1, i));
            };
            if (first < end) {
                if (first) make(first - 1);
                make(first);
            }
            for (int64_t i = first; i < end; i++) {
                if (i + 1 < n) make(i + 1);
                const int64_t iu = std::max<int64_t>(i - 1, 0), id = std::min(i + 1, n - 1);
                const float *a = row(0, i), *b = row(1, i), *au = row(0, iu), *bu = row(1, iu),
                            *ad = row(0, id), *bd = row(1, id);
                float *__restrict X = gx + i * n, *__restrict Y = gy + i * n;
                float *__restrict G = gt + i * n, *__restrict S = s + i * n;
                float *__restrict u0 = ua + i * n, *__restrict v0 = va + i * n;
                derive(n, a, b, au, bu, ad, bd, X, Y, G, S, u0, v0, alpha2);
            }
        }
        U = ua, V = va;
        float *U2 = ub, *V2 = vb;
        for (int k = 0; k < 30; k++) {
            double du = 0, dv = 0;
            const float *uin = U, *vin = V;
#pragma omp parallel for schedule(static) reduction(+ : du, dv) if (par)
            for (int64_t i = 0; i < n; i++) {
                const int64_t o = i * n, p = std::max<int64_t>(i - 1, 0) * n, q = std::min(i + 1, n - 1) * n;
                const float *__restrict X = gx + o, *__restrict Y = gy + o, *__restrict G = gt + o,
                            *__restrict S = s + o;
                const float *u = uin + o, *uu = uin + p, *ud = uin + q;
                const float *v = vin + o, *vu = vin + p, *vd = vin + q;
                float *__restrict ou = U2 + o, *__restrict ov = V2 + o;
                double su = 0, sv = 0;
                round_row(n, X, Y, G, S, u, uu, ud, v, vu, vd, ou, ov, su, sv);
                du += su;
                dv += sv;
            }
            std::swap(U, U2);
            std::swap(V, V2);
            changes.push_back((du + dv) / (n * n));
            if (changes.back() < 1e-3 * changes[0]) break;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("u", U, n * n);
        c.add("v", V, n * n);
        c.add("changes", changes.data(), changes.size());
    });
}
