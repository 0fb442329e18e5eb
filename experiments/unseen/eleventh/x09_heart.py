"""A block of heart muscle: the waves of Aliev and Panfilov, faster along the fibres.

The voltage has a layer of ghosts, mirrored so that nothing flows out. A step finds the diffusion and
the currents, stimulates a corner at first, lets the tissue recover, advances the voltage, notes when
cells are first excited, and sums how many are; it ends when all are or the time is over.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 14, "default": 56, "large": 110}
DT, ALONG, ACROSS, K, A, EPS, MU1, MU2 = 0.05, 1.6, 0.6, 8.0, 0.12, 0.01, 0.2, 0.3


@pk.workunit
def restore(i: int, j: int, k: int, x: pk.View3D[pk.double], x0: pk.View3D[pk.double]):
    x[i][j][k] = x0[i][j][k]


@pk.workunit
def never(i: int, j: int, k: int, x: pk.View3D[pk.double]):
    x[i][j][k] = -1.0


@pk.workunit
def mirror_i(j: int, k: int, u: pk.View3D[pk.double], n: int):
    u[0][j][k] = u[1][j][k]
    u[n + 1][j][k] = u[n][j][k]


@pk.workunit
def mirror_j(i: int, k: int, u: pk.View3D[pk.double], n: int):
    u[i][0][k] = u[i][1][k]
    u[i][n + 1][k] = u[i][n][k]


@pk.workunit
def mirror_k(i: int, j: int, u: pk.View3D[pk.double], n: int):
    u[i][j][0] = u[i][j][1]
    u[i][j][n + 1] = u[i][j][n]


@pk.workunit
def diffusion(
    i: int,
    j: int,
    k: int,
    d: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    along: float,
    across: float,
):
    c: float = 2.0 * u[i][j][k]
    d[i][j][k] = along * (u[i][j][k - 1] - c + u[i][j][k + 1]) + across * (
        u[i][j - 1][k] - c + u[i][j + 1][k] + u[i - 1][j][k] - c + u[i + 1][j][k]
    )


@pk.workunit
def current(
    i: int,
    j: int,
    k: int,
    ion: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    r: pk.View3D[pk.double],
    strength: float,
    a: float,
):
    v: float = u[i][j][k]
    ion[i][j][k] = strength * v * (v - a) * (v - 1.0) + v * r[i][j][k]


@pk.workunit
def stimulate(i: int, j: int, k: int, ion: pk.View3D[pk.double], much: float):
    ion[i][j][k] -= much


@pk.workunit
def recover(
    i: int,
    j: int,
    k: int,
    r: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    dt: float,
    strength: float,
    a: float,
    eps: float,
    mu1: float,
    mu2: float,
):
    v: float = u[i][j][k]
    w: float = r[i][j][k]
    r[i][j][k] = w + dt * (eps + mu1 * w / (v + mu2)) * (-w - strength * v * (v - a - 1.0))


@pk.workunit
def advance(
    i: int,
    j: int,
    k: int,
    u: pk.View3D[pk.double],
    d: pk.View3D[pk.double],
    ion: pk.View3D[pk.double],
    dt: float,
):
    u[i][j][k] += dt * (d[i][j][k] - ion[i][j][k])


@pk.workunit
def note(i: int, j: int, k: int, first: pk.View3D[pk.double], u: pk.View3D[pk.double], time: float):
    if first[i][j][k] < 0.0 and u[i][j][k] > 0.5:
        first[i][j][k] = time


@pk.workunit
def excited(i: int, j: int, k: int, acc: pk.Acc[pk.double], first: pk.View3D[pk.double]):
    if first[i][j][k] >= 0.0:
        acc += 1.0


@pk.workunit
def total(i: int, j: int, k: int, acc: pk.Acc[pk.double], u: pk.View3D[pk.double]):
    acc += u[i][j][k]


@dataclass
class State:
    """Voltage and recovery, first and present; times of excitement; sums after each step."""

    n: int
    steps: int
    u0: pk.View
    r0: pk.View
    u: pk.View
    r: pk.View
    first: pk.View
    counts: list = field(default_factory=list)
    sums: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(119)
    u0, r0, u, r, first = (pk.View([n + 2] * 3, pk.double) for _ in range(5))
    u0.data[1:-1, 1:-1, 1:-1] = 0.05 * rng.random((n, n, n))
    u0.data[1 : n // 2, 1 : n // 3, 1:-1] = 0.9
    r0.data[:] = 0.1 * rng.random((n + 2, n + 2, n + 2))
    return State(n, 30 if n <= 20 else 8, u0, r0, u, r, first)


def run(state: State) -> None:
    n, u, r, first = state.n, state.u, state.r, state.first
    d, ion = (pk.View([n + 2] * 3, pk.double) for _ in range(2))
    everywhere = pk.MDRangePolicy([0, 0, 0], [n + 2, n + 2, n + 2])
    inner = pk.MDRangePolicy([1, 1, 1], [n + 1, n + 1, n + 1])
    corner = pk.MDRangePolicy([n - n // 4, n - n // 4, 1], [n + 1, n + 1, n // 4])
    face = pk.MDRangePolicy([1, 1], [n + 1, n + 1])
    pk.parallel_for(everywhere, restore, x=u, x0=state.u0)
    pk.parallel_for(everywhere, restore, x=r, x0=state.r0)
    pk.parallel_for(everywhere, never, x=first)
    state.counts, state.sums = [], []
    for step in range(state.steps):
        pk.parallel_for(face, mirror_i, u=u, n=n)
        pk.parallel_for(face, mirror_j, u=u, n=n)
        pk.parallel_for(face, mirror_k, u=u, n=n)
        pk.parallel_for(inner, diffusion, d=d, u=u, along=ALONG, across=ACROSS)
        pk.parallel_for(inner, current, ion=ion, u=u, r=r, strength=K, a=A)
        if step < 5:
            pk.parallel_for(corner, stimulate, ion=ion, much=3.0)
        pk.parallel_for(inner, recover, r=r, u=u, dt=DT, strength=K, a=A, eps=EPS, mu1=MU1, mu2=MU2)
        pk.parallel_for(inner, advance, u=u, d=d, ion=ion, dt=DT)
        pk.parallel_for(inner, note, first=first, u=u, time=step * DT)
        state.counts.append(float(pk.parallel_reduce(inner, excited, first=first)))
        state.sums.append(float(pk.parallel_reduce(inner, total, u=u)))
        if state.counts[-1] == n**3:
            break


def outputs(state: State) -> dict:
    return {
        "u": np.array(state.u.data[1:-1, 1:-1, 1:-1]),
        "r": np.array(state.r.data),
        "first": np.array(state.first.data),
        "counts": np.array(state.counts),
        "sums": np.array(state.sums),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    inner = np.s_[1:-1, 1:-1, 1:-1]
    u, all_r = np.array(fresh.u0.data)[inner], np.array(fresh.r0.data)
    r, first = all_r[inner], np.full((n, n, n), -1.0)
    counts, sums = [], []
    for step in range(fresh.steps):
        p = np.pad(u, 1, "edge")
        d = ALONG * (p[1:-1, 1:-1, :-2] - 2.0 * u + p[1:-1, 1:-1, 2:])
        d += ACROSS * (p[1:-1, :-2, 1:-1] - 2.0 * u + p[1:-1, 2:, 1:-1])
        d += ACROSS * (p[:-2, 1:-1, 1:-1] - 2.0 * u + p[2:, 1:-1, 1:-1])
        ion = K * u * (u - A) * (u - 1.0) + u * r
        if step < 5:
            q = n - n // 4 - 1
            ion[q:, q:, : n // 4 - 1] -= 3.0
        r += DT * (EPS + MU1 * r / (u + MU2)) * (-r - K * u * (u - A - 1.0))
        u = u + DT * (d - ion)
        first[(first < 0.0) & (u > 0.5)] = step * DT
        counts.append(np.sum(first >= 0.0))
        sums.append(u.sum())
        if counts[-1] == n**3:
            break
    out = outputs(state)
    np.testing.assert_allclose(out["u"], u, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(out["r"], all_r, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(out["first"][inner], first, rtol=1e-12)
    np.testing.assert_allclose(out["counts"], counts)
    np.testing.assert_allclose(out["sums"], sums, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
