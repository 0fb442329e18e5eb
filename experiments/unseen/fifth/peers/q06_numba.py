"""Numba peer of q06: an axpy and the next dot product share a loop, and a whole try."""

from functools import partial
from math import sqrt

import numpy as np
from common import rnd, run_numba, total
from nb import inl, rjit
from numba import prange

W = 0.3


@inl
def slope(x, i, n):
    d = x[i + 1] - x[i] if i < n - 1 else 0.0
    r = sqrt(d * d + 0.01)
    return d / r, r


@rjit
def attempt(out, x, d, step, y):
    """Objective at x + step * d, which is stored."""
    n = len(x)
    f, q = 0.0, 0.0
    for i in prange(n):
        v = x[i] + step * d[i]
        out[i] = v
        e = (x[i + 1] + step * d[i + 1]) - v if i < n - 1 else 0.0
        f += 0.5 * (v - y[i]) * (v - y[i])
        q += sqrt(e * e + 0.01)
    return f + W * q


@rjit
def pair(u, v, new, x, y, g):
    """Step, change of the gradient (kept in g) and their product."""
    n = len(x)
    s = 0.0
    for i in prange(n):
        t = slope(new, i, n)[0]
        b = slope(new, i - 1, n)[0] if i > 0 else 0.0
        h = new[i] - y[i] + W * (b - t)
        p, q = new[i] - x[i], h - g[i]
        u[i], v[i], g[i] = p, q, h
        s += p * q
    return s


@rjit
def grad(g, x, y):
    n = len(x)
    for i in prange(n):
        t = slope(x, i, n)[0]
        b = slope(x, i - 1, n)[0] if i > 0 else 0.0
        g[i] = x[i] - y[i] + W * (b - t)


@rjit
def negdot(d, g, u):
    s = 0.0
    for i in prange(len(d)):
        d[i] = -g[i]
        s += u[i] * d[i]
    return s


@rjit
def axdot(d, a, v, u):
    """d += a v; u . d"""
    s = 0.0
    for i in prange(len(d)):
        e = d[i] + a * v[i]
        d[i] = e
        s += u[i] * e
    return s


@rjit
def axscdot(d, a, v, f, u):
    """d = f (d + a v); u . d"""
    s = 0.0
    for i in prange(len(d)):
        e = f * (d[i] + a * v[i])
        d[i] = e
        s += u[i] * e
    return s


@rjit
def dot(a, b):
    s = 0.0
    for i in prange(len(a)):
        s += a[i] * b[i]
    return s


def setup(n):
    y = (np.arange(n) // 50 * 7 % 11) * 0.3 + rnd(n, 10) - 0.5
    return {"y": y, "v": [np.empty(n) for _ in range(12)]}


def step(s):
    y, (x, trial, g, d, *rest) = s["y"], s["v"]
    us, vs = rest[:4], rest[4:8]
    x[:] = y
    d[:] = 0.0
    value = attempt(x, y, d, 0.0, y)
    grad(g, x, y)
    pairs, tries = [], 0
    for _ in range(7):
        if pairs:
            k = len(pairs)
            al = [0.0] * k
            al[k - 1] = pairs[-1][2] * negdot(d, g, pairs[-1][0])
            for j in range(k - 1, 0, -1):
                al[j - 1] = pairs[j - 1][2] * axdot(d, -al[j], pairs[j][1], pairs[j - 1][0])
            v, rho = pairs[-1][1:]
            beta = pairs[0][2] * axscdot(
                d, -al[0], pairs[0][1], 1.0 / (rho * dot(v, v)), pairs[0][1]
            )
            for j in range(k):
                r = axdot(d, al[j] - beta, pairs[j][0], pairs[j + 1][1] if j + 1 < k else g)
                beta = pairs[j + 1][2] * r if j + 1 < k else r
            descent = beta
        else:
            descent = negdot(d, g, g)
        a = 1.0
        while True:
            tries += 1
            new = attempt(trial, x, d, a, y)
            if new <= value + 1e-4 * a * descent or a < 1e-6:
                break
            a *= 0.5
        value = new
        u, v = pairs.pop(0)[:2] if len(pairs) == 4 else (us[len(pairs)], vs[len(pairs)])
        pairs.append((u, v, 1.0 / pair(u, v, trial, x, y, g)))
        x, trial = trial, x
    s["r"] = x, value, sqrt(dot(g, g)), float(tries)


def checksum(s):
    return total(dict(enumerate(s["r"])))


run_numba = partial(run_numba, setup, step, checksum)
