"""Numba peer of p11: two loops an octave down, one up."""

from functools import partial
from math import sqrt

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import inl, jit, rjit

OCTAVES = 4


@inl
def low_at(x, i, n):
    a = x[max(i - 3, 0)] + x[min(i + 3, n - 1)]
    b = x[max(i - 1, 0)] + x[min(i + 1, n - 1)]
    return 0.5 * x[i] + 0.28125 * b - 0.03125 * a


@rjit
def split(band, x, x2):
    n = len(x)
    p = 0.0
    for k in prange(n // 2):
        if k < 2 or k > n // 2 - 3:
            u, v = low_at(x, 2 * k, n), low_at(x, 2 * k + 1, n)
        else:
            i = 2 * k
            u = 0.5 * x[i] + 0.28125 * (x[i - 1] + x[i + 1]) - 0.03125 * (x[i - 3] + x[i + 3])
            v = 0.5 * x[i + 1] + 0.28125 * (x[i] + x[i + 2]) - 0.03125 * (x[i - 2] + x[i + 4])
        x2[k] = u
        a, b = x[2 * k] - u, x[2 * k + 1] - v
        band[2 * k], band[2 * k + 1] = a, b
        p += a * a + b * b
    return p


@jit
def level(out, band, p):
    n = len(band)
    lev = sqrt(p / n)
    for i in prange(n):
        t = 0.0
        if i < 4 or i >= n - 4:
            for k in range(-4, 5):
                t += abs(band[min(max(i + k, 0), n - 1)])
        else:
            for k in range(-4, 5):
                t += abs(band[i + k])
        e = t / 9.0
        out[i] = band[i] * (sqrt(lev / e) if e > lev else 1.0)


@rjit
def join(band, coarse):
    n = len(coarse)
    p = 0.0
    for k in prange(n):
        a = band[2 * k] + coarse[k]
        b = band[2 * k + 1] + 0.5 * (coarse[k] + coarse[min(k + 1, n - 1)])
        band[2 * k], band[2 * k + 1] = a, b
        p += a * a + b * b
    return p


@jit
def normalise(out, p):
    f = sqrt(p / len(out))
    for i in prange(len(out)):
        out[i] = out[i] / f


def setup(n):
    t = np.arange(n)
    x = (
        rnd(n, 100)
        - 0.5
        + 0.5 * ((t // 64) % 3 - 1.0)
        + 0.8 * ((t % 4096) < 300) * (rnd(n, 101) - 0.5)
    )
    return [
        x,
        [np.empty(n >> k) for k in range(OCTAVES)],
        [np.empty(n >> k + 1) for k in range(OCTAVES)],
        np.empty(n),
        None,
    ]


def step(s):
    x, outs, xs, raw, _ = s
    powers = []
    for k in range(OCTAVES):
        band = raw[: len(x)]
        p = split(band, x, xs[k])
        level(outs[k], band, p)
        powers.append(p)
        x = xs[k]
    for k in reversed(range(OCTAVES)):
        p = join(outs[k], x)
        x = outs[k]
    normalise(x, p)
    s[4] = np.array([*powers, p])


def checksum(s):
    return total({"o": s[1][0], "l": s[4]})


run_numba = partial(run_numba, setup, step, checksum)
