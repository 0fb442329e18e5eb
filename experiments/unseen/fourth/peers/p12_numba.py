"""Numba peer of p12: residual and restriction in one loop, correction inside the first sweep."""

from functools import partial

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import inl, jit, rjit

LEVELS, OMEGA, SCREEN, GOAL, MOST = 5, 0.8, 0.002, 0.02, 4


@inl
def lap(v, u, i, d, l, j, r):
    return v[u, j] + v[d, j] + v[i, l] + v[i, r] - 4.0 * v[i, j]


@inl
def tgt(a, b, u, i, d, l, j, r):
    la, lb = lap(a, u, i, d, l, j, r), lap(b, u, i, d, l, j, r)
    return 0.5 * SCREEN * (a[i, j] + b[i, j]) - (lb if abs(la) < abs(lb) else la)


@rjit
def target(f, a, b):
    n = f.shape[0]
    s = 0.0
    for i in prange(n):
        u, d = max(i - 1, 0), min(i + 1, n - 1)
        for j in range(n):
            x = tgt(a, b, u, i, d, max(j - 1, 0), j, min(j + 1, n - 1))
            f[i, j] = x
            s += x * x
    return s


@inl
def rel(v, f, u, i, d, l, j, r, c, w):
    return v[i, j] + w * (f[i, j] - SCREEN * v[i, j] + c * lap(v, u, i, d, l, j, r))


@jit
def relax(new, v, f, c):
    n = v.shape[0]
    w = OMEGA / (SCREEN + 4.0 * c)
    for i in prange(n):
        u, d = max(i - 1, 0), min(i + 1, n - 1)
        new[i, 0] = rel(v, f, u, i, d, 0, 0, 1, c, w)
        for j in range(1, n - 1):
            new[i, j] = rel(v, f, u, i, d, j - 1, j, j + 1, c, w)
        new[i, n - 1] = rel(v, f, u, i, d, n - 2, n - 1, n - 1, c, w)


@jit
def first(v, f, c):
    """The first sweep from zero."""
    w = OMEGA / (SCREEN + 4.0 * c)
    for i in prange(v.shape[0]):
        for j in range(v.shape[1]):
            v[i, j] = w * f[i, j]


@inl
def res(v, f, u, i, d, l, j, r, c):
    return f[i, j] - SCREEN * v[i, j] + c * lap(v, u, i, d, l, j, r)


@jit
def down(coarse, v, f, c):
    n = v.shape[0]
    for p in prange(n // 2):
        i = 2 * p
        u, d = max(i - 1, 0), min(i + 2, n - 1)
        for q in range(n // 2):
            j = 2 * q
            l, r = max(j - 1, 0), min(j + 2, n - 1)
            coarse[p, q] = 0.25 * (
                res(v, f, u, i, i + 1, l, j, j + 1, c)
                + res(v, f, u, i, i + 1, j, j + 1, r, c)
                + res(v, f, i, i + 1, d, l, j, j + 1, c)
                + res(v, f, i, i + 1, d, j, j + 1, r, c)
            )


@jit
def correct(v, coarse):
    for i in prange(v.shape[0]):
        for q in range(coarse.shape[1]):
            x = coarse[i // 2, q]
            v[i, 2 * q] += x
            v[i, 2 * q + 1] += x


@rjit
def norm(v, f):
    n = f.shape[0]
    s = 0.0
    for i in prange(n):
        u, d = max(i - 1, 0), min(i + 1, n - 1)
        for j in range(n):
            x = res(v, f, u, i, d, max(j - 1, 0), j, min(j + 1, n - 1), 1.0)
            s += x * x
    return s


def setup(n):
    i, j = np.indices((n, n))
    a = rnd(n * n, 110).reshape(n, n) + 1.0 * (i // 16 % 2)
    b = rnd(n * n, 111).reshape(n, n) + 1.0 * (j // 32 % 2)
    return [a, b, *([np.zeros((n >> k, n >> k)) for k in range(LEVELS)] for _ in range(3)), 0, 0.0]


def smooth(s, k, times, start=0):
    if start:
        first(s[2][k], s[4][k], 0.25**k)
    for _ in range(times - start):
        relax(s[3][k], s[2][k], s[4][k], 0.25**k)
        s[2][k], s[3][k] = s[3][k], s[2][k]


def step(s):
    a, b, v, w, f, _, _ = s
    goal = GOAL**2 * target(f[0], a, b)
    for s[5] in range(1, MOST + 1):
        for k in range(LEVELS - 1):
            smooth(s, k, 2, 1 if k or s[5] == 1 else 0)
            down(f[k + 1], v[k], f[k], 0.25**k)
        smooth(s, LEVELS - 1, 12, 1)
        for k in reversed(range(LEVELS - 1)):
            correct(v[k], v[k + 1])
            smooth(s, k, 2)
        s[6] = norm(v[0], f[0])
        if s[6] < goal:
            break


def checksum(s):
    return total({"v": s[2][0], "c": s[5], "n": s[6]})


run_numba = partial(run_numba, setup, step, checksum)
