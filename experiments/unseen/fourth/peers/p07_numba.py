"""Numba peer of p07: one loop a step."""

from functools import partial

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import rjit

STEPS = 6


@rjit
def step1(t2, t1, t0, f, w, start, col, val, first):
    a = 0.0
    b = 0.0
    for i in prange(len(t1)):
        s = 0.0
        for k in range(start[i], start[i + 1]):
            s += val[k] * t1[col[k]]
        x = t1[i]
        if first:
            f[i] = w * x
            t2[i] = s
            b += s * x
        else:
            y = 2.0 * s - t0[i]
            f[i] += w * x
            t2[i] = y
            b += y * x
        a += x * x
    return a, b


def setup(n):
    count = 3 + (6 * rnd(n, 50)).astype(np.int32)
    start = np.zeros(n + 1, np.int32)
    np.cumsum(count, out=start[1:])
    nnz = int(start[-1])
    row = np.repeat(np.arange(n), count)
    col = (row + (2001.0 * rnd(nnz, 51)).astype(np.int64) - 1000 + n * 4) % n
    m = start, col.astype(np.int32), (2.0 * rnd(nnz, 52) - 1.0) / 8.0
    return [m, 2.0 * rnd(n, 53) - 1.0, np.empty(n), [], [np.empty(n) for _ in range(3)]]


def jackson(k, count):
    x = np.pi / (count + 1)
    return float(((count - k + 1) * np.cos(k * x) + np.sin(k * x) / np.tan(x)) / (count + 1))


def step(s):
    m, v, f, _, (a, b, c) = s
    mu = list(step1(a, v, v, f, jackson(0, STEPS), *m, True))
    t0, t1, t2 = v, a, b
    for k in range(STEPS):
        p, q = step1(t2, t1, t0, f, 2.0 * jackson(k, STEPS), *m, False)
        mu += [2.0 * p - mu[0], 2.0 * q - mu[1]]
        t0, t1, t2 = t1, t2, (c if k == 0 else t0)
    s[3] = mu


def checksum(s):
    return total({"f": s[2], "m": s[3]})


run_numba = partial(run_numba, setup, step, checksum)
