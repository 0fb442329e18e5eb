# ruff: noqa: E501
"""Optimal transport between two clouds of points, with entropy: Sinkhorn's iterations in logarithms.

Costs are squared distances. A round updates the potentials of rows, then of columns, by stable
log-sums, while the entropy's weight falls; then the rows' error is read. At the end the plan, its
cost and where each point goes on average.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main
from peers.z09_numpy import solve

SIZES = {"small": 48, "default": 320, "large": 1_100}
FIRST, LAST, FALL, TOLERANCE = 0.5, 0.02, 0.85, 1e-9


@pk.workunit
def costs(
    i: int,
    j: int,
    c: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
):
    dx: float = x[i][0] - y[j][0]
    dy: float = x[i][1] - y[j][1]
    c[i][j] = dx * dx + dy * dy


@pk.workunit
def fill(i: int, x: pk.View1D[pk.double], value: float):
    x[i] = value


@pk.workunit
def exponents(
    i: int,
    j: int,
    m: pk.View2D[pk.double],
    f: pk.View1D[pk.double],
    g: pk.View1D[pk.double],
    c: pk.View2D[pk.double],
    eps: float,
):
    m[i][j] = (f[i] + g[j] - c[i][j]) / eps


@pk.workunit
def greatest_of_row(i: int, top: pk.View1D[pk.double], m: pk.View2D[pk.double], columns: int):
    t: float = m[i][0]
    for j in range(1, columns):
        t = max(t, m[i][j])
    top[i] = t


@pk.workunit
def greatest_of_column(j: int, top: pk.View1D[pk.double], m: pk.View2D[pk.double], rows: int):
    t: float = m[0][j]
    for i in range(1, rows):
        t = max(t, m[i][j])
    top[j] = t


@pk.workunit
def grow_row(
    i: int, j: int, e: pk.View2D[pk.double], m: pk.View2D[pk.double], top: pk.View1D[pk.double]
):
    e[i][j] = pk.exp(m[i][j] - top[i])


@pk.workunit
def grow_column(
    i: int, j: int, e: pk.View2D[pk.double], m: pk.View2D[pk.double], top: pk.View1D[pk.double]
):
    e[i][j] = pk.exp(m[i][j] - top[j])


@pk.workunit
def sum_row(i: int, s: pk.View1D[pk.double], e: pk.View2D[pk.double], columns: int):
    total: float = 0.0
    for j in range(columns):
        total += e[i][j]
    s[i] = total


@pk.workunit
def sum_column(j: int, s: pk.View1D[pk.double], e: pk.View2D[pk.double], rows: int):
    total: float = 0.0
    for i in range(rows):
        total += e[i][j]
    s[j] = total


@pk.workunit
def adjust(
    i: int,
    f: pk.View1D[pk.double],
    top: pk.View1D[pk.double],
    s: pk.View1D[pk.double],
    log_mass: pk.View1D[pk.double],
    eps: float,
):
    f[i] += eps * (log_mass[i] - top[i] - pk.log(s[i]))


@pk.workunit
def logarithm(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = pk.log(x[i])


@pk.workunit
def row_error(
    i: int,
    acc: pk.Acc[pk.double],
    top: pk.View1D[pk.double],
    s: pk.View1D[pk.double],
    mass: pk.View1D[pk.double],
):
    acc += abs(s[i] * pk.exp(top[i]) - mass[i])


@pk.workunit
def plan_of(i: int, j: int, plan: pk.View2D[pk.double], m: pk.View2D[pk.double]):
    plan[i][j] = pk.exp(m[i][j])


@pk.workunit
def work(
    i: int, j: int, acc: pk.Acc[pk.double], plan: pk.View2D[pk.double], c: pk.View2D[pk.double]
):
    acc += plan[i][j] * c[i][j]


@pk.workunit
def project(
    i: int,
    a: int,
    goal: pk.View2D[pk.double],
    plan: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    mass: pk.View1D[pk.double],
    columns: int,
):
    s: float = 0.0
    for j in range(columns):
        s += plan[i][j] * y[j][a]
    goal[i][a] = s / mass[i]


@dataclass
class State:
    """Points and masses; potentials, goals, errors of the rounds, the cost."""

    rows: int
    columns: int
    most: int
    x: pk.View
    y: pk.View
    mass_x: pk.View
    mass_y: pk.View
    f: pk.View
    g: pk.View
    goal: pk.View
    errors: list = field(default_factory=list)
    cost: float = 0.0


def setup(rows: int) -> State:
    rng = np.random.default_rng(1309)
    columns = rows + rows // 5
    x, y, goal = (
        pk.View([rows, 2], pk.double),
        pk.View([columns, 2], pk.double),
        pk.View([rows, 2], pk.double),
    )
    mass_x, f = pk.View([rows], pk.double), pk.View([rows], pk.double)
    mass_y, g = pk.View([columns], pk.double), pk.View([columns], pk.double)
    x.data[:] = rng.normal(0.0, 0.3, (rows, 2))
    angle = rng.uniform(0.0, 2.0 * np.pi, columns)
    y.data[:] = np.stack([np.cos(angle), 0.7 * np.sin(angle)], 1) + rng.normal(
        0.0, 0.1, (columns, 2)
    )
    for mass, n in ((mass_x, rows), (mass_y, columns)):
        w = rng.uniform(0.5, 1.5, n)
        mass.data[:] = w / w.sum()
    most = 100 if rows <= 60 else 24 if rows <= 500 else 12
    return State(rows, columns, most, x, y, mass_x, mass_y, f, g, goal)


def run(state: State) -> None:
    rows, columns, f, g = state.rows, state.columns, state.f, state.g
    every = pk.MDRangePolicy([0, 0], [rows, columns])
    c, m, e = (pk.View([rows, columns], pk.double) for _ in range(3))
    top, s, log_x = (pk.View([rows], pk.double) for _ in range(3))
    top_y, s_y, log_y = (pk.View([columns], pk.double) for _ in range(3))
    state.errors = []
    pk.parallel_for(every, costs, c=c, x=state.x, y=state.y)
    pk.parallel_for(rows, logarithm, out=log_x, x=state.mass_x)
    pk.parallel_for(columns, logarithm, out=log_y, x=state.mass_y)
    pk.parallel_for(rows, fill, x=f, value=0.0)
    pk.parallel_for(columns, fill, x=g, value=0.0)
    eps = FIRST
    for _ in range(state.most):
        pk.parallel_for(every, exponents, m=m, f=f, g=g, c=c, eps=eps)
        pk.parallel_for(rows, greatest_of_row, top=top, m=m, columns=columns)
        pk.parallel_for(every, grow_row, e=e, m=m, top=top)
        pk.parallel_for(rows, sum_row, s=s, e=e, columns=columns)
        error = float(pk.parallel_reduce(rows, row_error, top=top, s=s, mass=state.mass_x))
        state.errors.append(error)
        if eps == LAST and error < TOLERANCE:
            break
        pk.parallel_for(rows, adjust, f=f, top=top, s=s, log_mass=log_x, eps=eps)
        pk.parallel_for(every, exponents, m=m, f=f, g=g, c=c, eps=eps)
        pk.parallel_for(columns, greatest_of_column, top=top_y, m=m, rows=rows)
        pk.parallel_for(every, grow_column, e=e, m=m, top=top_y)
        pk.parallel_for(columns, sum_column, s=s_y, e=e, rows=rows)
        pk.parallel_for(columns, adjust, f=g, top=top_y, s=s_y, log_mass=log_y, eps=eps)
        eps = max(LAST, FALL * eps)
    plan = pk.View([rows, columns], pk.double)
    pk.parallel_for(every, exponents, m=m, f=f, g=g, c=c, eps=eps)
    pk.parallel_for(every, plan_of, plan=plan, m=m)
    state.cost = float(pk.parallel_reduce(every, work, plan=plan, c=c))
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [rows, 2]),
        project,
        goal=state.goal,
        plan=plan,
        y=state.y,
        mass=state.mass_x,
        columns=columns,
    )


def outputs(state: State) -> dict:
    return {
        "f": np.array(state.f.data),
        "g": np.array(state.g.data),
        "goal": np.array(state.goal.data),
        "errors": np.array(state.errors),
        "cost": np.array([state.cost]),
    }


def check(state: State, rows: int, runs: int = 1) -> None:
    fresh = setup(rows)
    inputs = (np.array(v.data) for v in (fresh.x, fresh.y, fresh.mass_x, fresh.mass_y))
    expected = solve(fresh.most, *inputs)
    for name, value in outputs(state).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    main(globals())
