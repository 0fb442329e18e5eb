"""Numba peer of q02: two loops a step, rows of neighbours, double buffers."""

from functools import partial

import numpy as np
from common import rnd, run_numba, total
from nb import inl, rjit
from numba import prange


@rjit
def pot(mu, c, h):
    n = c.shape[0]
    for y in prange(n):
        u, d = y - 1 if y > 0 else n - 1, y + 1 if y < n - 1 else 0
        for x in range(n):
            l, r = x - 1 if x > 0 else n - 1, x + 1 if x < n - 1 else 0
            v = c[y, x]
            mu[y, x] = (
                v * v * v
                - (1.0 - h[y, x]) * v
                - 0.6 * (c[y, l] + c[y, r] + c[u, x] + c[d, x] - 4.0 * v)
            )


@inl
def point(y, x, u, d, l, r, mu, c, h, us, vs, c2, h2, dt):
    a, b, m, k = us[y, x], vs[y, x], c[y, x], h[y, x]
    wc = a * (m - c[y, l] if a > 0.0 else c[y, r] - m) + b * (
        m - c[u, x] if b > 0.0 else c[d, x] - m
    )
    wh = a * (k - h[y, l] if a > 0.0 else h[y, r] - k) + b * (
        k - h[u, x] if b > 0.0 else h[d, x] - k
    )
    dc = (mu[y, l] + mu[y, r] + mu[u, x] + mu[d, x] - 4.0 * mu[y, x]) - wc
    dh = 0.8 * (h[y, l] + h[y, r] + h[u, x] + h[d, x] - 4.0 * k) - wh + 0.3 * m * dc
    m += dt * dc
    c2[y, x] = m
    h2[y, x] = k + dt * dh
    return 0.5 * m * mu[y, x] - 0.25 * m * m * m * m, m


@rjit
def upd(mu, c, h, us, vs, c2, h2, dt):
    n = c.shape[0]
    e, mass = 0.0, 0.0
    for y in prange(n):
        u, d = y - 1 if y > 0 else n - 1, y + 1 if y < n - 1 else 0
        p, q = point(y, 0, u, d, n - 1, 1, mu, c, h, us, vs, c2, h2, dt)
        e += p
        mass += q
        for x in range(1, n - 1):
            p, q = point(y, x, u, d, x - 1, x + 1, mu, c, h, us, vs, c2, h2, dt)
            e += p
            mass += q
        p, q = point(y, n - 1, u, d, n - 2, 0, mu, c, h, us, vs, c2, h2, dt)
        e += p
        mass += q
    return e, mass


def setup(n):
    y, x = np.mgrid[0:n, 0:n] * (2 * np.pi / n)
    c = (0.2 * (rnd(n * n, 2) - 0.5) + 0.1).reshape(n, n)
    h = (0.1 * rnd(n * n, 3)).reshape(n, n)
    return [
        c,
        h,
        np.empty_like(c),
        np.empty_like(c),
        np.empty_like(c),
        0.5 * np.sin(x) * np.cos(y),
        -0.5 * np.cos(x) * np.sin(y),
        0.02,
        1e300,
        0.0,
    ]


def step(s):
    m = s[0].size
    for k in range(10):
        c, h, c2, h2, mu, u, v, dt = s[:8]
        pot(mu, c, h)
        e, mass = upd(mu, c, h, u, v, c2, h2, dt)
        s[0], s[1], s[2], s[3] = c2, h2, c, h
        if k % 5 == 4:
            e /= m
            s[7] = min(0.03, dt * 1.05) if e < s[8] else dt * 0.7
            s[8] = e
        s[9] = mass / m


def checksum(s):
    return total({"c": s[0], "h": s[1], "dt": s[7], "e": s[8], "m": s[9]})


run_numba = partial(run_numba, setup, step, checksum)
