// Shallow water: one sweep over the rows for each step does both directions, the drag and the next
// step's fastest wave; fluxes live in buffers of a row, the state is double-buffered.
#include "common.hpp"
extern "C" {  // without errno, so that loops with them can be vectorised
__attribute__((const)) double sqrt(double) noexcept;
}

static constexpr double G = 9.81, DRY = 1e-6, DRAG = 0.003;
static constexpr int STEPS = 5;

struct Flux { std::vector<double> mass, left, right, across; explicit Flux(int64_t w) : mass(w), left(w), right(w), across(w) {} };

// Faces between the cells p[j] and q[j]; u is normal to them.
static inline void faces(int64_t from, int64_t to, Flux &f, const double *h0, const double *h1, const double *u0,
                         const double *u1, const double *v0, const double *v1, const double *b0, const double *b1) {
    double *__restrict mass = f.mass.data(), *__restrict left = f.left.data();
    double *__restrict right = f.right.data(), *__restrict across = f.across.data();
#pragma omp simd
    for (int64_t j = from; j < to; j++) {
        const double top = std::max(b0[j], b1[j]), hl = std::max(0.0, h0[j] + b0[j] - top);
        const double hr = std::max(0.0, h1[j] + b1[j] - top);
        const double a = std::max(std::fabs(u0[j]) + std::sqrt(G * hl), std::fabs(u1[j]) + std::sqrt(G * hr));
        const double ql = hl * u0[j], qr = hr * u1[j];
        const double q = 0.5 * (ql * u0[j] + qr * u1[j] + 0.5 * G * (hl * hl + hr * hr)) - 0.5 * a * (qr - ql);
        mass[j] = 0.5 * (ql + qr) - 0.5 * a * (hr - hl);
        left[j] = q + 0.5 * G * (h0[j] * h0[j] - hl * hl);
        right[j] = q + 0.5 * G * (h1[j] * h1[j] - hr * hr);
        across[j] = 0.5 * (ql * v0[j] + qr * v1[j]) - 0.5 * a * (hr * v1[j] - hl * v0[j]);
    }
}

