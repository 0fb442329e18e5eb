"""Numba peer of p06: three loops a layer and step."""

from functools import partial
from math import sqrt

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import jit, rjit

PARTS = ((1, 1), (1, 4), (1, 1), (1, 2), (1, 8), (1, 1))
STEPS = 2
RATE, BETA1, BETA2, EPS, DECAY, CLIP = 0.01, 0.9, 0.99, 1e-6, 0.01, 50.0


@rjit
def norm2(w, t):
    s = 0.0
    for i in prange(len(w)):
        d = w[i] - t[i]
        g = d + 0.1 * d * d * d
        s += g * g
    return s


@rjit
def moments(u, m, v, w, t, factor, c1, c2):
    a = 0.0
    b = 0.0
    for i in prange(len(w)):
        d = w[i] - t[i]
        g = (d + 0.1 * d * d * d) * factor
        p = BETA1 * m[i] + (1.0 - BETA1) * g
        q = BETA2 * v[i] + (1.0 - BETA2) * g * g
        m[i], v[i] = p, q
        x = p / c1 / (sqrt(q / c2) + EPS) + DECAY * w[i]
        u[i] = x
        a += w[i] * w[i]
        b += x * x
    return a, b


@jit
def apply(w, u, f):
    for i in prange(len(w)):
        w[i] -= f * u[i]


def setup(size):
    sizes = [max(1, size * a // b) for a, b in PARTS]
    return [
        [
            (2.0 * rnd(n, 30 + k) - 1.0, 2.0 * rnd(n, 40 + k) - 1.0, np.zeros(n), np.zeros(n))
            for k, n in enumerate(sizes)
        ],
        0,
        0.0,
        np.empty(max(sizes)),
    ]


def step(s):
    for _ in range(STEPS):
        s[1] += 1
        s[2] = sum(norm2(w, t) for w, t, _, _ in s[0]) ** 0.5
        factor = min(1.0, CLIP / s[2])
        c1, c2 = 1.0 - BETA1 ** s[1], 1.0 - BETA2 ** s[1]
        for w, t, m, v in s[0]:
            a, b = moments(s[3], m, v, w, t, factor, c1, c2)
            apply(w, s[3], RATE * sqrt(a) / sqrt(b + 1e-30))


def checksum(s):
    return total({**{k: x[0] for k, x in enumerate(s[0])}, "n": s[2]})


run_numba = partial(run_numba, setup, step, checksum)
