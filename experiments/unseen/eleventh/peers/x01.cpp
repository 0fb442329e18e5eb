// Ice sheet: one sweep a step by rows; each thread keeps the diffusivities of two rows.
#include "common.hpp"

static const double DX = 1.0, DT = 0.2, GLEN = 0.02, CAP = 0.9, RATE = 0.02, ELA = 1.2, MOST = 0.01,
                    SINK = 0.002, DENSITY = 0.28;

static inline double lower(double a, double b) { return a < b ? a : b; }

static void diff_row(int64_t n, const double *__restrict h, const double *__restrict b,
                     double *__restrict d) {  // between this row and the next
#pragma omp simd
    for (int64_t j = 0; j < n - 1; j++) {
        double s00 = b[j] + h[j], s01 = b[j + 1] + h[j + 1];
        double s10 = b[n + j] + h[n + j], s11 = b[n + j + 1] + h[n + j + 1];
        double ice = 0.25 * (h[j] + h[j + 1] + h[n + j] + h[n + j + 1]);
        double x = 0.5 * ((s01 - s00) / DX + (s11 - s10) / DX);
        double y = 0.5 * ((s10 - s00) / DX + (s11 - s01) / DX);
        d[j] = lower(GLEN * ice * ice * ice * ice * ice * (x * x + y * y), CAP);
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n"), steps = d.number("steps");
    auto h0 = d.array<double>("h0"), bed0 = d.array<double>("bed0");
    Array<double> ha(n * n), hb(n * n), ba(n * n), bb(n * n);
    std::vector<double> volumes(steps), areas(steps);
    double *H = ha, *B = ba;
    auto run = [&] {
        const double *hin = h0, *bin = bed0;
        for (int64_t k = 0; k < steps; k++) {
            double *hout = hin == ha.p ? hb.p : ha.p, *bout = bin == ba.p ? bb.p : ba.p;
            double vol = 0, are = 0;
#pragma omp parallel reduction(+ : vol, are) if (n * n >= PARALLEL_FROM)
            {
                const int T = omp_get_num_threads(), t = omp_get_thread_num();
                const int64_t first = 1 + (n - 2) * t / T, end = 1 + (n - 2) * (t + 1) / T;
                std::vector<double> two(2 * n);
                double *up = &two[0], *down = &two[n];
                diff_row(n, hin + (first - 1) * n, bin + (first - 1) * n, up);
                for (int64_t i = first; i < end; i++) {
                    const double *__restrict h = hin + i * n, *__restrict b = bin + i * n;
                    const double *__restrict b0 = bed0.p + i * n;
                    double *__restrict ho = hout + i * n, *__restrict bo = bout + i * n;
                    const double *__restrict u = up;
                    const double *__restrict w = down;
                    diff_row(n, h, b, down);
#pragma omp simd reduction(+ : vol, are)
                    for (int64_t j = 1; j < n - 1; j++) {
                        double s = b[j] + h[j];
                        double e = 0.5 * (u[j] + w[j]) * ((b[j + 1] + h[j + 1] - s) / DX);
                        double wst = 0.5 * (u[j - 1] + w[j - 1]) * ((s - (b[j - 1] + h[j - 1])) / DX);
                        double so = 0.5 * (w[j - 1] + w[j]) * ((b[j + n] + h[j + n] - s) / DX);
                        double no = 0.5 * (u[j - 1] + u[j]) * ((s - (b[j - n] + h[j - n])) / DX);
                        double x = h[j] + DT * ((e - wst) / DX + (so - no) / DX);
                        x += DT * lower(RATE * (s - ELA), MOST);
                        x = x < 0.0 ? 0.0 : x;
                        ho[j] = x;
                        bo[j] = b[j] + SINK * (b0[j] - DENSITY * x - b[j]);
                        vol += x;
                        are += x > 0.01 ? 1.0 : 0.0;
                    }
                    for (int64_t j : {int64_t(0), n - 1}) {
                        ho[j] = 0.0;
                        bo[j] = b[j] + SINK * (b0[j] - DENSITY * 0.0 - b[j]);
                    }
                    std::swap(up, down);
                }
            }
            for (int64_t i : {int64_t(0), n - 1})
                for (int64_t q = i * n; q < (i + 1) * n; q++) {
                    hout[q] = 0.0;
                    bout[q] = bin[q] + SINK * (bed0[q] - DENSITY * 0.0 - bin[q]);
                }
            volumes[k] = vol;
            areas[k] = are;
            hin = H = hout;
            bin = B = bout;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("h", H, n * n);
        c.add("bed", B, n * n);
        c.add("volumes", volumes.data(), steps);
        c.add("areas", areas.data(), steps);
    });
}
