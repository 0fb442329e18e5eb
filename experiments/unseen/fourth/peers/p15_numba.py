"""Numba peer of p15: buoyancy and drag; divergence; sweeps; projection and norm; heat; particles."""

from functools import partial

import numpy as np
from numba import prange

from common import rnd, run_numba, total
from nb import inl, jit, rjit

STEPS, MOST, SCALE, P = 2, 16, 1048576.0, 2


@jit
def force(u, v, heat, dt):
    for i in prange(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = (v[i, j] + dt * heat[i, j]) * 0.99
            u[i, j] *= 0.99


@rjit
def divergence(div, u, v):
    n = u.shape[0]
    s = 0.0
    for i in prange(n):
        up = i - 1 if i > 0 else n - 1
        for j in range(n):
            l = j - 1 if j > 0 else n - 1
            d = u[i, j] - u[i, l] + v[i, j] - v[up, j]
            div[i, j] = d
            s += d * d
    return s


@rjit
def sweep(new, p, div):
    n = p.shape[0]
    s = 0.0
    for i in prange(n):
        up = i - 1 if i > 0 else n - 1
        dn = i + 1 if i < n - 1 else 0
        t = 0.0
        x = 0.25 * (p[up, 0] + p[dn, 0] + p[i, n - 1] + p[i, 1] - div[i, 0])
        new[i, 0] = x
        t += (x - p[i, 0]) ** 2
        for j in range(1, n - 1):
            x = 0.25 * (p[up, j] + p[dn, j] + p[i, j - 1] + p[i, j + 1] - div[i, j])
            new[i, j] = x
            t += (x - p[i, j]) ** 2
        x = 0.25 * (p[up, n - 1] + p[dn, n - 1] + p[i, n - 2] + p[i, 0] - div[i, n - 1])
        new[i, n - 1] = x
        t += (x - p[i, n - 1]) ** 2
        s += t
    return s


@rjit
def project(u, v, p):
    n = p.shape[0]
    s = 0.0
    for i in prange(n):
        dn = i + 1 if i < n - 1 else 0
        for j in range(n):
            r = j + 1 if j < n - 1 else 0
            a = u[i, j] - (p[i, r] - p[i, j])
            b = v[i, j] - (p[dn, j] - p[i, j])
            u[i, j], v[i, j] = a, b
            q = a * a + b * b
            q = q * q
            s += q * q
    return s


@inl
def fx(u, h, i, j, r):
    return u[i, j] * (h[i, j] if u[i, j] > 0.0 else h[i, r])


@inl
def fy(v, h, i, dn, j):
    return v[i, j] * (h[i, j] if v[i, j] > 0.0 else h[dn, j])


@inl
def moved(h, u, v, up, i, dn, l, j, r, dt):
    return h[i, j] - dt * (
        fx(u, h, i, j, r) - fx(u, h, i, l, j) + fy(v, h, i, dn, j) - fy(v, h, up, i, j)
    )


@jit
def transport(h2, h, u, v, parts, dt):
    n = h.shape[0]
    for i in prange(n):
        up = i - 1 if i > 0 else n - 1
        dn = i + 1 if i < n - 1 else 0
        h2[i, 0] = (
            moved(h, u, v, up, i, dn, n - 1, 0, 1, dt) + (parts[0, i, 0] + parts[1, i, 0]) / SCALE
        )
        for j in range(1, n - 1):
            h2[i, j] = (
                moved(h, u, v, up, i, dn, j - 1, j, j + 1, dt)
                + (parts[0, i, j] + parts[1, i, j]) / SCALE
            )
        h2[i, n - 1] = (
            moved(h, u, v, up, i, dn, n - 2, n - 1, 0, dt)
            + (parts[0, i, n - 1] + parts[1, i, n - 1]) / SCALE
        )


@jit
def particles(x, y, e, seed, u, v, parts, dt):
    m, w = len(x), float(u.shape[0])
    for t in prange(P):
        parts[t] = 0
        for k in range(m * t // P, m * (t + 1) // P):
            i, j = np.int64(y[k]), np.int64(x[k])
            s = seed[k]
            s = np.uint32(s ^ np.uint32(s << np.uint32(13)))
            s = np.uint32(s ^ np.uint32(s >> np.uint32(17)))
            s = np.uint32(s ^ np.uint32(s << np.uint32(5)))
            seed[k] = s
            a, b = np.int64(s & np.uint32(4095)), np.int64((s >> np.uint32(12)) & np.uint32(4095))
            px = x[k] + dt * u[i, j] + 0.5 * (a - 2048) / 4096.0
            py = y[k] + dt * v[i, j] + 0.5 * (b - 2048) / 4096.0
            if px < 0.0:
                px += w
            if px >= w:
                px -= w
            if py < 0.0:
                py += w
            if py >= w:
                py -= w
            x[k], y[k] = px, py
            q = 0.1 * e[k]
            parts[t, i, j] += np.int64(q * SCALE)
            e[k] -= q


@rjit
def energies(e, seed):
    a = b = c = d = 0.0
    for k in prange(len(e)):
        g = seed[k] & np.uint32(3)
        a += e[k] if g == 0 else 0.0
        b += e[k] if g == 1 else 0.0
        c += e[k] if g == 2 else 0.0
        d += e[k] if g == 3 else 0.0
    return a, b, c, d


def setup(n):
    m = n * n
    s = [rnd(m, 150 + k).reshape(n, n) - 0.5 for k in range(3)] + [np.zeros((n, n))]
    s += [rnd(m, 160 + k) * (n if k < 2 else 1) for k in range(3)]
    s += [(4e9 * rnd(m, 170)).astype(np.uint32) + np.uint32(1), 0, 0.1, None]
    return s + [np.empty((n, n)), np.empty((n, n)), np.zeros((P, n, n), np.int64), np.empty((n, n))]


def step(s):
    u, v, _, _, x, y, e, seed, _, _, _, div, _, parts, _ = s
    s[8] = 0
    for _ in range(STEPS):
        force(u, v, s[2], s[9])
        goal = 0.003 * divergence(div, u, v)
        for k in range(1, MOST + 1):
            change = sweep(s[12], s[3], div)
            s[3], s[12] = s[12], s[3]
            s[8] += 1
            if k % 4 == 0 and change < goal:
                break
        s[9] = min(0.3, 0.5 / project(u, v, s[3]) ** 0.125)
        particles(x, y, e, seed, u, v, parts, s[9])
        transport(s[14], s[2], u, v, parts, s[9])
        s[2], s[14] = s[14], s[2]
    s[10] = energies(e, seed)


def checksum(s):
    return total(dict(enumerate([*s[:7], *s[8:11]])))


run_numba = partial(run_numba, setup, step, checksum)
