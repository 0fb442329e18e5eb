"""Numba peer of p04: one loop a step (measurements arrive step by step)."""

from functools import partial
from math import log

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import rjit

STEPS, DT, DRIFT, NOISE, GATE = 4, 0.1, 0.05, 0.3, 9.0


@rjit
def update(x, p, z):
    like = 0.0
    hits = 0
    for i in prange(len(x)):
        q = p[i]
        x0 = x[i, 0] + DT * x[i, 2]
        x1 = x[i, 1] + DT * x[i, 3]
        for k in range(4):
            q[0, k] += DT * q[2, k]
            q[1, k] += DT * q[3, k]
        for k in range(4):
            q[k, 0] += DT * q[k, 2]
            q[k, 1] += DT * q[k, 3]
            q[k, k] += DRIFT
        r0, r1 = z[i, 0] - x0, z[i, 1] - x1
        a, b, c = q[0, 0] + NOISE, 0.5 * (q[0, 1] + q[1, 0]), q[1, 1] + NOISE
        d = a * c - b * b
        s0, s1, s2 = c / d, -b / d, a / d
        d2 = r0 * (s0 * r0 + 2.0 * s1 * r1) + s2 * r1 * r1
        x[i, 0], x[i, 1] = x0, x1
        if d2 <= GATE:
            g00, g01 = q[0, 0] * s0 + q[0, 1] * s1, q[0, 0] * s1 + q[0, 1] * s2
            g10, g11 = q[1, 0] * s0 + q[1, 1] * s1, q[1, 0] * s1 + q[1, 1] * s2
            g20, g21 = q[2, 0] * s0 + q[2, 1] * s1, q[2, 0] * s1 + q[2, 1] * s2
            g30, g31 = q[3, 0] * s0 + q[3, 1] * s1, q[3, 0] * s1 + q[3, 1] * s2
            x[i, 0] += g00 * r0 + g01 * r1
            x[i, 1] += g10 * r0 + g11 * r1
            x[i, 2] += g20 * r0 + g21 * r1
            x[i, 3] += g30 * r0 + g31 * r1
            for c_ in range(4):
                a, b = q[0, c_], q[1, c_]
                q[0, c_] -= g00 * a + g01 * b
                q[1, c_] -= g10 * a + g11 * b
                q[2, c_] -= g20 * a + g21 * b
                q[3, c_] -= g30 * a + g31 * b
            hits += 1
        like += 0.5 * (d2 + log(d))
    return like, hits


def setup(n):
    t = np.arange(STEPS).reshape(-1, 1, 1)
    z = 0.3 * t * DT + 2.0 * rnd(STEPS * n * 2, 5).reshape(STEPS, n, 2)
    p = np.zeros((n, 4, 4))
    p[:] = np.eye(4)
    return [rnd(n * 4, 4).reshape(n, 4), p, z, 0.0, 0]


def step(s):
    s[3] = s[4] = 0
    for t in range(STEPS):
        like, hits = update(s[0], s[1], s[2][t])
        s[3] += like
        s[4] += hits


def checksum(s):
    return total({"x": s[0], "p": s[1], "l": s[3], "h": s[4]})


run_numba = partial(run_numba, setup, step, checksum)
