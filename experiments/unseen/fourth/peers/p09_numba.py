"""Numba peer of p09: blocks of 64 pairs, all of whose table stays in cache."""

from functools import partial

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import jit

LENGTH, OPEN, EXTEND, SAME, OTHER, W = 40, np.int32(5), np.int32(1), np.int32(3), np.int32(-2), 64


@jit
def align(score, x, y):
    n = len(score)
    result = 0
    for block in prange((n + W - 1) // W):
        lo, hi = block * W, min(n, block * W + W)
        w = hi - lo
        h = np.zeros((LENGTH + 1, W), np.int32)
        f = np.zeros((LENGTH + 1, W), np.int32)
        e = np.zeros(W, np.int32)
        diag = np.zeros(W, np.int32)
        best = np.zeros(W, np.int32)
        for i in range(LENGTH):
            e[:] = 0
            diag[:] = 0
            for j in range(LENGTH):
                for b in range(w):
                    up = h[j + 1, b]
                    ee = max(np.int32(e[b] - EXTEND), np.int32(h[j, b] - OPEN))
                    ff = max(np.int32(f[j + 1, b] - EXTEND), np.int32(up - OPEN))
                    s = SAME if x[i, lo + b] == y[j, lo + b] else OTHER
                    v = max(max(np.int32(diag[b] + s), np.int32(0)), max(ee, ff))
                    e[b] = ee
                    f[j + 1, b] = ff
                    diag[b] = up
                    h[j + 1, b] = v
                    best[b] = max(best[b], v)
        part = 0
        for b in range(w):
            score[lo + b] = best[b]
            part += best[b]
        result += part
    return result


def setup(n):
    x, y = ((4.0 * rnd(LENGTH * n, k)).astype(np.int32).reshape(LENGTH, n) for k in (70, 71))
    return [x, y, np.empty(n, np.int32), 0]


def step(s):
    s[3] = align(s[2], s[0], s[1])


def checksum(s):
    return total({"s": s[2], "t": s[3]})


run_numba = partial(run_numba, setup, step, checksum)
