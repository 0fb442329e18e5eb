"""A discontinuous Galerkin method for sound in layered rock: five Gauss-Lobatto nodes an element.

Exact Riemann solutions at the interfaces, low-storage Runge-Kutta of five stages; periodic.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 200, "default": 10_000, "large": 200_000}
NODES, STEPS = 5, 2
A = [0.0, -567301805773 / 1357537059087, -2404267990393 / 2016746695238]
A += [-3550918686646 / 2091501179385, -1275806237668 / 842570457699]
B = [1432997174477 / 9575080441755, 5161836677717 / 13612068292357, 1720146321549 / 2090206949498]
B += [3134564353537 / 4481467310338, 2277821191437 / 14882151754819]


@pk.workunit
def fill(e: int, i: int, to, source):
    to[e][i] = source[e][i]


@pk.workunit
def clear(e: int, i: int, r):
    r[e][i] = 0.0


@pk.workunit
def derivative(e: int, i: int, dx, f, d):
    total: pk.double = 0.0
    for j in range(NODES):
        total += d[i][j] * f[e][j]
    dx[e][i] = total


@pk.workunit
def riemann(f: int, ps, us, p, u, z, elements: int):
    """The state at the left face of element f."""
    left: int = f - 1
    if f == 0:
        left = elements - 1
    zl: pk.double = z[left]
    zr: pk.double = z[f]
    jump_u: pk.double = u[left][NODES - 1] - u[f][0]
    jump_p: pk.double = p[left][NODES - 1] - p[f][0]
    us[f] = (zl * u[left][NODES - 1] + zr * u[f][0] + jump_p) / (zl + zr)
    ps[f] = (zr * p[left][NODES - 1] + zl * p[f][0] + zl * zr * jump_u) / (zl + zr)


@pk.workunit
def lift(e: int, dx, f, star, weight: float, elements: int):
    right: int = e + 1
    if right == elements:
        right = 0
    dx[e][0] -= (star[e] - f[e][0]) / weight
    dx[e][NODES - 1] += (star[right] - f[e][NODES - 1]) / weight


@pk.workunit
def residual(e: int, i: int, r, dx, coefficient, a: float, k: float):
    r[e][i] = a * r[e][i] - k * coefficient[e] * dx[e][i]


@pk.workunit
def advance(e: int, i: int, f, r, b: float):
    f[e][i] += b * r[e][i]


@pk.workunit
def energy(e: int, i: int, acc: pk.Acc[pk.double], p, u, bulk, lightness, w):
    acc += 0.5 * w[i] * (p[e][i] * p[e][i] / bulk[e] + u[e][i] * u[e][i] / lightness[e])


@dataclass
class State:
    n: int
    dt: float
    h: float
    d: pk.View
    w: pk.View
    bulk: pk.View
    lightness: pk.View
    z: pk.View
    p0: pk.View
    u0: pk.View
    p: pk.View
    u: pk.View
    energy: float = 0.0


def setup(n: int) -> State:
    x = np.array([-1.0, -((3 / 7) ** 0.5), 0.0, (3 / 7) ** 0.5, 1.0])
    bary = np.array([1 / np.prod([a - b for b in x if b != a]) for a in x])
    d, w = pk.View([NODES, NODES], pk.double), pk.View([NODES], pk.double)
    for i in range(NODES):
        for j in range(NODES):
            if i != j:
                d.data[i, j] = bary[j] / bary[i] / (x[i] - x[j])
        d.data[i, i] = -d.data[i].sum()
    w.data[:] = [1 / 10, 49 / 90, 32 / 45, 49 / 90, 1 / 10]
    bulk, lightness, z = (pk.View([n], pk.double) for _ in range(3))
    layer = np.arange(n) // 20
    density, speed = 1 + 0.3 * np.sin(layer), 1 + 0.5 * np.cos(2.0 * layer)
    bulk.data[:], lightness.data[:], z.data[:] = density * speed**2, 1 / density, density * speed
    p0, u0, p, u = (pk.View([n, NODES], pk.double) for _ in range(4))
    place = (np.arange(n)[:, None] + 0.5 + 0.5 * x) / n
    p0.data[:] = np.exp(-(((place - 0.4) * 30) ** 2)) + 0.1 * np.sin(20 * np.pi * place)
    u0.data[:] = 0.2 * np.cos(8 * np.pi * place)
    h = 1.0 / n
    return State(n, 0.15 * h / 1.5, h, d, w, bulk, lightness, z, p0, u0, p, u)


def run(s: State) -> None:
    n, p, u, k = s.n, s.p, s.u, 2 * s.dt / s.h
    nodes = pk.MDRangePolicy([0, 0], [n, NODES])
    rp, ru, dp, du = (pk.View([n, NODES], pk.double) for _ in range(4))
    ps, us = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(nodes, fill, to=p, source=s.p0)
    pk.parallel_for(nodes, fill, to=u, source=s.u0)
    pk.parallel_for(nodes, clear, r=rp)
    pk.parallel_for(nodes, clear, r=ru)
    for _ in range(STEPS):
        for a, b in zip(A, B):
            pk.parallel_for(nodes, derivative, dx=dp, f=p, d=s.d)
            pk.parallel_for(nodes, derivative, dx=du, f=u, d=s.d)
            pk.parallel_for(n, riemann, ps=ps, us=us, p=p, u=u, z=s.z, elements=n)
            pk.parallel_for(n, lift, dx=dp, f=p, star=ps, weight=0.1, elements=n)
            pk.parallel_for(n, lift, dx=du, f=u, star=us, weight=0.1, elements=n)
            pk.parallel_for(nodes, residual, r=rp, dx=du, coefficient=s.bulk, a=a, k=k)
            pk.parallel_for(nodes, residual, r=ru, dx=dp, coefficient=s.lightness, a=a, k=k)
            pk.parallel_for(nodes, advance, f=p, r=rp, b=b)
            pk.parallel_for(nodes, advance, f=u, r=ru, b=b)
    views = {"p": p, "u": u, "bulk": s.bulk, "lightness": s.lightness, "w": s.w}
    s.energy = float(pk.parallel_reduce(nodes, energy, **views)) * s.h / 2


def outputs(s: State) -> dict:
    return {"p": np.array(s.p.data), "u": np.array(s.u.data), "energy": np.array([s.energy])}


def check(s: State, n: int) -> None:
    d, bulk, light, z = (np.array(v.data) for v in (s.d, s.bulk, s.lightness, s.z))
    p, u = np.array(s.p0.data), np.array(s.u0.data)

    def total(p, u):
        return 0.25 * s.h * ((p**2 / bulk[:, None] + u**2 / light[:, None]) @ s.w.data).sum()

    before, rp, ru, zl = total(p, u), 0 * p, 0 * u, np.roll(z, 1)
    for _ in range(STEPS):
        for a, b in zip(A, B):
            dp, du = p @ d.T, u @ d.T
            pl, ul = np.roll(p[:, -1], 1), np.roll(u[:, -1], 1)
            us = (zl * ul + z * u[:, 0] + pl - p[:, 0]) / (zl + z)
            ps = (z * pl + zl * p[:, 0] + zl * z * (ul - u[:, 0])) / (zl + z)
            for dx, f, star in ((dp, p, ps), (du, u, us)):
                dx[:, 0] -= (star - f[:, 0]) / 0.1
                dx[:, -1] += (np.roll(star, -1) - f[:, -1]) / 0.1
            rp = a * rp - 2 * s.dt / s.h * bulk[:, None] * du
            ru = a * ru - 2 * s.dt / s.h * light[:, None] * dp
            p, u = p + b * rp, u + b * ru
    np.testing.assert_allclose(s.p.data, p, atol=1e-11)
    np.testing.assert_allclose(s.u.data, u, atol=1e-11)
    assert 0.98 * before < s.energy <= before * (1 + 1e-9)


if __name__ == "__main__":
    main(globals())
