// Maxwell: a sweep for the magnetic field with its damping and energy, one for the electric field.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps"), N = n * n * n, m = n * n;
    auto inverse = d.array<float>("inverse"), profile = d.array<float>("profile"), noise = d.array<float>("noise");
    const float c = d.array<float>("courant")[0];
    Array<float> e(3 * N), h(3 * N);
    std::vector<double> electric(steps), magnetic(steps);
    auto run = [&] {
        float *ex = e, *ey = ex + N, *ez = ey + N, *hx = h, *hy = hx + N, *hz = hy + N;
        const float *p = profile;
#pragma omp parallel for schedule(static) if (N >= PARALLEL_FROM)
        for (int64_t i = 0; i < n; i++)
            for (int64_t a = 0; a < 3; a++) {
                std::memcpy(ex + a * N + i * m, noise + i * m, m * sizeof(float));
                std::memcpy(hx + a * N + i * m, noise + i * m, m * sizeof(float));
            }
        for (int64_t s = 0; s < steps; s++) {
            double eh = 0, ee = 0;
#pragma omp parallel if (N >= PARALLEL_FROM) reduction(+ : eh, ee)
            {
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n - 1; i++)
                    for (int64_t j = 0; j < n - 1; j++) {
                        const int64_t b = i * m + j * n;
                        const float pij = p[i] * p[j], ci = i ? c : 0.f, cj = j ? c : 0.f;
                        const float *__restrict x = ex + b, *__restrict y = ey + b, *__restrict z = ez + b;
                        float *__restrict u = hx + b, *__restrict v = hy + b, *__restrict w = hz + b;
                        double sum = 0;
#pragma omp simd reduction(+ : sum)
                        for (int64_t k = 0; k < n - 1; k++) {
                            const float q = pij * p[k];
                            float a = (u[k] + ci * (y[k + 1] - y[k] - z[k + n] + z[k])) * q;
                            float bb = (v[k] + cj * (z[k + m] - z[k] - x[k + 1] + x[k])) * q;
                            float cc = (w[k] + (k ? c : 0.f) * (x[k + n] - x[k] - y[k + m] + y[k])) * q;
                            u[k] = a, v[k] = bb, w[k] = cc;
                            sum += a * a + bb * bb + cc * cc;
                        }
                        eh += sum;
                    }
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n - 1; i++)
                    for (int64_t j = 0; j < n - 1; j++) {
                        const int64_t b = i * m + j * n;
                        const float pij = p[i] * p[j];
                        const float *__restrict u = hx + b, *__restrict v = hy + b, *__restrict w = hz + b;
                        const float *__restrict in = inverse + b;
                        float *__restrict x = ex + b, *__restrict y = ey + b, *__restrict z = ez + b;
                        double sum = 0;
                        if (i && j) {
                            float q = pij * p[0];
                            z[0] = (z[0] + in[0] * (v[0] - v[-m] - u[0] + u[-n])) * q;
                            sum += z[0] * z[0];
#pragma omp simd reduction(+ : sum)
                            for (int64_t k = 1; k < n - 1; k++) {
                                const float q = pij * p[k];
                                float a = (x[k] + in[k] * (w[k] - w[k - n] - v[k] + v[k - 1])) * q;
                                float bb = (y[k] + in[k] * (u[k] - u[k - 1] - w[k] + w[k - m])) * q;
                                float cc = (z[k] + in[k] * (v[k] - v[k - m] - u[k] + u[k - n])) * q;
                                x[k] = a, y[k] = bb, z[k] = cc;
                                sum += a * a + bb * bb + cc * cc;
                            }
                        } else if (j) {
#pragma omp simd reduction(+ : sum)
                            for (int64_t k = 1; k < n - 1; k++) {
                                x[k] = (x[k] + in[k] * (w[k] - w[k - n] - v[k] + v[k - 1])) * (pij * p[k]);
                                sum += x[k] * x[k];
                            }
                        } else if (i) {
#pragma omp simd reduction(+ : sum)
                            for (int64_t k = 1; k < n - 1; k++) {
                                y[k] = (y[k] + in[k] * (u[k] - u[k - 1] - w[k] + w[k - m])) * (pij * p[k]);
                                sum += y[k] * y[k];
                            }
                        }
                        ee += sum;
                    }
            }
            const double a = std::exp(-(s - 3.0) * (s - 3.0) / 4.0);
            for (int64_t k = n / 2 - 1; k < n / 2 + 2; k++) {
                float &z = ez[(n / 3) * m + (n / 3) * n + k], old = z;
                z = float(z + a);
                ee += double(z * z) - double(old * old);
            }
            electric[s] = ee;
            magnetic[s] = eh;
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("e", e.p, 3 * N);
        s.add("h", h.p, 3 * N);
        s.add("electric", electric.data(), steps);
        s.add("magnetic", magnetic.data(), steps);
    });
}
