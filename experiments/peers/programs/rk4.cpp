extern "C" void run(long n, double* __restrict xs, double* __restrict ys,
                    const double* __restrict birth, double* alive) {
    double sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (long i = 0; i < n; ++i) {
        double x = xs[i], y = ys[i];
        const double b = birth[i];
#pragma GCC unroll 8
        for (int step = 0; step < STEPS; ++step) {
            const double k1 = x * (b - EATEN * y), l1 = y * (GROWN * x - DEATH);
            double u = x + 0.5 * DT * k1, w = y + 0.5 * DT * l1;
            const double k2 = u * (b - EATEN * w), l2 = w * (GROWN * u - DEATH);
            u = x + 0.5 * DT * k2, w = y + 0.5 * DT * l2;
            const double k3 = u * (b - EATEN * w), l3 = w * (GROWN * u - DEATH);
            u = x + DT * k3, w = y + DT * l3;
            const double k4 = u * (b - EATEN * w), l4 = w * (GROWN * u - DEATH);
            x += DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
            y += DT / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4);
        }
        xs[i] = x, ys[i] = y;
        sum += x + y;
    }
    *alive = sum;
}
