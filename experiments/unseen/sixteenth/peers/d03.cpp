// Pictures of a sea: vertices in one pass with a depth buffer of (depth, vertex), triangles in another
// (each thread adds to its own vertices, the few others come after); only what is seen gets shaded.
#include "common.hpp"
#include <atomic>
extern "C" __attribute__((simd("notinbranch"))) double sin(double) noexcept;

static constexpr int FRAMES = 3, B = 256;
static constexpr double FIXED = 1099511627776.0;
static constexpr double LX = 0.36, LY = 0.80, LZ = -0.48, HX = 0.2093, HY = 0.4651, HZ = -0.8602;
static constexpr uint64_t EMPTY = ~uint64_t(0);

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("vertices"), m = d.number("faces"), w = d.number("width");
    auto gx = d.array<double>("gx"), gz = d.array<double>("gz");
    auto tri = d.array<int32_t>("tri");
    Array<double> height(n), px(n), py(n), pz(n), image(3 * w * w), whole(3 * w * w);
    Array<int64_t> sums(3 * n);
    Array<uint64_t> seen(w * w);
    Array<uint8_t> picture(3 * w * w);
    double exposures[FRAMES];

    auto nearer = [&](uint64_t *at, uint64_t key) {
        uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (key < old && !__atomic_compare_exchange_n(at, &old, key, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    };
    auto face = [&](int64_t f, int64_t *out) {
        const int32_t a = tri[3 * f], b = tri[3 * f + 1], c = tri[3 * f + 2];
        const double ux = px[b] - px[a], uy = py[b] - py[a], uz = pz[b] - pz[a];
        const double wx = px[c] - px[a], wy = py[c] - py[a], wz = pz[c] - pz[a];
        out[0] = int64_t(FIXED * (uy * wz - uz * wy));
        out[1] = int64_t(FIXED * (uz * wx - ux * wz));
        out[2] = int64_t(FIXED * (ux * wy - uy * wx));
    };
    auto shade = [&](int64_t v, double *out) {
        const double x = sums[3 * v], y = sums[3 * v + 1], z = sums[3 * v + 2], length = std::sqrt(x * x + y * y + z * z);
        const double nx = x / length, ny = y / length, nz = z / length;
        const double diffuse = std::max(0.0, nx * LX + ny * LY + nz * LZ);
        const double gloss = std::pow(std::max(0.0, nx * HX + ny * HY + nz * HZ), 24.0);
        const double foam = std::min(1.0, std::max(0.0, 20.0 * (height[v] - 0.07)));
        out[0] = diffuse * (0.05 + 0.85 * foam) + gloss;
        out[1] = diffuse * (0.25 + 0.65 * foam) + gloss;
        out[2] = diffuse * (0.45 + 0.45 * foam) + 0.9 * gloss;
    };
    auto run = [&] {
        for (int frame = 0; frame < FRAMES; frame++) {
            const double turn = 0.31 + 0.17 * frame, tilt = 0.62 - 0.03 * frame, t = 0.4 * frame, focal = 1.1 * w;
            const double ct = std::cos(turn), st = std::sin(turn), cp = std::cos(tilt), sp = std::sin(tilt), away = 2.9;
            double light = 0;
#pragma omp parallel reduction(+ : light) if (n >= PARALLEL_FROM / 8)
            {
                const int64_t id = omp_get_thread_num(), nt = omp_get_num_threads();
                const int64_t v0 = n * id / nt, v1 = n * (id + 1) / nt;
#pragma omp for schedule(static)
                for (int64_t p = 0; p < w * w; p++) seen[p] = EMPTY;
                for (int64_t b = v0; b < v1; b += B) {
                    const int64_t end = std::min(b + B, v1);
#pragma omp simd
                    for (int64_t v = b; v < end; v++) {
                        const double gxv = gx[v], gzv = gz[v];
                        const double y = 0.08 * sin(5.0 * gxv + 2.0 * gzv + 1.1 * t) + 0.04 * sin(-7.0 * gxv + 9.0 * gzv + 1.7 * t) +
                                         0.015 * sin(31.0 * gxv + 17.0 * gzv + 3.1 * t);
                        const double z = ct * gzv - st * gxv;
                        height[v] = y, px[v] = ct * gxv + st * gzv, py[v] = cp * y + sp * z, pz[v] = cp * z - sp * y + away;
                    }
                    for (int64_t v = b; v < end; v++) {
                        const int col = 0.5 * w + focal * px[v] / pz[v], row = 0.5 * w - focal * py[v] / pz[v];
                        if (row >= 0 && row < w && col >= 0 && col < w)
                            nearer(&seen[row * w + col], uint64_t(65536.0 * pz[v]) << 32 | uint64_t(v));
                    }
                }
                std::memset(sums.p + 3 * v0, 0, 3 * (v1 - v0) * sizeof(int64_t));
#pragma omp barrier
                std::vector<int64_t> later;
                for (int64_t f = m * id / nt; f < m * (id + 1) / nt; f++) {
                    bool mine = true;
                    for (int c = 0; c < 3; c++) mine &= tri[3 * f + c] >= v0 && tri[3 * f + c] < v1;
                    if (!mine) { later.push_back(f); continue; }
                    int64_t normal[3];
                    face(f, normal);
                    for (int c = 0; c < 3; c++)
                        for (int k = 0; k < 3; k++) sums[3 * tri[3 * f + c] + k] += normal[k];
                }
#pragma omp barrier
                for (int64_t f : later) {
                    int64_t normal[3];
                    face(f, normal);
                    for (int c = 0; c < 3; c++)
                        for (int k = 0; k < 3; k++) __atomic_fetch_add(&sums[3 * tri[3 * f + c] + k], normal[k], __ATOMIC_RELAXED);
                }
#pragma omp barrier
#pragma omp for schedule(static)
                for (int64_t p = 0; p < w * w; p++)
                    if (seen[p] != EMPTY) shade(seen[p] & 0xffffffffu, &image[3 * p]);
#pragma omp for schedule(static)
                for (int64_t r = 0; r < w; r++) {
                    for (int64_t c = 0; c < w; c++) {
                        const int64_t p = r * w + c;
                        double *out = &whole[3 * p];
                        if (seen[p] != EMPTY) {
                            for (int k = 0; k < 3; k++) out[k] = image[3 * p + k];
                            continue;
                        }
                        int found = 0;
                        double sum[3] = {};
                        for (int64_t a = std::max<int64_t>(r - 1, 0); a < std::min(r + 2, w); a++)
                            for (int64_t b = std::max<int64_t>(c - 1, 0); b < std::min(c + 2, w); b++)
                                if (seen[a * w + b] != EMPTY) {
                                    found++;
                                    for (int k = 0; k < 3; k++) sum[k] += image[3 * (a * w + b) + k];
                                }
                        for (int k = 0; k < 3; k++) out[k] = found ? sum[k] / found : 0.5 + 0.15 * k + 0.2 * r / w;
                    }
#pragma omp simd reduction(+ : light)
                    for (int64_t p = r * w; p < r * w + w; p++)
                        light += log(0.001 + 0.2126 * whole[3 * p] + 0.7152 * whole[3 * p + 1] + 0.0722 * whole[3 * p + 2]);
                }
            }
            const double exposure = 0.6 / std::exp(light / double(w * w));
#pragma omp parallel for simd schedule(static) if (w * w >= PARALLEL_FROM)
            for (int64_t p = 0; p < 3 * w * w; p++) {
                const double x = exposure * whole[p];
                picture[p] = uint8_t(int(255.0 * x / (1.0 + x)));
            }
            exposures[frame] = exposure;
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("whole", whole.p, 3 * w * w);
        s.add("picture", picture.p, 3 * w * w);
        s.add("exposures", exposures, FRAMES);
    });
}
