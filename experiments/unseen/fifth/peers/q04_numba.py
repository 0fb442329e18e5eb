"""Numba peer of q04: a voxel's matrices are local."""

from functools import partial
from math import acos, cos, log, sqrt

import numpy as np
from common import rnd, run_numba, total
from nb import jit, rjit
from numba import prange

SHOTS = 12


@jit
def fit(signal, D, fa, md):
    for t in prange(2):
        a = np.empty(28)
        b = np.empty(7)
        w = np.empty(12)
        y = np.empty(12)
        n = len(fa)
        for i in range(t * n // 2, (t + 1) * n // 2):
            for k in range(12):
                s = signal[i, k]
                w[k] = s * s
                y[k] = log(max(s, 0.001))
            for r in range(7):
                for c in range(r + 1):
                    v = 0.0
                    for k in range(12):
                        v += w[k] * D[k, r] * D[k, c]
                    a[r * (r + 1) // 2 + c] = v
                v = 0.0
                for k in range(12):
                    v += w[k] * D[k, r] * y[k]
                b[r] = v
            for r in range(7):
                R = r * (r + 1) // 2
                for c in range(r + 1):
                    C = c * (c + 1) // 2
                    v = a[R + c]
                    for k in range(c):
                        v -= a[R + k] * a[C + k]
                    a[R + c] = sqrt(max(v, 1e-30)) if c == r else v / a[C + c]
                v = b[r]
                for k in range(r):
                    v -= a[R + k] * b[k]
                b[r] = v / a[R + r]
            for q in range(7):
                r = 6 - q
                v = b[r]
                for k in range(r + 1, 7):
                    v -= a[k * (k + 1) // 2 + r] * b[k]
                b[r] = v / a[r * (r + 1) // 2 + r]
            q = (b[0] + b[1] + b[2]) / 3.0
            xx, yy, zz = b[0] - q, b[1] - q, b[2] - q
            off = b[3] * b[3] + b[4] * b[4] + b[5] * b[5]
            p = sqrt((xx * xx + yy * yy + zz * zz + 2.0 * off) / 6.0 + 1e-30)
            det = xx * (yy * zz - b[5] * b[5]) - b[3] * (b[3] * zz - b[5] * b[4])
            det += b[4] * (b[3] * b[5] - yy * b[4])
            g = acos(max(-1.0, min(1.0, 0.5 * det / (p * p * p)))) / 3.0
            e0, e2 = q + 2.0 * p * cos(g), q + 2.0 * p * cos(g + 2.0943951023931953)
            e1 = 3.0 * q - e0 - e2
            m = (e0 + e1 + e2) / 3.0
            md[i] = m
            fa[i] = sqrt(
                1.5
                * ((e0 - m) ** 2 + (e1 - m) ** 2 + (e2 - m) ** 2)
                / (e0 * e0 + e1 * e1 + e2 * e2 + 1e-30)
            )


@jit
def above(fa, level):
    c = 0
    for i in prange(len(fa)):
        c += fa[i] > level
    return c


@rjit
def inside(fa, md, level):
    c, m = 0, 0.0
    for i in prange(len(fa)):
        if fa[i] > level:
            c += 1
            m += md[i]
    return m / c


def scheme():
    k = np.arange(SHOTS) + 0.5
    z = 1.0 - k / SHOTS
    phi = k * 2.399963229728653
    g = np.stack([np.sqrt(1 - z * z) * np.cos(phi), np.sqrt(1 - z * z) * np.sin(phi), z])
    b = np.where(np.arange(SHOTS) < 9, 1.0, 0.1)
    return np.stack(
        [
            -b * g[0] ** 2,
            -b * g[1] ** 2,
            -b * g[2] ** 2,
            -2 * b * g[0] * g[1],
            -2 * b * g[0] * g[2],
            -2 * b * g[1] * g[2],
            np.ones(SHOTS),
        ],
        axis=1,
    )


def scan(n):
    t = np.zeros((n, 7))
    t[:, :3] = 0.3 + rnd(3 * n, 6).reshape(n, 3)
    t[:, 3] = 0.3 * (rnd(n, 7) - 0.5)
    t[:, 6] = 1.0
    noise = (rnd(n * SHOTS, 8) - 0.5).reshape(n, SHOTS)
    return np.exp(t @ scheme().T) * (1.0 + 0.05 * noise)


def setup(n):
    return [scan(n), scheme(), np.empty(n), np.empty(n), 0.0, 0.0]


def step(s):
    signal, d, fa, md = s[:4]
    fit(signal, d, fa, md)
    low, high = 0.0, 1.0
    for _ in range(6):
        level = 0.5 * (low + high)
        if above(fa, level) * 3 > len(fa):
            low = level
        else:
            high = level
    s[4], s[5] = low, inside(fa, md, low)


def checksum(s):
    return total({"fa": s[2], "md": s[3], "l": s[4], "m": s[5]})


run_numba = partial(run_numba, setup, step, checksum)
