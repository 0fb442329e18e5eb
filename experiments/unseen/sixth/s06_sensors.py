"""Describing and cleaning a table of sensors [n][4]: moments, clipping, correlations."""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 2_000, "default": 120_000, "large": 2_500_000}
BINS, LIMIT = 64, 2.5


@pk.workunit
def column_sum(i, acc, x, c):
    acc += x[i][c]


@pk.workunit
def centre(i, d, x, c, mean):
    d[i][c] = x[i][c] - mean


@pk.workunit
def power2(i, acc, d, c):
    acc += d[i][c] * d[i][c]


@pk.workunit
def power3(i, acc, d, c):
    acc += d[i][c] * d[i][c] * d[i][c]


@pk.workunit
def power4(i, acc, d, c):
    acc += d[i][c] * d[i][c] * d[i][c] * d[i][c]


@pk.workunit
def standardise(i, z, d, c, inverse):
    z[i][c] = d[i][c] * inverse


@pk.workunit
def winsorise(i, z, limit):
    for c in range(4):
        z[i][c] = min(max(z[i][c], -limit), limit)


@pk.workunit
def product_sum(i, acc, z, a, b):
    acc += z[i][a] * z[i][b]


@pk.workunit
def norms(i, score, z):
    s: float = 0.0
    for c in range(4):
        s += z[i][c] * z[i][c]
    score[i] = s


@pk.workunit
def outliers(i, acc: pk.Acc[pk.int64], score, limit):
    if score[i] > limit:
        acc += 1


@pk.workunit
def zero(i, h):
    h[i] = 0


@pk.workunit
def histogram(i, h, z, c, limit, bins):
    b: int = int((z[i][c] + limit) / (2.0 * limit) * bins)
    pk.atomic_add(h, [min(max(b, 0), bins - 1)], 1)


@dataclass
class State:
    n: int
    x: pk.View
    z: pk.View
    score: pk.View
    h: pk.View
    stats: dict = field(default_factory=dict)


def setup(size):
    r = rnd(4 * size, 9).reshape(size, 4)
    x = np.stack([5 + r[:, 0] + r[:, 1], r[:, 1] ** 2 * 3, r[:, 2] - r[:, 0], r[:, 3] ** 8 * 40], 1)
    return State(
        size,
        view(x),
        view(np.zeros_like(x)),
        view(np.zeros(size)),
        view(np.zeros(BINS, np.int64), pk.int64),
    )


def run(s):
    n, st = s.n, s.stats
    d = pk.View([n, 4], pk.double)
    for c in range(4):
        mean = pk.parallel_reduce(n, column_sum, x=s.x, c=c) / n
        pk.parallel_for(n, centre, d=d, x=s.x, c=c, mean=mean)
        m2 = pk.parallel_reduce(n, power2, d=d, c=c) / n
        m3 = pk.parallel_reduce(n, power3, d=d, c=c) / n
        m4 = pk.parallel_reduce(n, power4, d=d, c=c) / n
        std = m2**0.5
        pk.parallel_for(n, standardise, z=s.z, d=d, c=c, inverse=1.0 / std)
        st[f"mean{c}"], st[f"std{c}"], st[f"skew{c}"], st[f"kurt{c}"] = (
            mean,
            std,
            m3 / (std * m2),
            m4 / (m2 * m2) - 3.0,
        )
    pk.parallel_for(n, winsorise, z=s.z, limit=LIMIT)
    for a in range(4):
        for b in range(a):
            st[f"corr{a}{b}"] = pk.parallel_reduce(n, product_sum, z=s.z, a=a, b=b) / n
    pk.parallel_for(n, norms, score=s.score, z=s.z)
    st["outliers"] = pk.parallel_reduce(n, outliers, score=s.score, limit=9.0)
    pk.parallel_for(BINS, zero, h=s.h)
    pk.parallel_for(n, histogram, h=s.h, z=s.z, c=0, limit=LIMIT, bins=BINS)


def outputs(s):
    return {
        "z": np.array(s.z.data),
        "score": np.array(s.score.data),
        "h": np.array(s.h.data),
        **{k: float(v) for k, v in s.stats.items()},
    }


if __name__ == "__main__":
    main(globals())
