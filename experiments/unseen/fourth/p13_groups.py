"""Robust correlations of six columns: z-scores within groups of rows, winsorised, then moments."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 1500, "default": 1_500_000, "large": 3_500_000}
COLUMNS, LIMIT = 6, 1.4


@pk.workunit
def group_mean(g, mean, x, start):
    total = 0.0
    for k in range(start[g], start[g + 1]):
        total += x[k]
    mean[g] = total / (start[g + 1] - start[g])


@pk.workunit
def group_spread(g, spread, mean, x, start):
    total = 0.0
    for k in range(start[g], start[g + 1]):
        d = x[k] - mean[g]
        total += d * d
    spread[g] = pk.sqrt(total / (start[g + 1] - start[g])) + 1e-9


@pk.workunit
def standardise(i, z, x, group, mean, spread):
    z[i] = (x[i] - mean[group[i]]) / spread[group[i]]


@pk.workunit
def winsorise(i, z, limit):
    z[i] = min(max(z[i], -limit), limit)


@pk.workunit
def sum1(i, acc, z):
    acc += z[i]


@pk.workunit
def sum2(i, acc, a, b):
    acc += a[i] * b[i]


@pk.workunit
def score(i, s, z, weight):
    s[i] += weight * z[i]


@pk.workunit
def clear(i, s):
    s[i] = 0.0


@pk.workunit
def unusual(i, acc: pk.Acc[pk.int64], s, limit):
    if abs(s[i]) > limit:
        acc += 1


@dataclass
class State:
    n: int
    groups: int
    start: pk.View
    group: pk.View
    x: list
    s: pk.View
    corr: np.ndarray = None
    count: int = 0


def setup(n):
    sizes = 20 + (41.0 * rnd(n // 20 + 2, 120)).astype(np.int64)
    ends = np.cumsum(sizes)
    groups = int(np.searchsorted(ends, n)) + 1
    starts = np.concatenate([[0], ends[: groups - 1], [n]])
    start, group = pk.View([groups + 1], pk.int32), pk.View([n], pk.int32)
    start.data[:] = starts
    group.data[:] = np.repeat(np.arange(groups), np.diff(starts))
    x = [pk.View([n], pk.double) for _ in range(COLUMNS)]
    shared = rnd(n, 130)
    for c, v in enumerate(x):
        v.data[:] = 0.3 * c * shared + rnd(n, 131 + c) + 0.01 * (group.data % 10)
    return State(n, groups, start, group, x, pk.View([n], pk.double))


def run(s):
    n, z = s.n, [pk.View([s.n], pk.double) for _ in range(COLUMNS)]
    for c in range(COLUMNS):
        mean, spread = pk.View([s.groups], pk.double), pk.View([s.groups], pk.double)
        pk.parallel_for(s.groups, group_mean, mean=mean, x=s.x[c], start=s.start)
        pk.parallel_for(s.groups, group_spread, spread=spread, mean=mean, x=s.x[c], start=s.start)
        pk.parallel_for(n, standardise, z=z[c], x=s.x[c], group=s.group, mean=mean, spread=spread)
        pk.parallel_for(n, winsorise, z=z[c], limit=LIMIT)
    sums = [pk.parallel_reduce(n, sum1, z=v) for v in z]
    pairs = [(a, b) for a in range(COLUMNS) for b in range(a + 1)]
    cross = [pk.parallel_reduce(n, sum2, a=z[a], b=z[b]) for a, b in pairs]
    mean = np.array([float(v) for v in sums]) / n
    cov = np.zeros((COLUMNS, COLUMNS))
    for (a, b), v in zip(pairs, cross):
        cov[a, b] = cov[b, a] = float(v) / n - mean[a] * mean[b]
    d = np.sqrt(np.diag(cov))
    s.corr = cov / np.outer(d, d)
    pk.parallel_for(n, clear, s=s.s)
    for c in range(COLUMNS):
        pk.parallel_for(n, score, s=s.s, z=z[c], weight=float(s.corr[c].sum()) / COLUMNS)
    s.count = int(pk.parallel_reduce(n, unusual, s=s.s, limit=2.0))


def outputs(s):
    return {"corr": s.corr, "s": np.array(s.s.data), "count": float(s.count)}


def check(s, size, runs):
    np.testing.assert_allclose(np.diag(s.corr), 1.0)


if __name__ == "__main__":
    main(globals())
