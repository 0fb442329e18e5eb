"""Numba peer of q08: a path's whole life is one iteration."""

from functools import partial
from math import cos, exp, log, sin, sqrt

import numpy as np
from common import rnd, run_numba, total
from nb import inl, rjit
from numba import prange

STEPS, DT = 8, 0.25
SPEED, LEVEL, SIGMA = 0.3, 0.03, 0.012
KAPPA, THETA, XI, RHO = 0.5, 0.02, 0.08, -0.4
S13, S7, S17, S12 = np.uint64(13), np.uint64(7), np.uint64(17), np.uint64(12)


@inl
def nxt(s):
    s ^= s << S13
    s ^= s >> S7
    s ^= s << S17
    return s


@rjit
def paths(seed, A, B):
    n = len(seed)
    out = np.zeros(STEPS + 1)
    for i in prange(n):
        s = seed[i]
        r, h, d, q = 0.025, 0.015, 1.0, 1.0
        acc = np.zeros(STEPS + 1)
        for k in range(STEPS):
            s = nxt(s)
            u1 = (np.int64(s >> S12) + 0.5) * 2.220446049250313e-16
            s = nxt(s)
            u2 = (np.int64(s >> S12) + 0.5) * 2.220446049250313e-16
            a = sqrt(-2.0 * log(u1))
            z1, z2 = a * cos(6.283185307179586 * u2), a * sin(6.283185307179586 * u2)
            z2 = RHO * z1 + sqrt(1.0 - RHO * RHO) * z2
            d *= exp(-r * DT)
            q *= exp(-h * DT)
            r += SPEED * (LEVEL - r) * DT + SIGMA * sqrt(DT) * z1
            g = max(h, 0.0)
            h += KAPPA * (THETA - g) * DT + XI * sqrt(g * DT) * z2
            v = 1.0
            m = STEPS - 1 - k
            for j in range(m):
                bond = A[j] * exp(-B[j] * r)
                v -= 0.0072 * bond
                if j == m - 1:
                    v -= bond
            e = max(v, 0.0) * d
            acc[k] += e
            acc[STEPS] += e * q * max(h, 0.0) * DT
        seed[i] = s
        out += acc
    return out


def bonds():
    t = DT * (1 + np.arange(STEPS))
    b = (1 - np.exp(-SPEED * t)) / SPEED
    a = np.exp((LEVEL - SIGMA**2 / (2 * SPEED**2)) * (b - t) - SIGMA**2 * b * b / (4 * SPEED))
    return a, b


def setup(n):
    return [(rnd(n, 15) * 2.0**53).astype(np.uint64) + np.uint64(1), *bonds(), None, 0.0]


def step(s):
    out = paths(*s[:3])
    s[3], s[4] = out[:STEPS] / len(s[0]), 0.6 * float(out[STEPS]) / len(s[0])


def checksum(s):
    return total({"e": s[3], "c": s[4], "s": (s[0] >> np.uint64(40)) * 2.0**-24})


run_numba = partial(run_numba, setup, step, checksum)
