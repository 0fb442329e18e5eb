// Ultrasound: tables once; a frame is one loop over channels (gain, mixing, low pass) and one over
// pixels (beam, wall filter, correlation, power, light).
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"))) double sin(double) noexcept;
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
__attribute__((simd("notinbranch"))) float logf(float) noexcept;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t X = d.number("lines"), Z = d.number("depths"), S = d.number("samples"), F = d.number("frames");
    const int C = 16, TAPS = 9;
    const int64_t N = X * Z;
    auto raw = d.array<int16_t>("raw");
    auto depth = d.array<float>("depth"), across = d.array<float>("across"), element = d.array<float>("element");
    auto gain = d.array<float>("gain"), cosine = d.array<float>("cosine"), sine = d.array<float>("sine"), tap = d.array<float>("tap");
    Array<float> delay(N * C), wre(N * C), wim(N * C), I(C * S), Q(C * S), mre(N), mim(N), ore(N), oim(N), sre(N), sim(N), light(N), power(N), velocity(N);
    Array<uint8_t> picture(N);
    std::vector<double> powers;
    auto run = [&] {
        powers.clear();
        const double per = 20e6 / 1540.0, cycle = 2.0 * M_PI * 5e6 / 20e6;
#pragma omp parallel for schedule(static) if (N * C >= PARALLEL_FROM)
        for (int64_t p = 0; p < N; p++) {
            const float z = depth[p / X], at = across[p % X];
            const float *el = element;
#pragma omp simd
            for (int c = 0; c < C; c++) {
                double e = at - el[c];
                float t = float((z + std::sqrt(z * z + e * e)) * per);
                double q = std::fabs(at - el[c]) / (0.6 * z);
                double w = q < 1.0 ? 1.0 - q * q : 0.0;
                w = int32_t(t) + 1 < S ? w : 0.0;
                delay[p * C + c] = std::min(t, float(S - 2));
                wre[p * C + c] = float(w * cos(cycle * t));
                wim[p * C + c] = float(w * sin(cycle * t));
            }
        }
        for (int64_t f = 0; f < F; f++) {
            double sum = 0;
#pragma omp parallel reduction(+ : sum) if (N * C >= PARALLEL_FROM)
            {
                std::vector<float> a(S + 8), b(S + 8);
#pragma omp for schedule(static)
                for (int c = 0; c < C; c++) {
                    const int16_t *r = raw + (f * C + c) * S;
                    float *u = &a[4], *v = &b[4];
                    for (int64_t s = 0; s < S; s++) {
                        float x = r[s] * gain[s];
                        u[s] = x * cosine[s], v[s] = x * sine[s];
                    }
                    for (int k = 1; k <= 4; k++) u[-k] = u[0], v[-k] = v[0], u[S - 1 + k] = u[S - 1], v[S - 1 + k] = v[S - 1];
                    float *__restrict i = I + c * S, *__restrict q = Q + c * S;
                    const float *t = tap;
#pragma omp simd
                    for (int64_t s = 0; s < S; s++) {
                        float x = 0, y = 0;
#pragma GCC unroll 9
                        for (int k = 0; k < TAPS; k++) x += t[k] * u[s + k - 4], y += t[k] * v[s + k - 4];
                        i[s] = x, q[s] = y;
                    }
                }
#pragma omp for schedule(static)
                for (int64_t p = 0; p < N; p++) {
                    const float *t = delay + p * C, *wr = wre + p * C, *wi = wim + p * C, *i = I, *q = Q;
                    float re = 0, im = 0;
                    const int32_t stride = S;
#pragma omp simd reduction(+ : re, im)
                    for (int c = 0; c < C; c++) {
                        int32_t k = int32_t(t[c]), o = c * stride + k;
                        float g = t[c] - k;
                        float u = i[o] + g * (i[o + 1] - i[o]), v = q[o] + g * (q[o + 1] - q[o]);
                        re += u * wr[c] - v * wi[c];
                        im += u * wi[c] + v * wr[c];
                    }
                    float size = std::sqrt(re * re + im * im);
                    if (f == 0) {
                        mre[p] = re, mim[p] = im;
                        ore[p] = oim[p] = sre[p] = sim[p] = power[p] = 0;
                        light[p] = size;
                    } else {
                        mre[p] += 0.3f * (re - mre[p]), mim[p] += 0.3f * (im - mim[p]);
                        float hr = re - mre[p], hi = im - mim[p];
                        if (f > 1) sre[p] += hr * ore[p] + hi * oim[p], sim[p] += hi * ore[p] - hr * oim[p];
                        power[p] += hr * hr + hi * hi;
                        ore[p] = hr, oim[p] = hi;
                        light[p] = std::max(0.8f * light[p], size);
                    }
                    sum += power[p];
                }
            }
            powers.push_back(sum);
        }
        const float threshold = 0.4 * powers.back() / N;
        float most = 0;
#pragma omp parallel for simd schedule(static) reduction(max : most) if (N >= PARALLEL_FROM)
        for (int64_t p = 0; p < N; p++) most = std::max(most, light[p]);
#pragma omp parallel for schedule(static) if (N >= PARALLEL_FROM)
        for (int64_t z = 0; z < Z; z++) {
            const int64_t o = z * X;
            for (int64_t x = 0; x < X; x++)
                velocity[o + x] = power[o + x] > threshold ? float(1.0 / M_PI) * std::atan2(sim[o + x], sre[o + x]) : 0.f;
            const float *l = light + o;
            uint8_t *out = picture + o;
#pragma omp simd
            for (int64_t x = 0; x < X; x++) {
                float v = 1.f + 8.685889638f / 50.f * logf(l[x] / most + 1e-6f);
                v = v < 1.f ? v : 1.f;
                v = v > 0.f ? v : 0.f;
                out[x] = uint8_t(int32_t(255.f * v + 0.5f));
            }
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("velocity", velocity.p, N);
        s.add("power", power.p, N);
        s.add("picture", picture.p, N);
        s.add("powers", powers.data(), powers.size());
    });
}
