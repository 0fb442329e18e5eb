"""Numba peer of q01: strips of rows, all stages of a strip in turn."""

from functools import partial
from math import sqrt

import numpy as np
from common import rnd, run_numba, total
from nb import inl, rjit
from numba import prange

TH = 16


@inl
def strip(y0, y1, n, raw, gain, R, G, B):
    a, z = max(y0 - 5, 0), min(y1 + 5, n)
    lin = np.empty((z - a, n), np.float32)
    for y in range(a, z):
        p, q = (1.9, 1.0) if y % 2 == 0 else (1.0, 1.5)
        for x in range(n):
            lin[y - a, x] = max(np.int32(raw[y, x]) - 64, 0) * (gain * (p if x % 2 == 0 else q))
    b, e = max(y0 - 3, 0), min(y1 + 3, n)
    g = np.empty((e - b, n), np.float32)
    d = np.empty((e - b, n), np.float32)
    for y in range(b, e):
        k = y - a
        um, dp, u2, d2 = (
            max(y - 1, 0) - a,
            min(y + 1, n - 1) - a,
            max(y - 2, 0) - a,
            min(y + 2, n - 1) - a,
        )
        for x in range(n):
            c = lin[k, x]
            if (x + y) % 2 == 1:
                g[y - b, x] = c
            else:
                l, r = lin[k, max(x - 1, 0)], lin[k, min(x + 1, n - 1)]
                u, w = lin[um, x], lin[dp, x]
                ch = 2.0 * c - lin[k, max(x - 2, 0)] - lin[k, min(x + 2, n - 1)]
                cv = 2.0 * c - lin[u2, x] - lin[d2, x]
                if abs(l - r) + abs(ch) < abs(u - w) + abs(cv):
                    g[y - b, x] = 0.5 * (l + r) + 0.25 * ch
                else:
                    g[y - b, x] = 0.5 * (u + w) + 0.25 * cv
            d[y - b, x] = c - g[y - b, x]
    s, t = max(y0 - 2, 0), min(y1 + 2, n)
    o0 = np.empty((t - s, n), np.float32)
    o1 = np.empty((t - s, n), np.float32)
    o2 = np.empty((t - s, n), np.float32)
    lu = np.empty((t - s, n), np.float32)
    ro = np.empty((t - s, n), np.float32)
    for y in range(s, t):
        k, m, p = y - b, max(y - 1, 0) - b, min(y + 1, n - 1) - b
        j = y - s
        for x in range(n):
            xm, xp = max(x - 1, 0), min(x + 1, n - 1)
            h = 0.5 * (d[k, xm] + d[k, xp])
            v = 0.5 * (d[m, x] + d[p, x])
            q = 0.25 * (d[m, xm] + d[m, xp] + d[p, xm] + d[p, xp])
            c = np.float64(d[k, x])
            if y % 2 == 0:
                dr, db = (c, q) if x % 2 == 0 else (h, v)
            else:
                dr, db = (v, h) if x % 2 == 0 else (q, c)
            gg = g[k, x]
            r = np.float32(gg + dr)
            bb = np.float32(gg + db)
            o0[j, x] = max(1.55 * r + -0.40 * gg + -0.15 * bb, 0.0)
            o1[j, x] = max(-0.20 * r + 1.45 * gg + -0.25 * bb, 0.0)
            o2[j, x] = max(0.02 * r + -0.52 * gg + 1.50 * bb, 0.0)
            lu[j, x] = max(0.2126 * o0[j, x] + 0.7152 * o1[j, x] + 0.0722 * o2[j, x], 0.0)
        for x in range(n):
            ro[j, x] = (
                0.0625 * (lu[j, max(x - 2, 0)] + lu[j, min(x + 2, n - 1)])
                + 0.25 * (lu[j, max(x - 1, 0)] + lu[j, min(x + 1, n - 1)])
                + 0.375 * lu[j, x]
            )
    total, burnt = 0.0, 0
    for y in range(y0, y1):
        j = y - s
        a2, a1, z1, z2 = (
            max(y - 2, 0) - s,
            max(y - 1, 0) - s,
            min(y + 1, n - 1) - s,
            min(y + 2, n - 1) - s,
        )
        for x in range(n):
            soft = np.float32(
                0.0625 * (ro[a2, x] + ro[z2, x]) + 0.25 * (ro[a1, x] + ro[z1, x]) + 0.375 * ro[j, x]
            )
            l = lu[j, x]
            ra = np.float32(max(1.0 + 0.8 * (l - soft) / (l + 0.001), 0.0))
            total += l
            p = np.uint8(255.0 * sqrt(min(np.float64(o0[j, x] * ra), 1.0)) + 0.5)
            q = np.uint8(255.0 * sqrt(min(np.float64(o1[j, x] * ra), 1.0)) + 0.5)
            r = np.uint8(255.0 * sqrt(min(np.float64(o2[j, x] * ra), 1.0)) + 0.5)
            R[y, x], G[y, x], B[y, x] = p, q, r
            burnt += np.int64(p == 255) + np.int64(q == 255) + np.int64(r == 255)
    return total, burnt


@rjit
def frame(raw, gain, R, G, B):
    n = raw.shape[0]
    mean, burnt = 0.0, 0
    for t in prange((n + TH - 1) // TH):
        a, b = strip(t * TH, min(t * TH + TH, n), n, raw, gain, R, G, B)
        mean += a
        burnt += b
    return mean, burnt


def setup(n):
    y, x = np.mgrid[0:n, 0:n]
    raw = (64 + 300 * rnd(n * n, 1).reshape(n, n) + ((x // 9) * 37 + (y // 7) * 53) % 600).astype(
        np.uint16
    )
    return [raw, [np.empty((n, n), np.uint8) for _ in range(3)], 0.001, 0.0]


def step(s):
    mean, burnt = frame(s[0], s[2], *s[1])
    s[3] = float(burnt)
    s[2] *= 0.7 + 0.3 * 0.4 / (mean / s[0].size)


def checksum(s):
    return total({**dict(zip("rgb", s[1])), "gain": s[2], "burnt": s[3]})


run_numba = partial(run_numba, setup, step, checksum)
