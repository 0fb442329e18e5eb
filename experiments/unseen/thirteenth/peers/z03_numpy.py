"""The swarm in plain NumPy: whole-array operations, buffers that are kept."""

import numpy as np

MASK, OWN, COMMON = np.int64((1 << 32) - 1), 1.6, 1.5


def solve(n, steps, time, market, weight, low, high):
    seeds = np.arange(n, dtype=np.int64)[:, None] * 747796405 + np.arange(6, dtype=np.int64) * 40503
    h, k = np.empty((n, 6), np.int64), np.empty((n, 6), np.int64)

    def uniform(counter):
        np.add(seeds, counter, out=h)
        np.bitwise_and(h, MASK, out=h)
        for shift, factor in ((16, 2146121005), (15, 1845390219)):
            np.right_shift(h, shift, out=k)
            np.bitwise_xor(h, k, out=h)
            np.multiply(h, factor, out=h)
            np.bitwise_and(h, MASK, out=h)
        np.right_shift(h, 16, out=k)
        np.bitwise_xor(h, k, out=h)
        return (h + 0.5) * 2.3283064365386963e-10

    x = low + uniform(977) * (high - low)
    v, place, best = np.zeros_like(x), np.zeros_like(x), np.full(n, 1e300)
    most = 0.2 * (high - low)
    leaders, means, improvements = [], [], []
    for step in range(steps):
        b0, b1, b2, b3, tau1, tau2 = (x[:, j : j + 1] for j in range(6))
        a1, a2 = time / tau1, time / tau2
        e1, e2 = np.exp(-a1), np.exp(-a2)
        f1 = np.subtract(1.0, e1)
        f1 /= a1
        f2 = np.subtract(1.0, e2, out=a1)
        f2 /= a2
        f2 -= e2
        f2 *= b3
        np.subtract(f1, e1, out=e1)
        e1 *= b2
        f1 *= b1
        f1 += b0
        f1 += e1
        f1 += f2
        f1 *= -time
        np.exp(f1, out=f1)
        f1 -= market
        f1 *= f1
        cost = f1 @ weight
        short = x[:, 0] + x[:, 1]
        cost += np.where(short < 0.0, 10.0 * short * short, 0.0)
        cost += 0.01 * np.maximum(x[:, 4] - x[:, 5], 0.0)
        better = cost < best
        best[better] = cost[better]
        place[better] = x[better]
        improvements.append(int(np.count_nonzero(better)))
        means.append(float(cost.sum()) / n)
        leader = int(np.argmin(best))
        leaders.append(float(best[leader]))
        r, s = (uniform(977 + 7919 * (2 * step + stream)) for stream in (1, 2))
        v *= 0.9 - 0.5 * step / steps
        r *= OWN
        r *= place - x
        v += r
        s *= COMMON
        s *= place[leader] - x
        v += s
        np.clip(v, -most, most, out=v)
        x += v
        under, over = x < low, x > high
        np.copyto(x, 2.0 * low - x, where=under)
        np.copyto(x, 2.0 * high - x, where=over)
        np.negative(v, out=v, where=under | over)
    return {
        "x": x,
        "best": best,
        "leaders": np.array(leaders),
        "means": np.array(means),
        "improvements": np.array(improvements),
    }


if __name__ == "__main__":
    from numpy_common import bench

    names = ("n", "steps", "time", "market", "weight", "low", "high")
    bench(lambda state: solve(*(state[name] for name in names)))
