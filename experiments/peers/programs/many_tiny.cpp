extern "C" void run(long steps, double* __restrict x, double* __restrict v, double* kinetic) {
    for (long step = 0; step < steps; ++step) {
        double t[BEADS];
        for (int i = 0; i < BEADS - 1; ++i) {
            const double d = x[i + 1] - x[i];
            t[i] = STIFFNESS * d + CUBIC * d * d * d;
        }
        for (int i = 1; i < BEADS - 1; ++i) {
            v[i] = KEEP * (v[i] + DT * (t[i] - t[i - 1]));
            x[i] += DT * v[i];
        }
    }
    double sum = 0;
    for (int i = 0; i < BEADS; ++i) sum += 0.5 * v[i] * v[i];
    *kinetic = sum;
}
