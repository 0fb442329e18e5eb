"""Argon atoms in a crystal that warms up: molecular dynamics by velocity Verlet.

The atoms vibrate about a face-centred lattice, so lists of neighbours hold for the run. A step
kicks and drifts the atoms, wraps them into the periodic box, finds the Lennard-Jones forces over the
lists, kicks again, sums the energies, and scales the velocities towards a temperature.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 5, "default": 14, "large": 36}
DT, TARGET, COUPLING, CUTOFF2, SPACING = 0.004, 0.4, 0.05, 5.0, 0.78


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = x[i]


@pk.workunit
def kick(i: int, v: pk.View1D[pk.double], f: pk.View1D[pk.double], half: float):
    v[i] += half * f[i]


@pk.workunit
def drift(i: int, x: pk.View1D[pk.double], v: pk.View1D[pk.double], dt: float):
    x[i] += dt * v[i]


@pk.workunit
def wrap(i: int, x: pk.View1D[pk.double], box: float):
    if x[i] < 0.0:
        x[i] += box
    if x[i] >= box:
        x[i] -= box


@pk.workunit
def forces(
    i: int,
    fx: pk.View1D[pk.double],
    fy: pk.View1D[pk.double],
    fz: pk.View1D[pk.double],
    e: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    near: pk.View2D[pk.int32],
    most: int,
    box: float,
    cutoff2: float,
):
    sx: float = 0.0
    sy: float = 0.0
    sz: float = 0.0
    energy: float = 0.0
    for k in range(most):
        j: int = near[i][k]
        dx: float = x[i] - x[j]
        dy: float = y[i] - y[j]
        dz: float = z[i] - z[j]
        if dx > 0.5 * box:
            dx -= box
        if dx < -0.5 * box:
            dx += box
        if dy > 0.5 * box:
            dy -= box
        if dy < -0.5 * box:
            dy += box
        if dz > 0.5 * box:
            dz -= box
        if dz < -0.5 * box:
            dz += box
        r2: float = dx * dx + dy * dy + dz * dz
        if r2 < cutoff2:
            s: float = 1.0 / r2
            s6: float = s * s * s
            w: float = 24.0 * s6 * (2.0 * s6 - 1.0) * s
            sx += w * dx
            sy += w * dy
            sz += w * dz
            energy += 2.0 * s6 * (s6 - 1.0)
    fx[i] = sx
    fy[i] = sy
    fz[i] = sz
    e[i] = energy


@pk.workunit
def speed2(
    i: int,
    out: pk.View1D[pk.double],
    vx: pk.View1D[pk.double],
    vy: pk.View1D[pk.double],
    vz: pk.View1D[pk.double],
):
    out[i] = vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@pk.workunit
def rescale(i: int, v: pk.View1D[pk.double], factor: float):
    v[i] *= factor


@dataclass
class State:
    """Positions and velocities, first and present; neighbours; energies in each step."""

    n: int
    steps: int
    box: float
    x0: list
    v0: list
    near: pk.View
    x: list
    v: list
    kinetic: list = field(default_factory=list)
    potential: list = field(default_factory=list)


def setup(m: int) -> State:
    rng = np.random.default_rng(117)
    side = 2 * m
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    site = grid[grid.sum(axis=1) % 2 == 0]
    n = len(site)
    number = np.full((side, side, side), -1)
    number[tuple(site.T)] = np.arange(n)
    r = np.arange(-2, 3)
    offset = np.stack(np.meshgrid(r, r, r, indexing="ij"), axis=-1).reshape(-1, 3)
    offset = offset[(offset.sum(axis=1) % 2 == 0) & ((offset**2).sum(axis=1) <= 6)]
    offset = offset[(offset != 0).any(axis=1)]
    near = pk.View([n, len(offset)], pk.int32)
    for k, o in enumerate(offset):
        near.data[:, k] = number[tuple(((site + o) % side).T)]
    x0, v0, x, v = ([pk.View([n], pk.double) for _ in range(3)] for _ in range(4))
    for axis in range(3):
        x0[axis].data[:] = SPACING * (site[:, axis] + 0.5 + rng.uniform(-0.05, 0.05, n))
        v0[axis].data[:] = rng.normal(0.0, 0.5, n)
        v0[axis].data[:] -= np.mean(v0[axis].data)
    return State(n, 20 if n <= 2_000 else 6, SPACING * side, x0, v0, near, x, v)


def run(state: State) -> None:
    n, box, near, x, v = state.n, state.box, state.near, state.x, state.v
    f = [pk.View([n], pk.double) for _ in range(3)]
    e, v2 = pk.View([n], pk.double), pk.View([n], pk.double)

    def find_forces():
        pk.parallel_for(
            n,
            forces,
            fx=f[0],
            fy=f[1],
            fz=f[2],
            e=e,
            x=x[0],
            y=x[1],
            z=x[2],
            near=near,
            most=near.shape[1],
            box=box,
            cutoff2=CUTOFF2,
        )

    for axis in range(3):
        pk.parallel_for(n, copy, out=x[axis], x=state.x0[axis])
        pk.parallel_for(n, copy, out=v[axis], x=state.v0[axis])
    find_forces()
    state.kinetic, state.potential = [], []
    for _ in range(state.steps):
        for axis in range(3):
            pk.parallel_for(n, kick, v=v[axis], f=f[axis], half=0.5 * DT)
            pk.parallel_for(n, drift, x=x[axis], v=v[axis], dt=DT)
            pk.parallel_for(n, wrap, x=x[axis], box=box)
        find_forces()
        for axis in range(3):
            pk.parallel_for(n, kick, v=v[axis], f=f[axis], half=0.5 * DT)
        pk.parallel_for(n, speed2, out=v2, vx=v[0], vy=v[1], vz=v[2])
        kinetic = 0.5 * float(pk.parallel_reduce(n, total, x=v2))
        state.kinetic.append(kinetic / n)
        state.potential.append(float(pk.parallel_reduce(n, total, x=e)) / n)
        temperature = 2.0 * kinetic / (3.0 * n)
        factor = sqrt(1.0 + COUPLING * (TARGET / temperature - 1.0))
        for axis in range(3):
            pk.parallel_for(n, rescale, v=v[axis], factor=factor)


def outputs(state: State) -> dict:
    return {
        "x": np.array([x.data for x in state.x]),
        "v": np.array([v.data for v in state.v]),
        "kinetic": np.array(state.kinetic),
        "potential": np.array(state.potential),
    }


def check(state: State, m: int, runs: int = 1) -> None:
    fresh = setup(m)
    box, near = fresh.box, np.array(fresh.near.data)
    x = np.array([a.data for a in fresh.x0])
    v = np.array([a.data for a in fresh.v0])

    def forces_of(x):
        d = x[:, :, None] - x[:, near]
        d -= box * np.round(d / box)
        r2 = np.sum(d * d, axis=0)
        s6 = r2**-3.0
        inside = r2 < CUTOFF2
        w = np.where(inside, 24.0 * s6 * (2.0 * s6 - 1.0) / r2, 0.0)
        return np.sum(w * d, axis=2), np.sum(np.where(inside, 2.0 * s6 * (s6 - 1.0), 0.0))

    f, _ = forces_of(x)
    kinetic, potential = [], []
    for _ in range(fresh.steps):
        v = v + 0.5 * DT * f
        x = (x + DT * v) % box
        f, energy = forces_of(x)
        v = v + 0.5 * DT * f
        k = 0.5 * np.sum(v * v)
        kinetic.append(k / fresh.n)
        potential.append(energy / fresh.n)
        v = v * sqrt(1.0 + COUPLING * (TARGET * 3.0 * fresh.n / (2.0 * k) - 1.0))
    out = outputs(state)
    np.testing.assert_allclose(out["x"], x, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(out["v"], v, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(out["kinetic"], kinetic, rtol=1e-9)
    np.testing.assert_allclose(out["potential"], potential, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
