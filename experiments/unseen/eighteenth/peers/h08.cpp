// Four passes over the samples: sums of the first layer; forward and backward to the normalisation;
// the first layer's gradients; the new weights. A sample's channels are one vector; softmax by blocks.
#include "common.hpp"

typedef float f4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));
static constexpr int H = 4, O = 3, B = 128;
static inline d4 wide(f4 x) { return __builtin_convertvector(x, d4); }

struct Net {
    f4 w1[4], w2[O];  // columns of the first layer, rows of the second
    f4 gamma, beta, mean, inverse;
    float bias[O];
};

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto x = d.array<float>("x");
    auto label = d.array<uint8_t>("label");
    auto w1 = d.array<float>("w1"), w2 = d.array<float>("w2"), bias = d.array<float>("bias"), gamma = d.array<float>("gamma"), beta = d.array<float>("beta");
    Array<f4> dys(n);
    Array<double> sure(n), scores(3);
    Array<float> out1(16), out2(12), outb(3), outg(4), outh(4);
    Array<uint8_t> guess(n);
    const f4 *xs = (const f4 *)x.p;
    auto first = [](const Net &net, f4 v) { return net.w1[0] * v[0] + net.w1[1] * v[1] + net.w1[2] * v[2] + net.w1[3] * v[3]; };
    auto leaky = [](f4 y, f4 v) { return y > 0.0f ? v : 0.1f * v; };
    auto probabilities = [](double (*p)[B], const float (*z)[B], int m) {
#pragma omp simd
        for (int i = 0; i < m; i++) {
            const float top = std::max(std::max(z[0][i], z[1][i]), z[2][i]);
            const double a = exp(double(z[0][i] - top)), b = exp(double(z[1][i] - top)), c = exp(double(z[2][i] - top)), total = a + b + c;
            p[0][i] = a / total, p[1][i] = b / total, p[2][i] = c / total;
        }
    };
    auto second = [](const Net &net, f4 h, float (*z)[B], int i) {
        for (int o = 0; o < O; o++) {
            const f4 t = h * net.w2[o];
            z[o][i] = net.bias[o] + t[0] + t[1] + t[2] + t[3];
        }
    };
    auto surprise = [](const double *q, int m) {
        double s = 0;
#pragma omp simd reduction(+ : s)
        for (int i = 0; i < m; i++) s -= log(q[i]);
        return s;
    };
    auto load = [](Net &net, const float *a, const float *b, const float *c, const float *g, const float *h) {
        for (int o = 0; o < H; o++) {
            for (int k = 0; k < 4; k++) net.w1[k][o] = a[o * 4 + k];
            net.gamma[o] = g[o], net.beta[o] = h[o];
        }
        for (int o = 0; o < O; o++) {
            net.bias[o] = c[o];
            for (int k = 0; k < H; k++) net.w2[o][k] = b[o * H + k];
        }
    };
    auto run = [&] {
        Net net, next;
        load(net, w1, w2, bias, gamma, beta);
        d4 sum = {}, square = {}, g2[O] = {}, sd = {}, sdx = {}, g1[4] = {};
        double gb[O] = {}, loss = 0, loss2 = 0;
        int64_t right = 0;
#pragma omp declare reduction(+ : d4 : omp_out += omp_in) initializer(omp_priv = d4{})
        const bool many = n * 4 >= PARALLEL_FROM;
#pragma omp parallel for schedule(static) if (many) reduction(+ : sum, square)
        for (int64_t i = 0; i < n; i++) {
            const d4 z = wide(first(net, xs[i]));
            sum += z, square += z * z;
        }
        for (int c = 0; c < H; c++) {
            const double mean = sum[c] / n, spread = square[c] / n - mean * mean;
            net.mean[c] = mean, net.inverse[c] = 1.0 / std::sqrt(spread + 1e-5);
        }
#pragma omp parallel for schedule(static) if (many) reduction(+ : g2, gb, sd, sdx, loss)
        for (int64_t b = 0; b < n; b += B) {
            const int m = std::min<int64_t>(B, n - b);
            f4 norms[B], ys[B], hs[B];
            float z[O][B];
            double p[O][B], own[B];
            for (int i = 0; i < m; i++) {
                const f4 norm = (first(net, xs[b + i]) - net.mean) * net.inverse, y = net.gamma * norm + net.beta, h = leaky(y, y);
                norms[i] = norm, ys[i] = y, hs[i] = h;
                second(net, h, z, i);
            }
            probabilities(p, z, m);
            const uint8_t *l = label.p + b;
            for (int i = 0; i < m; i++) own[i] = p[l[i]][i];
            loss += surprise(own, m);
            for (int i = 0; i < m; i++) {
                f4 dy = {};
                for (int o = 0; o < O; o++) {
                    const float e = p[o][i] - (l[i] == o ? 1.0 : 0.0);
                    g2[o] += wide(e * hs[i]), gb[o] += e;
                    dy += e * net.w2[o];
                }
                dy = leaky(ys[i], dy);
                dys[b + i] = dy;
                sd += wide(dy), sdx += wide(dy * norms[i]);
            }
        }
        f4 mean_d, mean_dx;
        for (int c = 0; c < H; c++) mean_d[c] = sd[c] / n, mean_dx[c] = sdx[c] / n;
#pragma omp parallel for schedule(static) if (many) reduction(+ : g1)
        for (int64_t i = 0; i < n; i++) {
            const f4 v = xs[i], norm = (first(net, v) - net.mean) * net.inverse;
            const f4 dz = net.gamma * net.inverse * (dys[i] - mean_d - norm * mean_dx);
            for (int k = 0; k < 4; k++) g1[k] += wide(dz * v[k]);
        }
        for (int o = 0; o < H; o++)
            for (int k = 0; k < 4; k++) out1[o * 4 + k] = w1[o * 4 + k] - 0.5 * (g1[k][o] / n);
        for (int o = 0; o < O; o++) {
            outb[o] = bias[o] - 0.5 * (gb[o] / n);
            for (int k = 0; k < H; k++) out2[o * H + k] = w2[o * H + k] - 0.5 * (g2[o][k] / n);
        }
        for (int c = 0; c < H; c++) outg[c] = gamma[c] - 0.5 * (sdx[c] / n), outh[c] = beta[c] - 0.5 * (sd[c] / n);
        next = net;
        load(next, out1, out2, outb, outg, outh);
#pragma omp parallel for schedule(static) if (many) reduction(+ : loss2, right)
        for (int64_t b = 0; b < n; b += B) {
            const int m = std::min<int64_t>(B, n - b);
            float z[O][B];
            double p[O][B], own[B];
            for (int i = 0; i < m; i++) {
                const f4 y = next.gamma * ((first(next, xs[b + i]) - next.mean) * next.inverse) + next.beta;
                second(next, leaky(y, y), z, i);
            }
            probabilities(p, z, m);
            for (int i = 0; i < m; i++) {
                const int l = label[b + i];
                own[i] = p[l][i];
                const int k = p[1][i] > p[0][i];
                const double best = std::max(p[0][i], p[1][i]);
                const int which = p[2][i] > best ? 2 : k;
                guess[b + i] = which, sure[b + i] = std::max(best, p[2][i]);
                right += which == l;
            }
            loss2 += surprise(own, m);
        }
        scores[0] = loss / n, scores[1] = loss2 / n, scores[2] = double(right) / n;
    };
    bench(run, [&](Checksum &s) {
        s.add("w1", out1.p, 16), s.add("w2", out2.p, 12), s.add("bias", outb.p, 3), s.add("gamma", outg.p, 4), s.add("beta", outh.p, 4);
        s.add("guess", guess.p, n), s.add("sure", sure.p, n), s.add("scores", scores.p, 3);
    });
}
