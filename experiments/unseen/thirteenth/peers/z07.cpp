// ICP: the model is copied in the order of its cells; two loops a round: turn and search, then all
// weighted moments. The rotation by Horn's quaternions (Jacobi's eigenvalues of a 4 x 4 matrix).
#include "common.hpp"

static void horn(const double c[3][3], double r[3][3]) {  // c = sum w x y^T; r brings x to y
    double a[4][4] = {{c[0][0] + c[1][1] + c[2][2], c[1][2] - c[2][1], c[2][0] - c[0][2], c[0][1] - c[1][0]},
                      {0, c[0][0] - c[1][1] - c[2][2], c[0][1] + c[1][0], c[2][0] + c[0][2]},
                      {0, 0, -c[0][0] + c[1][1] - c[2][2], c[1][2] + c[2][1]},
                      {0, 0, 0, -c[0][0] - c[1][1] + c[2][2]}};
    double v[4][4] = {};
    for (int i = 0; i < 4; i++) {
        v[i][i] = 1;
        for (int j = 0; j < i; j++) a[i][j] = a[j][i];
    }
    for (int sweep = 0; sweep < 30; sweep++)
        for (int p = 0; p < 3; p++)
            for (int q = p + 1; q < 4; q++) {
                if (a[p][q] == 0) continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
                double co = 1 / std::sqrt(t * t + 1), s = t * co;
                for (int k = 0; k < 4; k++) {
                    double x = a[k][p], y = a[k][q];
                    a[k][p] = co * x - s * y, a[k][q] = s * x + co * y;
                }
                for (int k = 0; k < 4; k++) {
                    double x = a[p][k], y = a[q][k];
                    a[p][k] = co * x - s * y, a[q][k] = s * x + co * y;
                    x = v[k][p], y = v[k][q];
                    v[k][p] = co * x - s * y, v[k][q] = s * x + co * y;
                }
                a[p][q] = a[q][p] = 0;
            }
    int m = 0;
    for (int i = 1; i < 4; i++)
        if (a[i][i] > a[m][m]) m = i;
    double w = v[0][m], x = v[1][m], y = v[2][m], z = v[3][m];
    double n = 1 / std::sqrt(w * w + x * x + y * y + z * z);
    w *= n, x *= n, y *= n, z *= n;
    double R[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                      {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                      {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    std::memcpy(r, R, sizeof R);
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), cells = d.number("cells"), most = d.number("most");
    auto model = d.array<double>("model"), scan = d.array<double>("scan");
    Array<double> px(n), py(n), pz(n), moved(3 * n), target(3 * n), d2(n);
    Array<int32_t> start(cells * cells * cells + 1), next(cells * cells * cells), cell(n);
    double motion[12];
    std::vector<int64_t> matches;
    std::vector<double> errors, weights;
    auto run = [&] {
        matches.clear(), errors.clear(), weights.clear();
        const int64_t all = cells * cells * cells;
        std::fill(next.p, next.p + all, 0);
        auto clamp = [&](double x) { return std::max<int64_t>(0, std::min<int64_t>(cells - 1, int64_t(x * cells))); };
        for (int64_t i = 0; i < n; i++) {
            const double *m = model + 3 * i;
            cell[i] = (clamp(m[0]) * cells + clamp(m[1])) * cells + clamp(m[2]);
            next[cell[i]]++;
        }
        int32_t sum = 0;
        for (int64_t c = 0; c < all; c++) { int32_t k = next[c]; start[c] = next[c] = sum; sum += k; }
        start[all] = sum;
        for (int64_t i = 0; i < n; i++) {
            const int32_t s = next[cell[i]]++;
            px[s] = model[3 * i], py[s] = model[3 * i + 1], pz[s] = model[3 * i + 2];
        }
        double r[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, t[3] = {};
        for (int64_t round = 0; round < most; round++) {
            int64_t pairs = 0;
            double total = 0;
            const double reach2 = 1.0 / double(cells * cells);
#pragma omp parallel for schedule(static) reduction(+ : pairs, total) if (n * 16 >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) {
                const double *s = scan + 3 * i;
                double p[3];
                for (int a = 0; a < 3; a++) moved[3 * i + a] = p[a] = t[a] + r[a][0] * s[0] + r[a][1] * s[1] + r[a][2] * s[2];
                int64_t lo[3], hi[3];
                for (int a = 0; a < 3; a++) {
                    int64_t c = int64_t(p[a] * cells);
                    lo[a] = std::max<int64_t>(c - 1, 0), hi[a] = std::min(c + 2, cells);
                }
                double best = reach2;
                int64_t who = -1;
                if (lo[2] < hi[2])
                    for (int64_t u = lo[0]; u < hi[0]; u++)
                        for (int64_t v = lo[1]; v < hi[1]; v++) {  // cells of a column lie together
                            const int64_t c = (u * cells + v) * cells;
                            for (int32_t k = start[c + lo[2]]; k < start[c + hi[2]]; k++) {
                                double x = p[0] - px[k], y = p[1] - py[k], z = p[2] - pz[k];
                                double q = x * x + y * y + z * z;
                                if (q < best) best = q, who = k;
                            }
                        }
                d2[i] = best;
                if (who >= 0) {
                    target[3 * i] = px[who], target[3 * i + 1] = py[who], target[3 * i + 2] = pz[who];
                    pairs++;
                    total += best;
                } else {
                    d2[i] = INFINITY;
                    target[3 * i] = target[3 * i + 1] = target[3 * i + 2] = 0;
                }
            }
            const double mean = total / pairs, scale2 = 6.0 * mean;
            double W = 0, X[3] = {}, Y[3] = {}, C[9] = {};
#pragma omp parallel for schedule(static) reduction(+ : W, X, Y, C) if (n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) {
                if (!(d2[i] < scale2)) continue;
                double q = 1.0 - d2[i] / scale2, w = q * q, x[3], y[3];
                W += w;
                for (int a = 0; a < 3; a++) {
                    x[a] = moved[3 * i + a] - 0.5, y[a] = target[3 * i + a] - 0.5;
                    X[a] += w * x[a], Y[a] += w * y[a];
                }
                for (int a = 0; a < 3; a++)
                    for (int b = 0; b < 3; b++) C[3 * a + b] += w * x[a] * y[b];
            }
            double c[3][3], dr[3][3], dt[3], nr[3][3], nt[3], change = 0, move = 0;
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) c[a][b] = C[3 * a + b] - X[a] * Y[b] / W;
            horn(c, dr);
            for (int a = 0; a < 3; a++) {
                dt[a] = Y[a] / W + 0.5;
                for (int b = 0; b < 3; b++) dt[a] -= dr[a][b] * (X[b] / W + 0.5);
            }
            for (int a = 0; a < 3; a++) {
                nt[a] = dt[a];
                for (int b = 0; b < 3; b++) {
                    nt[a] += dr[a][b] * t[b];
                    nr[a][b] = dr[a][0] * r[0][b] + dr[a][1] * r[1][b] + dr[a][2] * r[2][b];
                    change = std::max(change, std::fabs(dr[a][b] - (a == b)));
                }
                move = std::max(move, std::fabs(dt[a]));
            }
            std::memcpy(r, nr, sizeof r), std::memcpy(t, nt, sizeof t);
            matches.push_back(pairs), errors.push_back(std::sqrt(mean)), weights.push_back(W);
            if (change + move < 1e-7) break;
        }
        std::memcpy(motion, r, sizeof r), std::memcpy(motion + 9, t, sizeof t);
    };
    bench(run, [&](Checksum &s) {
        s.add("moved", moved.p, 3 * n);
        s.add("motion", motion, 12);
        s.add("matches", matches.data(), matches.size());
        s.add("errors", errors.data(), errors.size());
        s.add("weights", weights.data(), weights.size());
    });
}
