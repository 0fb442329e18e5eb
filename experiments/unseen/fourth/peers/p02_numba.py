"""Numba peer of p02: three passes a step (w; new u; new c), fluxes recomputed."""

from functools import partial

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import inl, jit, rjit

STEPS = 4
DT, GROW, SQUARE, MIX, STIR = 0.02, 0.3, 1.2, 0.4, 0.8


@inl
def helm(u, i, up, dn, j, l, r):
    return u[up, j] + u[dn, j] + u[i, l] + u[i, r] - 3.0 * u[i, j]


@jit
def first(w, u):
    n = u.shape[0]
    for i in prange(n):
        up = i - 1 if i > 0 else n - 1
        dn = i + 1 if i < n - 1 else 0
        w[i, 0] = helm(u, i, up, dn, 0, n - 1, 1)
        for j in range(1, n - 1):
            w[i, j] = helm(u, i, up, dn, j, j - 1, j + 1)
        w[i, n - 1] = helm(u, i, up, dn, n - 1, n - 2, 0)


@inl
def grown(u, w, i, up, dn, j, l, r):
    x = u[i, j]
    return x + DT * (GROW * x + SQUARE * x * x - x * x * x - helm(w, i, up, dn, j, l, r))


@jit
def second(u2, u, w):
    n = u.shape[0]
    for i in prange(n):
        up = i - 1 if i > 0 else n - 1
        dn = i + 1 if i < n - 1 else 0
        u2[i, 0] = grown(u, w, i, up, dn, 0, n - 1, 1)
        for j in range(1, n - 1):
            u2[i, j] = grown(u, w, i, up, dn, j, j - 1, j + 1)
        u2[i, n - 1] = grown(u, w, i, up, dn, n - 1, n - 2, 0)


@inl
def fx_at(u, c, i, up, dn, j, r):
    v = 0.25 * STIR * (u[dn, j] + u[dn, r] - u[up, j] - u[up, r])
    return v * (c[i, j] if v > 0.0 else c[i, r])


@inl
def fy_at(u, c, i, dn, j, l, r):
    v = -0.25 * STIR * (u[i, r] + u[dn, r] - u[i, l] - u[dn, l])
    return v * (c[i, j] if v > 0.0 else c[dn, j])


@inl
def dye(u, c, i, up, dn, j, l, r):
    lap = c[up, j] + c[dn, j] + c[i, l] + c[i, r] - 4.0 * c[i, j]
    div = (
        fx_at(u, c, i, up, dn, j, r)
        - fx_at(u, c, i, up, dn, l, j)
        + fy_at(u, c, i, dn, j, l, r)
        - fy_at(u, c, up, i, j, l, r)
    )
    return c[i, j] + DT * (MIX * lap - div)


@jit
def third(c2, c, u):
    n = u.shape[0]
    for i in prange(n):
        up = i - 1 if i > 0 else n - 1
        dn = i + 1 if i < n - 1 else 0
        c2[i, 0] = dye(u, c, i, up, dn, 0, n - 1, 1)
        for j in range(1, n - 1):
            c2[i, j] = dye(u, c, i, up, dn, j, j - 1, j + 1)
        c2[i, n - 1] = dye(u, c, i, up, dn, n - 1, n - 2, 0)


@rjit
def sums(u, c):
    a = 0.0
    b = 0.0
    for i in prange(u.shape[0]):
        for j in range(u.shape[1]):
            a += c[i, j]
            b += u[i, j] * u[i, j] + c[i, j] * c[i, j]
    return a, b


def setup(n):
    u = rnd(n * n, 2).reshape(n, n) - 0.5
    c = rnd(n * n, 3).reshape(n, n)
    return [u, np.empty_like(u), c, np.empty_like(c), np.empty_like(u), 0.0]


def step(s):
    w = s[4]
    for _ in range(STEPS):
        first(w, s[0])
        second(s[1], s[0], w)
        third(s[3], s[2], s[1])
        s[0], s[1], s[2], s[3] = s[1], s[0], s[3], s[2]
    s[5] = sums(s[0], s[2])


def checksum(s):
    return total({"u": s[0], "c": s[2], "m": s[5][0], "e": s[5][1]})


run_numba = partial(run_numba, setup, step, checksum)
