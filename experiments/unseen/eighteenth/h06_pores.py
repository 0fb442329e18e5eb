# ruff: noqa: B905
"""Diffusion in a porous block: conjugate gradients on an ELL matrix, smoothed by Chebyshev polynomials.

The outer iteration is in double precision, the polynomial in single; scalars are read in each iteration.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 97_336, "large": 1_728_000}
STEPS, DEGREE, WIDTH = 3, 3, 7
HIGHEST, LOWEST = 2.0, 0.25


@pk.workunit
def clear(i: int, x: pk.View1D[pk.double]):
    x[i] = 0.0


@pk.workunit
def copy(i: int, to: pk.View1D[pk.double], source: pk.View1D[pk.double]):
    to[i] = source[i]


@pk.workunit
def multiply(i: int, y, value, column, x):
    total: pk.double = 0.0
    for j in range(WIDTH):
        total += value[i][j] * x[column[i][j]]
    y[i] = total


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]):
    acc += x[i] * y[i]


@pk.workunit
def axpy(i: int, y: pk.View1D[pk.double], a: float, x: pk.View1D[pk.double]):
    y[i] += a * x[i]


@pk.workunit
def direction(i: int, p: pk.View1D[pk.double], z: pk.View1D[pk.double], beta: float):
    p[i] = z[i] + beta * p[i]


@pk.workunit
def to_single(i: int, out: pk.View1D[pk.float], x: pk.View1D[pk.double], scale: float):
    out[i] = x[i] * scale


@pk.workunit
def to_double(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.float], scale: float):
    out[i] = x[i] * scale


@pk.workunit
def first_step(i: int, d, rhs, inverse, factor: pk.float):
    d[i] = factor * inverse[i] * rhs[i]


@pk.workunit
def single_copy(i: int, to: pk.View1D[pk.float], source: pk.View1D[pk.float]):
    to[i] = source[i]


@pk.workunit
def defect(i: int, out, rhs, value, column, z):
    total: pk.float = rhs[i]
    for j in range(WIDTH):
        total -= value[i][j] * z[column[i][j]]
    out[i] = total


@pk.workunit
def next_step(i: int, d, left, inverse, keep: pk.float, factor: pk.float):
    d[i] = keep * d[i] + factor * inverse[i] * left[i]


@pk.workunit
def add(i: int, z: pk.View1D[pk.float], d: pk.View1D[pk.float]):
    z[i] += d[i]


@dataclass
class State:
    n: int
    value: pk.View
    single: pk.View
    column: pk.View
    inverse: pk.View
    b: pk.View
    x: pk.View
    history: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(16)
    g = round(n ** (1 / 3))
    n = g**3
    solid = rng.random((g, g, g)) < 0.15
    conduct = np.where(solid, 0.05, 1.0) * (0.8 + 0.4 * rng.random((g, g, g)))
    # Cells are numbered in groups of eight, in no order within a group.
    order = np.argsort(np.arange(n) // 8 + rng.random(n))
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    number = number.reshape(g, g, g)
    value, single = pk.View([n, WIDTH], pk.double), pk.View([n, WIDTH], pk.float)
    column, inverse = pk.View([n, WIDTH], pk.int32), pk.View([n], pk.float)
    columns, values = np.repeat(np.arange(n)[:, None], WIDTH, axis=1), np.zeros((n, WIDTH))
    diagonal = 0.01 + np.zeros(n)
    slot = 1
    for axis in range(3):
        lo, hi = [slice(None)] * 3, [slice(None)] * 3
        lo[axis], hi[axis] = slice(0, -1), slice(1, None)
        lo, hi = tuple(lo), tuple(hi)
        between = (2 / (1 / conduct[lo] + 1 / conduct[hi])).ravel()
        for here, there in (
            (number[lo].ravel(), number[hi].ravel()),
            (number[hi].ravel(), number[lo].ravel()),
        ):
            columns[here, slot], values[here, slot] = there, -between
            diagonal[here] += between
            slot += 1
    values[:, 0] = diagonal
    value.data[:], single.data[:], column.data[:] = values, values, columns
    inverse.data[:] = 1 / diagonal
    b, x = pk.View([n], pk.double), pk.View([n], pk.double)
    b.data[:] = rng.normal(size=n)
    return State(n, value, single, column, inverse, b, x, pk.View([STEPS, 3], pk.double))


def polynomial(s: State, z, r, size):
    """z = p(A) r with r scaled to size 1, as single precision has a short range."""
    n = s.n
    centre, radius = 0.5 * (HIGHEST + LOWEST), 0.5 * (HIGHEST - LOWEST)
    rhs, d, y, left = (pk.View([n], pk.float) for _ in range(4))
    pk.parallel_for(n, to_single, out=rhs, x=r, scale=1.0 / size)
    pk.parallel_for(n, first_step, d=d, rhs=rhs, inverse=s.inverse, factor=1.0 / centre)
    pk.parallel_for(n, single_copy, to=y, source=d)
    rho = radius / centre
    for _ in range(DEGREE - 1):
        following = 1.0 / (2.0 * centre / radius - rho)
        pk.parallel_for(n, defect, out=left, rhs=rhs, value=s.single, column=s.column, z=y)
        pk.parallel_for(
            n,
            next_step,
            d=d,
            left=left,
            inverse=s.inverse,
            keep=following * rho,
            factor=2.0 * following / radius,
        )
        pk.parallel_for(n, add, z=y, d=d)
        rho = following
    pk.parallel_for(n, to_double, out=z, x=y, scale=size)


def run(s: State) -> None:
    n, x = s.n, s.x
    r, z, p, ap = (pk.View([n], pk.double) for _ in range(4))
    pk.parallel_for(n, clear, x=x)
    pk.parallel_for(n, copy, to=r, source=s.b)
    size = sqrt(float(pk.parallel_reduce(n, dot, x=r, y=r)) / n)
    polynomial(s, z, r, size)
    pk.parallel_for(n, copy, to=p, source=z)
    rz = float(pk.parallel_reduce(n, dot, x=r, y=z))
    for step in range(STEPS):
        pk.parallel_for(n, multiply, y=ap, value=s.value, column=s.column, x=p)
        alpha = rz / float(pk.parallel_reduce(n, dot, x=p, y=ap))
        pk.parallel_for(n, axpy, y=x, a=alpha, x=p)
        pk.parallel_for(n, axpy, y=r, a=-alpha, x=ap)
        size = sqrt(float(pk.parallel_reduce(n, dot, x=r, y=r)) / n)
        polynomial(s, z, r, size)
        old, rz = rz, float(pk.parallel_reduce(n, dot, x=r, y=z))
        pk.parallel_for(n, direction, p=p, z=z, beta=rz / old)
        s.history[step, 0] = size
        s.history[step, 1] = alpha
        s.history[step, 2] = rz / old


def outputs(s: State) -> dict:
    views = {"x": s.x, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    value, column, b, x = (np.array(v.data) for v in (s.value, s.column, s.b, s.x))
    inverse = 1 / value[:, 0]

    def times(v):
        return (value * v[column]).sum(axis=1)

    centre, radius = 0.5 * (HIGHEST + LOWEST), 0.5 * (HIGHEST - LOWEST)

    def polynomial(r):
        z = d = inverse * r / centre
        rho = radius / centre
        for _ in range(DEGREE - 1):
            following = 1 / (2 * centre / radius - rho)
            d = following * rho * d + 2 * following / radius * inverse * (r - times(z))
            z, rho = z + d, following
        return z

    y, r = np.zeros(s.n), b.copy()
    p = z = polynomial(r)
    rz = r @ z
    for step in range(STEPS):
        ap = times(p)
        alpha = rz / (p @ ap)
        y, r = y + alpha * p, r - alpha * ap
        z = polynomial(r)
        old, rz = rz, r @ z
        expected = [np.sqrt(r @ r / s.n), alpha, rz / old]
        np.testing.assert_allclose(s.history.data[step], expected, rtol=1e-4)
        p = z + rz / old * p
    np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
    left = b - times(x)
    np.testing.assert_allclose(np.sqrt(left @ left / s.n), s.history.data[STEPS - 1, 0], rtol=1e-9)


if __name__ == "__main__":
    main(globals())
