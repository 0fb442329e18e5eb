"""Numba peer of p03: tallies a thread, then three fused loops a step."""

from functools import partial
from math import atan2, cos, sin, sqrt

import numpy as np
from numba import get_num_threads, prange

from common import rnd, run_numba, total
from nb import jit, rjit

STEPS, SPEED, SCALE = 3, 0.003, 1048576.0


@jit
def tally(parts, cell, x, y, angle, m):
    n, p = len(x), parts.shape[0]
    for t in prange(p):
        parts[t, :, :] = 0
        for i in range(n * t // p, n * (t + 1) // p):
            k = np.int64(y[i] * m) * m + np.int64(x[i] * m)
            cell[i] = k
            parts[t, k, 0] += np.int64(cos(angle[i]) * SCALE)
            parts[t, k, 1] += np.int64(sin(angle[i]) * SCALE)


@jit
def spread(s, parts, m):
    p = parts.shape[0]
    for row in prange(m):
        for col in range(m):
            a = 0
            b = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    k = (row + di + m) % m * m + (col + dj + m) % m
                    for t in range(p):
                        a += parts[t, k, 0]
                        b += parts[t, k, 1]
            s[row * m + col] = atan2(float(b), float(a))


@rjit
def fly(x, y, angle, cell, s, eta, level):
    a = 0.0
    b = 0.0
    for i in prange(len(x)):
        t = s[cell[i]] + level * (eta[i] - 0.5)
        angle[i] = t
        hx, hy = cos(t), sin(t)
        px, py = x[i] + SPEED * hx, y[i] + SPEED * hy
        if px < 0.0:
            px += 1.0
        if px >= 1.0:
            px -= 1.0
        if py < 0.0:
            py += 1.0
        if py >= 1.0:
            py -= 1.0
        x[i], y[i] = px, py
        a += hx
        b += hy
    return sqrt(a * a + b * b) / len(x)


def setup(n):
    m = max(8, int((n / 8) ** 0.5))
    v = [rnd(n, 10 + k) * (6.0 if k == 2 else 1.0) for k in range(4)]
    return [
        m,
        *v,
        np.empty(n, np.int32),
        np.empty((get_num_threads(), m * m, 2), np.int64),
        np.empty(m * m),
        0.0,
    ]


def step(s):
    m, x, y, angle, eta, cell, parts, mean, _ = s
    level = 2.0
    for _ in range(STEPS):
        tally(parts, cell, x, y, angle, m)
        spread(mean, parts, m)
        s[8] = fly(x, y, angle, cell, mean, eta, level)
        level = 3.0 if s[8] > 0.1 else 1.0


def checksum(s):
    return total({"x": s[1], "y": s[2], "a": s[3], "o": s[8]})


run_numba = partial(run_numba, setup, step, checksum)
