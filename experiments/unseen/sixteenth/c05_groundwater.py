"""Groundwater between wells in sand and clay: heads by BiCGSTAB with a sparse matrix (CSR).

Harmonic means of the conductivity, an upwind drift, the diagonal as preconditioner.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 48, "default": 320, "large": 1500}
ITERATIONS = 5


@pk.workunit
def fill(i: int, to: pk.View1D[pk.double], source: pk.View1D[pk.double]):
    to[i] = source[i]


@pk.workunit
def clear(i: int, x: pk.View1D[pk.double]):
    x[i] = 0.0


@pk.workunit
def invert_diagonal(i: int, inverse, start, column, value):
    for k in range(start[i], start[i + 1]):
        if column[k] == i:
            inverse[i] = 1.0 / value[k]


@pk.workunit
def multiply(i: int, y, x, start, column, value):
    total: pk.double = 0.0
    for k in range(start[i], start[i + 1]):
        total += value[k] * x[column[k]]
    y[i] = total


@pk.workunit
def subtract(i: int, out: pk.View1D[pk.double], a: pk.View1D[pk.double], b: pk.View1D[pk.double]):
    out[i] = a[i] - b[i]


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], a: pk.View1D[pk.double], b: pk.View1D[pk.double]):
    acc += a[i] * b[i]


@pk.workunit
def turn(i: int, p, r, v, beta: float, omega: float):
    p[i] = r[i] + beta * (p[i] - omega * v[i])


@pk.workunit
def precondition(i: int, out, x, inverse):
    out[i] = x[i] * inverse[i]


@pk.workunit
def minus_scaled(i: int, out, a, b, factor: float):
    out[i] = a[i] - factor * b[i]


@pk.workunit
def improve(i: int, x, y, z, alpha: float, omega: float):
    x[i] += alpha * y[i] + omega * z[i]


@pk.workunit
def flow(i: int, speed, head, conductivity, side: int):
    """The speed of the water in a cell, by its neighbours to the right and above."""
    dx: pk.double = 0.0
    dy: pk.double = 0.0
    if i % side < side - 1:
        dx = head[i] - head[i + 1]
    if i // side < side - 1:
        dy = head[i] - head[i + side]
    speed[i] = conductivity[i] * (abs(dx) + abs(dy))


@pk.workunit
def fast_cells(i: int, acc: pk.Acc[pk.int64], speed, limit: float):
    if speed[i] > limit:
        acc += 1


@dataclass
class State:
    side: int
    n: int
    start: pk.View
    column: pk.View
    value: pk.View
    b: pk.View
    conductivity: pk.View
    guess: pk.View
    x: pk.View
    speed: pk.View
    norms: pk.View
    fast: int = 0


def setup(side: int) -> State:
    rng = np.random.default_rng(5)
    n = side * side
    yy, xx = np.divmod(np.arange(n), side)
    smooth = np.sin(14.0 * xx / side) * np.cos(11.0 * yy / side)
    k = np.exp(1.2 * smooth + 0.2 * rng.normal(size=n))
    here, there, entry, diagonal = [], [], [], np.full(n, 0.05)
    for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        inside = (xx + dx >= 0) & (xx + dx < side) & (yy + dy >= 0) & (yy + dy < side)
        i = np.flatnonzero(inside)
        j = i + dx + side * dy
        mean = 2 * k[i] * k[j] / (k[i] + k[j])
        drift = 0.3 * (dx == -1) + 0.1 * (dy == -1)
        here.append(i)
        there.append(j)
        entry.append(-(mean + drift))
        diagonal[i] += mean + drift
    here.append(np.arange(n))
    there.append(np.arange(n))
    entry.append(diagonal)
    here, there, entry = np.concatenate(here), np.concatenate(there), np.concatenate(entry)
    order = np.argsort(here * n + there)
    start, column = pk.View([n + 1], pk.int32), pk.View([len(here)], pk.int32)
    value = pk.View([len(here)], pk.double)
    start.data[1:] = np.cumsum(np.bincount(here, minlength=n))
    column.data[:], value.data[:] = there[order], entry[order]
    b, conductivity, guess, x, speed = (pk.View([n], pk.double) for _ in range(5))
    b.data[:] = 0.01 * np.cos(5.0 * xx / side)
    b.data[(yy % 16 == 5) & (xx % 16 == 7)] -= 1.0
    b.data[(yy % 16 == 12) & (xx % 16 == 2)] += 1.0
    conductivity.data[:] = k
    guess.data[:] = 0.1 + 0.1 * xx / side
    norms = pk.View([ITERATIONS], pk.double)
    return State(side, n, start, column, value, b, conductivity, guess, x, speed, norms)


def run(s: State) -> None:
    n, x = s.n, s.x
    rows = pk.RangePolicy(pk.ExecutionSpace.OpenMP, 0, n)
    matrix = {"start": s.start, "column": s.column, "value": s.value}
    inverse, r, shadow, p, v, y, z, half, t = (pk.View([n], pk.double) for _ in range(9))
    pk.parallel_for(rows, fill, to=x, source=s.guess)
    pk.parallel_for(rows, invert_diagonal, inverse=inverse, **matrix)
    pk.parallel_for(rows, multiply, y=t, x=x, **matrix)
    pk.parallel_for(rows, subtract, out=r, a=s.b, b=t)
    pk.parallel_for(rows, fill, to=shadow, source=r)
    pk.parallel_for(rows, clear, x=p)
    pk.parallel_for(rows, clear, x=v)
    rho = alpha = omega = 1.0
    first = float(pk.parallel_reduce(rows, dot, a=s.b, b=s.b)) ** 0.5
    for iteration in range(ITERATIONS):
        new_rho = float(pk.parallel_reduce(rows, dot, a=shadow, b=r))
        beta = new_rho / rho * (alpha / omega)
        rho = new_rho
        pk.parallel_for(rows, turn, p=p, r=r, v=v, beta=beta, omega=omega)
        pk.parallel_for(rows, precondition, out=y, x=p, inverse=inverse)
        pk.parallel_for(rows, multiply, y=v, x=y, **matrix)
        alpha = rho / float(pk.parallel_reduce(rows, dot, a=shadow, b=v))
        pk.parallel_for(rows, minus_scaled, out=half, a=r, b=v, factor=alpha)
        pk.parallel_for(rows, precondition, out=z, x=half, inverse=inverse)
        pk.parallel_for(rows, multiply, y=t, x=z, **matrix)
        ts = pk.parallel_reduce(rows, dot, a=t, b=half)
        tt = pk.parallel_reduce(rows, dot, a=t, b=t)
        omega = float(ts / tt)
        pk.parallel_for(rows, improve, x=x, y=y, z=z, alpha=alpha, omega=omega)
        pk.parallel_for(rows, minus_scaled, out=r, a=half, b=t, factor=omega)
        norm = float(pk.parallel_reduce(rows, dot, a=r, b=r)) ** 0.5
        s.norms[iteration] = norm
        if norm < 1e-9 * first:
            break
    pk.parallel_for(rows, flow, speed=s.speed, head=x, conductivity=s.conductivity, side=s.side)
    s.fast = int(pk.parallel_reduce(rows, fast_cells, speed=s.speed, limit=0.25))


def outputs(s: State) -> dict:
    views = {"x": s.x, "speed": s.speed, "norms": s.norms}
    return {**{k: np.array(v.data) for k, v in views.items()}, "fast": np.array([s.fast])}


def check(s: State, side: int) -> None:
    start, column, value, b = (np.array(v.data) for v in (s.start, s.column, s.value, s.b))
    n = side * side
    row = np.repeat(np.arange(n), np.diff(start))

    def a(x):
        return np.bincount(row, value * x[column], minlength=n)

    x, m = np.array(s.guess.data), 1 / value[row == column]
    r = b - a(x)
    shadow, p, v, rho, alpha, omega = r.copy(), 0 * r, 0 * r, 1.0, 1.0, 1.0
    norms = [np.linalg.norm(r)]
    for _ in range(ITERATIONS):
        rho, old = shadow @ r, rho
        p = r + rho / old * (alpha / omega) * (p - omega * v)
        v = a(m * p)
        alpha = rho / (shadow @ v)
        half = r - alpha * v
        t = a(m * half)
        omega = (t @ half) / (t @ t)
        x = x + alpha * m * p + omega * m * half
        r = half - omega * t
        norms.append(np.linalg.norm(r))
    np.testing.assert_allclose(s.norms.data, norms[1:], rtol=1e-8)
    np.testing.assert_allclose(s.x.data, x, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(b - a(np.array(s.x.data))), norms[-1], rtol=1e-8)
    assert norms[-1] < 0.5 * norms[0]
    h = x.reshape(side, side)
    d = np.zeros((side, side))
    d[:, :-1] += abs(np.diff(h, axis=1))
    d[:-1] += abs(np.diff(h, axis=0))
    speed = d.ravel() * s.conductivity.data
    np.testing.assert_allclose(s.speed.data, speed, rtol=1e-7, atol=1e-8)
    assert s.fast == (speed > 0.25).sum()


if __name__ == "__main__":
    main(globals())
