#include "vector_maths.h"

static const int CELLS = CLASSES * FEATURES;
static const long BLOCK = 256;

extern "C" void run(long rows, const double* __restrict x, const int* __restrict y,
                    double* __restrict mean, double* __restrict variance, int* __restrict label,
                    double* __restrict certainty, double* result) {
    double counts[CLASSES] = {0}, sums[CELLS] = {0}, squares[CELLS] = {0};
    double inverse[CELLS], prior[CLASSES];
    long hits = 0;
#pragma omp parallel for schedule(static) reduction(+ : counts[:CLASSES], sums[:CELLS])
    for (long i = 0; i < rows; ++i) {
        double* __restrict mine = sums + y[i] * FEATURES;
        counts[y[i]] += 1;
#pragma omp simd
        for (int f = 0; f < FEATURES; ++f) mine[f] += x[i * FEATURES + f];
    }
    for (int k = 0; k < CELLS; ++k) mean[k] = sums[k] / counts[k / FEATURES];
#pragma omp parallel for schedule(static) reduction(+ : squares[:CELLS])
    for (long i = 0; i < rows; ++i) {
        double* __restrict mine = squares + y[i] * FEATURES;
        const double* __restrict middle = mean + y[i] * FEATURES;
#pragma omp simd
        for (int f = 0; f < FEATURES; ++f) {
            const double distance = x[i * FEATURES + f] - middle[f];
            mine[f] += distance * distance;
        }
    }
    for (int c = 0; c < CLASSES; ++c) {
        prior[c] = log(counts[c] / rows);
        for (int k = c * FEATURES; k < (c + 1) * FEATURES; ++k) {
            variance[k] = squares[k] / counts[c] + SMOOTHING;
            inverse[k] = 1.0 / variance[k];
            prior[c] -= 0.5 * log(6.283185307179586 * variance[k]);
        }
    }
#pragma omp parallel for schedule(static) reduction(+ : hits)
    for (long begin = 0; begin < rows; begin += BLOCK) {
        const long length = begin + BLOCK < rows ? BLOCK : rows - begin;
        double joint[CLASSES][BLOCK];
        for (long k = 0; k < length; ++k) {
            const double* __restrict row = x + (begin + k) * FEATURES;
            for (int c = 0; c < CLASSES; ++c) {
                double value = 0;
#pragma omp simd reduction(+ : value)
                for (int f = 0; f < FEATURES; ++f) {
                    const double distance = row[f] - mean[c * FEATURES + f];
                    value += distance * distance * inverse[c * FEATURES + f];
                }
                joint[c][k] = prior[c] - 0.5 * value;
            }
        }
#pragma omp simd reduction(+ : hits)
        for (long k = 0; k < length; ++k) {
            double top = joint[0][k], total = 0;
            int best = 0;
#pragma GCC unroll 16
            for (int c = 1; c < CLASSES; ++c) {
                best = joint[c][k] > top ? c : best;
                top = joint[c][k] > top ? joint[c][k] : top;
            }
#pragma GCC unroll 16
            for (int c = 0; c < CLASSES; ++c) total += exp(joint[c][k] - top);
            label[begin + k] = best;
            certainty[begin + k] = 1.0 / total;
            hits += best == y[begin + k];
        }
    }
    *result = hits;
}
