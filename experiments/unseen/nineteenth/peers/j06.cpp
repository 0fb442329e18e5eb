// Three passes: depths; normals, occlusion and the blur along the row; the blur down and the picture.
// Positions come from depths wherever they are used. Taps in blocks of eight pixels, one gather each.
#include "common.hpp"

static constexpr int TAPS = 8;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const float near = d.number("near"), scale = d.number("scale"), half = 0.5f * n;
    auto raw = d.array<uint16_t>("raw");
    auto albedo = d.array<float>("albedo");
    auto taps = d.array<int32_t>("taps");
    Array<float> Z(n * n), blurred(n * n), bright(n * n), smooth(n * n);
    Array<uint8_t> picture(n * n * 3);
    float fall[7];
    for (int k = -3; k <= 3; k++) fall[k + 3] = 1.0f + 0.15f * k * k;
    auto run = [&] {
#pragma omp parallel if (n * n >= PARALLEL_FROM)
        {
            const uint16_t *__restrict rw = raw.p;
            float *__restrict zz = Z.p;
#pragma omp for simd schedule(static)
            for (int64_t i = 0; i < n * n; i++) zz[i] = near * 65536.0f / float(int32_t(rw[i]) + 1);
            const int64_t W = (n + 24) / 8 * 8;
            std::vector<float> mem(6 * W);
            float *__restrict nx = mem.data(), *__restrict ny = nx + W, *__restrict nz = ny + W, *__restrict ao = nz + W + 8, *__restrict zp = ao + W;
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                const float *__restrict z = Z.p + i * n, *__restrict a = i ? z - n : z, *__restrict b = i < n - 1 ? z + n : z;
                float *__restrict lit = bright.p + i * n;
                const float yi = (i - half) * scale, ya = (i - 1 - half) * scale, yb = (i + 1 - half) * scale;
                const bool first = i == 0, last = i == n - 1;
                auto normal = [&](int64_t j, bool left, bool right) {
                    const float c = z[j], l = z[left ? j - 1 : j], r = z[right ? j + 1 : j];
                    const float xi = (j - half) * scale;
                    const bool ahead = right & (!left | (std::fabs(r - c) <= std::fabs(c - l)));
                    const float s = ahead ? r : l, xs = (ahead ? j + 1 - half : j - 1 - half) * scale;
                    const float sign = ahead ? 1.0f : -1.0f;
                    const float ax = sign * (xs * s - xi * c), ay = sign * (yi * s - yi * c), az = sign * (s - c);
                    const bool below = (!last) & (first | (std::fabs(b[j] - c) <= std::fabs(c - a[j])));
                    const float q = below ? b[j] : a[j], yq = below ? yb : ya, sg = below ? 1.0f : -1.0f;
                    const float bx = sg * (xi * q - xi * c), by = sg * (yq * q - yi * c), bz = sg * (q - c);
                    const float vx = ay * bz - az * by, vy = az * bx - ax * bz, vz = ax * by - ay * bx;
                    float length = std::sqrt(vx * vx + vy * vy + vz * vz) + 0.000001f;
                    length = vz > 0.0f ? -length : length;
                    const float ex = vx / length, ey = vy / length, ez = vz / length;
                    nx[j] = ex, ny[j] = ey, nz[j] = ez;
                    lit[j] = std::max(ex * 0.48f + ey * -0.6f + ez * -0.64f, 0.0f);
                };
                normal(0, false, true), normal(n - 1, true, false);
#pragma omp simd
                for (int64_t j = 1; j < n - 1; j++) normal(j, true, true);
                int32_t row[TAPS][8], step[TAPS][8];
                float yt[TAPS][8];
                for (int k = 0; k < TAPS; k++)
                    for (int l = 0; l < 8; l++) {
                        const int32_t *t = taps.p + ((i % 4 * 4 + l % 4) * TAPS + k) * 2;
                        const int64_t p = std::min(std::max<int64_t>(i + t[0], 0), n - 1);
                        row[k][l] = p * n, step[k][l] = t[1], yt[k][l] = (p - half) * scale;
                    }
                const int32_t end = n - 1;
                const float *__restrict all = Z.p;
                auto block = [&](int32_t base, int m) {
                    float dark[8] = {};
                    for (int k = 0; k < TAPS; k++) {
#pragma omp simd
                        for (int l = 0; l < m; l++) {
                            const int32_t j = base + l, q = std::min(std::max(j + step[k][l], 0), end);
                            const float s = all[row[k][l] + q], c = z[j];
                            const float dx = (q - half) * scale * s - (j - half) * scale * c, dy = yt[k][l] * s - yi * c, dz = s - c;
                            const float square = dx * dx + dy * dy + dz * dz + 0.0001f, rise = dx * nx[j] + dy * ny[j] + dz * nz[j];
                            dark[l] += std::max(rise / std::sqrt(square) - 0.1f, 0.0f) * std::max(1.0f - square / 0.64f, 0.0f);
                        }
                    }
                    for (int l = 0; l < m; l++) ao[base + l] = std::max(1.0f - 0.25f * dark[l], 0.0f);
                };
                int32_t j0 = 0;
                for (; j0 + 8 <= n; j0 += 8) block(j0, 8);
                if (j0 < n) block(j0, n - j0);
                std::copy(z, z + n, zp);
                for (int k = 1; k <= 3; k++) ao[-k] = ao[0], zp[-k] = z[0], ao[n - 1 + k] = ao[n - 1], zp[n - 1 + k] = z[n - 1];
                float *__restrict out = blurred.p + i * n;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    float total = 0, weights = 0;
                    const float c = zp[j], sharp = 20.0f / c;
                    for (int k = -3; k <= 3; k++) {
                        const float jump = (zp[j + k] - c) * sharp, weight = 1.0f / (fall[k + 3] * (1.0f + jump * jump));
                        total += weight * ao[j + k], weights += weight;
                    }
                    out[j] = total / weights;
                }
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                const float *zr[7], *br[7];
                for (int k = -3; k <= 3; k++) {
                    const int64_t p = std::min(std::max<int64_t>(i + k, 0), n - 1);
                    zr[k + 3] = Z.p + p * n, br[k + 3] = blurred.p + p * n;
                }
                float *__restrict out = smooth.p + i * n;
                const float *__restrict lit = bright.p + i * n, *__restrict al = albedo.p + i * n * 3, *__restrict z = zr[3];
                uint8_t *__restrict pic = picture.p + i * n * 3;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    float total = 0, weights = 0;
                    const float c = z[j], sharp = 20.0f / c;
                    for (int k = 0; k < 7; k++) {
                        const float jump = (zr[k][j] - c) * sharp, weight = 1.0f / (fall[k] * (1.0f + jump * jump));
                        total += weight * br[k][j], weights += weight;
                    }
                    out[j] = total / weights;
                }
                float *__restrict light = ao, *__restrict haze = zp;
#pragma omp simd
                for (int64_t j = 0; j < n; j++) {
                    light[j] = 0.35f * out[j] + 0.9f * lit[j];
                    haze[j] = std::min(std::max((z[j] - 6.5f) * 0.3f, 0.0f), 1.0f);
                }
#pragma omp simd
                for (int64_t j = 0; j < n; j++)
                    for (int k = 0; k < 3; k++) {
                        float v = al[3 * j + k] * light[j];
                        v += haze[j] * (0.7f - v);
                        v = v * (1.0f + 0.25f * v) / (1.0f + v);
                        pic[3 * j + k] = uint8_t(int32_t(255.0f * std::min(std::sqrt(v), 1.0f) + 0.5f));
                    }
            }
        }
    };
    bench(run, [&](Checksum &s) { s.add("smooth", smooth.p, n * n), s.add("picture", picture.p, n * n * 3); });
}
