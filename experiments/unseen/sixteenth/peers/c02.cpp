// Principal components of a table: each pass over the rows does all that its sums allow. A row has
// eight doubles; scores are stored only when they are final.
#include "common.hpp"

static constexpr int C = 8, SWEEPS = 2;
static constexpr double MISSING = -999.0, LIMIT = 4.0;

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto x = d.array<double>("x");
    Array<double> z(n * C), first(n), second(n), t2(n), q(n), loadings(2 * C);
    Array<int32_t> strange(n);
    double found = 0;
    auto run = [&] {
        const bool par = n * C >= PARALLEL_FROM;
        double sum[C] = {}, count[C] = {}, square[C] = {}, mean[C], sd[C];
#pragma omp parallel for if (par) schedule(static) reduction(+ : sum[:C], count[:C])
        for (int64_t i = 0; i < n; i++) {
            const double *r = x.p + i * C;
#pragma omp simd
            for (int c = 0; c < C; c++) sum[c] += r[c] > MISSING ? r[c] : 0.0, count[c] += r[c] > MISSING ? 1.0 : 0.0;
        }
        for (int c = 0; c < C; c++) mean[c] = sum[c] / count[c];
#pragma omp parallel for if (par) schedule(static) reduction(+ : square[:C])
        for (int64_t i = 0; i < n; i++) {
            const double *r = x.p + i * C;
#pragma omp simd
            for (int c = 0; c < C; c++) {
                const double v = r[c] <= MISSING ? 0.0 : r[c] - mean[c];
                square[c] += v * v;
            }
        }
        for (int c = 0; c < C; c++) sd[c] = std::sqrt(square[c] / n);
        double vars[2], q_sum = 0;
        double *l = loadings.p;
        auto start = [&](int k) {
            l = loadings.p + k * C;
            for (int c = 0; c < C; c++) l[c] = (1.0 + 0.25 * ((c + k) % 3)) / std::sqrt(double(C));
        };
        auto normalise = [&](const double *v) {
            double s = 0;
            for (int c = 0; c < C; c++) s += v[c] * v[c];
            for (int c = 0; c < C; c++) l[c] = v[c] / std::sqrt(s);
        };
        auto project = [](const double *r, const double *v) {
            double t = 0;
#pragma omp simd reduction(+ : t)
            for (int c = 0; c < C; c++) t += r[c] * v[c];
            return t;
        };
        double next[C] = {};
        start(0);
        double v[C];
        std::memcpy(v, l, sizeof v);
#pragma omp parallel for if (par) schedule(static) reduction(+ : next[:C])
        for (int64_t i = 0; i < n; i++) {
            const double *r = x.p + i * C;
            double *o = z.p + i * C, row[C];
#pragma omp simd
            for (int c = 0; c < C; c++) {
                const double a = (r[c] <= MISSING ? 0.0 : r[c] - mean[c]) / sd[c];
                row[c] = std::min(std::max(a, -6.0), 6.0);
                o[c] = row[c];
            }
            const double t = project(row, v);
#pragma omp simd
            for (int c = 0; c < C; c++) next[c] += row[c] * t;
        }
        for (int k = 0; k < 2; k++) {
            for (int sweep = 1; sweep < SWEEPS; sweep++) {
                normalise(next);
                std::memcpy(v, l, sizeof v);
                std::fill(next, next + C, 0.0);
#pragma omp parallel for if (par) schedule(static) reduction(+ : next[:C])
                for (int64_t i = 0; i < n; i++) {
                    const double *r = z.p + i * C, t = project(r, v);
#pragma omp simd
                    for (int c = 0; c < C; c++) next[c] += r[c] * t;
                }
            }
            normalise(next);
            std::memcpy(v, l, sizeof v);
            std::fill(next, next + C, 0.0);
            double var = 0, follow[C] = {};
            double *score = k ? second.p : first.p;
            if (k == 0) {
                start(1);  // its first sweep is done with the deflation
                std::memcpy(follow, l, sizeof follow);
            }
#pragma omp parallel for if (par) schedule(static) reduction(+ : var, q_sum, next[:C])
            for (int64_t i = 0; i < n; i++) {
                double *r = z.p + i * C, row[C];
                const double t = project(r, v);
                score[i] = t, var += t * t;
#pragma omp simd
                for (int c = 0; c < C; c++) row[c] = r[c] - t * v[c];
                if (k == 0) {
                    const double s = project(row, follow);
#pragma omp simd
                    for (int c = 0; c < C; c++) r[c] = row[c], next[c] += row[c] * s;
                } else {
                    q[i] = project(row, row), q_sum += q[i];
                }
            }
            vars[k] = var / n;
        }
        double t_sum = 0;
#pragma omp parallel for simd if (par) schedule(static) reduction(+ : t_sum)
        for (int64_t i = 0; i < n; i++) {
            const double t = first[i] * first[i] / vars[0] + second[i] * second[i] / vars[1];
            t2[i] = t, t_sum += t;
        }
        const double t_limit = LIMIT * t_sum / n, q_limit = LIMIT * q_sum / n;
        std::vector<int64_t> base(omp_get_max_threads() + 1);
#pragma omp parallel if (par)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads();
            std::vector<int32_t> mine;
            for (int64_t i = n * t / nt; i < n * (t + 1) / nt; i++)
                if (t2[i] > t_limit || q[i] > q_limit) mine.push_back(i);
            base[t + 1] = mine.size();
#pragma omp barrier
#pragma omp single
            {
                for (int64_t k = 0; k < nt; k++) base[k + 1] += base[k];
                found = base[nt];
            }
            std::copy(mine.begin(), mine.end(), strange.p + base[t]);
        }
    };
    bench(run, [&](Checksum &s) {
        s.add("loadings", loadings.p, 2 * C);
        s.add("first", first.p, n);
        s.add("second", second.p, n);
        s.add("t2", t2.p, n);
        s.add("q", q.p, n);
        s.add("strange", strange.p, int64_t(found));
        s.add("found", found);
    });
}
