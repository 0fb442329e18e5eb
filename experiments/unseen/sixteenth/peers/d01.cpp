// Euler equations by finite volumes: one sweep over the rows for each stage. Primitive values, slopes
// and fluxes live in a few rows for each thread; the next time step comes with the last sweep.
#include "common.hpp"

static constexpr double G = 1.4, CFL = 0.8;
static constexpr int STEPS = 2;
static inline double limited(double a, double b) { return a * b <= 0.0 ? 0.0 : 2.0 * a * b / (a + b); }

struct Row { double *q[4]; };  // rho, u, v, p; two ghosts at either end

struct Ring {
    int64_t stride, rows;
    std::vector<double> memory;
    Ring(int64_t n, int64_t rows) : stride(n + 16), rows(rows), memory(rows * 4 * stride + 8) {}
    Row row(int64_t r) {
        const int64_t k = (r + 16 * rows) % rows;
        double *p = memory.data() + 4 * k * stride + 8;
        return {{p, p + stride, p + 2 * stride, p + 3 * stride}};
    }
};

// HLL fluxes at n faces, between l + 0.5 dl and r - 0.5 dr; N is the velocity through the face.
template <int N>
static void fluxes(const Row &f, const Row &l, const Row &dl, int64_t shift, const Row &r, const Row &dr, int64_t n) {
    constexpr int T = 3 - N;
    double *__restrict f0 = f.q[0], *__restrict fn = f.q[N], *__restrict ft = f.q[T], *__restrict f3 = f.q[3];
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const int64_t k = j - shift;
        const double rl = l.q[0][k] + 0.5 * dl.q[0][k], rr = r.q[0][j] - 0.5 * dr.q[0][j];
        const double nl = l.q[N][k] + 0.5 * dl.q[N][k], nr = r.q[N][j] - 0.5 * dr.q[N][j];
        const double tl = l.q[T][k] + 0.5 * dl.q[T][k], tr = r.q[T][j] - 0.5 * dr.q[T][j];
        const double pl = l.q[3][k] + 0.5 * dl.q[3][k], pr = r.q[3][j] - 0.5 * dr.q[3][j];
        const double el = pl / (G - 1.0) + 0.5 * rl * (nl * nl + tl * tl);
        const double er = pr / (G - 1.0) + 0.5 * rr * (nr * nr + tr * tr);
        const double cl = std::sqrt(G * pl / rl), cr = std::sqrt(G * pr / rr);
        const double a = nl - cl, b = nr - cr, c = nl + cl, d = nr + cr;
        const double lo = a < b ? a : b, hi = c > d ? c : d;
        const double sl = lo < 0.0 ? lo : 0.0, sr = hi > 0.0 ? hi : 0.0, inv = 1.0 / (sr - sl), both = sl * sr;
        f0[j] = (sr * (rl * nl) - sl * (rr * nr) + both * (rr - rl)) * inv;
        fn[j] = (sr * (rl * nl * nl + pl) - sl * (rr * nr * nr + pr) + both * (rr * nr - rl * nl)) * inv;
        ft[j] = (sr * (rl * nl * tl) - sl * (rr * nr * tr) + both * (rr * tr - rl * tl)) * inv;
        f3[j] = (sr * (nl * (el + pl)) - sl * (nr * (er + pr)) + both * (er - el)) * inv;
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double h = d.number("h");
    double energy = 0;
    Array<double> start[4] = {d.array<double>("rho0"), d.array<double>("mx0"), d.array<double>("my0"), d.array<double>("e0")};
    Array<double> now[4], half[4];
    for (int c = 0; c < 4; c++) now[c].make(n * n), half[c].make(n * n);

    auto load = [&](const Row &w, Array<double> *q, int64_t i) {
        const double *rho = q[0].p + i * n, *mx = q[1].p + i * n, *my = q[2].p + i * n, *e = q[3].p + i * n;
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            const double u = mx[j] / rho[j], v = my[j] / rho[j];
            w.q[0][j] = rho[j], w.q[1][j] = u, w.q[2][j] = v;
            w.q[3][j] = (G - 1.0) * (e[j] - 0.5 * rho[j] * (u * u + v * v));
        }
        for (int c = 0; c < 4; c++)
            for (int g = 1; g <= 2; g++) w.q[c][-g] = w.q[c][n - g], w.q[c][n + g - 1] = w.q[c][g - 1];
    };
    auto fastest = [&](Array<double> *q, int64_t i) {
        const double *rho = q[0].p + i * n, *mx = q[1].p + i * n, *my = q[2].p + i * n, *e = q[3].p + i * n;
        double top = 0;
#pragma omp simd reduction(max : top)
        for (int64_t j = 0; j < n; j++) {
            const double u = mx[j] / rho[j], v = my[j] / rho[j];
            const double p = (G - 1.0) * (e[j] - 0.5 * rho[j] * (u * u + v * v));
            const double s = std::fabs(u) + std::fabs(v) + 2.0 * std::sqrt(G * p / rho[j]);
            top = top > s ? top : s;
        }
        return top;
    };
    // to = from - k div(from), or the mean of that and base
    auto sweep = [&](Array<double> *to, Array<double> *from, Array<double> *base, double k, int64_t r0, int64_t r1) {
        Ring prim(n, 4), sx(n, 2), sy(n, 2), fx(n, 2), fy(n, 2);
        for (int64_t r = r0 - 2; r < r1 + 2; r++) {
            load(prim.row(r), from, (r + n) % n);
            if (r < r0) continue;
            const int64_t m = r - 1;  // the row whose slopes are known from here on
            const Row a = prim.row(m - 1), b = prim.row(m), c = prim.row(m + 1), x = sx.row(m), y = sy.row(m);
            for (int f = 0; f < 4; f++) {
                const double *__restrict pa = a.q[f], *__restrict pb = b.q[f], *__restrict pc = c.q[f];
                double *__restrict px = x.q[f], *__restrict py = y.q[f];
#pragma omp simd
                for (int64_t j = -1; j <= n; j++) {
                    px[j] = limited(pb[j] - pa[j], pc[j] - pb[j]);
                    py[j] = limited(pb[j] - pb[j - 1], pb[j + 1] - pb[j]);
                }
            }
            if (m < r0) continue;
            fluxes<1>(fx.row(m), a, sx.row(m - 1), 0, b, x, n);
            if (m < r1) fluxes<2>(fy.row(m), b, y, 1, b, y, n + 1);
            if (m == r0) continue;
            const int64_t i = m - 1;
            const Row west = fx.row(i), east = fx.row(m), side = fy.row(i);
            for (int f = 0; f < 4; f++) {
                const double *__restrict w = west.q[f], *__restrict e = east.q[f], *__restrict s = side.q[f];
                const double *__restrict q = from[f].p + i * n, *old = base ? base[f].p + i * n : nullptr;
                double *out = to[f].p + i * n;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    const double to = q[j] - k * (e[j] - w[j] + s[j + 1] - s[j]);
                    out[j] = old ? 0.5 * (old[j] + to) : to;
                }
            }
        }
    };
    auto run = [&] {
        double top = 0, next = 0, total = 0;
#pragma omp parallel if (n * n >= PARALLEL_FROM / 8)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), r0 = n * t / nt, r1 = n * (t + 1) / nt;
            double mine = 0, moving = 0;
            for (int64_t i = r0; i < r1; i++) mine = std::max(mine, fastest(start, i));
#pragma omp critical
            top = std::max(top, mine);
#pragma omp barrier
            for (int step = 0; step < STEPS; step++) {
                Array<double> *q = step ? now : start;
                const double k = CFL / (step % 2 ? next : top);
                sweep(half, q, nullptr, k, r0, r1);
#pragma omp barrier
#pragma omp single
                (step % 2 ? next : top) = 0;
                sweep(now, half, q, k, r0, r1);
                if (step + 1 < STEPS) {
                    mine = 0;
                    for (int64_t i = r0; i < r1; i++) mine = std::max(mine, fastest(now, i));
#pragma omp critical
                    (step % 2 ? top : next) = std::max(step % 2 ? top : next, mine);
                }
#pragma omp barrier
            }
            for (int64_t i = r0 * n; i < r1 * n; i++) moving += 0.5 * (now[1][i] * now[1][i] + now[2][i] * now[2][i]) / now[0][i];
#pragma omp critical
            total += moving;
        }
        energy = total * h * h;
    };
    bench(run, [&](Checksum &s) {
        const char *names[4] = {"rho", "mx", "my", "e"};
        for (int c = 0; c < 4; c++) s.add(names[c], now[c].p, n * n);
        s.add("kinetic", &energy, 1);
    });
}
