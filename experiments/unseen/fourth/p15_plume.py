"""A mini-app: hot particles in a periodic flow that they drive.

Buoyancy, a projection by sweeps until the residual allows, an upwind transport of heat, particles
with random walks (xorshift) that give off heat to their cells (fixed point), a step length from a
norm of the velocities, and energies of groups.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 48, "default": 1400, "large": 1900}
STEPS, MOST, SCALE = 2, 16, 1048576.0


@pk.workunit
def buoyancy(i, j, v, heat, dt):
    v[i][j] += dt * heat[i][j]


@pk.workunit
def drag(i, j, u, v, factor):
    u[i][j] *= factor
    v[i][j] *= factor


@pk.workunit
def divergence(i, j, div, u, v, n):
    left = (j + n - 1) % n
    up = (i + n - 1) % n
    div[i][j] = u[i][j] - u[i][left] + v[i][j] - v[up][j]


@pk.workunit
def sweep(i, j, new, p, div, n):
    up = (i + n - 1) % n
    down = (i + 1) % n
    left = (j + n - 1) % n
    right = (j + 1) % n
    new[i][j] = 0.25 * (p[up][j] + p[down][j] + p[i][left] + p[i][right] - div[i][j])


@pk.workunit
def change(i, j, acc, new, p):
    d = new[i][j] - p[i][j]
    acc += d * d


@pk.workunit
def square(i, j, acc, a):
    acc += a[i][j] * a[i][j]


@pk.workunit
def project(i, j, u, v, p, n):
    down = (i + 1) % n
    right = (j + 1) % n
    u[i][j] -= p[i][right] - p[i][j]
    v[i][j] -= p[down][j] - p[i][j]


@pk.workunit
def speed8(i, j, acc, u, v):
    s = u[i][j] * u[i][j] + v[i][j] * v[i][j]
    s = s * s
    acc += s * s


@pk.workunit
def flux(i, j, fx, fy, u, v, heat, n):
    down = (i + 1) % n
    right = (j + 1) % n
    fx[i][j] = u[i][j] * (heat[i][j] if u[i][j] > 0.0 else heat[i][right])
    fy[i][j] = v[i][j] * (heat[i][j] if v[i][j] > 0.0 else heat[down][j])


@pk.workunit
def transport(i, j, heat, fx, fy, n, dt):
    left = (j + n - 1) % n
    up = (i + n - 1) % n
    heat[i][j] -= dt * (fx[i][j] - fx[i][left] + fy[i][j] - fy[up][j])


@pk.workunit
def shuffle(k, seed: pk.View1D[pk.uint32]):
    s: pk.uint32 = seed[k]
    s = s ^ (s << 13)
    s = s ^ (s >> 17)
    s = s ^ (s << 5)
    seed[k] = s


@pk.workunit
def locate(k, row: pk.View1D[pk.int32], col: pk.View1D[pk.int32], x, y):
    row[k] = y[k]
    col[k] = x[k]


@pk.workunit
def drift(k, x, y, row, col, u, v, dt):
    x[k] += dt * u[row[k]][col[k]]
    y[k] += dt * v[row[k]][col[k]]


@pk.workunit
def jitter(k, x, y, seed: pk.View1D[pk.uint32], size):
    a: int = seed[k] & 4095
    b: int = (seed[k] >> 12) & 4095
    x[k] += size * (a - 2048) / 4096.0
    y[k] += size * (b - 2048) / 4096.0


@pk.workunit
def wrap(k, x, width):
    if x[k] < 0.0:
        x[k] += width
    if x[k] >= width:
        x[k] -= width


@pk.workunit
def empty(i, j, tally: pk.View2D[pk.int64]):
    tally[i][j] = 0


@pk.workunit
def give(k, tally: pk.View2D[pk.int64], e, row, col, share, scale):
    amount: pk.int64 = share * e[k] * scale
    pk.atomic_add(tally, [row[k], col[k]], amount)


@pk.workunit
def cool(k, e, share):
    e[k] -= share * e[k]


@pk.workunit
def receive(i, j, heat, tally: pk.View2D[pk.int64], scale):
    heat[i][j] += tally[i][j] / scale


@pk.workunit
def group_energy(k, acc, e, seed: pk.View1D[pk.uint32], group: int):
    g: int = seed[k] & 3
    if g == group:
        acc += e[k]


@dataclass
class State:
    n: int
    m: int
    u: pk.View
    v: pk.View
    heat: pk.View
    p: pk.View
    x: pk.View
    y: pk.View
    e: pk.View
    seed: pk.View
    sweeps: int = 0
    dt: float = 0.1
    energies: list = None


def setup(n):
    m = n * n
    grid = [pk.View([n, n], pk.double) for _ in range(4)]
    parts = [pk.View([m], pk.double) for _ in range(3)]
    seed = pk.View([m], pk.uint32)
    for k in range(3):
        grid[k].data[:] = rnd(n * n, 150 + k).reshape(n, n) - 0.5
    for k in range(3):
        parts[k].data[:] = rnd(m, 160 + k) * (n if k < 2 else 1)
    seed.data[:] = (4e9 * rnd(m, 170)).astype(np.uint32) + np.uint32(1)
    return State(n, m, *grid, *parts, seed)


def run(s):
    n, m = s.n, s.m
    cells = pk.MDRangePolicy([0, 0], [n, n])
    div, p2, fx, fy = (pk.View([n, n], pk.double) for _ in range(4))
    row, col = pk.View([m], pk.int32), pk.View([m], pk.int32)
    tally = pk.View([n, n], pk.int64)
    s.sweeps = 0
    for _ in range(STEPS):
        pk.parallel_for(cells, buoyancy, v=s.v, heat=s.heat, dt=s.dt)
        pk.parallel_for(cells, drag, u=s.u, v=s.v, factor=0.99)
        pk.parallel_for(cells, divergence, div=div, u=s.u, v=s.v, n=n)
        goal = 0.003 * float(pk.parallel_reduce(cells, square, a=div))
        for k in range(1, MOST + 1):
            pk.parallel_for(cells, sweep, new=p2, p=s.p, div=div, n=n)
            if k % 4 == 0:
                moved = pk.parallel_reduce(cells, change, new=p2, p=s.p)
            s.p, p2 = p2, s.p
            s.sweeps += 1
            if k % 4 == 0 and moved < goal:
                break
        pk.parallel_for(cells, project, u=s.u, v=s.v, p=s.p, n=n)
        fastest = float(pk.parallel_reduce(cells, speed8, u=s.u, v=s.v)) ** 0.125
        s.dt = min(0.3, 0.5 / fastest)
        pk.parallel_for(cells, flux, fx=fx, fy=fy, u=s.u, v=s.v, heat=s.heat, n=n)
        pk.parallel_for(cells, transport, heat=s.heat, fx=fx, fy=fy, n=n, dt=s.dt)
        pk.parallel_for(m, locate, row=row, col=col, x=s.x, y=s.y)
        pk.parallel_for(m, shuffle, seed=s.seed)
        pk.parallel_for(m, drift, x=s.x, y=s.y, row=row, col=col, u=s.u, v=s.v, dt=s.dt)
        pk.parallel_for(m, jitter, x=s.x, y=s.y, seed=s.seed, size=0.5)
        pk.parallel_for(m, wrap, x=s.x, width=float(n))
        pk.parallel_for(m, wrap, x=s.y, width=float(n))
        pk.parallel_for(cells, empty, tally=tally)
        pk.parallel_for(m, give, tally=tally, e=s.e, row=row, col=col, share=0.1, scale=SCALE)
        pk.parallel_for(m, cool, e=s.e, share=0.1)
        pk.parallel_for(cells, receive, heat=s.heat, tally=tally, scale=SCALE)
    sums = [pk.parallel_reduce(m, group_energy, e=s.e, seed=s.seed, group=g) for g in range(4)]
    s.energies = [float(v) for v in sums]


def outputs(s):
    arrays = {k: np.array(getattr(s, k).data) for k in ("u", "v", "heat", "p", "x", "y", "e")}
    return {**arrays, "sweeps": float(s.sweeps), "dt": s.dt, "energies": np.array(s.energies)}


def check(s, size, runs):
    np.testing.assert_allclose(sum(s.energies), s.e.data.sum(), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
