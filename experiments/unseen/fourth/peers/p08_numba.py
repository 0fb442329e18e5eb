"""Numba peer of p08: paths in one loop; backward, a loop of sums and a loop of exercise a date."""

from functools import partial
from math import exp

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import rjit

DATES, RATE, VOL, DT = 6, 0.05, 0.3, 1.0 / 6.0


@rjit
def paths(s, cash, z, drift, vol):
    for i in prange(z.shape[1]):
        v = 1.0
        for t in range(z.shape[0]):
            v *= exp(drift + vol * z[t, i])
            s[t, i] = v
        cash[i] = max(1.0 - v, 0.0)


@rjit
def sums(cash, s, factor):
    m0 = m1 = m2 = m3 = m4 = r0 = r1 = r2 = 0.0
    for i in prange(len(cash)):
        c = cash[i] * factor
        cash[i] = c
        x = 1.0 - s[i]
        f = 1.0 if x > 0.0 else 0.0
        x = x if x > 0.0 else 0.0
        m0 += f
        m1 += x
        m2 += x * x
        m3 += x * x * x
        m4 += x * x * x * x
        r0 += f * c
        r1 += x * c
        r2 += x * x * c
    return m0, m1, m2, m3, m4, r0, r1, r2


@rjit
def exercise(cash, s, a, b, c):
    for i in prange(len(cash)):
        x = 1.0 - s[i]
        if x > 0.0 and x > a + x * (b + c * x):
            cash[i] = x


@rjit
def last(cash, factor):
    v = 0.0
    for i in prange(len(cash)):
        cash[i] *= factor
        v += cash[i]
    return v


def setup(n):
    z = sum(rnd(DATES * n, 60 + k) for k in range(4)).reshape(DATES, n) * 3.0**0.5 - 2.0 * 3.0**0.5
    return [z, np.empty((DATES, n)), np.empty(n), 0.0]


def step(st):
    z, s, cash, _ = st
    factor = float(np.exp(-RATE * DT))
    paths(s, cash, z, (RATE - 0.5 * VOL * VOL) * DT, VOL * DT**0.5)
    for t in range(DATES - 1, 0, -1):
        m = sums(cash, s[t - 1], factor)
        a, b, c = np.linalg.solve([m[0:3], m[1:4], m[2:5]], m[5:8])
        exercise(cash, s[t - 1], a, b, c)
    st[3] = last(cash, factor) / len(cash)


def checksum(s):
    return total({"c": s[2], "v": s[3]})


run_numba = partial(run_numba, setup, step, checksum)
