"""A Swift-Hohenberg pattern that stirs a dye: fourth-order PDE and upwind advection, periodic."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 56, "default": 1600, "large": 2200}
STEPS = 4
DT, GROW, SQUARE, MIX, STIR = 0.02, 0.3, 1.2, 0.4, 0.8


@pk.workunit
def helmholtz(i, j, out, u, n):
    """(1 + lap) u."""
    up = (i + n - 1) % n
    down = (i + 1) % n
    left = (j + n - 1) % n
    right = (j + 1) % n
    out[i][j] = u[up][j] + u[down][j] + u[i][left] + u[i][right] - 3.0 * u[i][j]


@pk.workunit
def react(i, j, new, u, b, dt, grow, square):
    x = u[i][j]
    new[i][j] = x + dt * (grow * x + square * x * x - x * x * x - b[i][j])


@pk.workunit
def stream(i, j, vx, vy, u, n, stir):
    """Velocities on the right and lower sides of a cell; u is the stream function."""
    up = (i + n - 1) % n
    down = (i + 1) % n
    left = (j + n - 1) % n
    right = (j + 1) % n
    vx[i][j] = 0.25 * stir * (u[down][j] + u[down][right] - u[up][j] - u[up][right])
    vy[i][j] = -0.25 * stir * (u[i][right] + u[down][right] - u[i][left] - u[down][left])


@pk.workunit
def flux_x(i, j, f, v, c, n):
    right = (j + 1) % n
    if v[i][j] > 0.0:
        f[i][j] = v[i][j] * c[i][j]
    else:
        f[i][j] = v[i][j] * c[i][right]


@pk.workunit
def flux_y(i, j, f, v, c, n):
    down = (i + 1) % n
    if v[i][j] > 0.0:
        f[i][j] = v[i][j] * c[i][j]
    else:
        f[i][j] = v[i][j] * c[down][j]


@pk.workunit
def advance(i, j, new, c, fx, fy, dt, mix, n):
    up = (i + n - 1) % n
    down = (i + 1) % n
    left = (j + n - 1) % n
    right = (j + 1) % n
    lap = c[up][j] + c[down][j] + c[i][left] + c[i][right] - 4.0 * c[i][j]
    div = fx[i][j] - fx[i][left] + fy[i][j] - fy[up][j]
    new[i][j] = c[i][j] + dt * (mix * lap - div)


@pk.workunit
def mass(i, j, acc, c):
    acc += c[i][j]


@pk.workunit
def variance(i, j, acc, u, c):
    acc += u[i][j] * u[i][j] + c[i][j] * c[i][j]


@dataclass
class State:
    size: int
    u: pk.View
    u2: pk.View
    c: pk.View
    c2: pk.View
    mass: float = 0.0
    energy: float = 0.0


def setup(size):
    views = [pk.View([size, size], pk.double) for _ in range(4)]
    views[0].data[:] = rnd(size * size, 2).reshape(size, size) - 0.5
    views[2].data[:] = rnd(size * size, 3).reshape(size, size)
    return State(size, *views)


def run(s):
    n = s.size
    cells = pk.MDRangePolicy([0, 0], [n, n])
    w, b, vx, vy, fx, fy = (pk.View([n, n], pk.double) for _ in range(6))
    for _ in range(STEPS):
        pk.parallel_for(cells, helmholtz, out=w, u=s.u, n=n)
        pk.parallel_for(cells, helmholtz, out=b, u=w, n=n)
        pk.parallel_for(cells, react, new=s.u2, u=s.u, b=b, dt=DT, grow=GROW, square=SQUARE)
        pk.parallel_for(cells, stream, vx=vx, vy=vy, u=s.u2, n=n, stir=STIR)
        pk.parallel_for(cells, flux_x, f=fx, v=vx, c=s.c, n=n)
        pk.parallel_for(cells, flux_y, f=fy, v=vy, c=s.c, n=n)
        pk.parallel_for(cells, advance, new=s.c2, c=s.c, fx=fx, fy=fy, dt=DT, mix=MIX, n=n)
        s.u, s.u2, s.c, s.c2 = s.u2, s.u, s.c2, s.c
    s.mass = pk.parallel_reduce(cells, mass, c=s.c)
    s.energy = pk.parallel_reduce(cells, variance, u=s.u, c=s.c)


def outputs(s):
    return {
        "u": np.array(s.u.data),
        "c": np.array(s.c.data),
        "mass": float(s.mass),
        "energy": float(s.energy),
    }


def check(s, size, runs):
    np.testing.assert_allclose(float(s.mass), float(np.sum(rnd(size * size, 3))), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
