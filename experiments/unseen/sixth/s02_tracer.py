"""A tracer in a swirling flow: finite volumes with van Leer's slopes, Heun's two stages."""

from dataclasses import dataclass
from math import fabs

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 64, "default": 500, "large": 2000}
STEPS, CFL = 2, 0.2


@pk.workunit
def slope_x(i, j, s, q):
    a: float = q[i][j] - q[i - 1][j]
    b: float = q[i + 1][j] - q[i][j]
    if a * b > 0.0:
        s[i][j] = 2.0 * a * b / (a + b)
    else:
        s[i][j] = 0.0


@pk.workunit
def slope_y(i, j, s, q):
    a: float = q[i][j] - q[i][j - 1]
    b: float = q[i][j + 1] - q[i][j]
    if a * b > 0.0:
        s[i][j] = 2.0 * a * b / (a + b)
    else:
        s[i][j] = 0.0


@pk.workunit
def flux_x(i, j, f, q, s, u):
    """Through the face between (i - 1, j) and (i, j)."""
    if u[i][j] > 0.0:
        f[i][j] = u[i][j] * (q[i - 1][j] + 0.5 * s[i - 1][j])
    else:
        f[i][j] = u[i][j] * (q[i][j] - 0.5 * s[i][j])


@pk.workunit
def flux_y(i, j, f, q, s, v):
    if v[i][j] > 0.0:
        f[i][j] = v[i][j] * (q[i][j - 1] + 0.5 * s[i][j - 1])
    else:
        f[i][j] = v[i][j] * (q[i][j] - 0.5 * s[i][j])


@pk.workunit
def divergence(i, j, r, fx, fy):
    r[i][j] = fx[i][j] - fx[i + 1][j] + fy[i][j] - fy[i][j + 1]


@pk.workunit
def euler(i, j, q1, q, r, dt):
    q1[i][j] = q[i][j] + dt * r[i][j]


@pk.workunit
def heun(i, j, q, q1, r, dt):
    q[i][j] = 0.5 * (q[i][j] + q1[i][j] + dt * r[i][j])


@pk.workunit
def mass(i, j, acc, q):
    acc += q[i][j]


@pk.workunit
def variation(i, j, acc, q):
    acc += fabs(q[i][j] - q[i - 1][j]) + fabs(q[i][j] - q[i][j - 1])


@dataclass
class State:
    n: int
    q: pk.View
    q1: pk.View
    u: pk.View
    v: pk.View
    mass: float = 0.0
    tv: float = 0.0


def setup(size):
    n = size
    i, j = np.indices((n, n)).astype(float)
    cx, cy = (i - n / 2) / n, (j - n / 2) / n
    q = np.where(np.maximum(abs(cx - 0.2), abs(cy)) < 0.1, 1.0, 0.1) + 0.2 * cx * cy
    u, v = -(j + 0.5 - n / 2) / n * 2, (i + 0.5 - n / 2) / n * 2
    return State(n, view(q), view(q), view(u), view(v))


def rates(s, q):
    n = s.n
    sx, sy, fx, fy, r = (pk.View([n, n], pk.double) for _ in range(5))
    cells, faces = (
        pk.MDRangePolicy([1, 1], [n - 1, n - 1]),
        pk.MDRangePolicy([2, 2], [n - 1, n - 1]),
    )
    pk.parallel_for(cells, slope_x, s=sx, q=q)
    pk.parallel_for(cells, slope_y, s=sy, q=q)
    pk.parallel_for(faces, flux_x, f=fx, q=q, s=sx, u=s.u)
    pk.parallel_for(faces, flux_y, f=fy, q=q, s=sy, v=s.v)
    pk.parallel_for(pk.MDRangePolicy([2, 2], [n - 2, n - 2]), divergence, r=r, fx=fx, fy=fy)
    return r


def run(s):
    inner = pk.MDRangePolicy([2, 2], [s.n - 2, s.n - 2])
    for _ in range(STEPS):
        pk.parallel_for(inner, euler, q1=s.q1, q=s.q, r=rates(s, s.q), dt=CFL)
        pk.parallel_for(inner, heun, q=s.q, q1=s.q1, r=rates(s, s.q1), dt=CFL)
        s.mass = pk.parallel_reduce(inner, mass, q=s.q)
        s.tv = pk.parallel_reduce(inner, variation, q=s.q)


def outputs(s):
    return {"q": np.array(s.q.data), "mass": float(s.mass), "tv": float(s.tv)}


if __name__ == "__main__":
    main(globals())
