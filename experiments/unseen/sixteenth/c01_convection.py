# ruff: noqa: B905
"""Convection in a box heated from below: velocity, pressure and temperature on a 3-D grid.

Artificial compressibility, central differences, one ghost layer; periodic sides, rigid plates.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 12, "default": 48, "large": 130}
STEPS = 2
HOT, COLD = 1.0, 0.0


@pk.workunit
def fill(i: int, j: int, k: int, to, source):
    to[i][j][k] = source[i][j][k]


@pk.workunit
def periodic(a: int, b: int, f, n: int):
    f[0][a][b] = f[n][a][b]
    f[n + 1][a][b] = f[1][a][b]
    f[a][0][b] = f[a][n][b]
    f[a][n + 1][b] = f[a][1][b]


@pk.workunit
def no_slip(i: int, j: int, f, n: int):
    f[i][j][0] = -f[i][j][1]
    f[i][j][n + 1] = -f[i][j][n]


@pk.workunit
def plates(i: int, j: int, t, n: int):
    t[i][j][0] = 2.0 * HOT - t[i][j][1]
    t[i][j][n + 1] = 2.0 * COLD - t[i][j][n]


@pk.workunit
def no_gradient(i: int, j: int, p, n: int):
    p[i][j][0] = p[i][j][1]
    p[i][j][n + 1] = p[i][j][n]


@pk.workunit
def advection(i: int, j: int, k: int, out, f, u, v, w, c: float):
    along_x: pk.double = u[i][j][k] * (f[i + 1][j][k] - f[i - 1][j][k])
    along_y: pk.double = v[i][j][k] * (f[i][j + 1][k] - f[i][j - 1][k])
    along_z: pk.double = w[i][j][k] * (f[i][j][k + 1] - f[i][j][k - 1])
    out[i][j][k] = c * (along_x + along_y + along_z)


@pk.workunit
def laplacian(i: int, j: int, k: int, out, f, h2: float):
    around: pk.double = f[i + 1][j][k] + f[i - 1][j][k] + f[i][j + 1][k] + f[i][j - 1][k]
    around += f[i][j][k + 1] + f[i][j][k - 1]
    out[i][j][k] = (around - 6.0 * f[i][j][k]) * h2


@pk.workunit
def advance(i: int, j: int, k: int, f, adv, lap, nu: float, dt: float):
    f[i][j][k] += dt * (nu * lap[i][j][k] - adv[i][j][k])


@pk.workunit
def push_x(i: int, j: int, k: int, u, p, c: float):
    u[i][j][k] -= c * (p[i + 1][j][k] - p[i - 1][j][k])


@pk.workunit
def push_y(i: int, j: int, k: int, v, p, c: float):
    v[i][j][k] -= c * (p[i][j + 1][k] - p[i][j - 1][k])


@pk.workunit
def push_z(i: int, j: int, k: int, w, p, c: float):
    w[i][j][k] -= c * (p[i][j][k + 1] - p[i][j][k - 1])


@pk.workunit
def buoyancy(i: int, j: int, k: int, w, t, lift: float, dt: float):
    w[i][j][k] += dt * lift * (t[i][j][k] - 0.5)


@pk.workunit
def divergence(i: int, j: int, k: int, div, u, v, w, c: float):
    dx: pk.double = u[i + 1][j][k] - u[i - 1][j][k]
    dy: pk.double = v[i][j + 1][k] - v[i][j - 1][k]
    dz: pk.double = w[i][j][k + 1] - w[i][j][k - 1]
    div[i][j][k] = c * (dx + dy + dz)


@pk.workunit
def compress(i: int, j: int, k: int, p, div, c: float):
    p[i][j][k] -= c * div[i][j][k]


@pk.workunit
def kinetic(i: int, j: int, k: int, acc: pk.Acc[pk.double], u, v, w):
    acc += 0.5 * (u[i][j][k] * u[i][j][k] + v[i][j][k] * v[i][j][k] + w[i][j][k] * w[i][j][k])


@dataclass
class State:
    n: int
    h: float
    dt: float
    nu: float
    kappa: float
    lift: float
    sound2: float
    u0: pk.View
    v0: pk.View
    w0: pk.View
    p0: pk.View
    t0: pk.View
    u: pk.View
    v: pk.View
    w: pk.View
    p: pk.View
    t: pk.View
    energy: float = 0.0


def setup(n: int) -> State:
    h = 1.0 / n
    shape = [n + 2, n + 2, n + 2]
    u0, v0, w0, p0, t0, u, v, w, p, t = (pk.View(shape, pk.double) for _ in range(10))
    place = (np.arange(n + 2) - 0.5) * h
    x, y, z = place[:, None, None], place[None, :, None], place[None, None, :]
    u0.data[:] = 0.1 * np.sin(2 * np.pi * y) * np.sin(np.pi * z)
    v0.data[:] = 0.1 * np.cos(2 * np.pi * x) * np.sin(np.pi * z)
    w0.data[:] = 0.05 * np.sin(2 * np.pi * x) * np.cos(4 * np.pi * y) * np.sin(np.pi * z)
    p0.data[:] = 0.01 * np.cos(2 * np.pi * (x + y)) * np.cos(np.pi * z)
    t0.data[:] = 1 - z + 0.1 * np.sin(4 * np.pi * x) * np.sin(2 * np.pi * y) * np.sin(np.pi * z)
    return State(n, h, 0.1 * h, 0.02 * h, 0.03 * h, 2.0, 4.0, u0, v0, w0, p0, t0, u, v, w, p, t)


def run(s: State) -> None:
    n, u, v, w, p, t = s.n, s.u, s.v, s.w, s.p, s.t
    everywhere = pk.MDRangePolicy([0, 0, 0], [n + 2, n + 2, n + 2])
    inside = pk.MDRangePolicy([1, 1, 1], [n + 1, n + 1, n + 1])
    side = pk.MDRangePolicy([1, 1], [n + 1, n + 1])
    shape = [n + 2, n + 2, n + 2]
    adv = [pk.View(shape, pk.double) for _ in range(4)]
    lap = [pk.View(shape, pk.double) for _ in range(4)]
    div = pk.View(shape, pk.double)
    half, h2, dt = 0.5 / s.h, 1.0 / (s.h * s.h), s.dt
    for to, source in ((u, s.u0), (v, s.v0), (w, s.w0), (p, s.p0), (t, s.t0)):
        pk.parallel_for(everywhere, fill, to=to, source=source)
    for _ in range(STEPS):
        for f in (u, v, w):
            pk.parallel_for(side, periodic, f=f, n=n)
            pk.parallel_for(side, no_slip, f=f, n=n)
        pk.parallel_for(side, periodic, f=t, n=n)
        pk.parallel_for(side, plates, t=t, n=n)
        pk.parallel_for(side, periodic, f=p, n=n)
        pk.parallel_for(side, no_gradient, p=p, n=n)
        for f, a, d in zip((u, v, w, t), adv, lap):
            pk.parallel_for(inside, advection, out=a, f=f, u=u, v=v, w=w, c=half)
            pk.parallel_for(inside, laplacian, out=d, f=f, h2=h2)
        pk.parallel_for(inside, buoyancy, w=w, t=t, lift=s.lift, dt=dt)
        for f, a, d, nu in zip((u, v, w, t), adv, lap, (s.nu, s.nu, s.nu, s.kappa)):
            pk.parallel_for(inside, advance, f=f, adv=a, lap=d, nu=nu, dt=dt)
        pk.parallel_for(inside, push_x, u=u, p=p, c=dt * half)
        pk.parallel_for(inside, push_y, v=v, p=p, c=dt * half)
        pk.parallel_for(inside, push_z, w=w, p=p, c=dt * half)
        for f in (u, v, w):
            pk.parallel_for(side, periodic, f=f, n=n)
            pk.parallel_for(side, no_slip, f=f, n=n)
        pk.parallel_for(inside, divergence, div=div, u=u, v=v, w=w, c=half)
        pk.parallel_for(inside, compress, p=p, div=div, c=s.sound2 * dt)
    s.energy = float(pk.parallel_reduce(inside, kinetic, u=u, v=v, w=w)) * s.h**3


def outputs(s: State) -> dict:
    fields = {"u": s.u, "v": s.v, "w": s.w, "p": s.p, "t": s.t}
    inner = {name: np.array(f.data[1:-1, 1:-1, 1:-1]) for name, f in fields.items()}
    return {**inner, "energy": np.array([s.energy])}


def check(s: State, n: int) -> None:
    u, v, w, p, t = (np.array(f.data) for f in (s.u0, s.v0, s.w0, s.p0, s.t0))
    c, dt = 0.5 / s.h, s.dt
    i = (slice(1, -1),) * 3

    def wrap(f, low, high):
        f[0], f[-1] = f[-2], f[1]
        f[:, 0], f[:, -1] = f[:, -2], f[:, 1]
        f[:, :, 0], f[:, :, -1] = low(f[:, :, 1]), high(f[:, :, -2])

    def diff(f, axis):
        return (np.roll(f, -1, axis) - np.roll(f, 1, axis))[i] * c

    def lap(f):
        return (sum(np.roll(f, d, a) for a in range(3) for d in (1, -1)) - 6 * f)[i] / s.h**2

    for _ in range(STEPS):
        for f in (u, v, w):
            wrap(f, np.negative, np.negative)
        wrap(t, lambda x: 2 * HOT - x, lambda x: 2 * COLD - x)
        wrap(p, np.copy, np.copy)
        change = []
        for f, nu in ((u, s.nu), (v, s.nu), (w, s.nu), (t, s.kappa)):
            adv = u[i] * diff(f, 0) + v[i] * diff(f, 1) + w[i] * diff(f, 2)
            change.append(dt * (nu * lap(f) - adv))
        for axis in range(3):
            change[axis] -= dt * diff(p, axis)
        change[2] += dt * s.lift * (t[i] - 0.5)
        for f, d in zip((u, v, w, t), change):
            f[i] += d
        for f in (u, v, w):
            wrap(f, np.negative, np.negative)
        p[i] -= s.sound2 * dt * (diff(u, 0) + diff(v, 1) + diff(w, 2))
    for view, f in ((s.u, u), (s.v, v), (s.w, w), (s.p, p), (s.t, t)):
        np.testing.assert_allclose(view.data[i], f[i], rtol=1e-11, atol=1e-12)
    energy = 0.5 * (u[i] ** 2 + v[i] ** 2 + w[i] ** 2).sum() * s.h**3
    np.testing.assert_allclose(s.energy, energy, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
