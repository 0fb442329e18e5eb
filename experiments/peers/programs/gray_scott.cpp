extern "C" void run(long w, const double* __restrict u, const double* __restrict v,
                    double* __restrict new_u, double* __restrict new_v, double* amount) {
    const long n = w * w;
    double sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (long i = w; i < n - w; ++i) {
        const double lap_u = u[i - w] + u[i + w] + u[i - 1] + u[i + 1] - 4.0 * u[i];
        const double lap_v = v[i - w] + v[i + w] + v[i - 1] + v[i + 1] - 4.0 * v[i];
        const double r = u[i] * v[i] * v[i];
        new_u[i] = u[i] + DT * (SPREAD_U * lap_u - r + FEED * (1.0 - u[i]));
        new_v[i] = v[i] + DT * (SPREAD_V * lap_v + r - (FEED + KILL) * v[i]);
        sum += new_v[i];
    }
    for (long i = 0; i < w; ++i) sum += new_v[i] + new_v[n - 1 - i];
    *amount = sum;
}
