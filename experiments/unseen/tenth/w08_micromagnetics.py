"""Micromagnetics: the Landau-Lifshitz-Gilbert equation of a magnetic film, by Heun's method.

The field on each magnetic moment is that of its neighbours (exchange), of the crystal's easy axis
and an applied one. A step predicts with the torque here, corrects with the mean of both torques,
and scales the moments back to length one; energy and magnetisation are summed after each step.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 16, "default": 160, "large": 420}
LAYERS, DT, DAMPING, EXCHANGE, EASY, APPLIED = 6, 0.05, 0.3, 1.0, 0.2, -0.4


@pk.workunit
def copy(i: int, j: int, k: int, out: pk.View3D[pk.double], m: pk.View3D[pk.double]):
    out[i][j][k] = m[i][j][k]


@pk.workunit
def exchange(
    i: int,
    j: int,
    k: int,
    h: pk.View3D[pk.double],
    m: pk.View3D[pk.double],
    a: float,
    ni: int,
    nj: int,
    nk: int,
):
    """What the neighbours that exist do."""
    here: float = m[i][j][k]
    s: float = 0.0
    if i > 0:
        s += m[i - 1][j][k] - here
    if i < ni - 1:
        s += m[i + 1][j][k] - here
    if j > 0:
        s += m[i][j - 1][k] - here
    if j < nj - 1:
        s += m[i][j + 1][k] - here
    if k > 0:
        s += m[i][j][k - 1] - here
    if k < nk - 1:
        s += m[i][j][k + 1] - here
    h[i][j][k] = a * s


@pk.workunit
def easy_axis(
    i: int, j: int, k: int, h: pk.View3D[pk.double], m: pk.View3D[pk.double], strength: float
):
    h[i][j][k] += strength * m[i][j][k]


@pk.workunit
def applied(i: int, j: int, k: int, h: pk.View3D[pk.double], field: float):
    h[i][j][k] += field


@pk.workunit
def torque(
    i: int,
    j: int,
    k: int,
    tx: pk.View3D[pk.double],
    ty: pk.View3D[pk.double],
    tz: pk.View3D[pk.double],
    mx: pk.View3D[pk.double],
    my: pk.View3D[pk.double],
    mz: pk.View3D[pk.double],
    hx: pk.View3D[pk.double],
    hy: pk.View3D[pk.double],
    hz: pk.View3D[pk.double],
    damping: float,
):
    """-m x h - damping m x (m x h)"""
    x: float = mx[i][j][k]
    y: float = my[i][j][k]
    z: float = mz[i][j][k]
    px: float = y * hz[i][j][k] - z * hy[i][j][k]
    py: float = z * hx[i][j][k] - x * hz[i][j][k]
    pz: float = x * hy[i][j][k] - y * hx[i][j][k]
    tx[i][j][k] = -px - damping * (y * pz - z * py)
    ty[i][j][k] = -py - damping * (z * px - x * pz)
    tz[i][j][k] = -pz - damping * (x * py - y * px)


@pk.workunit
def predict(
    i: int,
    j: int,
    k: int,
    out: pk.View3D[pk.double],
    m: pk.View3D[pk.double],
    t: pk.View3D[pk.double],
    dt: float,
):
    out[i][j][k] = m[i][j][k] + dt * t[i][j][k]


@pk.workunit
def correct(
    i: int,
    j: int,
    k: int,
    m: pk.View3D[pk.double],
    t: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    dt: float,
):
    m[i][j][k] += 0.5 * dt * (t[i][j][k] + u[i][j][k])


@pk.workunit
def normalise(
    i: int,
    j: int,
    k: int,
    mx: pk.View3D[pk.double],
    my: pk.View3D[pk.double],
    mz: pk.View3D[pk.double],
):
    x: float = mx[i][j][k]
    y: float = my[i][j][k]
    z: float = mz[i][j][k]
    length: float = pk.sqrt(x * x + y * y + z * z)
    mx[i][j][k] = x / length
    my[i][j][k] = y / length
    mz[i][j][k] = z / length


@pk.workunit
def product(
    i: int,
    j: int,
    k: int,
    acc: pk.Acc[pk.double],
    m: pk.View3D[pk.double],
    h: pk.View3D[pk.double],
):
    acc += m[i][j][k] * h[i][j][k]


@pk.workunit
def total(i: int, j: int, k: int, acc: pk.Acc[pk.double], m: pk.View3D[pk.double]):
    acc += m[i][j][k]


@dataclass
class State:
    """The moments at the start and now; m.h and the mean of mz at each step."""

    n: int
    steps: int
    start: list
    now: list
    energy: list = field(default_factory=list)
    magnetisation: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(108)
    m = rng.normal(0.0, 0.3, (3, LAYERS, n, n))
    m[2] += np.where(np.arange(n) < n // 2, 1.0, -1.0)
    m /= np.sqrt(np.sum(m * m, axis=0))
    start, now = ([pk.View([LAYERS, n, n], pk.double) for _ in range(3)] for _ in range(2))
    for view, values in zip(start, m):
        view.data[:] = values
    return State(n, 10 if n <= 30 else 4, start, now)


def run(state: State) -> None:
    n, m = state.n, state.now
    cells = pk.MDRangePolicy([0, 0, 0], [LAYERS, n, n])
    h, t, u, half = ([pk.View([LAYERS, n, n], pk.double) for _ in range(3)] for _ in range(4))
    count = LAYERS * n * n

    def torques(out, m):
        for axis in range(3):
            pk.parallel_for(
                cells, exchange, h=h[axis], m=m[axis], a=EXCHANGE, ni=LAYERS, nj=n, nk=n
            )
        pk.parallel_for(cells, easy_axis, h=h[2], m=m[2], strength=EASY)
        pk.parallel_for(cells, applied, h=h[2], field=APPLIED)
        pk.parallel_for(
            cells,
            torque,
            tx=out[0],
            ty=out[1],
            tz=out[2],
            mx=m[0],
            my=m[1],
            mz=m[2],
            hx=h[0],
            hy=h[1],
            hz=h[2],
            damping=DAMPING,
        )

    for view, first in zip(m, state.start):
        pk.parallel_for(cells, copy, out=view, m=first)
    state.energy, state.magnetisation = [], []
    for _ in range(state.steps):
        torques(t, m)
        energy = 0.0
        for axis in range(3):
            energy -= float(pk.parallel_reduce(cells, product, m=m[axis], h=h[axis]))
            pk.parallel_for(cells, predict, out=half[axis], m=m[axis], t=t[axis], dt=DT)
        torques(u, half)
        for axis in range(3):
            pk.parallel_for(cells, correct, m=m[axis], t=t[axis], u=u[axis], dt=DT)
        pk.parallel_for(cells, normalise, mx=m[0], my=m[1], mz=m[2])
        mean = float(pk.parallel_reduce(cells, total, m=m[2])) / count
        state.energy.append(energy)
        state.magnetisation.append(mean)


def outputs(state: State) -> dict:
    values = {name: np.array(v.data) for name, v in zip(("mx", "my", "mz"), state.now)}
    return {
        **values,
        "energy": np.array(state.energy),
        "magnetisation": np.array(state.magnetisation),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    m = np.array([v.data for v in fresh.start])

    def field_of(m):
        h = np.zeros_like(m)
        for axis in (1, 2, 3):
            lo = [slice(None)] * 4
            hi = [slice(None)] * 4
            lo[axis], hi[axis] = slice(None, -1), slice(1, None)
            step = EXCHANGE * (m[tuple(hi)] - m[tuple(lo)])
            h[tuple(lo)] += step
            h[tuple(hi)] -= step
        h[2] += EASY * m[2] + APPLIED
        return h

    def torque_of(m, h):
        p = np.cross(m, h, axis=0)
        return -p - DAMPING * np.cross(m, p, axis=0)

    energy, magnetisation = [], []
    for _ in range(fresh.steps):
        h = field_of(m)
        t = torque_of(m, h)
        energy.append(-np.sum(m * h))
        half = m + DT * t
        m = m + 0.5 * DT * (t + torque_of(half, field_of(half)))
        m /= np.sqrt(np.sum(m * m, axis=0))
        magnetisation.append(np.mean(m[2]))
    out = outputs(state)
    for name, values in zip(("mx", "my", "mz"), m):
        np.testing.assert_allclose(out[name], values, rtol=1e-10, atol=1e-11, err_msg=name)
    np.testing.assert_allclose(out["energy"], energy, rtol=1e-9)
    np.testing.assert_allclose(out["magnetisation"], magnetisation, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    main(globals())
