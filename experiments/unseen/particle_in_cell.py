"""Particle in cell: electrostatic plasma in one dimension, with linear weights.

Source: C. Birdsall and A. Langdon, "Plasma Physics via Computer Simulation" (1985). A step makes
deposits by atomics on a grid, a scan that integrates the charge to a field, a gather, a push, a
move with a periodic box, and an energy sum.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 2_000_000, "large": 8_000_000}
STEPS, CELLS, DT = 2, 1024, 0.05


@pk.workunit
def clear(c, rho, background):
    rho[c] = background


@pk.workunit
def deposit(i, rho, x, weight, cells):
    cell: int = int(x[i])
    part: float = x[i] - cell
    pk.atomic_add(rho, [cell], weight * (1.0 - part))
    pk.atomic_add(rho, [(cell + 1) % cells], weight * part)


@pk.workunit
def integrate(c, acc, last_pass, field, rho):
    acc += rho[c]
    if last_pass:
        field[c] = acc


@pk.workunit
def gather(i, e, field, x, cells):
    cell: int = int(x[i])
    part: float = x[i] - cell
    e[i] = (1.0 - part) * field[cell] + part * field[(cell + 1) % cells]


@pk.workunit
def push(i, v, e, dt):
    v[i] -= dt * e[i]


@pk.workunit
def move(i, x, v, dt, box):
    x[i] += dt * v[i]
    if x[i] < 0.0:
        x[i] += box
    if x[i] >= box:
        x[i] -= box


@pk.workunit
def kinetic(i, acc, v):
    acc += 0.5 * v[i] * v[i]


def setup(size):
    rng = np.random.default_rng(25)
    x, v = (pk.View([size], pk.double) for _ in range(2))
    x.data[:] = rng.uniform(0.0, CELLS, size)
    v.data[:] = rng.normal(0.0, 1.0, size)
    return {"n": size, "x": x, "v": v, "energy": []}


def run(state):
    n, x, v = state["n"], state["x"], state["v"]
    rho, field = (pk.View([CELLS], pk.double) for _ in range(2))
    e = pk.View([n], pk.double)
    for _ in range(STEPS):
        pk.parallel_for(CELLS, clear, rho=rho, background=-1.0)
        pk.parallel_for(n, deposit, rho=rho, x=x, weight=CELLS / n, cells=CELLS)
        pk.parallel_scan(CELLS, integrate, field=field, rho=rho)
        pk.parallel_for(n, gather, e=e, field=field, x=x, cells=CELLS)
        pk.parallel_for(n, push, v=v, e=e, dt=DT)
        pk.parallel_for(n, move, x=x, v=v, dt=DT, box=float(CELLS))
        state["energy"].append(pk.parallel_reduce(n, kinetic, v=v))


def outputs(state):
    return {"energy": np.array([float(e) for e in state["energy"]])}


def check(state, size, runs):
    x = np.array(state["x"].data)
    assert x.min() >= 0.0 and x.max() <= CELLS, "box"
