// A neighbour in a lane: its place is gathered; the nearest image is chosen without branches.
static inline double nearest(double d, double half, double box) {
    d = d > half ? d - box : d;
    return d < -half ? d + box : d;
}

extern "C" void run(long n, double* __restrict x, double* __restrict v, double* __restrict f,
                    const int* __restrict lists, double box, double* energy) {
    const double half = 0.5 * box;
    double kinetic = 0, potential = 0;
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < 3 * n; ++i) {
        v[i] += 0.5 * DT * f[i];
        double place = x[i] + DT * v[i];
        place = place < 0 ? place + box : place;
        x[i] = place >= box ? place - box : place;
    }
    const double *__restrict y = x + n, *__restrict z = x + 2 * n;
#pragma omp parallel for schedule(static) reduction(+ : kinetic, potential)
    for (long i = 0; i < n; ++i) {
        const int* __restrict list = lists + i * COUNT;
        const double xi = x[i], yi = y[i], zi = z[i];
        double fx = 0, fy = 0, fz = 0, e = 0;
#pragma omp simd reduction(+ : fx, fy, fz, e)
        for (int k = 0; k < COUNT; ++k) {
            const int j = list[k];
            const double dx = nearest(xi - x[j], half, box), dy = nearest(yi - y[j], half, box);
            const double dz = nearest(zi - z[j], half, box);
            const double r2 = 1.0 / (dx * dx + dy * dy + dz * dz), r6 = r2 * r2 * r2;
            const double pull = 24.0 * r2 * r6 * (2.0 * r6 - 1.0);
            fx += pull * dx, fy += pull * dy, fz += pull * dz;
            e += 2.0 * r6 * (r6 - 1.0);
        }
        f[i] = fx, f[n + i] = fy, f[2 * n + i] = fz;
        const double vx = v[i] + 0.5 * DT * fx, vy = v[n + i] + 0.5 * DT * fy;
        const double vz = v[2 * n + i] + 0.5 * DT * fz;
        v[i] = vx, v[n + i] = vy, v[2 * n + i] = vz;
        kinetic += 0.5 * (vx * vx + vy * vy + vz * vz);
        potential += e;
    }
    energy[0] = kinetic, energy[1] = potential;
}
