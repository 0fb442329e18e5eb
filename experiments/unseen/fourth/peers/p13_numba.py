"""Numba peer of p13: a group at a time through all columns and sums; then the scores."""

from functools import partial
from math import sqrt

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import jit, rjit

COLUMNS, LIMIT = 6, 1.4


@rjit
def moments(z, x, start):
    groups, p = len(start) - 1, 8
    parts = np.zeros((p, COLUMNS + 1, COLUMNS + 8))
    for t in prange(p):
        acc = parts[t]
        for g in range(groups * t // p, groups * (t + 1) // p):
            lo, hi = start[g], start[g + 1]
            for c in range(COLUMNS):
                m = 0.0
                for k in range(lo, hi):
                    m += x[c, k]
                m /= hi - lo
                v = 0.0
                for k in range(lo, hi):
                    v += (x[c, k] - m) * (x[c, k] - m)
                sd = sqrt(v / (hi - lo)) + 1e-9
                s = 0.0
                for k in range(lo, hi):
                    w = min(max((x[c, k] - m) / sd, -LIMIT), LIMIT)
                    z[c, k] = w
                    s += w
                acc[COLUMNS, c] += s
                for b in range(c + 1):
                    s = 0.0
                    for k in range(lo, hi):
                        s += z[c, k] * z[b, k]
                    acc[c, b] += s
    return parts.sum(0)


@rjit
def scores(s, z, w):
    count = 0
    for i in prange(len(s)):
        v = 0.0
        for c in range(COLUMNS):
            v += w[c] * z[c, i]
        s[i] = v
        count += abs(v) > 2.0
    return count


def setup(n):
    sizes = 20 + (41.0 * rnd(n // 20 + 2, 120)).astype(np.int64)
    ends = np.cumsum(sizes)
    groups = int(np.searchsorted(ends, n)) + 1
    starts = np.concatenate([[0], ends[: groups - 1], [n]])
    group = np.repeat(np.arange(groups), np.diff(starts))
    shared = rnd(n, 130)
    x = np.stack([0.3 * c * shared + rnd(n, 131 + c) + 0.01 * (group % 10) for c in range(COLUMNS)])
    return [x, starts, np.empty_like(x), np.empty(n), None, 0]


def step(st):
    x, start, z, s, _, _ = st
    n = x.shape[1]
    acc = moments(z, x, start) / n
    mean = acc[COLUMNS, :COLUMNS]
    low = np.tril(acc[:COLUMNS, :COLUMNS])
    cov = low + np.tril(low, -1).T - np.outer(mean, mean)
    d = np.sqrt(np.diag(cov))
    st[4] = cov / np.outer(d, d)
    st[5] = scores(s, z, st[4].sum(1) / COLUMNS)


def checksum(s):
    return total({"c": s[4], "s": s[3], "n": s[5]})


run_numba = partial(run_numba, setup, step, checksum)
