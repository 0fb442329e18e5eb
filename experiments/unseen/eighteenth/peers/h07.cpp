// The whole tree for one site after the other: a partial likelihood is four vectors of four bases, a
// species' part is a row of a table; logarithms for a block of sites at a time.
#include "common.hpp"

typedef double v4 __attribute__((vector_size(32)));
static constexpr int TIPS = 12, RATES = 4, NODES = 11, B = 128;
static constexpr int TREE[NODES][2] = {{0, 1}, {2, 3}, {12, 13}, {4, 5}, {15, 6}, {7, 8}, {17, 9}, {16, 18}, {14, 19}, {10, 11}, {20, 21}};

static inline double highest(v4 x) { return std::max(std::max(x[0], x[1]), std::max(x[2], x[3])); }

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto tips = d.array<uint8_t>("tips");
    auto count = d.array<int32_t>("count");
    auto pi = d.array<double>("frequency"), rate = d.array<double>("rate");
    Array<v4> column((TIPS + NODES) * 16), table(TIPS * 5 * 4);
    for (int b = 0; b < TIPS + NODES - 1; b++) {
        auto m = d.array<double>("matrix_" + std::to_string(b));
        for (int c = 0; c < RATES; c++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 4; x++) {
                    column[b * 16 + c * 4 + y][x] = m[c * 16 + x * 4 + y];
                    if (b < TIPS) table[(b * 5 + y) * 4 + c][x] = m[c * 16 + x * 4 + y], table[(b * 5 + 4) * 4 + c][x] = 1.0;
                }
    }
    Array<double> logs(n), rates(n), sums(5);
    Array<uint8_t> base(n);
    Array<int32_t> scalings(n);
    auto run = [&] {
        double total = 0;
        int64_t numbers[4] = {};
        const double unit = std::log(1024.0);
#pragma omp parallel for schedule(static) if (n * 16 >= PARALLEL_FROM) reduction(+ : total, numbers)
        for (int64_t b = 0; b < n; b += B) {
            const int m = std::min<int64_t>(B, n - b);
            double whole[B];
            for (int i = 0; i < m; i++) {
                v4 f[NODES][RATES];
                int scaled = 0;
#pragma GCC unroll 11
                for (int k = 0; k < NODES; k++) {
                    v4 part[2][RATES];
#pragma GCC unroll 2
                    for (int side = 0; side < 2; side++) {
                        const int child = TREE[k][side];
                        if (child < TIPS) {
                            const v4 *row = table.p + (child * 5 + tips[child * n + b + i]) * 4;
                            for (int c = 0; c < RATES; c++) part[side][c] = row[c];
                        } else {
                            for (int c = 0; c < RATES; c++) {
                                const v4 *p = column.p + child * 16 + c * 4, x = f[child - TIPS][c];
                                part[side][c] = p[0] * x[0] + p[1] * x[1] + p[2] * x[2] + p[3] * x[3];
                            }
                        }
                    }
                    for (int c = 0; c < RATES; c++) f[k][c] = part[0][c] * part[1][c];
                    if (TREE[k][0] >= TIPS || TREE[k][1] >= TIPS) {
                        v4 top = f[k][0];
                        for (int c = 1; c < RATES; c++) top = top > f[k][c] ? top : f[k][c];
                        if (highest(top) < 1.0 / 1024.0) {
                            for (int c = 0; c < RATES; c++) f[k][c] *= 1024.0;
                            scaled++;
                        }
                    }
                }
                const v4 *root = f[NODES - 1];
                double all = 0, speed = 0, best = 0;
                for (int c = 0; c < RATES; c++) {
                    const double l = (pi[0] * root[c][0] + pi[1] * root[c][1] + pi[2] * root[c][2] + pi[3] * root[c][3]) / RATES;
                    all += l, speed += rate[c] * l;
                }
                const v4 share = root[0] + root[1] + root[2] + root[3];
                int which = 0;
                for (int a = 0; a < 4; a++) {
                    const double x = share[a] * pi[a];
                    which = x > best ? a : which, best = std::max(best, x);
                }
                whole[i] = all, rates[b + i] = speed / all, base[b + i] = which, scalings[b + i] = scaled;
                numbers[which] += count[b + i];
            }
            const int32_t *sc = scalings.p + b, *co = count.p + b;
            double *__restrict o = logs.p + b;
#pragma omp simd reduction(+ : total)
            for (int i = 0; i < m; i++) {
                const double l = log(whole[i]) - sc[i] * unit;
                o[i] = l, total += co[i] * l;
            }
        }
        sums[0] = total;
        for (int a = 0; a < 4; a++) sums[1 + a] = numbers[a];
    };
    bench(run, [&](Checksum &s) {
        s.add("logs", logs.p, n), s.add("rates", rates.p, n), s.add("base", base.p, n);
        s.add("scalings", scalings.p, n), s.add("sums", sums.p, 5);
    });
}
