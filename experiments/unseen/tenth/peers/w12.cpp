// Taubin: a sweep for each step moves all three coordinates into the other array (the scaling waits for
// the volume), and one over the triangles measures.
#include "common.hpp"

struct Mesh { double *x, *y, *z; };

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), m = d.number("triangles");
    auto row = d.array<int32_t>("row"), neighbour = d.array<int32_t>("neighbour"), corner = d.array<int32_t>("corner");
    auto fx = d.array<double>("first_0"), fy = d.array<double>("first_1"), fz = d.array<double>("first_2");
    Array<double> ax(n), ay(n), az(n), bx(n), by(n), bz(n);
    Mesh first{fx, fy, fz}, a{ax, ay, az}, b{bx, by, bz};
    std::vector<double> areas, volumes;
    const int most = 10;
    auto measure = [&](const Mesh &p, double &area, double &volume) {
        double s = 0, v = 0;
#pragma omp parallel for schedule(static) reduction(+ : s, v) if (m >= 2048)
        for (int64_t t = 0; t < m; t++) {
            const int32_t *q = &corner.p[3 * t];
            const int32_t i = q[0], j = q[1], k = q[2];
            double ux = p.x[j] - p.x[i], uy = p.y[j] - p.y[i], uz = p.z[j] - p.z[i];
            double vx = p.x[k] - p.x[i], vy = p.y[k] - p.y[i], vz = p.z[k] - p.z[i];
            double nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
            s += 0.5 * std::sqrt(nx * nx + ny * ny + nz * nz);
            v += (nx * p.x[i] + ny * p.y[i] + nz * p.z[i]) / 6.0;
        }
        area = s;
        volume = v;
    };
    auto move = [&](const Mesh &p, const Mesh &o, double factor, double *sum) {
        double sx = 0, sy = 0, sz = 0;
#pragma omp parallel for schedule(static) reduction(+ : sx, sy, sz) if (n >= 2048)
        for (int64_t i = 0; i < n; i++) {
            double x = 0, y = 0, z = 0;
            const int32_t from = row.p[i], end = row.p[i + 1];
            for (int32_t e = from; e < end; e++) {
                const int32_t k = neighbour.p[e];
                x += p.x[k], y += p.y[k], z += p.z[k];
            }
            const double count = end - from;
            o.x[i] = x = p.x[i] + factor * (x / count - p.x[i]);
            o.y[i] = y = p.y[i] + factor * (y / count - p.y[i]);
            o.z[i] = z = p.z[i] + factor * (z / count - p.z[i]);
            sx += x, sy += y, sz += z;
        }
        sum[0] = sx, sum[1] = sy, sum[2] = sz;
    };
    auto run = [&] {
        double before, wanted, after, held, sum[3];
        measure(first, before, wanted);
        areas.assign(1, before);
        volumes.assign(1, wanted);
        for (int k = 0; k < most; k++) {
            move(k ? a : first, b, 0.5, sum);
            move(b, a, -0.53, sum);
            measure(a, after, held);
            const double f = std::pow(wanted / held, 1.0 / 3.0);
            const double cx = sum[0] / n, cy = sum[1] / n, cz = sum[2] / n;
            double *__restrict x = a.x, *__restrict y = a.y, *__restrict z = a.z;
#pragma omp parallel for simd schedule(static) if (n >= PARALLEL_FROM)
            for (int64_t i = 0; i < n; i++) {
                x[i] = cx + f * (x[i] - cx);
                y[i] = cy + f * (y[i] - cy);
                z[i] = cz + f * (z[i] - cz);
            }
            areas.push_back(after);
            volumes.push_back(held);
            if (before - after < 1e-4 * after) break;
            before = after;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("x", a.x, n);
        c.add("y", a.y, n);
        c.add("z", a.z, n);
        c.add("areas", areas.data(), areas.size());
        c.add("volumes", volumes.data(), volumes.size());
    });
}
