"""Flow past posts in a channel by a lattice Boltzmann method (D2Q9, one relaxation time).

A step finds density and velocity of the populations, relaxes them towards equilibrium, turns them
back in the posts, and moves them to the neighbours; what leaves at the top comes in at the bottom,
the left column is an inflow, the right one lets all out. Drag and energy are summed in each step.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 24, "default": 180, "large": 560}
OMEGA, SPEED = 1.4, 0.08
CX = [0, 1, 0, -1, 0, 1, -1, -1, 1]
CY = [0, 0, 1, 0, -1, 1, 1, -1, -1]
BACK = [0, 3, 4, 1, 2, 7, 8, 5, 6]
WEIGHT = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4


@pk.workunit
def restore(q: int, i: int, j: int, f: pk.View3D[pk.double], f0: pk.View3D[pk.double]):
    f[q][i][j] = f0[q][i][j]


@pk.workunit
def density(i: int, j: int, rho: pk.View2D[pk.double], f: pk.View3D[pk.double]):
    s: float = 0.0
    for q in range(9):
        s += f[q][i][j]
    rho[i][j] = s


@pk.workunit
def velocity(
    i: int,
    j: int,
    u: pk.View2D[pk.double],
    f: pk.View3D[pk.double],
    rho: pk.View2D[pk.double],
    c: pk.View1D[pk.int32],
):
    s: float = 0.0
    for q in range(9):
        s += c[q] * f[q][i][j]
    u[i][j] = s / rho[i][j]


@pk.workunit
def square(
    i: int, j: int, uu: pk.View2D[pk.double], ux: pk.View2D[pk.double], uy: pk.View2D[pk.double]
):
    uu[i][j] = ux[i][j] * ux[i][j] + uy[i][j] * uy[i][j]


@pk.workunit
def relax(
    q: int,
    i: int,
    j: int,
    post: pk.View3D[pk.double],
    f: pk.View3D[pk.double],
    rho: pk.View2D[pk.double],
    ux: pk.View2D[pk.double],
    uy: pk.View2D[pk.double],
    uu: pk.View2D[pk.double],
    cx: pk.View1D[pk.int32],
    cy: pk.View1D[pk.int32],
    weight: pk.View1D[pk.double],
    omega: float,
):
    cu: float = cx[q] * ux[i][j] + cy[q] * uy[i][j]
    equilibrium: float = weight[q] * rho[i][j] * (1.0 + 3.0 * cu + 4.5 * cu * cu - 1.5 * uu[i][j])
    post[q][i][j] = f[q][i][j] + omega * (equilibrium - f[q][i][j])


@pk.workunit
def turn_back(
    q: int,
    i: int,
    j: int,
    post: pk.View3D[pk.double],
    f: pk.View3D[pk.double],
    solid: pk.View2D[pk.int32],
    back: pk.View1D[pk.int32],
):
    if solid[i][j] == 1:
        post[q][i][j] = f[back[q]][i][j]


@pk.workunit
def stream(
    q: int,
    i: int,
    j: int,
    f: pk.View3D[pk.double],
    post: pk.View3D[pk.double],
    cx: pk.View1D[pk.int32],
    cy: pk.View1D[pk.int32],
    rows: int,
    columns: int,
):
    up: int = (i - cy[q] + rows) % rows
    left: int = (j - cx[q] + columns) % columns
    f[q][i][j] = post[q][up][left]


@pk.workunit
def inflow(q: int, i: int, f: pk.View3D[pk.double], profile: pk.View1D[pk.double]):
    f[q][i][0] = profile[q]


@pk.workunit
def outflow(q: int, i: int, f: pk.View3D[pk.double], last: int):
    f[q][i][last] = f[q][i][last - 1]


@pk.workunit
def push(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    f: pk.View3D[pk.double],
    solid: pk.View2D[pk.int32],
    c: pk.View1D[pk.int32],
):
    """What the posts take of momentum."""
    if solid[i][j] == 1:
        for q in range(9):
            acc += 2.0 * c[q] * f[q][i][j]


@pk.workunit
def energy(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    rho: pk.View2D[pk.double],
    uu: pk.View2D[pk.double],
    solid: pk.View2D[pk.int32],
):
    if solid[i][j] == 0:
        acc += 0.5 * rho[i][j] * uu[i][j]


@dataclass
class State:
    """The populations, first and present; the posts; tables; drag and energy in each step."""

    rows: int
    columns: int
    steps: int
    f0: pk.View
    f: pk.View
    solid: pk.View
    cx: pk.View
    cy: pk.View
    back: pk.View
    weight: pk.View
    profile: pk.View
    ux: pk.View
    drag: list = field(default_factory=list)
    kinetic: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(121)
    rows, columns = n, 2 * n
    f0, f = pk.View([9, rows, columns], pk.double), pk.View([9, rows, columns], pk.double)
    solid, ux = pk.View([rows, columns], pk.int32), pk.View([rows, columns], pk.double)
    cx, cy, back = (pk.View([9], pk.int32) for _ in range(3))
    weight, profile = pk.View([9], pk.double), pk.View([9], pk.double)
    cx.data[:], cy.data[:], back.data[:], weight.data[:] = CX, CY, BACK, WEIGHT
    cu = 3.0 * SPEED * np.array(CX)
    profile.data[:] = np.array(WEIGHT) * (1.0 + cu + 0.5 * cu * cu - 1.5 * SPEED**2)
    noise = 1.0 + 0.02 * rng.random((9, rows, columns))
    f0.data[:] = np.array(profile.data)[:, None, None] * noise
    y, x = np.mgrid[0:rows, 0:columns]
    for py, px, r in ((0.3, 0.5, 0.1), (0.7, 0.8, 0.12), (0.4, 1.3, 0.15)):
        solid.data[(y - py * n) ** 2 + (x - px * n) ** 2 < (r * n) ** 2] = 1
    return State(
        rows, columns, 16 if n <= 40 else 4, f0, f, solid, cx, cy, back, weight, profile, ux
    )


def run(state: State) -> None:
    rows, columns, f, solid, ux = state.rows, state.columns, state.f, state.solid, state.ux
    cx, cy = state.cx, state.cy
    post = pk.View([9, rows, columns], pk.double)
    rho, uy, uu = (pk.View([rows, columns], pk.double) for _ in range(3))
    cells = pk.MDRangePolicy([0, 0], [rows, columns])
    links = pk.MDRangePolicy([0, 0, 0], [9, rows, columns])
    rim = pk.MDRangePolicy([0, 0], [9, rows])
    state.drag, state.kinetic = [], []
    pk.parallel_for(links, restore, f=f, f0=state.f0)
    for _ in range(state.steps):
        pk.parallel_for(cells, density, rho=rho, f=f)
        pk.parallel_for(cells, velocity, u=ux, f=f, rho=rho, c=cx)
        pk.parallel_for(cells, velocity, u=uy, f=f, rho=rho, c=cy)
        pk.parallel_for(cells, square, uu=uu, ux=ux, uy=uy)
        state.drag.append(pk.parallel_reduce(cells, push, f=f, solid=solid, c=cx))
        state.kinetic.append(pk.parallel_reduce(cells, energy, rho=rho, uu=uu, solid=solid))
        pk.parallel_for(
            links,
            relax,
            post=post,
            f=f,
            rho=rho,
            ux=ux,
            uy=uy,
            uu=uu,
            cx=cx,
            cy=cy,
            weight=state.weight,
            omega=OMEGA,
        )
        pk.parallel_for(links, turn_back, post=post, f=f, solid=solid, back=state.back)
        pk.parallel_for(links, stream, f=f, post=post, cx=cx, cy=cy, rows=rows, columns=columns)
        pk.parallel_for(rim, inflow, f=f, profile=state.profile)
        pk.parallel_for(rim, outflow, f=f, last=columns - 1)


def outputs(state: State) -> dict:
    return {
        "f": np.array(state.f.data),
        "ux": np.array(state.ux.data),
        "drag": np.array([float(x) for x in state.drag]),
        "kinetic": np.array([float(x) for x in state.kinetic]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    f, solid = np.array(fresh.f0.data), np.array(fresh.solid.data) == 1
    cx, cy, weight = np.array(CX), np.array(CY), np.array(WEIGHT)[:, None, None]
    drag, kinetic = [], []
    for _ in range(fresh.steps):
        rho = f.sum(axis=0)
        ux, uy = np.tensordot(cx, f, 1) / rho, np.tensordot(cy, f, 1) / rho
        uu = ux * ux + uy * uy
        drag.append(2.0 * np.sum(np.tensordot(cx, f, 1)[solid]))
        kinetic.append(0.5 * np.sum((rho * uu)[~solid]))
        cu = cx[:, None, None] * ux + cy[:, None, None] * uy
        post = f + OMEGA * (weight * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * uu) - f)
        post[:, solid] = f[BACK][:, solid]
        for q in range(9):
            f[q] = np.roll(post[q], (cy[q], cx[q]), (0, 1))
        f[:, :, 0] = np.array(fresh.profile.data)[:, None]
        f[:, :, -1] = f[:, :, -2]
    out = outputs(state)
    np.testing.assert_allclose(out["f"], f, rtol=1e-10)
    np.testing.assert_allclose(out["ux"], ux, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out["drag"], drag, rtol=1e-9)
    np.testing.assert_allclose(out["kinetic"], kinetic, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
