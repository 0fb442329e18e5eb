// Phylogeny: one loop a proposal over blocks of sites; likelihoods of a block live in cache, a state
// apart from another. Scaling once, at the root, is enough for ten species (no factor is below 1e-12).
#include "common.hpp"

static const int CHILDREN[9][2] = {{0, 1}, {2, 3}, {10, 11}, {4, 5}, {6, 7}, {13, 14}, {12, 15}, {8, 9}, {16, 17}};
static const int TAXA = 10, NODES = 19, B = 64;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps");
    auto letters = d.array<int8_t>("letters");
    auto weight = d.array<int32_t>("weight");
    auto random = d.array<double>("random"), first = d.array<double>("lengths");
    Array<double> site(n);
    std::vector<double> likelihoods, final;
    std::vector<int64_t> accepted;
    auto run = [&] {
        double t[NODES], kappa = 2.0, present = 0;
        std::copy(first.p, first.p + NODES, t);
        likelihoods.clear(), accepted.clear();
        for (int64_t step = 0; step < steps; step++) {
            const double *r = random + 3 * step, old_kappa = kappa;
            double old[NODES];
            std::copy(t, t + NODES, old);
            if (step % 4 == 3) kappa *= std::exp(0.5 * (r[1] - 0.5));
            else if (step > 0) t[int(r[0] * (NODES - 1))] *= std::exp(1.2 * (r[1] - 0.5));
            double same[NODES], tran[NODES], other[NODES];
            for (int k = 0; k < NODES; k++) {
                double b = std::exp(-4.0 * t[k] / (kappa + 2.0)), c = std::exp(-2.0 * t[k] * (kappa + 1.0) / (kappa + 2.0));
                same[k] = 0.25 + 0.25 * b + 0.5 * c, tran[k] = 0.25 + 0.25 * b - 0.5 * c, other[k] = 0.25 - 0.25 * b;
            }
            // Of a leaf: what each letter carries along its branch.
            alignas(64) double leaf[TAXA][4][8];
            for (int k = 0; k < TAXA; k++)
                for (int s = 0; s < 4; s++)
                    for (int x = 0; x < 8; x++)
                        leaf[k][s][x] = x > 3 ? same[k] + tran[k] + 2.0 * other[k]
                                              : x == s ? same[k] : x == (s + 2) % 4 ? tran[k] : other[k];
            double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (n * 20 >= PARALLEL_FROM)
            for (int64_t o = 0; o < n; o += B) {
                alignas(64) double clv[9][4][B];
                const int m = std::min<int64_t>(B, n - o);
                for (int k = 0; k < 9; k++) {
                    for (int side = 0; side < 2; side++) {
                        const int child = CHILDREN[k][side];
                        double(*out)[B] = clv[k];
                        if (child < TAXA) {
                            const int8_t *in = letters + child * n + o;
                            for (int s = 0; s < 4; s++) {
                                const double *table = leaf[child][s];
                                if (side) {
#pragma omp simd
                                    for (int i = 0; i < m; i++) out[s][i] *= table[in[i]];
                                } else {
#pragma omp simd
                                    for (int i = 0; i < m; i++) out[s][i] = table[in[i]];
                                }
                            }
                        } else {
                            double(*in)[B] = clv[child - TAXA];
                            const double a = same[child], b = tran[child], c = other[child];
                            for (int s = 0; s < 4; s++) {
                                const double *x = in[s], *y = in[(s + 2) % 4], *z = in[(s + 1) % 4], *w = in[(s + 3) % 4];
                                double *q = out[s];
                                if (side) {
#pragma omp simd
                                    for (int i = 0; i < B; i++) q[i] *= a * x[i] + b * y[i] + c * (z[i] + w[i]);
                                } else {
#pragma omp simd
                                    for (int i = 0; i < B; i++) q[i] = a * x[i] + b * y[i] + c * (z[i] + w[i]);
                                }
                            }
                        }
                    }
                }
                double part = 0;
                double(*root)[B] = clv[8];
#pragma omp simd reduction(+ : part)
                for (int i = 0; i < m; i++) {
                    double v = log(0.25 * (root[0][i] + root[1][i] + root[2][i] + root[3][i]));
                    site[o + i] = v;
                    part += weight[o + i] * v;
                }
                sum += part;
            }
            const bool accept = step == 0 || std::log(r[2]) < sum - present;
            likelihoods.push_back(sum), accepted.push_back(accept);
            if (accept) present = sum;
            else std::copy(old, old + NODES, t), kappa = old_kappa;
        }
        final.assign(1, kappa);
        final.insert(final.end(), t, t + NODES);
    };
    bench(run, [&](Checksum &s) {
        s.add("site", site.p, n);
        s.add("likelihoods", likelihoods.data(), likelihoods.size());
        s.add("accepted", accepted.data(), accepted.size());
        s.add("final", final.data(), final.size());
    });
}
