# ruff: noqa: B905, PLW3301
"""A shear layer of gas that rolls up: the Euler equations in a periodic square, by finite volumes.

Piecewise linear reconstruction with van Leer's limiter, HLL fluxes, Heun's method in time.
"""

from dataclasses import dataclass
from math import fabs, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 48, "default": 320, "large": 1500}
GAMMA, CFL, STEPS = 1.4, 0.8, 2


@pk.function
def limited(a: pk.double, b: pk.double) -> pk.double:
    if a * b <= 0.0:
        return 0.0
    return 2.0 * a * b / (a + b)


@pk.function
def hll(
    sl: pk.double, sr: pk.double, fl: pk.double, fr: pk.double, ql: pk.double, qr: pk.double
) -> pk.double:
    return (sr * fl - sl * fr + sl * sr * (qr - ql)) / (sr - sl)


@pk.workunit
def copy(i: int, j: int, to, source):
    to[i][j] = source[i][j]


@pk.workunit
def wave_speed(i: int, j: int, speed, rho, mx, my, e):
    u: pk.double = mx[i][j] / rho[i][j]
    v: pk.double = my[i][j] / rho[i][j]
    p: pk.double = (GAMMA - 1.0) * (e[i][j] - 0.5 * rho[i][j] * (u * u + v * v))
    speed[i][j] = fabs(u) + fabs(v) + 2.0 * sqrt(GAMMA * p / rho[i][j])


@pk.workunit
def velocity(i: int, j: int, u, v, mx, my, rho):
    u[i][j] = mx[i][j] / rho[i][j]
    v[i][j] = my[i][j] / rho[i][j]


@pk.workunit
def pressure(i: int, j: int, p, e, rho, u, v):
    p[i][j] = (GAMMA - 1.0) * (e[i][j] - 0.5 * rho[i][j] * (u[i][j] * u[i][j] + v[i][j] * v[i][j]))


@pk.workunit
def slopes(i: int, j: int, dx, dy, q, n: int):
    west: int = i - 1
    if i == 0:
        west = n - 1
    east: int = i + 1
    if east == n:
        east = 0
    south: int = j - 1
    if j == 0:
        south = n - 1
    north: int = j + 1
    if north == n:
        north = 0
    here: pk.double = q[i][j]
    dx[i][j] = limited(here - q[west][j], q[east][j] - here)
    dy[i][j] = limited(here - q[i][south], q[i][north] - here)


@pk.workunit
def flux(
    i: int, j: int, f_rho, f_n, f_t, f_e, rho, un, ut, p, d_rho, d_n, d_t, d_p,
    di: int, dj: int, n: int,
):  # fmt: skip
    """Through the face of cell (i, j) towards (i - di, j - dj)."""
    a: int = i - di
    if a < 0:
        a = n - 1
    b: int = j - dj
    if b < 0:
        b = n - 1
    rl: pk.double = rho[a][b] + 0.5 * d_rho[a][b]
    rr: pk.double = rho[i][j] - 0.5 * d_rho[i][j]
    nl: pk.double = un[a][b] + 0.5 * d_n[a][b]
    nr: pk.double = un[i][j] - 0.5 * d_n[i][j]
    tl: pk.double = ut[a][b] + 0.5 * d_t[a][b]
    tr: pk.double = ut[i][j] - 0.5 * d_t[i][j]
    pl: pk.double = p[a][b] + 0.5 * d_p[a][b]
    pr: pk.double = p[i][j] - 0.5 * d_p[i][j]
    el: pk.double = pl / (GAMMA - 1.0) + 0.5 * rl * (nl * nl + tl * tl)
    er: pk.double = pr / (GAMMA - 1.0) + 0.5 * rr * (nr * nr + tr * tr)
    cl: pk.double = sqrt(GAMMA * pl / rl)
    cr: pk.double = sqrt(GAMMA * pr / rr)
    sl: pk.double = min(min(nl - cl, nr - cr), 0.0)
    sr: pk.double = max(max(nl + cl, nr + cr), 0.0)
    f_rho[i][j] = hll(sl, sr, rl * nl, rr * nr, rl, rr)
    f_n[i][j] = hll(sl, sr, rl * nl * nl + pl, rr * nr * nr + pr, rl * nl, rr * nr)
    f_t[i][j] = hll(sl, sr, rl * nl * tl, rr * nr * tr, rl * tl, rr * tr)
    f_e[i][j] = hll(sl, sr, nl * (el + pl), nr * (er + pr), el, er)


@pk.workunit
def update(i: int, j: int, q, fx, fy, k: float, n: int):
    east: int = i + 1
    if east == n:
        east = 0
    north: int = j + 1
    if north == n:
        north = 0
    q[i][j] -= k * (fx[east][j] - fx[i][j] + fy[i][north] - fy[i][j])


@pk.workunit
def average(i: int, j: int, q, before):
    q[i][j] = 0.5 * (before[i][j] + q[i][j])


@pk.workunit
def kinetic(i: int, j: int, acc: pk.Acc[pk.double], rho, mx, my):
    acc += 0.5 * (mx[i][j] * mx[i][j] + my[i][j] * my[i][j]) / rho[i][j]


@dataclass
class State:
    n: int
    h: float
    rho0: pk.View
    mx0: pk.View
    my0: pk.View
    e0: pk.View
    rho: pk.View
    mx: pk.View
    my: pk.View
    e: pk.View
    kinetic: float = 0.0


