// Wildfire: one fused sweep a step, in floats.
#include "common.hpp"

static const float DIFFUSION = 0.125f, WX = 0.1875f, WY = 0.0625f, COOLING = 0.03125f, DRYING = 0.02f,
                   KINDLING = 0.4f, WETNESS = 0.8f, BURNING = 0.06f, HEATING = 8.0f, LEAST = 0.05f;

struct Row { const float *h, *fin, *win; const uint8_t *pin; float *after, *fout, *wout; uint8_t *pout; };

static inline int cell(const float t, float f, float w, int p, float loss, float &fo, float &wo, uint8_t &po) {
    f -= loss;
    w -= DRYING * t;
    w = w < 0 ? 0 : w;
    int lit = (p == 0) & (t > KINDLING + WETNESS * w);
    p = lit ? 1 : p;
    int out = (p == 1) & (f < LEAST);
    p = out ? 2 : p;
    fo = f, wo = w, po = p;
    return p == 1;
}

// Blocks of a row: phases are widened to 32 bits in the first cache, so that all is vectors of 32 bits.
template <bool FIRST>
static int inside(int n, Row r) {
    const float *__restrict h = r.h, *__restrict up = h - n, *__restrict down = h + n;
    const int B = 512;
    alignas(64) int32_t phase[B];
    int count = 0;
    for (int from = 1; from < n - 1; from += B) {
        const int m = std::min(B, n - 1 - from);
        const float *fin = r.fin + from, *win = r.win + from, *c0 = h + from, *u0 = up + from, *d0 = down + from;
        float *__restrict after = r.after + from, *fout = r.fout + from, *wout = r.wout + from;
        for (int j = 0; j < m; j++) phase[j] = r.pin[from + j];
#pragma omp simd reduction(+ : count)
        for (int j = 0; j < m; j++) {
            float f = fin[j], w = win[j], t;
            const int p = phase[j];
            const float burnt = BURNING * f, loss = p == 1 ? burnt : 0.0f;
            if (FIRST)
                t = HEATING * loss;
            else {
                float c = c0[j], flux = DIFFUSION * ((u0[j] + d0[j]) + (c0[j - 1] + c0[j + 1]) - 4 * c);
                flux += WX * (c0[j - 1] - c) + WY * (u0[j] - c);
                t = c + flux + HEATING * loss - COOLING * c;
            }
            f -= loss;
            w -= DRYING * t;
            w = w < 0 ? 0 : w;
            const int lit = t > KINDLING + WETNESS * w ? 1 : 0, low = f < LEAST ? 1 : 0;
            const int now = p | (lit & (p == 0 ? 1 : 0));
            const int next = now + (low & (now == 1 ? 1 : 0));
            after[j] = t;
            fout[j] = f;
            wout[j] = w;
            phase[j] = next;
            count += next == 1 ? 1 : 0;
        }
        for (int j = 0; j < m; j++) r.pout[from + j] = phase[j];
    }
    return count;
}

static int rim(int from, int step, int n, Row r) {
    int count = 0;
    for (int j = from; j < n; j += step) {
        float loss = r.pin[j] == 1 ? BURNING * r.fin[j] : 0.0f;
        r.after[j] = 0;
        count += cell(0.0f, r.fin[j], r.win[j], r.pin[j], loss, r.fout[j], r.wout[j], r.pout[j]);
    }
    return count;
}

template <bool FIRST>
static int64_t sweep(int n, const float *heat, float *after, const float *fin, float *fout,
                     const float *win, float *wout, const uint8_t *pin, uint8_t *pout) {
    int64_t burning = 0;
#pragma omp parallel for schedule(static) reduction(+ : burning) if (int64_t(n) * n >= PARALLEL_FROM)
    for (int i = 0; i < n; i++) {
        const int64_t o = int64_t(i) * n;
        Row r{heat + o, fin + o, win + o, pin + o, after + o, fout + o, wout + o, pout + o};
        if (i == 0 || i == n - 1)
            burning += rim(0, 1, n, r);
        else
            burning += rim(0, n - 1, n, r) + inside<FIRST>(n, r);
    }
    return burning;
}

int main(int, char **argv) {
    Dump d(argv[1]);
    const int n = d.number("n"), steps = d.number("steps");
    const int64_t N = int64_t(n) * n;
    auto fuel0 = d.array<float>("fuel0"), wet0 = d.array<float>("wet0");
    auto match = d.array<uint8_t>("match");
    Array<float> fuel(N), wet(N), a(N), b(N);
    Array<uint8_t> phase(N);
    float *heat = a, *after = b;
    std::vector<double> burning;
    auto run = [&] {
        burning.clear();
        for (int k = 0; k < steps; k++) {
            int64_t c = k ? sweep<false>(n, heat, after, fuel, fuel, wet, wet, phase, phase)
                          : sweep<true>(n, heat, after, fuel0, fuel, wet0, wet, match, phase);
            burning.push_back(c);
            std::swap(heat, after);
            if (!c) break;
        }
    };
    bench(run, [&](Checksum &c) {
        c.add("fuel", fuel.p, N);
        c.add("wet", wet.p, N);
        c.add("heat", heat, N);
        c.add("phase", phase.p, N);
        c.add("burning", burning.data(), burning.size());
    });
}
