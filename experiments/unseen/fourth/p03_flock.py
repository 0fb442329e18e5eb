"""Vicsek's flock: birds steer by the mean heading of the cells around them; fixed-point tallies."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 1500, "default": 2_000_000, "large": 5_000_000}
STEPS = 3
SPEED, SCALE = 0.003, 1048576.0


@pk.workunit
def heading(i, hx, hy, angle):
    hx[i] = pk.cos(angle[i])
    hy[i] = pk.sin(angle[i])


@pk.workunit
def locate(i, cell: pk.View1D[pk.int32], x, y, m: int):
    a: int = x[i] * m
    b: int = y[i] * m
    cell[i] = b * m + a


@pk.workunit
def clear(k, tx, ty):
    tx[k] = 0
    ty[k] = 0


@pk.workunit
def tally(i, t: pk.View1D[pk.int64], cell: pk.View1D[pk.int32], h, scale: float):
    amount: pk.int64 = h[i] * scale
    pk.atomic_add(t, [cell[i]], amount)


@pk.workunit
def spread(k, s, t, m):
    """Sum over a cell and its 8 neighbours, periodic."""
    row = k // m
    col = k % m
    up = (row + m - 1) % m * m
    here = row * m
    down = (row + 1) % m * m
    left = (col + m - 1) % m
    right = (col + 1) % m
    s[k] = (
        t[up + left]
        + t[up + col]
        + t[up + right]
        + t[here + left]
        + t[here + col]
        + t[here + right]
        + t[down + left]
        + t[down + col]
        + t[down + right]
    )


@pk.workunit
def steer(i, angle, cell, sx, sy, eta, level):
    k = cell[i]
    angle[i] = pk.atan2(sy[k], sx[k]) + level * (eta[i] - 0.5)


@pk.workunit
def fly(i, x, h, speed):
    x[i] += speed * h[i]
    if x[i] < 0.0:
        x[i] += 1.0
    if x[i] >= 1.0:
        x[i] -= 1.0


@pk.workunit
def add_up(i, acc, h):
    acc += h[i]


@dataclass
class State:
    size: int
    m: int
    x: pk.View
    y: pk.View
    angle: pk.View
    eta: pk.View
    order: float = 0.0


def setup(size):
    x, y, angle, eta = (pk.View([size], pk.double) for _ in range(4))
    for k, v in enumerate((x, y, angle, eta)):
        v.data[:] = rnd(size, 10 + k) * (6.0 if k == 2 else 1.0)
    return State(size, max(8, int((size / 8) ** 0.5)), x, y, angle, eta)


def run(s):
    n, m = s.size, s.m
    hx, hy = pk.View([n], pk.double), pk.View([n], pk.double)
    cell = pk.View([n], pk.int32)
    tx, ty = pk.View([m * m], pk.int64), pk.View([m * m], pk.int64)
    sx, sy = pk.View([m * m], pk.double), pk.View([m * m], pk.double)
    level = 2.0
    for _ in range(STEPS):
        pk.parallel_for(n, heading, hx=hx, hy=hy, angle=s.angle)
        pk.parallel_for(n, locate, cell=cell, x=s.x, y=s.y, m=m)
        pk.parallel_for(m * m, clear, tx=tx, ty=ty)
        pk.parallel_for(n, tally, t=tx, cell=cell, h=hx, scale=SCALE)
        pk.parallel_for(n, tally, t=ty, cell=cell, h=hy, scale=SCALE)
        pk.parallel_for(m * m, spread, s=sx, t=tx, m=m)
        pk.parallel_for(m * m, spread, s=sy, t=ty, m=m)
        pk.parallel_for(n, steer, angle=s.angle, cell=cell, sx=sx, sy=sy, eta=s.eta, level=level)
        pk.parallel_for(n, heading, hx=hx, hy=hy, angle=s.angle)
        pk.parallel_for(n, fly, x=s.x, h=hx, speed=SPEED)
        pk.parallel_for(n, fly, x=s.y, h=hy, speed=SPEED)
        a = pk.parallel_reduce(n, add_up, h=hx)
        b = pk.parallel_reduce(n, add_up, h=hy)
        s.order = (float(a) ** 2 + float(b) ** 2) ** 0.5 / n
        level = 3.0 if s.order > 0.1 else 1.0


def outputs(s):
    return {
        "x": np.array(s.x.data),
        "y": np.array(s.y.data),
        "angle": np.array(s.angle.data),
        "order": s.order,
    }


def check(s, size, runs):
    assert 0.0 <= s.order <= 1.0


if __name__ == "__main__":
    main(globals())
