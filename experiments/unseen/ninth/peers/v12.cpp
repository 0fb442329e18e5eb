#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = 1L << atol(argv[2]), m = 4 * n;
    auto c0 = load<double>("c0"), v = load<double>("v"), rad = load<double>("radius"), o = load<double>("o"), d = load<double>("d"), c = load<double>("c"), light = load<double>("light"); auto hit = load<int>("hit");
    vector<int> order(n); vector<std::pair<int, int>> key(n); vector<double> box(12 * n); double bright; long hits, visited;
    auto ex = [](int x) { x &= 1023; x = (x | x << 16) & 50331903; x = (x | x << 8) & 50393103; x = (x | x << 4) & 51130563; return (x | x << 2) & 153391689; };
    auto run = [&] {
        for (long i = 0; i < n; i++) { int q[3]; for (int a = 0; a < 3; a++) { c[3 * i + a] = c0[3 * i + a] + 0.5 * v[3 * i + a]; q[a] = min(max(c[3 * i + a] * 1024.0, 0.0), 1023.0); }
            key[i] = {ex(q[0]) * 4 + ex(q[1]) * 2 + ex(q[2]), (int)i}; }
        std::sort(key.begin(), key.end());
        for (long k = 0; k < n; k++) { int s = order[k] = key[k].second; for (int a = 0; a < 3; a++) { box[6 * (n + k) + a] = c[3 * s + a] - rad[s]; box[6 * (n + k) + 3 + a] = c[3 * s + a] + rad[s]; } }
        for (long k = n - 1; k >= 1; k--) for (int a = 0; a < 3; a++) { box[6 * k + a] = min(box[12 * k + a], box[12 * k + 6 + a]); box[6 * k + 3 + a] = max(box[12 * k + 3 + a], box[12 * k + 9 + a]); }
        double b = 0; long hh = 0, vv = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : b, hh, vv)
        for (long r = 0; r < m; r++) {
            const double *O = &o[3 * r], *D = &d[3 * r]; double inv[3] = {1 / D[0], 1 / D[1], 1 / D[2]}, best = 1e30; int which = -1, depth = 1, stack[32]; stack[0] = 1;
            while (depth) { int k = stack[--depth]; vv++; const double *B = &box[6 * k]; double near = 0, far = best;
                for (int a = 0; a < 3; a++) { double t0 = (B[a] - O[a]) * inv[a], t1 = (B[3 + a] - O[a]) * inv[a]; near = max(near, min(t0, t1)); far = min(far, max(t0, t1)); }
                if (near > far) continue;
                if (k < n) { stack[depth++] = 2 * k + 1; stack[depth++] = 2 * k; continue; }
                int s = order[k - n]; double x = O[0] - c[3 * s], y = O[1] - c[3 * s + 1], z = O[2] - c[3 * s + 2], bb = x * D[0] + y * D[1] + z * D[2], disc = bb * bb - (x * x + y * y + z * z - rad[s] * rad[s]);
                if (disc > 0) { double t = -bb - sqrt(disc); if (t >= 0 && t < best) best = t, which = s; } }
            double l = 0.1; if (which >= 0) { l = max((O[2] + best * D[2] - c[3 * which + 2]) / rad[which], 0.0) * exp(-0.5 * best); hh++; }
            hit[r] = which; light[r] = l; b += l;
        }
        bright = b / m; hits = hh; visited = vv;
    };
    return bench(run, [&] { return sum(c) + sum(light) + sum(hit) + bright + hits + visited; });
}
