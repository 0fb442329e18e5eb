// Cepstral coefficients: frame by frame in the cache, spectra vectorised over their bins by tables
// turned beforehand; then the means, then the differences.
#include "common.hpp"

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t frames = d.number("frames"), L = 256, HOP = 100, FILTERS = 20, KEPT = 6;
    constexpr int64_t BINS = 128;
    auto signal = d.array<double>("signal"), window = d.array<double>("window");
    auto cosine = d.array<double>("cosine"), sine = d.array<double>("sine");
    auto weight = d.array<double>("weight"), table = d.array<double>("table");
    Array<double> ct(L * BINS), st(L * BINS), coef(frames * KEPT), deriv(frames * KEPT), energy(frames);
    for (int64_t b = 0; b < BINS; b++)
        for (int64_t t = 0; t < L; t++) ct[t * BINS + b] = cosine[b * L + t], st[t * BINS + b] = sine[b * L + t];
    std::vector<int64_t> lo(FILTERS, BINS), hi(FILTERS, 0);  // where a filter is not zero
    for (int64_t m = 0; m < FILTERS; m++)
        for (int64_t b = 0; b < BINS; b++)
            if (weight[m * BINS + b] != 0.0) lo[m] = std::min(lo[m], b), hi[m] = b + 1;
    double lifted[6];
    for (int64_t c = 0; c < KEPT; c++) lifted[c] = 1.0 + 0.5 * 22.0 * std::sin(M_PI * (c + 1) / 22.0);
    std::vector<double> means(KEPT);
    auto run = [&] {
        const double *x = signal, *w = window;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
        double *C = coef, *D = deriv;
#pragma omp parallel if (frames > 4)
        {
#pragma omp for schedule(static) reduction(+ : s0, s1, s2, s3, s4, s5)
            for (int64_t f = 0; f < frames; f++) {
                alignas(64) double fr[256], re[BINS] = {}, im[BINS] = {};
                double mels[20], e = 0;
                const double *y = x + f * HOP;
                fr[0] = (f == 0 ? y[0] : y[0] - 0.97 * y[-1]) * w[0];
#pragma omp simd
                for (int64_t t = 1; t < L; t++) fr[t] = (y[t] - 0.97 * y[t - 1]) * w[t];
#pragma omp simd reduction(+ : e)
                for (int64_t t = 0; t < L; t++) e += fr[t] * fr[t];
                energy[f] = std::log(e + 1e-10);
                for (int64_t part = 0; part < BINS; part += 16) {  // so the sums stay in registers
                    double a[16] = {}, b[16] = {};
                    const double *c = ct + part, *s = st + part;
                    for (int64_t t = 0; t < L; t++) {
#pragma omp simd
                        for (int64_t q = 0; q < 16; q++) {
                            a[q] += fr[t] * c[t * BINS + q];
                            b[q] += fr[t] * s[t * BINS + q];
                        }
                    }
                    for (int64_t q = 0; q < 16; q++) re[part + q] = a[q], im[part + q] = b[q];
                }
#pragma omp simd
                for (int64_t b = 0; b < BINS; b++) re[b] = (re[b] * re[b] + im[b] * im[b]) / L;
                for (int64_t m = 0; m < FILTERS; m++) {
                    double s = 0;
                    for (int64_t b = lo[m]; b < hi[m]; b++) s += weight[m * BINS + b] * re[b];
                    mels[m] = s + 1e-10;
                }
#pragma omp simd
                for (int64_t m = 0; m < 20; m++) mels[m] = log(mels[m]);
                double *o = C + f * KEPT;
                for (int64_t c = 0; c < KEPT; c++) {
                    double s = 0;
                    for (int64_t m = 0; m < FILTERS; m++) s += table[c * FILTERS + m] * mels[m];
                    o[c] = s * lifted[c];
                }
                s0 += o[0], s1 += o[1], s2 += o[2], s3 += o[3], s4 += o[4], s5 += o[5];
            }
            const double mean[6] = {s0 / frames, s1 / frames, s2 / frames, s3 / frames, s4 / frames, s5 / frames};
#pragma omp for schedule(static)
            for (int64_t f = 0; f < frames; f++)
                for (int64_t c = 0; c < KEPT; c++) C[f * KEPT + c] -= mean[c];
#pragma omp for schedule(static)
            for (int64_t f = 0; f < frames; f++) {
                const double *b = C + std::max<int64_t>(f - 1, 0) * KEPT, *a = C + std::min(f + 1, frames - 1) * KEPT;
                for (int64_t c = 0; c < KEPT; c++) D[f * KEPT + c] = 0.5 * (a[c] - b[c]);
            }
        }
        const double sum[6] = {s0, s1, s2, s3, s4, s5};
        for (int c = 0; c < 6; c++) means[c] = sum[c] / frames;
    };
    bench(run, [&](Checksum &s) {
        s.add("coefficient", coef.p, frames * KEPT);
        s.add("derivative", deriv.p, frames * KEPT);
        s.add("energy", energy.p, frames);
        s.add("means", means.data(), KEPT);
    });
}