def setup(n: int) -> State:
    views = [pk.View([n, n], pk.double) for _ in range(8)]
    x, y = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n, indexing="ij")
    band = 0.5 * (np.tanh((y - 0.25) * 30) - np.tanh((y - 0.75) * 30))
    rho, u = 1 + band, band - 0.5
    v = (
        0.05
        * np.sin(4 * np.pi * x)
        * (np.exp(-(((y - 0.25) * 12) ** 2)) + np.exp(-(((y - 0.75) * 12) ** 2)))
    )
    views[0].data[:], views[1].data[:], views[2].data[:] = rho, rho * u, rho * v
    views[3].data[:] = 2.5 / (GAMMA - 1) + 0.5 * rho * (u**2 + v**2)
    return State(n, 1.0 / n, *views)


def run(s: State) -> None:
    n = s.n
    cells = pk.MDRangePolicy([0, 0], [n, n])
    rho, mx, my, e = now = [s.rho, s.mx, s.my, s.e]
    before, fx, fy, dx, dy = ([pk.View([n, n], pk.double) for _ in range(4)] for _ in range(5))
    u, v, p, speed = (pk.View([n, n], pk.double) for _ in range(4))
    for q, q0 in zip(now, [s.rho0, s.mx0, s.my0, s.e0]):
        pk.parallel_for(cells, copy, to=q, source=q0)
    for _ in range(STEPS):
        pk.parallel_for(cells, wave_speed, speed=speed, rho=rho, mx=mx, my=my, e=e)
        k = CFL / float(speed.data.max())  # dt / h
        for q, old in zip(now, before):
            pk.parallel_for(cells, copy, to=old, source=q)
        for _ in range(2):
            pk.parallel_for(cells, velocity, u=u, v=v, mx=mx, my=my, rho=rho)
            pk.parallel_for(cells, pressure, p=p, e=e, rho=rho, u=u, v=v)
            for q, a, b in zip([rho, u, v, p], dx, dy):
                pk.parallel_for(cells, slopes, dx=a, dy=b, q=q, n=n)
            pk.parallel_for(
                cells, flux, f_rho=fx[0], f_n=fx[1], f_t=fx[2], f_e=fx[3], rho=rho, un=u, ut=v,
                p=p, d_rho=dx[0], d_n=dx[1], d_t=dx[2], d_p=dx[3], di=1, dj=0, n=n,
            )  # fmt: skip
            pk.parallel_for(
                cells, flux, f_rho=fy[0], f_n=fy[2], f_t=fy[1], f_e=fy[3], rho=rho, un=v, ut=u,
                p=p, d_rho=dy[0], d_n=dy[2], d_t=dy[1], d_p=dy[3], di=0, dj=1, n=n,
            )  # fmt: skip
            for q, a, b in zip(now, fx, fy):
                pk.parallel_for(cells, update, q=q, fx=a, fy=b, k=k, n=n)
        for q, old in zip(now, before):
            pk.parallel_for(cells, average, q=q, before=old)
    total = pk.parallel_reduce(cells, kinetic, rho=rho, mx=mx, my=my)
    s.kinetic = float(total) * s.h * s.h


def outputs(s: State) -> dict:
    found = {name: np.array(getattr(s, name).data) for name in ("rho", "mx", "my", "e")}
    return {**found, "kinetic": np.array([s.kinetic])}


def check(s: State, n: int) -> None:
    def slope(q, axis):
        a, b = q - np.roll(q, 1, axis), np.roll(q, -1, axis) - q
        with np.errstate(all="ignore"):
            return np.where(a * b <= 0, 0.0, 2 * a * b / (a + b))

    def divergence(q):
        rho, u, v, e = q[0], q[1] / q[0], q[2] / q[0], q[3]
        prim = np.array([rho, u, v, (GAMMA - 1) * (e - 0.5 * rho * (u**2 + v**2))])
        total = 0
        for axis in (0, 1):
            d = np.array([slope(w, axis) for w in prim])
            sides = []
            for r, u, v, p in (np.roll(prim + d / 2, 1, axis + 1), prim - d / 2):
                energy, normal = p / (GAMMA - 1) + 0.5 * r * (u**2 + v**2), (u, v)[axis]
                state = np.array([r, r * u, r * v, energy])
                f = state * normal
                f[1 + axis] += p
                f[3] += p * normal
                sides.append((state, f, normal, np.sqrt(GAMMA * p / r)))
            (ql, fl, nl, cl), (qr, fr, nr, cr) = sides
            sl = np.minimum(np.minimum(nl - cl, nr - cr), 0)
            sr = np.maximum(np.maximum(nl + cl, nr + cr), 0)
            f = (sr * fl - sl * fr + sl * sr * (qr - ql)) / (sr - sl)
            total = total + np.roll(f, -1, axis + 1) - f
        return total

    start = q = np.array([v.data for v in (s.rho0, s.mx0, s.my0, s.e0)])
    for _ in range(STEPS):
        u, v = q[1] / q[0], q[2] / q[0]
        p = (GAMMA - 1) * (q[3] - 0.5 * q[0] * (u**2 + v**2))
        k = CFL / (abs(u) + abs(v) + 2 * np.sqrt(GAMMA * p / q[0])).max()
        one = q - k * divergence(q)
        q = 0.5 * (q + one - k * divergence(one))
    now = np.array([v.data for v in (s.rho, s.mx, s.my, s.e)])
    np.testing.assert_allclose(now, q, atol=1e-11)
    np.testing.assert_allclose(now.sum((1, 2)), start.sum((1, 2)), atol=1e-9)
    np.testing.assert_allclose(s.kinetic, np.mean(0.5 * (q[1] ** 2 + q[2] ** 2) / q[0]), rtol=1e-11)


if __name__ == "__main__":
    main(globals())
