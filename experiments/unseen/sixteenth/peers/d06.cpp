// A radio link: the whole way of sixteen symbols at a time, one to a lane, in the nearest cache. The
// channel is estimated first, from the known symbols at each level of noise.
#include "common.hpp"

static constexpr int N = 64, P = 16, L = N + P, TAPS = 5, KNOWN = 4, SPACING = 8, V = 16;
struct Wave { alignas(64) float r[N][V], i[N][V]; };

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto level = d.array<float>("level"), border = d.array<float>("border"), wr = d.array<float>("wr");
    auto wi = d.array<float>("wi"), vi = d.array<float>("vi"), hr = d.array<float>("hr"), hi = d.array<float>("hi");
    auto data = d.array<uint8_t>("data");
    auto noise_r = d.array<float>("noise_r"), noise_i = d.array<float>("noise_i");
    std::vector<double> levels;
    for (int64_t k = 0; k < d.extent("powers"); k++) levels.push_back(d.number("noise_levels_" + std::to_string(k)));
    const int M = levels.size();
    Array<float> dr(n * N), di(n * N);
    Array<uint8_t> found(n * N);
    std::vector<int64_t> errors(M);
    std::vector<double> powers(M);
    std::vector<float> gr(M * N), gi(M * N);

    auto fourier = [&](Wave &a, Wave &b, const float *ti) {  // six passes: the result is in a
        for (int stride = 1; stride < N; stride *= 2) {
            Wave &x = stride & 0x15 ? a : b, &y = stride & 0x15 ? b : a;
            for (int j = 0; j < N / 2; j++) {
                const int q = j % stride, to = 2 * j - q;
                const float cr = wr[j - q], ci = ti[j - q];
#pragma omp simd
                for (int l = 0; l < V; l++) {
                    const float ar = x.r[j][l], ai = x.i[j][l], br = x.r[j + N / 2][l], bi = x.i[j + N / 2][l];
                    const float er = ar - br, ei = ai - bi;
                    y.r[to][l] = ar + br, y.i[to][l] = ai + bi;
                    y.r[to + stride][l] = er * cr - ei * ci, y.i[to + stride][l] = er * ci + ei * cr;
                }
            }
        }
    };
    auto send = [&](int64_t s0,  // what is sent, and its wave; nothing after the last symbol
                     Wave &sent, Wave &x, Wave &room) {
        for (int l = 0; l < V; l++) {
            const bool real = s0 + l < n;
            const uint8_t *row = data.p + (s0 + l) * N;
            for (int k = 0; k < N; k++) {
                x.r[k][l] = sent.r[k][l] = real ? level[row[k] & 3] : 0.0f;
                x.i[k][l] = sent.i[k][l] = real ? level[row[k] >> 2] : 0.0f;
            }
        }
        fourier(x, room, vi.p);
    };
    // In what the receiver keeps, nothing is heard of the symbol before.
    auto echoes = [&](const Wave &x, Wave &y) {
        for (int t = 0; t < N; t++) {
            float *__restrict yr = y.r[t], *__restrict yi = y.i[t];
            for (int l = 0; l < V; l++) yr[l] = yi[l] = 0.0f;
            for (int k = 0; k < TAPS; k++) {
                const float *__restrict xr = x.r[(t - k) & (N - 1)], *__restrict xi = x.i[(t - k) & (N - 1)];
                const float a = hr[k], b = hi[k];
#pragma omp simd
                for (int l = 0; l < V; l++) {
                    const float pr = 0.125f * xr[l], pi = 0.125f * xi[l];
                    yr[l] += a * pr - b * pi, yi[l] += a * pi + b * pr;
                }
            }
        }
    };
    auto receive = [&](const Wave &y, const Wave &nr, double sigma, Wave &x, Wave &room) {
        for (int t = 0; t < N; t++)
#pragma omp simd
            for (int l = 0; l < V; l++) {
                x.r[t][l] = 0.125f * float(y.r[t][l] + sigma * nr.r[t][l]);
                x.i[t][l] = 0.125f * float(y.i[t][l] + sigma * nr.i[t][l]);
            }
        fourier(x, room, wi.p);
    };
    auto noise = [&](int64_t s0, int64_t count, Wave &nr) {
        for (int l = 0; l < V; l++)
            for (int t = 0; t < N; t++) {
                nr.r[t][l] = l < count ? noise_r[(s0 + l) * L + P + t] : 0.0f;
                nr.i[t][l] = l < count ? noise_i[(s0 + l) * L + P + t] : 0.0f;
            }
    };
    auto run = [&] {
        Wave sent, x, y, room, nr;
        send(0, sent, x, room), echoes(x, y), noise(0, std::min<int64_t>(V, n), nr);
        for (int m = 0; m < M; m++) {
            receive(y, nr, levels[m], x, room);
            for (int k = 0; k < N; k++) {
                float sr = 0, si = 0, power = 0;
                for (int l = 0; l < KNOWN; l++) {
                    const float tr = sent.r[k][l], ti = sent.i[k][l], xr = x.r[k][l], xi = x.i[k][l];
                    sr += xr * tr + xi * ti, si += xi * tr - xr * ti, power += tr * tr + ti * ti;
                }
                gr[m * N + k] = sr / power, gi[m * N + k] = si / power;
            }
        }
        int64_t *wrong = errors.data();
        double *total = powers.data();
        for (int m = 0; m < M; m++) wrong[m] = 0, total[m] = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong[:M], total[:M]) if (n * N >= PARALLEL_FROM / 8)
        for (int64_t s0 = 0; s0 < n; s0 += V) {
            const int count = std::min<int64_t>(V, n - s0);
            Wave sent, x, y, room, nr;
            send(s0, sent, x, room), echoes(x, y), noise(s0, count, nr);
            for (int m = 0; m < M; m++) {
                receive(y, nr, levels[m], x, room);
                alignas(64) float sr[V] = {}, si[V] = {}, power[V] = {};
                for (int k = 0; k < N; k++) {
                    const float a = gr[m * N + k], b = gi[m * N + k], p = a * a + b * b;
#pragma omp simd
                    for (int l = 0; l < V; l++) {
                        const float xr = x.r[k][l], xi = x.i[k][l];
                        x.r[k][l] = (xr * a + xi * b) / p, x.i[k][l] = (xi * a - xr * b) / p;
                    }
                    if (k % SPACING) continue;
#pragma omp simd
                    for (int l = 0; l < V; l++) {
                        const float tr = sent.r[k][l], ti = sent.i[k][l], er = x.r[k][l], ei = x.i[k][l];
                        sr[l] += er * tr + ei * ti, si[l] += ei * tr - er * ti, power[l] += tr * tr + ti * ti;
                    }
                }
                for (int l = 0; l < V; l++) sr[l] /= power[l], si[l] /= power[l], power[l] = sr[l] * sr[l] + si[l] * si[l];
                for (int k = 0; k < N; k++)
#pragma omp simd
                    for (int l = 0; l < V; l++) {
                        const float er = x.r[k][l], ei = x.i[k][l];
                        x.r[k][l] = (er * sr[l] + ei * si[l]) / power[l], x.i[k][l] = (ei * sr[l] - er * si[l]) / power[l];
                    }
                int64_t bits = 0;
                double sum = 0;
                for (int l = 0; l < count; l++)
                    for (int k = 0; k < N; k++) {
                        const float a = x.r[k][l], b = x.i[k][l];
                        const int f = (a > border[0]) + (a > border[1]) + (a > border[2]) +
                                      4 * ((b > border[0]) + (b > border[1]) + (b > border[2]));
                        const double er = a - sent.r[k][l], ei = b - sent.i[k][l];
                        bits += __builtin_popcount(f ^ data[(s0 + l) * N + k]), sum += er * er + ei * ei;
                        if (m == M - 1) dr[(s0 + l) * N + k] = a, di[(s0 + l) * N + k] = b, found[(s0 + l) * N + k] = f;
                    }
                wrong[m] += bits, total[m] += sum;
            }
        }
        for (int m = 0; m < M; m++) powers[m] /= double(n * N);
    };
    bench(run, [&](Checksum &s) {
        s.add("dr", dr.p, n * N), s.add("di", di.p, n * N), s.add("found", found.p, n * N);
        s.add("errors", errors.data(), M), s.add("powers", powers.data(), M);
    });
}
