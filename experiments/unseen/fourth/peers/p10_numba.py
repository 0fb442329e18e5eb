"""Numba peer of p10: a loop that picks and counts, a loop that commits, a round."""

from functools import partial

import numpy as np
from numba import prange

from common import run_numba, total
from in10 import graph
from nb import jit


@jit
def pick(new, colour, priority, start, to):
    left = 0
    for i in prange(len(colour)):
        c = colour[i]
        if c < 0:
            p, ok, used = priority[i], True, 0
            for k in range(start[i], start[i + 1]):
                j = to[k]
                cj = colour[j]
                if cj >= 0:
                    used |= 1 << cj
                elif priority[j] > p or (priority[j] == p and j > i):
                    ok = False
                    break
            if ok:
                c = 0
                while (used >> c) & 1:
                    c += 1
            else:
                left += 1
        new[i] = c
    return left


@jit
def histogram(colour):
    n, p = len(colour), 8
    parts = np.zeros((p, 8), np.int64)
    for t in prange(p):
        h = np.zeros(8, np.int64)
        for i in range(n * t // p, n * (t + 1) // p):
            if colour[i] < 8:
                h[colour[i]] += 1
        parts[t] = h
    return parts.sum(0)


def setup(n):
    return [*graph(n), np.empty(n, np.int32), np.empty(n, np.int32), 0, None]


def step(s):
    start, to, priority, colour, new, _, _ = s
    colour[:] = -1
    s[5], left = 0, 1
    while left:
        left = pick(new, colour, priority, start, to)
        colour, new = new, colour
        s[5] += 1
    s[3], s[4] = colour, new
    s[6] = histogram(colour)


def checksum(s):
    return total({"c": s[3], "h": s[6], "r": s[5]})


run_numba = partial(run_numba, setup, step, checksum)
