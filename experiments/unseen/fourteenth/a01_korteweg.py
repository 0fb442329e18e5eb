"""Solitons of Korteweg and de Vries by Zabusky and Kruskal's leapfrog, on a ring.

Three buffers go round; four workunits a step with periodic neighbours; mass and energy every few steps.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_024, "default": 32_768, "large": 3_500_000}
DX, DT, DELTA2, EVERY = 2.0 / 256, 2.0e-4, 0.000484, 10


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = x[i]


@pk.workunit
def mean3(i: int, m: pk.View1D[pk.double], u: pk.View1D[pk.double], n: int):
    m[i] = (u[(i + 1) % n] + u[i] + u[(i + n - 1) % n]) / 3.0


@pk.workunit
def slope(i: int, s: pk.View1D[pk.double], u: pk.View1D[pk.double], n: int):
    s[i] = u[(i + 1) % n] - u[(i + n - 1) % n]


@pk.workunit
def dispersion(i: int, d: pk.View1D[pk.double], s: pk.View1D[pk.double], n: int):
    d[i] = s[(i + 1) % n] - 2.0 * s[i] + s[(i + n - 1) % n]


@pk.workunit
def leap(
    i: int,
    new: pk.View1D[pk.double],
    old: pk.View1D[pk.double],
    m: pk.View1D[pk.double],
    s: pk.View1D[pk.double],
    d: pk.View1D[pk.double],
    a: float,
    b: float,
):
    new[i] = old[i] - a * m[i] * s[i] - b * d[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], u: pk.View1D[pk.double]):
    acc += u[i]


@pk.workunit
def squares(i: int, acc: pk.Acc[pk.double], u: pk.View1D[pk.double]):
    acc += u[i] * u[i]


@dataclass
class State:
    n: int
    steps: int
    start: pk.View
    u: pk.View
    before: pk.View
    after: pk.View
    mass: list = field(default_factory=list)
    energy: list = field(default_factory=list)


def setup(n: int) -> State:
    start, u, before, after = (pk.View([n], pk.double) for _ in range(4))
    waves = max(1, n // 256)
    start.data[:] = np.cos(2.0 * np.pi * waves * np.arange(n) / n)
    return State(n, 20 if n > 1_000_000 else 100, start, u, before, after)


def run(s: State) -> None:
    n = s.n
    old, now, new = s.before, s.u, s.after
    m, sl, d = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, copy, out=now, x=s.start)
    pk.parallel_for(n, copy, out=old, x=s.start)
    s.mass, s.energy = [], []
    for step in range(s.steps):
        half = 0.5 if step == 0 else 1.0
        a, b = half * DT / DX, half * DELTA2 * DT / DX**3
        pk.parallel_for(n, mean3, m=m, u=now, n=n)
        pk.parallel_for(n, slope, s=sl, u=now, n=n)
        pk.parallel_for(n, dispersion, d=d, s=sl, n=n)
        pk.parallel_for(n, leap, new=new, old=old, m=m, s=sl, d=d, a=a, b=b)
        old, now, new = now, new, old
        if step % EVERY == EVERY - 1:
            s.mass.append(float(pk.parallel_reduce(n, total, u=now)) * DX)
            s.energy.append(float(pk.parallel_reduce(n, squares, u=now)) * DX)
    s.before, s.u, s.after = old, now, new


def outputs(s: State) -> dict:
    return {"u": np.array(s.u.data), "mass": np.array(s.mass), "energy": np.array(s.energy)}


def check(s: State, n: int) -> None:
    now = np.array(setup(n).start.data)
    old = now.copy()
    for step in range(s.steps):
        half = 0.5 if step == 0 else 1.0
        left, right = np.roll(now, 1), np.roll(now, -1)
        sl = right - left
        d = np.roll(sl, -1) - 2 * sl + np.roll(sl, 1)
        m = (right + now + left) / 3
        old, now = now, old - half * DT / DX * m * sl - half * DELTA2 * DT / DX**3 * d
    np.testing.assert_allclose(s.u.data, now, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(s.energy[-1], s.energy[0], rtol=1e-2)


if __name__ == "__main__":
    main(globals())
