"""Numba peer of q07: four loops an iteration."""

from functools import partial

import numpy as np
from common import rnd, run_numba, total
from nb import rjit
from numba import prange


@rjit
def first(inv, start, col, val, b, x, p, v, r):
    s = 0.0
    for i in prange(len(b)):
        for e in range(start[i], start[i + 1]):
            if col[e] == i:
                inv[i] = 1.0 / val[e]
        x[i] = p[i] = v[i] = 0.0
        r[i] = b[i]
        s += b[i] * b[i]
    return s


@rjit
def direct(p, q, r, v, inv, beta, omega):
    for i in prange(len(p)):
        a = r[i] + beta * (p[i] - omega * v[i])
        p[i] = a
        q[i] = inv[i] * a


@rjit
def mult(v, q, r0, start, col, val):
    s, s2 = 0.0, 0.0
    for i in prange(len(v)):
        t = 0.0
        for e in range(start[i], start[i + 1]):
            t += val[e] * q[col[e]]
        v[i] = t
        s += r0[i] * t
        s2 += t * t
    return s, s2


@rjit
def half(w, z, r, v, inv, alpha):
    for i in prange(len(w)):
        a = r[i] - alpha * v[i]
        w[i] = a
        z[i] = inv[i] * a


@rjit
def last(x, q, z, r, w, t, r0, alpha, omega):
    s, s0 = 0.0, 0.0
    for i in prange(len(x)):
        x[i] = (x[i] + alpha * q[i]) + omega * z[i]
        a = w[i] - omega * t[i]
        r[i] = a
        s += a * a
        s0 += a * r0[i]
    return s, s0


def network(n):
    length = 3 + (rnd(n, 11) * 7).astype(np.int32)
    start = np.zeros(n + 1, np.int32)
    np.cumsum(length, out=start[1:])
    row = np.repeat(np.arange(n), length)
    place = np.arange(start[-1]) - start[row]
    column = (row + ((rnd(start[-1], 12) - 0.5) * 400).astype(np.int64)) % n
    column = np.where(place == 0, row, column).astype(np.int32)
    value = -rnd(start[-1], 13)
    value[(place > 0) & (column == row)] = 0.0
    sums = np.add.reduceat(value * (place > 0), start[:-1])
    value[start[:-1]] = 0.15 - sums
    keep = (place == 0) | (column != row)
    length = np.add.reduceat(keep.astype(np.int32), start[:-1])
    start[1:] = np.cumsum(length)
    return start, column[keep], value[keep]


def setup(n):
    return {"m": network(n), "b": rnd(n, 14) - 0.3, "v": [np.empty(n) for _ in range(9)]}


def step(s):
    m, b, (x, p, q, v, r, w, z, t, inv) = s["m"], s["b"], s["v"]
    start = first(inv, *m, b, x, p, v, r)
    rho = alpha = omega = 1.0
    now = start
    for k in range(12):
        before, rho = rho, now
        direct(p, q, r, v, inv, (rho / before) * (alpha / omega), omega)
        alpha = rho / mult(v, q, b, *m)[0]
        half(w, z, r, v, inv, alpha)
        a, c = mult(t, z, w, *m)
        omega = a / c
        norm, now = last(x, q, z, r, w, t, b, alpha, omega)
        if norm < 1e-9 * start:
            break
    s["o"] = x, norm, float(k + 1)


def checksum(s):
    return total(dict(enumerate(s["o"])))


run_numba = partial(run_numba, setup, step, checksum)
