#include "common.h"
int main(int, char **argv) { folder = argv[1]; long n = atol(argv[2]);
    auto Vx = load<double>("vx"), Vy = load<double>("vy"), Txx = load<double>("txx"), Tyy = load<double>("tyy"), Txy = load<double>("txy");
    auto Rho = load<double>("rho"), Lam = load<double>("lam"), Mu = load<double>("mu"), G = load<double>("g");
    auto places = load<int>("places"); auto rec = load<double>("record");
    const double dt = 0.05; double energy[4];
    double *vx = Vx.data(), *vy = Vy.data(), *txx = Txx.data(), *tyy = Tyy.data(), *txy = Txy.data(); const double *rho = Rho.data(), *lam = Lam.data(), *mu = Mu.data(), *g = G.data();
    // arrays at different places of a page: at one place all rows fall into the same sets of the cache (3.5 times slower)
    int slot = 0; auto stagger = [&](auto *&p) { double *b = (double *)aligned_alloc(4096, (n * n * 8 / 4096 + 3) * 4096) + 40 * ++slot; memcpy(b, p, n * n * 8); p = b; };
    stagger(vx); stagger(vy); stagger(txx); stagger(tyy); stagger(txy); stagger(rho); stagger(lam); stagger(mu);
    auto velocity = [&](long i) { if (i < 1 || i > n - 2) return;
#pragma omp simd
        for (long j = 1; j < n - 1; j++) { long q = i * n + j;
            vx[q] += dt * ((txx[q + n] - txx[q]) + (txy[q] - txy[q - 1])) / rho[q];
            vy[q] += dt * ((txy[q] - txy[q - n]) + (tyy[q + 1] - tyy[q])) / rho[q]; } };
    auto stress = [&](long i, double push) {
        if (i >= 1 && i <= n - 2)
#pragma omp simd
        for (long j = 1; j < n - 1; j++) { long q = i * n + j;
            double xx = vx[q] - vx[q - n], yy = vy[q] - vy[q - 1], l = lam[q], m = mu[q];
            txx[q] += dt * ((l + 2 * m) * xx + l * yy);
            tyy[q] += dt * ((l + 2 * m) * yy + l * xx);
            txy[q] += dt * m * ((vx[q + 1] - vx[q]) + (vy[q + n] - vy[q])); }
        for (int p = 0; p < 3; p++) if (places[2 * p] == i) { long q = i * n + places[2 * p + 1]; txx[q] += push; tyy[q] += push; } };
    auto sponge = [&](long i) { double e = 0;
#pragma omp simd reduction(+ : e)
        for (long j = 0; j < n; j++) { long q = i * n + j; double w = g[i] * g[j];
            vx[q] *= w; vy[q] *= w; txx[q] *= w; tyy[q] *= w; txy[q] *= w;
            e += 0.5 * rho[q] * (vx[q] * vx[q] + vy[q] * vy[q]); }
        return e; };
    auto run = [&] {
        for (int k = 0; k < 4; k++) {
            double e = 0, a = M_PI * 0.4 * (k * dt - 0.1); a *= a; double push = (1 - 2 * a) * exp(-a);
#pragma omp parallel reduction(+ : e)
            {   // rows in a pipeline: velocity, stress a row behind, sponge two; rows at the ends of a thread apart
                int t = omp_get_thread_num(), T = omp_get_num_threads(); long lo = n * t / T, hi = n * (t + 1) / T;
                velocity(lo); velocity(hi - 1);
#pragma omp barrier
                for (long i = lo + 1; i < hi; i++) {
                    if (i < hi - 1) velocity(i);
                    stress(i - 1, push);
                    if (i - 2 > lo) e += sponge(i - 2);
                }
                stress(hi - 1, push);
                if (hi - 2 > lo) e += sponge(hi - 2);
#pragma omp barrier
                e += sponge(lo) + sponge(hi - 1);
            }
            memcpy(&rec[k * n], &vy[2 * n], n * 8);
            energy[k] = e;
        }
    };
    auto S = [&](const double *p) { double s = 0; for (long q = 0; q < n * n; q++) s += p[q]; return s; };
    return bench(run, [&] { return S(vx) + S(vy) + S(txx) + S(tyy) + S(txy) + sum(rec) + energy[0] + energy[1] + energy[2] + energy[3]; });
}
