"""Numba peer of q05: a member's whole step is local; two loops a step."""

from functools import partial

import numpy as np
from common import rnd, run_numba, total
from nb import inl, rjit
from numba import prange


@inl
def tend(k, x):
    k[0] = (x[1] - x[38]) * x[39] - x[0] + 8.0
    k[1] = (x[2] - x[39]) * x[0] - x[1] + 8.0
    for j in range(2, 39):
        k[j] = (x[j + 1] - x[j - 2]) * x[j - 1] - x[j] + 8.0
    k[39] = (x[0] - x[37]) * x[38] - x[39] + 8.0


@rjit
def rk(x, h, parts):
    n = x.shape[0]
    for t in prange(2):
        k, mid, tot = np.empty(40), np.empty(40), np.empty(40)
        part = parts[t]
        part[:] = 0.0
        for m in range(t * n // 2, (t + 1) * n // 2):
            y = x[m]
            tend(k, y)
            for j in range(40):
                tot[j] = k[j]
                mid[j] = y[j] + 0.5 * h * k[j]
            tend(k, mid)
            for j in range(40):
                tot[j] += 2.0 * k[j]
                mid[j] = y[j] + 0.5 * h * k[j]
            tend(k, mid)
            for j in range(40):
                tot[j] += 2.0 * k[j]
                mid[j] = y[j] + h * k[j]
            tend(k, mid)
            for j in range(40):
                y[j] += h / 6.0 * (tot[j] + k[j])
                part[j] += y[j]


@rjit
def var(x, mean):
    s = 0.0
    for m in prange(x.shape[0]):
        for j in range(40):
            d = x[m, j] - mean[j]
            s += d * d
    return s


@rjit
def inflate(x, mean, f):
    for m in prange(x.shape[0]):
        for j in range(40):
            x[m, j] += f * (x[m, j] - mean[j])


def setup(members):
    n = members * 40
    x = (8.0 * np.sin(np.arange(n) % 40) + rnd(n, 9)).reshape(members, 40)
    return [x, np.zeros(40), 0.0, np.zeros((2, 40))]


def step(s):
    x = s[0]
    for _ in range(3):
        rk(x, 0.01, s[3])
        s[1] = s[3].sum(axis=0) / len(x)
        s[2] = (var(x, s[1]) / x.size) ** 0.5
        if s[2] < 0.3:
            inflate(x, s[1], 0.05 * (0.3 - s[2]) / s[2])


def checksum(s):
    return total({"x": s[0], "m": s[1], "s": s[2]})


run_numba = partial(run_numba, setup, step, checksum)
