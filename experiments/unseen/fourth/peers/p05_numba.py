"""Numba peer of p05: a whole step is one loop."""

from functools import partial

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import inl, rjit

TRIES = 6


@inl
def rhs(x, y, z, current):
    return (
        y - x * x * x + 3.0 * x * x - z + current,
        1.0 - 5.0 * x * x - y,
        0.006 * (4.0 * (x + 1.6) - z),
    )


@inl
def sq(k1, k2, k3, k4, h, x, new):
    e = h * (-5.0 / 72.0 * k1 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0)
    t = e / (1e-5 + 1e-4 * max(abs(x), abs(new)))
    return t * t


@rjit
def attempt(xs, ys, zs, xn, yn, zn, current, h):
    norm = 0.0
    for i in prange(len(xs)):
        x, y, z, c = xs[i], ys[i], zs[i], current[i]
        a1, b1, c1 = rhs(x, y, z, c)
        g = 0.5 * h
        a2, b2, c2 = rhs(x + g * a1, y + g * b1, z + g * c1, c)
        g = 0.75 * h
        a3, b3, c3 = rhs(x + g * a2, y + g * b2, z + g * c2, c)
        u = x + h * (2.0 * a1 + 3.0 * a2 + 4.0 * a3) / 9.0
        v = y + h * (2.0 * b1 + 3.0 * b2 + 4.0 * b3) / 9.0
        w = z + h * (2.0 * c1 + 3.0 * c2 + 4.0 * c3) / 9.0
        a4, b4, c4 = rhs(u, v, w, c)
        xn[i], yn[i], zn[i] = u, v, w
        norm += (
            sq(a1, a2, a3, a4, h, x, u) + sq(b1, b2, b3, b4, h, y, v) + sq(c1, c2, c3, c4, h, z, w)
        )
    return norm


def setup(n):
    now = [2.0 * rnd(n, 20 + k) - 1.0 for k in range(3)]
    return [now, [np.empty(n) for _ in range(3)], 1.0 + 2.5 * rnd(n, 23), 0.02, 0]


def step(s):
    for _ in range(TRIES):
        h = s[3]
        norm = (attempt(*s[0], *s[1], s[2], h) / (3 * len(s[2]))) ** 0.5
        if norm <= 1.0:
            s[0], s[1] = s[1], s[0]
            s[4] += 1
        s[3] = h * min(2.0, max(0.3, 0.9 / (norm + 1e-12) ** (1.0 / 3.0)))


def checksum(s):
    return total({"x": s[0][0], "y": s[0][1], "z": s[0][2], "h": s[3], "a": s[4]})


run_numba = partial(run_numba, setup, step, checksum)
