#include "common.h"
// tiles with their halos; every stage is a row loop over padded rows
static const int R = 3;
struct Tile {  // a plane of floats that covers rows [y0,y1) and columns [x0,x1) of the image
    long y0, y1, x0, x1; vector<float> v;
    void fit(long a, long b, long c, long d) { y0 = a; y1 = b; x0 = c; x1 = d; v.resize((b - a) * (d - c)); }
    float *row(long y) { return v.data() + (y - y0) * (x1 - x0); }
};
template <bool MIN> static void filter(Tile &in, Tile &tmp, Tile &out, long n) {
    // tmp: in, filtered along x; out: along y. out lies R inside in, where in is not at the image's rim
    float pad[4096 + 16];
    tmp.fit(in.y0, in.y1, out.x0, out.x1);
    long w = out.x1 - out.x0;
    for (long y = in.y0; y < in.y1; y++) {
        const float *r = in.row(y);
        for (long x = out.x0 - R; x < out.x1 + R; x++) pad[x - out.x0 + R] = r[min(max(x, 0L), n - 1) - in.x0];
        float *t = tmp.row(y);
        for (long x = 0; x < w; x++) {
            if (MIN) { float m = pad[x]; for (int k = 1; k < 7; k++) m = pad[x + k] < m ? pad[x + k] : m; t[x] = m; }
            else { float m = 0; for (int k = 0; k < 7; k++) m += pad[x + k]; t[x] = m; }
        }
    }
    for (long y = out.y0; y < out.y1; y++) {
        const float *q[7]; for (int k = 0; k < 7; k++) q[k] = tmp.row(min(max(y + k - R, 0L), n - 1));
        float *o = out.row(y);
        for (long x = 0; x < w; x++) {
            if (MIN) { float m = q[0][x]; for (int k = 1; k < 7; k++) m = q[k][x] < m ? q[k][x] : m; o[x] = m; }
            else { float m = 0; for (int k = 0; k < 7; k++) m += q[k][x]; o[x] = m / 49.0f; }
        }
    }
}
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto rgb = load<uint8_t>("rgb");
    vector<uint8_t> out(rgb.size()); vector<float> tt(n * n); vector<float> dark(n * n); double air[3]; double before = 0; double after = 0;
    const long TY = 64; const long TX = 256;
    long ny = (n + TY - 1) / TY; long nx = (n + TX - 1) / TX;
    auto grow = [&](Tile &t, long y, long x, long h) { t.fit(max(0L, y * TY - h), min(n, y * TY + TY + h), max(0L, x * TX - h), min(n, x * TX + TX + h)); };
    auto run = [&] {
        double s = 0;
#pragma omp parallel reduction(+ : s)
        {
            Tile a, b, o;
#pragma omp for collapse(2)
            for (long y = 0; y < ny; y++) for (long x = 0; x < nx; x++) {
                grow(a, y, x, R); grow(o, y, x, 0);
                for (long i = a.y0; i < a.y1; i++) { float *r = a.row(i); const uint8_t *p = &rgb[(i * n + a.x0) * 3];
                    for (long j = 0; j < a.x1 - a.x0; j++) r[j] = min(p[3 * j], min(p[3 * j + 1], p[3 * j + 2])); }
                filter<true>(a, b, o, n);
                for (long i = o.y0; i < o.y1; i++) { float *r = o.row(i); double q = 0;
#pragma omp simd reduction(+ : q)
                    for (long j = 0; j < o.x1 - o.x0; j++) q += r[j];
                    s += q; memcpy(&dark[i * n + o.x0], r, (o.x1 - o.x0) * 4); }
            }
        }
        double level = 1.3 * s / (double(n) * n);
        float lv = level; long c0 = 0, c1 = 0, c2 = 0, m = 0;
        bool up = (double)lv < level;  // dark > level in double
#pragma omp parallel for reduction(+ : c0, c1, c2, m)
        for (long i = 0; i < n; i++) {
            const float *d = &dark[i * n]; const uint8_t *p = &rgb[i * n * 3]; int a0 = 0, a1 = 0, a2 = 0, k = 0;
            for (long j = 0; j < n; j++) { bool h = (double)d[j] > level; a0 += h ? p[3 * j] : 0; a1 += h ? p[3 * j + 1] : 0; a2 += h ? p[3 * j + 2] : 0; k += h; }
            c0 += a0; c1 += a1; c2 += a2; m += k;
        }
        (void)up;
        double mm = max(1.0, double(m)); air[0] = c0 / mm; air[1] = c1 / mm; air[2] = c2 / mm;
        long sb = 0, sa = 0;
#pragma omp parallel reduction(+ : sb, sa)
        {
            Tile d, tmp, t, g, gg, gt, mg, mt, mgg, mgt, ma, mb;
            const float f0 = 1 / air[0], f1 = 1 / air[1], f2 = 1 / air[2];
#pragma omp for collapse(2)
            for (long y = 0; y < ny; y++) for (long x = 0; x < nx; x++) {
                grow(d, y, x, 9); grow(t, y, x, 6); grow(g, y, x, 6); grow(gg, y, x, 6); grow(gt, y, x, 6);
                grow(mg, y, x, 3); grow(mt, y, x, 3); grow(mgg, y, x, 3); grow(mgt, y, x, 3); grow(ma, y, x, 0); grow(mb, y, x, 0);
                for (long i = d.y0; i < d.y1; i++) { float *r = d.row(i); const uint8_t *p = &rgb[(i * n + d.x0) * 3];
                    for (long j = 0; j < d.x1 - d.x0; j++) r[j] = min(p[3 * j] * f0, min(p[3 * j + 1] * f1, p[3 * j + 2] * f2)); }
                filter<true>(d, tmp, t, n);
                for (long i = t.y0; i < t.y1; i++) { float *r = t.row(i), *G = g.row(i), *GG = gg.row(i), *GT = gt.row(i); const uint8_t *p = &rgb[(i * n + t.x0) * 3];
                    for (long j = 0; j < t.x1 - t.x0; j++) {
                        float tr = 1.0f - 0.9f * r[j]; float l = (0.299f * p[3 * j] + 0.587f * p[3 * j + 1] + 0.114f * p[3 * j + 2]) / 255.0f;
                        r[j] = tr; G[j] = l; GG[j] = l * l; GT[j] = l * tr; } }
                filter<false>(g, tmp, mg, n); filter<false>(t, tmp, mt, n); filter<false>(gg, tmp, mgg, n); filter<false>(gt, tmp, mgt, n);
                for (size_t k = 0; k < mg.v.size(); k++) {
                    float a = (mgt.v[k] - mg.v[k] * mt.v[k]) / (mgg.v[k] - mg.v[k] * mg.v[k] + 1e-3f);
                    mgt.v[k] = a; mgg.v[k] = mt.v[k] - a * mg.v[k];
                }
                filter<false>(mgt, tmp, ma, n); filter<false>(mgg, tmp, mb, n);
                for (long i = ma.y0; i < ma.y1; i++) {
                    const float *A = ma.row(i), *B = mb.row(i), *G = g.row(i) + (ma.x0 - g.x0); float *q = &tt[i * n + ma.x0];
                    const uint8_t *p = &rgb[(i * n + ma.x0) * 3]; uint8_t *o = &out[(i * n + ma.x0) * 3];
                    float a0 = air[0], a1 = air[1], a2 = air[2]; int x0 = 0, x1 = 0;
                    for (long j = 0; j < ma.x1 - ma.x0; j++) {
                        float v = min(1.0f, max(0.1f, A[j] * G[j] + B[j])); q[j] = v; float iv = 1.0f / v;
                        auto rec = [&](uint8_t c, float a) { return (uint8_t)(int)min(255.0f, max(0.0f, (c - a) * iv + a + 0.5f)); };
                        uint8_t r0 = rec(p[3 * j], a0), r1 = rec(p[3 * j + 1], a1), r2 = rec(p[3 * j + 2], a2);
                        o[3 * j] = r0; o[3 * j + 1] = r1; o[3 * j + 2] = r2;
                        x0 += p[3 * j] + p[3 * j + 1] + p[3 * j + 2]; x1 += r0 + r1 + r2;
                    }
                    sb += x0; sa += x1;
                }
            }
        }
        before = sb; after = sa;
    };
    return bench(run, [&] { return sum(out) + sum(tt) + air[0] + air[1] + air[2] + before + after; });
}