static inline void velocities(int64_t n, double *__restrict u, double *__restrict v, const double *h,
                              const double *hu, const double *hv, double sign) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const bool wet = h[j] > DRY;
        const double d = wet ? h[j] : 1.0;
        u[j] = wet ? sign * hu[j] / d : 0.0;
        v[j] = wet ? hv[j] / d : 0.0;
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t m = d.number("m"), w = m + 2;
    const double dx = d.number("dx");
    auto start = d.array<double>("start"), still = d.array<double>("still"), b = d.array<double>("ground");
    Array<double> A[3] = {Array<double>(w * w), Array<double>(w * w), Array<double>(w * w)};
    Array<double> B[3] = {Array<double>(w * w), Array<double>(w * w), Array<double>(w * w)};
    double *out[3], numbers[3];
    auto run = [&] {
        const double *in[3] = {start.p, still.p, still.p};
        double speed = 0, time = 0, volume = 0;
        int64_t wet = 0;
#pragma omp parallel for schedule(static) reduction(max : speed) if (m * m >= PARALLEL_FROM)
        for (int64_t i = 1; i <= m; i++)
            for (int64_t j = 1; j <= m; j++) speed = std::max(speed, std::sqrt(G * in[0][i * w + j]));
        for (int step = 0; step < STEPS; step++) {
            for (int k = 0; k < 3; k++) out[k] = step % 2 ? B[k].p : A[k].p;
            const double dt = 0.4 * dx / speed, c = dt / dx;
            const bool last = step == STEPS - 1;
            double fastest = 0;
            time += dt;
#pragma omp parallel reduction(max : fastest) reduction(+ : volume, wet) if (m * m >= PARALLEL_FROM)
            {
                const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
                const int64_t i0 = 1 + m * t / nt, i1 = 1 + m * (t + 1) / nt;
                Flux f0(w), f1(w), g(w);
                std::vector<double> u0(w), v0(w), u1(w), v1(w), u(w), v(w);
                auto row = [&](int64_t i, std::vector<double> &u, std::vector<double> &v) {  // walls by mirrors
                    const int64_t s = std::clamp<int64_t>(i, 1, m) * w;
                    velocities(w, u.data(), v.data(), in[0] + s, in[1] + s, in[2] + s, i == 0 || i == m + 1 ? -1.0 : 1.0);
                    return in[0] + s;
                };
                const double *h0 = row(i0 - 1, u0, v0), *h1 = row(i0, u1, v1);
                faces(1, m + 1, f0, h0, h1, u0.data(), u1.data(), v0.data(), v1.data(), b + (i0 - 1) * w, b + i0 * w);
                for (int64_t i = i0; i < i1; i++) {
                    std::swap(u0, u1), std::swap(v0, v1);
                    h0 = h1, h1 = row(i + 1, u1, v1);
                    faces(1, m + 1, f1, h0, h1, u0.data(), u1.data(), v0.data(), v1.data(), b + i * w, b + (i + 1) * w);
                    double *__restrict h = out[0] + i * w, *__restrict hu = out[1] + i * w, *__restrict hv = out[2] + i * w;
                    const double *pu = in[1] + i * w, *pv = in[2] + i * w;
                    const double *m0 = f0.mass.data(), *m1 = f1.mass.data(), *r0 = f0.right.data(), *l1 = f1.left.data();
                    const double *a0 = f0.across.data(), *a1 = f1.across.data();
#pragma omp simd
                    for (int64_t j = 1; j <= m; j++) {
                        h[j] = std::max(0.0, h0[j] - c * (m1[j] - m0[j]));
                        hu[j] = pu[j] - c * (l1[j] - r0[j]);
                        hv[j] = pv[j] - c * (a1[j] - a0[j]);
                    }
                    h[0] = h[1], hu[0] = hu[1], hv[0] = -hv[1];
                    h[m + 1] = h[m], hu[m + 1] = hu[m], hv[m + 1] = -hv[m];
                    velocities(w, u.data(), v.data(), h, hu, hv, 1.0);
                    const double *br = b + i * w;
                    faces(0, m + 1, g, h, h + 1, v.data(), v.data() + 1, u.data(), u.data() + 1, br, br + 1);
                    const double *gm = g.mass.data(), *gl = g.left.data(), *gr = g.right.data(), *ga = g.across.data();
                    double rowmax = 0, sum = 0;
                    int64_t many = 0;
#pragma omp simd reduction(max : rowmax) reduction(+ : sum, many)
                    for (int64_t j = 1; j <= m; j++) {
                        const double hn = std::max(0.0, h[j] - c * (gm[j] - gm[j - 1]));
                        double q = hv[j] - c * (gl[j] - gr[j - 1]), p = hu[j] - c * (ga[j] - ga[j - 1]);
                        const bool is = hn > DRY;
                        const double depth = is ? hn : 1.0, s = std::sqrt(p * p + q * q) / depth;
                        const double factor = 1.0 / (1.0 + dt * DRAG * s / depth);
                        p = is ? p * factor : 0.0, q = is ? q * factor : 0.0;
                        h[j] = hn, hu[j] = p, hv[j] = q;
                        rowmax = std::max(rowmax, std::max(std::fabs(p / depth), std::fabs(q / depth)) + std::sqrt(G * hn));
                        sum += hn, many += is;
                    }
                    fastest = std::max(fastest, rowmax);
                    if (last) volume += sum, wet += many;
                    std::swap(f0, f1);
                }
            }
            speed = fastest;
            for (int k = 0; k < 3; k++) in[k] = out[k];
        }
        numbers[0] = time, numbers[1] = volume * dx * dx, numbers[2] = double(wet);
    };
    bench(run, [&](Checksum &s) {
        const char *names[3] = {"h", "hu", "hv"};
        for (int k = 0; k < 3; k++) {
            std::vector<double> inner;
            for (int64_t i = 1; i <= m; i++) inner.insert(inner.end(), out[k] + i * w + 1, out[k] + i * w + m + 1);
            s.add(names[k], inner.data(), m * m);
        }
        s.add("numbers", numbers, 3);
    });
}
