"""Electrostatic particle-in-cell: two beams, charge tallied in fixed point, field by a prefix sum."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 4000, "default": 700_000, "large": 5_000_000}
STEPS, DT = 4, 0.1


@pk.workunit
def clear(g, tally):
    tally[g] = 0


@pk.workunit
def deposit(i, tally: pk.View1D[pk.int64], x: pk.View1D[pk.double], cells: int):
    """Linear weights in units of 1/65536, so that sums do not depend on their order."""
    cell: int = int(x[i])
    w: int = int((x[i] - cell) * 65536.0)
    right: int = cell + 1
    if right == cells:
        right = 0
    pk.atomic_add(tally, [cell], 65536 - w)
    pk.atomic_add(tally, [right], w)


@pk.workunit
def charge(g, rho, tally, scale):
    rho[g] = tally[g] * scale - 1.0


@pk.workunit
def integrate(g, acc, last, field, rho):
    acc += rho[g]
    if last:
        field[g] = acc


@pk.workunit
def add_up(i, acc, a):
    acc += a[i]


@pk.workunit
def shift(g, a, total, cells):
    a[g] -= total / cells


@pk.workunit
def interpolate(i, f, field, x, cells):
    cell = int(x[i])
    w = x[i] - cell
    right = cell + 1 if cell + 1 < cells else 0
    f[i] = (1.0 - w) * field[cell] + w * field[right]


@pk.workunit
def kick(i, v, f, dt):
    v[i] += dt * f[i]


@pk.workunit
def drift(i, x, v, dt):
    x[i] += dt * v[i]


@pk.workunit
def wrap(i, x, length):
    if x[i] < 0.0:
        x[i] += length
    if x[i] >= length:
        x[i] -= length


@pk.workunit
def square(i, acc, a):
    acc += a[i] * a[i]


@dataclass
class State:
    n: int
    cells: int
    x: pk.View
    v: pk.View
    energy: float = 0.0


def setup(n):
    cells = 64 if n < 10_000 else 4096
    x, v = pk.View([n], pk.double), pk.View([n], pk.double)
    x.data[:] = cells * rnd(n, 4)
    v.data[:] = np.where(np.arange(n) % 2 == 0, 2.0, -2.0) + 0.4 * (rnd(n, 5) - 0.5)
    return State(n, cells, x, v)


def run(s):
    n, cells, x, v = s.n, s.cells, s.x, s.v
    tally, f = pk.View([cells], pk.int64), pk.View([n], pk.double)
    rho, field = pk.View([cells], pk.double), pk.View([cells], pk.double)
    kinetic, electric = [], []
    for _ in range(STEPS):
        pk.parallel_for(cells, clear, tally=tally)
        pk.parallel_for(n, deposit, tally=tally, x=x, cells=cells)
        pk.parallel_for(cells, charge, rho=rho, tally=tally, scale=cells / (65536.0 * n))
        pk.parallel_scan(cells, integrate, field=field, rho=rho)
        total = pk.parallel_reduce(cells, add_up, a=field)
        pk.parallel_for(cells, shift, a=field, total=total, cells=cells)
        pk.parallel_for(n, interpolate, f=f, field=field, x=x, cells=cells)
        pk.parallel_for(n, kick, v=v, f=f, dt=DT)
        kinetic.append(pk.parallel_reduce(n, square, a=v))
        pk.parallel_for(n, drift, x=x, v=v, dt=DT)
        pk.parallel_for(n, wrap, x=x, length=float(cells))
        electric.append(pk.parallel_reduce(cells, square, a=field))
    s.energy = sum(float(k) for k in kinetic) / n + sum(float(e) for e in electric) / cells


def outputs(s):
    return {"x": np.array(s.x.data), "v": np.array(s.v.data), "energy": s.energy}


def check(s, size, runs):
    x = np.asarray(s.x.data)
    assert x.min() >= 0.0 and x.max() <= s.cells and np.isfinite(s.energy)


if __name__ == "__main__":
    main(globals())
