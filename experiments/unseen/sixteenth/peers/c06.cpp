// Robot arms: an iteration is one pass over blocks of arms, vectorised over the arms of a block. It
// writes the new angles to the other buffer, as the old ones stay if all arms have arrived.
#include "common.hpp"

extern "C" {
__attribute__((simd("notinbranch"))) double sin(double) noexcept;
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
__attribute__((const)) double sqrt(double) noexcept;  // no errno: it can be vectorised
}

static constexpr int J = 6, ITERATIONS = 6, B = 64;
static constexpr double TURN = 0.5;

using Block = double[B];

// The damped least squares of a block.
static void update(
    Block *__restrict a, const Block *__restrict lx, const Block *__restrict ly, const Block *__restrict e,
    const double *__restrict low, const double *__restrict high, double damping, double longest) {
#pragma omp simd
    for (int i = 0; i < B; i++) {
        const double size = sqrt(e[0][i] * e[0][i] + e[1][i] * e[1][i] + e[2][i] * e[2][i]);
        const double by = size > longest ? longest / size : 1.0;
        double jx[J], jy[J], x = 0, y = 0;  // rows of the Jacobian: -jy, jx, TURN
        double m00 = damping, m10 = 0, m11 = damping, m20 = 0, m21 = 0, m22 = damping;
        for (int j = J - 1; j >= 0; j--) x += lx[j][i], y += ly[j][i], jx[j] = x, jy[j] = -y;
        for (int j = 0; j < J; j++) {
            m00 += jy[j] * jy[j], m10 += jx[j] * jy[j], m11 += jx[j] * jx[j];
            m20 += TURN * jy[j], m21 += TURN * jx[j], m22 += TURN * TURN;
        }
        m00 = sqrt(m00), m10 /= m00, m20 /= m00;
        m11 = sqrt(m11 - m10 * m10), m21 = (m21 - m20 * m10) / m11;
        m22 = sqrt(m22 - m20 * m20 - m21 * m21);
        double y0 = e[0][i] * by / m00, y1 = (e[1][i] * by - m10 * y0) / m11;
        double y2 = (e[2][i] * by - m20 * y0 - m21 * y1) / m22;
        y2 /= m22, y1 = (y1 - m21 * y2) / m11, y0 = (y0 - m10 * y1 - m20 * y2) / m00;
        for (int j = 0; j < J; j++) {
            const double next = a[j][i] + (jy[j] * y0 + jx[j] * y1 + TURN * y2), least = low[j], most = high[j];
            const double above = next < least ? least : next;
            a[j][i] = above > most ? most : above;
        }
    }
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    const double damping = d.number("damping"), longest = d.number("longest");
    auto length = d.array<double>("length"), low = d.array<double>("low"), high = d.array<double>("high");
    auto goal = d.array<double>("goal"), q0 = d.array<double>("q0");
    Array<double> qa(n * J), qb(n * J), tip(n * 3), history(ITERATIONS);
    double *q = nullptr;
    auto run = [&] {
        const double *from = q0.p;
        double *to = qa.p;
        for (int it = 0; it < ITERATIONS; it++) {
            double far = 0;
#pragma omp parallel for if (n * J >= PARALLEL_FROM) schedule(static) reduction(+ : far)
            for (int64_t block = 0; block < n; block += B) {
                const int64_t m = std::min<int64_t>(B, n - block);
                alignas(64) double a[J][B], head[B], lx[J][B], ly[J][B], e[3][B], tp[3][B], goals[3][B];
                for (int64_t i = 0; i < B; i++) {
                    const int64_t arm = block + std::min(i, m - 1);
                    for (int j = 0; j < J; j++) a[j][i] = from[arm * J + j];
                    for (int r = 0; r < 3; r++) goals[r][i] = goal[arm * 3 + r];
                    head[i] = 0, tp[0][i] = 0, tp[1][i] = 0;
                }
                for (int j = 0; j < J; j++) {
                    const double l = length[j];
#pragma omp simd
                    for (int i = 0; i < B; i++) head[i] += a[j][i], lx[j][i] = l * cos(head[i]), tp[0][i] += lx[j][i];
#pragma omp simd  // apart from the other: g++ makes a scalar sincos of both
                    for (int i = 0; i < B; i++) ly[j][i] = l * sin(head[i]), tp[1][i] += ly[j][i];
                }
#pragma omp simd
                for (int i = 0; i < B; i++) {
                    tp[2][i] = TURN * head[i];
                    for (int r = 0; r < 3; r++) e[r][i] = goals[r][i] - tp[r][i];
                }
                for (int64_t i = 0; i < m; i++)
                    for (int r = 0; r < 3; r++) far += e[r][i] * e[r][i], tip[(block + i) * 3 + r] = tp[r][i];
                update(a, lx, ly, e, low.p, high.p, damping, longest);
                for (int64_t i = 0; i < m; i++)
                    for (int j = 0; j < J; j++) to[(block + i) * J + j] = a[j][i];
            }
            far /= n;
            history[it] = far;
            q = const_cast<double *>(from);
            if (far < 1e-12) break;
            q = to;
            from = to, to = to == qa.p ? qb.p : qa.p;
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("q", q, n * J);
        s.add("tip", tip.p, n * 3);
        s.add("history", history.p, ITERATIONS);
    });
}
