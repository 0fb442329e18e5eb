"""Pressure in a network of pores: implicit steps by conjugate gradients over a CSR matrix.

Pores are joined to those nearby and, some, to far ones. The product is a TeamPolicy's, a chunk of
rows for each team; the diagonal preconditions. Iterations end when the residual is small, then
wells act and the next step begins.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 30, "default": 140, "large": 600}
CHUNK, STEPS, MOST, TOLERANCE, WELL = 32, 2, 60, 1e-7, 0.4


@pk.workunit
def restore(i: int, x: pk.View1D[pk.double], x0: pk.View1D[pk.double]):
    x[i] = x0[i]


@pk.workunit
def find_diagonal(
    i: int,
    d: pk.View1D[pk.double],
    start: pk.View1D[pk.int32],
    column: pk.View1D[pk.int32],
    value: pk.View1D[pk.double],
):
    for k in range(start[i], start[i + 1]):
        if column[k] == i:
            d[i] = 1.0 / value[k]


@pk.workunit
def right_side(
    i: int,
    b: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    well: pk.View1D[pk.double],
    rate: float,
):
    b[i] = x[i] + rate * well[i]


@pk.workunit
def product(
    team: pk.TeamMember,
    y: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    start: pk.View1D[pk.int32],
    column: pk.View1D[pk.int32],
    value: pk.View1D[pk.double],
    chunk: int,
    n: int,
):
    first: int = team.league_rank() * chunk

    def row(r: int):
        i: int = first + r
        if i < n:
            s: float = 0.0
            for k in range(start[i], start[i + 1]):
                s += value[k] * x[column[k]]
            y[i] = s

    pk.parallel_for(pk.TeamThreadRange(team, chunk), row)


@pk.workunit
def residual(i: int, r: pk.View1D[pk.double], b: pk.View1D[pk.double], q: pk.View1D[pk.double]):
    r[i] = b[i] - q[i]


@pk.workunit
def precondition(i: int, z: pk.View1D[pk.double], r: pk.View1D[pk.double], d: pk.View1D[pk.double]):
    z[i] = d[i] * r[i]


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]):
    acc += x[i] * y[i]


@pk.workunit
def add(i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double], a: float):
    x[i] += a * y[i]


@pk.workunit
def direction(i: int, p: pk.View1D[pk.double], z: pk.View1D[pk.double], b: float):
    p[i] = z[i] + b * p[i]


@dataclass
class State:
    """The matrix, the first pressure and the present one, the wells; residuals and flows."""

    n: int
    start: pk.View
    column: pk.View
    value: pk.View
    x0: pk.View
    x: pk.View
    well: pk.View
    residuals: list = field(default_factory=list)
    iterations: list = field(default_factory=list)


def setup(side: int) -> State:
    rng = np.random.default_rng(125)
    n = side * side
    at = np.arange(n).reshape(side, side)
    a = [at[:, :-1].ravel(), at[:-1].ravel(), at[:-1, :-1].ravel(), rng.integers(0, n, n // 8)]
    b = [at[:, 1:].ravel(), at[1:].ravel(), at[1:, 1:].ravel(), rng.integers(0, n, n // 8)]
    a, b = np.concatenate(a), np.concatenate(b)
    keep = (a != b) & (rng.random(a.size) < 0.9)
    pairs = np.unique(np.minimum(a, b)[keep] * n + np.maximum(a, b)[keep])
    a, b = pairs // n, pairs % n
    g = 3.0 * np.exp(0.8 * rng.standard_normal(a.size))
    diagonal = 1.0 + np.bincount(a, g, n) + np.bincount(b, g, n)
    rows = np.concatenate([a, b, np.arange(n)])
    columns = np.concatenate([b, a, np.arange(n)])
    order = np.argsort(rows * n + columns)
    x0, x, well = (pk.View([n], pk.double) for _ in range(3))
    start, column = pk.View([n + 1], pk.int32), pk.View([rows.size], pk.int32)
    value = pk.View([rows.size], pk.double)
    start.data[1:] = np.cumsum(np.bincount(rows, minlength=n))
    column.data[:] = columns[order]
    value.data[:] = np.concatenate([-g, -g, diagonal])[order]
    x0.data[:] = 1.0 + rng.random(n)
    well.data[:] = np.where(rng.random(n) < 0.01, rng.choice([-1.0, 1.0], n), 0.0)
    return State(n, start, column, value, x0, x, well)


def run(state: State) -> None:
    n, x = state.n, state.x
    matrix = {"start": state.start, "column": state.column, "value": state.value}
    teams = pk.TeamPolicy((n + CHUNK - 1) // CHUNK, pk.AUTO)
    d, b, q, r, z, p = (pk.View([n], pk.double) for _ in range(6))
    state.residuals, state.iterations = [], []
    pk.parallel_for(n, restore, x=x, x0=state.x0)
    pk.parallel_for(n, find_diagonal, d=d, **matrix)
    for step in range(STEPS):
        pk.parallel_for(n, right_side, b=b, x=x, well=state.well, rate=WELL * (step + 1))
        pk.parallel_for(teams, product, y=q, x=x, chunk=CHUNK, n=n, **matrix)
        pk.parallel_for(n, residual, r=r, b=b, q=q)
        pk.parallel_for(n, precondition, z=z, r=r, d=d)
        pk.parallel_for(n, restore, x=p, x0=z)
        rz = float(pk.parallel_reduce(n, dot, x=r, y=z))
        limit = TOLERANCE * sqrt(float(pk.parallel_reduce(n, dot, x=b, y=b)))
        count, size = 0, limit + 1.0
        while size > limit and count < MOST:
            pk.parallel_for(teams, product, y=q, x=p, chunk=CHUNK, n=n, **matrix)
            alpha = rz / float(pk.parallel_reduce(n, dot, x=p, y=q))
            pk.parallel_for(n, add, x=x, y=p, a=alpha)
            pk.parallel_for(n, add, x=r, y=q, a=-alpha)
            pk.parallel_for(n, precondition, z=z, r=r, d=d)
            size = sqrt(float(pk.parallel_reduce(n, dot, x=r, y=r)))
            before, rz = rz, float(pk.parallel_reduce(n, dot, x=r, y=z))
            pk.parallel_for(n, direction, p=p, z=z, b=rz / before)
            count += 1
        state.residuals.append(size)
        state.iterations.append(count)


def outputs(state: State) -> dict:
    return {
        "x": np.array(state.x.data),
        "residuals": np.array(state.residuals),
        "iterations": np.array(state.iterations, dtype=np.float64),
    }


def check(state: State, side: int, runs: int = 1) -> None:
    fresh = setup(side)
    n = fresh.n
    start, column = np.array(fresh.start.data), np.array(fresh.column.data)
    value, well = np.array(fresh.value.data), np.array(fresh.well.data)
    rows = np.repeat(np.arange(n), np.diff(start))
    diagonal = value[column == rows]

    def product(x):
        return np.bincount(rows, value * x[column], n)

    x, iterations = np.array(fresh.x0.data), []
    for step in range(STEPS):
        b = x + WELL * (step + 1) * well
        r = b - product(x)
        z = r / diagonal
        p, rz, count = z.copy(), r @ z, 0
        while count < MOST:
            q = product(p)
            alpha = rz / (p @ q)
            x = x + alpha * p
            r = r - alpha * q
            z = r / diagonal
            rz, before = r @ z, rz
            p = z + rz / before * p
            count += 1
            if sqrt(r @ r) <= TOLERANCE * sqrt(b @ b):
                break
        iterations.append(count)
        assert np.linalg.norm(b - product(np.array(x))) < 2 * TOLERANCE * np.linalg.norm(b)
    out = outputs(state)
    assert max(iterations) < MOST
    np.testing.assert_array_equal(out["iterations"], iterations)
    np.testing.assert_allclose(out["x"], x, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
