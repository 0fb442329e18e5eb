"""Numba peer of p01: three passes a scale."""

from functools import partial
from math import exp, sqrt

import numpy as np
from numba import prange

from common import run_numba, total
from nb import jit, rjit
from in01 import SCALES, picture


@jit
def blur(g, a, s):
    n = a.shape[0]
    for i in prange(n):
        t = np.empty(n)
        u2, u1, d1, d2 = max(i - 2 * s, 0), max(i - s, 0), min(i + s, n - 1), min(i + 2 * s, n - 1)
        for j in range(n):
            t[j] = (a[u2, j] + 4.0 * a[u1, j] + 6.0 * a[i, j] + 4.0 * a[d1, j] + a[d2, j]) / 16.0
        for j in range(min(2 * s, n)):
            g[i, j] = (
                t[max(j - 2 * s, 0)]
                + 4.0 * t[max(j - s, 0)]
                + 6.0 * t[j]
                + 4.0 * t[min(j + s, n - 1)]
                + t[min(j + 2 * s, n - 1)]
            ) / 16.0
        for j in range(2 * s, n - 2 * s):
            g[i, j] = (
                t[j - 2 * s] + 4.0 * t[j - s] + 6.0 * t[j] + 4.0 * t[j + s] + t[j + 2 * s]
            ) / 16.0
        for j in range(max(n - 2 * s, 2 * s), n):
            g[i, j] = (
                t[max(j - 2 * s, 0)]
                + 4.0 * t[max(j - s, 0)]
                + 6.0 * t[j]
                + 4.0 * t[min(j + s, n - 1)]
                + t[min(j + 2 * s, n - 1)]
            ) / 16.0


@rjit
def hessian(small, big, g):
    n = g.shape[0]
    total = 0.0
    for i in prange(n):
        u, d = max(i - 1, 0), min(i + 1, n - 1)
        part = 0.0
        for j in range(n):
            l, r = max(j - 1, 0), min(j + 1, n - 1)
            xx = g[i, l] - 2.0 * g[i, j] + g[i, r]
            yy = g[u, j] - 2.0 * g[i, j] + g[d, j]
            xy = 0.25 * (g[d, r] - g[d, l] - g[u, r] + g[u, l])
            mean, half = 0.5 * (xx + yy), 0.5 * (xx - yy)
            root = sqrt(half * half + xy * xy)
            p, q = mean + root, mean - root
            swap = abs(p) > abs(q)
            a, b = (q if swap else p), (p if swap else q)
            small[i, j] = a
            big[i, j] = b
            part += a * a + b * b
        total += part
    return total


@jit
def measure(best, small, big, total, first):
    n = best.shape[0]
    cells = float(n * n)
    area = 0.0
    for i in prange(n):
        for j in range(n):
            a, b = small[i, j], big[i, j]
            v = 0.0
            if b < 0.0:
                ratio = a / b
                s2 = (a * a + b * b) * cells / total
                v = exp(-2.0 * ratio * ratio) * (1.0 - exp(-0.5 * s2))
            if not first:
                v = max(best[i, j], v)
            best[i, j] = v
            if v > 0.3:
                area += 1.0
    return area


def setup(n):
    return [picture(n), np.empty((n, n)), 0.0, np.empty((n, n)), np.empty((n, n)), np.empty((n, n))]


def step(st):
    image, best, _, g, small, big = st
    for s in SCALES:
        blur(g, image, s)
        st[2] = measure(best, small, big, hessian(small, big, g), s == 1)


def checksum(st):
    return total({"best": st[1], "area": st[2]})


run_numba = partial(run_numba, setup, step, checksum)
