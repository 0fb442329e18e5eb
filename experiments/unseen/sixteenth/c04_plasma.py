"""A plasma as particles in cells: charge to a grid, potential, field back to the particles.

Charge is added up in units of 1/65536, so that the order of the atomic additions does not matter.
"""

from dataclasses import dataclass
from math import cos, sin

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_500, "default": 100_000, "large": 2_000_000}
STEPS, SWEEPS = 3, 6
UNITS = 65536


@pk.workunit
def fill(i: int, to: pk.View1D[pk.double], source: pk.View1D[pk.double]):
    to[i] = source[i]


@pk.workunit
def clear(i: int, j: int, f: pk.View2D[pk.double]):
    f[i][j] = 0.0


@pk.workunit
def empty(i: int, j: int, charge: pk.View2D[pk.int32]):
    charge[i][j] = 0


@pk.workunit
def locate(i: int, cell: pk.View1D[pk.int32], part: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    cell[i] = int(x[i])
    part[i] = x[i] - cell[i]


@pk.workunit
def deposit(i: int, charge: pk.View2D[pk.int32], cx, cy, fx, fy, g: int):
    left: int = cx[i]
    low: int = cy[i]
    right: int = (left + 1) % g
    high: int = (low + 1) % g
    a: int = int((1.0 - fx[i]) * (1.0 - fy[i]) * UNITS)
    b: int = int((1.0 - fx[i]) * fy[i] * UNITS)
    c: int = int(fx[i] * (1.0 - fy[i]) * UNITS)
    pk.atomic_add(charge, [left, low], a)
    pk.atomic_add(charge, [left, high], b)
    pk.atomic_add(charge, [right, low], c)
    pk.atomic_add(charge, [right, high], UNITS - a - b - c)


@pk.workunit
def density(i: int, j: int, rho: pk.View2D[pk.double], charge: pk.View2D[pk.int32], scale: float):
    """With a uniform background, so that the total is none."""
    rho[i][j] = charge[i][j] * scale - 1.0


@pk.workunit
def jacobi(i: int, j: int, new, phi, rho, g: int):
    left: int = i - 1
    right: int = i + 1
    low: int = j - 1
    high: int = j + 1
    if i == 0:
        left = g - 1
    if right == g:
        right = 0
    if j == 0:
        low = g - 1
    if high == g:
        high = 0
    new[i][j] = 0.25 * (phi[left][j] + phi[right][j] + phi[i][low] + phi[i][high] + rho[i][j])


@pk.workunit
def field(i: int, j: int, ex, ey, phi, g: int):
    ex[i][j] = 0.5 * (phi[(i + g - 1) % g][j] - phi[(i + 1) % g][j])
    ey[i][j] = 0.5 * (phi[i][(j + g - 1) % g] - phi[i][(j + 1) % g])


@pk.workunit
def gather(i: int, out, e, cx, cy, fx, fy, g: int):
    left: int = cx[i]
    low: int = cy[i]
    right: int = (left + 1) % g
    high: int = (low + 1) % g
    lower: pk.double = (1.0 - fx[i]) * e[left][low] + fx[i] * e[right][low]
    upper: pk.double = (1.0 - fx[i]) * e[left][high] + fx[i] * e[right][high]
    out[i] = (1.0 - fy[i]) * lower + fy[i] * upper


@pk.workunit
def kick(i: int, v: pk.View1D[pk.double], e: pk.View1D[pk.double], dt: float):
    v[i] -= dt * e[i]


@pk.workunit
def rotate(i: int, vx: pk.View1D[pk.double], vy: pk.View1D[pk.double], c: float, s: float):
    """The magnetic field, which points out of the plane."""
    old: pk.double = vx[i]
    vx[i] = c * old - s * vy[i]
    vy[i] = s * old + c * vy[i]


@pk.workunit
def move(i: int, x: pk.View1D[pk.double], v: pk.View1D[pk.double], dt: float):
    x[i] += dt * v[i]


@pk.workunit
def wrap(i: int, x: pk.View1D[pk.double], length: float):
    if x[i] < 0.0:
        x[i] += length
    if x[i] >= length:
        x[i] -= length


@pk.workunit
def kinetic(i: int, acc: pk.Acc[pk.double], vx: pk.View1D[pk.double], vy: pk.View1D[pk.double]):
    acc += 0.5 * (vx[i] * vx[i] + vy[i] * vy[i])


@pk.workunit
def electric(i: int, j: int, acc: pk.Acc[pk.double], ex, ey):
    acc += 0.5 * (ex[i][j] * ex[i][j] + ey[i][j] * ey[i][j])


@dataclass
class State:
    n: int
    g: int
    dt: float
    turn: float
    x0: pk.View
    y0: pk.View
    vx0: pk.View
    vy0: pk.View
    x: pk.View
    y: pk.View
    vx: pk.View
    vy: pk.View
    phi: pk.View
    history: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(4)
    g = int((n / 8) ** 0.5)
    x0, y0, vx0, vy0, x, y, vx, vy = (pk.View([n], pk.double) for _ in range(8))
    start = rng.random(n) * g
    x0.data[:] = (start + 0.5 * np.sin(2 * np.pi * start / g * 2)) % g
    y0.data[:] = rng.random(n) * g
    vx0.data[:] = 0.3 * rng.normal(size=n) + np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    vy0.data[:] = 0.3 * rng.normal(size=n)
    phi, history = pk.View([g, g], pk.double), pk.View([STEPS, 2], pk.double)
    return State(n, g, 0.2, 0.05, x0, y0, vx0, vy0, x, y, vx, vy, phi, history)


def run(s: State) -> None:
    n, g, x, y, vx, vy, phi = s.n, s.g, s.x, s.y, s.vx, s.vy, s.phi
    grid = pk.MDRangePolicy([0, 0], [g, g])
    cx, cy = pk.View([n], pk.int32), pk.View([n], pk.int32)
    fx, fy, ax, ay = (pk.View([n], pk.double) for _ in range(4))
    rho, other, ex, ey = (pk.View([g, g], pk.double) for _ in range(4))
    charge = pk.View([g, g], pk.int32)
    for to, source in ((x, s.x0), (y, s.y0), (vx, s.vx0), (vy, s.vy0)):
        pk.parallel_for(n, fill, to=to, source=source)
    pk.parallel_for(grid, clear, f=phi)
    where = {"cx": cx, "cy": cy, "fx": fx, "fy": fy, "g": g}
    for step in range(STEPS):
        pk.parallel_for(grid, empty, charge=charge)
        pk.parallel_for(n, locate, cell=cx, part=fx, x=x)
        pk.parallel_for(n, locate, cell=cy, part=fy, x=y)
        pk.parallel_for(n, deposit, charge=charge, **where)
        pk.parallel_for(grid, density, rho=rho, charge=charge, scale=g * g / (n * UNITS))
        for _ in range(SWEEPS // 2):
            pk.parallel_for(grid, jacobi, new=other, phi=phi, rho=rho, g=g)
            pk.parallel_for(grid, jacobi, new=phi, phi=other, rho=rho, g=g)
        pk.parallel_for(grid, field, ex=ex, ey=ey, phi=phi, g=g)
        pk.parallel_for(n, gather, out=ax, e=ex, **where)
        pk.parallel_for(n, gather, out=ay, e=ey, **where)
        pk.parallel_for(n, kick, v=vx, e=ax, dt=s.dt)
        pk.parallel_for(n, kick, v=vy, e=ay, dt=s.dt)
        pk.parallel_for(n, rotate, vx=vx, vy=vy, c=cos(s.turn), s=sin(s.turn))
        for place, v in ((x, vx), (y, vy)):
            pk.parallel_for(n, move, x=place, v=v, dt=s.dt)
            pk.parallel_for(n, wrap, x=place, length=float(g))
        s.history[step, 0] = float(pk.parallel_reduce(n, kinetic, vx=vx, vy=vy)) / n
        s.history[step, 1] = float(pk.parallel_reduce(grid, electric, ex=ex, ey=ey)) / n


def outputs(s: State) -> dict:
    views = {"x": s.x, "y": s.y, "vx": s.vx, "vy": s.vy, "phi": s.phi, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    x, y, vx, vy = (np.array(v.data) for v in (s.x0, s.y0, s.vx0, s.vy0))
    g, phi, c, sn = s.g, np.zeros((s.g, s.g)), np.cos(s.turn), np.sin(s.turn)
    for step in range(STEPS):
        i, j = x.astype(int), y.astype(int)
        fx, fy, ip, jp = x - i, y - j, (i + 1) % g, (j + 1) % g
        charge = np.zeros((g, g), np.int64)
        a, b, d = (
            np.trunc(w * UNITS).astype(int)
            for w in ((1 - fx) * (1 - fy), (1 - fx) * fy, fx * (1 - fy))
        )
        for at, w in (((i, j), a), ((i, jp), b), ((ip, j), d), ((ip, jp), UNITS - a - b - d)):
            np.add.at(charge, at, w)
        assert charge.sum() == n * UNITS
        rho = charge * (g * g / (n * UNITS)) - 1
        for _ in range(SWEEPS):
            phi = 0.25 * (sum(np.roll(phi, k, m) for m in (0, 1) for k in (1, -1)) + rho)
        ex, ey = (0.5 * (np.roll(phi, 1, m) - np.roll(phi, -1, m)) for m in (0, 1))
        for v, e in ((vx, ex), (vy, ey)):
            lower = (1 - fx) * e[i, j] + fx * e[ip, j]
            upper = (1 - fx) * e[i, jp] + fx * e[ip, jp]
            v -= s.dt * ((1 - fy) * lower + fy * upper)
        vx, vy = c * vx - sn * vy, sn * vx + c * vy
        x, y = (x + s.dt * vx) % g, (y + s.dt * vy) % g
        energies = [0.5 * (vx**2 + vy**2).sum() / n, 0.5 * (ex**2 + ey**2).sum() / n]
        np.testing.assert_allclose(s.history.data[step], energies, rtol=1e-8)
    for view, expected in ((s.x, x), (s.y, y), (s.vx, vx), (s.vy, vy), (s.phi, phi)):
        np.testing.assert_allclose(view.data, expected, rtol=1e-8, atol=1e-9)


if __name__ == "__main__":
    main(globals())
