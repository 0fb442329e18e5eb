"""Lanczos' method on the Laplacian of a weighted graph, and the extreme eigenvalues it finds.

The matrix is sparse, its rows compressed (CSR). A step multiplies by the matrix, makes the result
orthogonal to the last two vectors and to the constant one, and scales it; the coefficients form a
tridiagonal matrix whose eigenvalues NumPy finds in the end.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 600, "default": 40_000, "large": 700_000}
STEPS = 15


@pk.workunit
def copy(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double]) -> None:
    y[i] = x[i]


@pk.workunit
def clear(i: int, y: pk.View1D[pk.double]) -> None:
    y[i] = 0.0


@pk.workunit
def multiply(
    i: int,
    y: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    row: pk.View1D[pk.int32],
    column: pk.View1D[pk.int32],
    weight: pk.View1D[pk.double],
) -> None:
    s: float = 0.0
    for e in range(row[i], row[i + 1]):
        s += weight[e] * x[column[e]]
    y[i] = s


@pk.workunit
def diagonal(
    i: int,
    y: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    degree: pk.View1D[pk.double],
) -> None:
    """The Laplacian is the degrees less the weights."""
    y[i] = degree[i] * x[i] - y[i]


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
    acc += x[i] * y[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]) -> None:
    acc += x[i]


@pk.workunit
def subtract(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double], a: float) -> None:
    y[i] -= a * x[i]


@pk.workunit
def shift(i: int, y: pk.View1D[pk.double], a: float) -> None:
    y[i] -= a


@pk.workunit
def scaled(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double], a: float) -> None:
    y[i] = a * x[i]


@dataclass
class State:
    """The graph, the first vector, the last one, the coefficients and the eigenvalues."""

    n: int
    row: pk.View
    column: pk.View
    weight: pk.View
    degree: pk.View
    first: pk.View
    v: pk.View
    alphas: list = field(default_factory=list)
    betas: list = field(default_factory=list)
    values: list = field(default_factory=list)


def setup(n: int) -> State:
    """A ring with random chords, about 8 neighbours a node."""
    rng = np.random.default_rng(109)
    a = np.concatenate([np.arange(n), rng.integers(0, n, 3 * n)])
    reach = np.maximum(1, (n // 50) * rng.random(3 * n)).astype(int)
    b = np.concatenate([(np.arange(n) + 1) % n, (a[n:] + reach) % n])
    w = rng.uniform(0.5, 1.5, len(a))
    source, target, weights = np.append(a, b), np.append(b, a), np.append(w, w)
    order = np.argsort(source, kind="stable")
    row, column = pk.View([n + 1], pk.int32), pk.View([len(order)], pk.int32)
    weight = pk.View([len(order)], pk.double)
    degree, first, v = (pk.View([n], pk.double) for _ in range(3))
    row.data[1:] = np.cumsum(np.bincount(source, minlength=n))
    column.data[:] = target[order]
    weight.data[:] = weights[order]
    degree.data[:] = np.bincount(source, weights, minlength=n)
    x = rng.normal(0.0, 1.0, n)
    x -= x.mean()
    first.data[:] = x / np.sqrt(x @ x)
    return State(n, row, column, weight, degree, first, v)


def run(state: State) -> None:
    n, v = state.n, state.v
    before, w = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(n, copy, y=v, x=state.first)
    pk.parallel_for(n, clear, y=before)
    alphas, betas, beta = [], [], 0.0
    for _ in range(STEPS):
        pk.parallel_for(
            n, multiply, y=w, x=v, row=state.row, column=state.column, weight=state.weight
        )
        pk.parallel_for(n, diagonal, y=w, x=v, degree=state.degree)
        alpha = float(pk.parallel_reduce(n, dot, x=w, y=v))
        pk.parallel_for(n, subtract, y=w, x=v, a=alpha)
        pk.parallel_for(n, subtract, y=w, x=before, a=beta)
        mean = float(pk.parallel_reduce(n, total, x=w)) / n
        pk.parallel_for(n, shift, y=w, a=mean)
        beta = sqrt(float(pk.parallel_reduce(n, dot, x=w, y=w)))
        pk.parallel_for(n, copy, y=before, x=v)
        pk.parallel_for(n, scaled, y=v, x=w, a=1.0 / beta)
        alphas.append(alpha)
        betas.append(beta)
    state.alphas, state.betas = alphas, betas
    state.values = eigenvalues(alphas, betas)


def eigenvalues(alphas, betas):
    t = np.diag(alphas) + np.diag(betas[:-1], 1) + np.diag(betas[:-1], -1)
    values = np.linalg.eigvalsh(t)
    return [float(values[0]), float(values[-1])]


def outputs(state: State) -> dict:
    return {
        "v": np.array(state.v.data),
        "alphas": np.array(state.alphas),
        "betas": np.array(state.betas),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    row, column, weight, degree, v = (
        np.array(x.data) for x in (fresh.row, fresh.column, fresh.weight, fresh.degree, fresh.first)
    )
    rows = np.repeat(np.arange(n), np.diff(row))
    before, beta, alphas, betas = np.zeros(n), 0.0, [], []
    for _ in range(STEPS):
        w = degree * v - np.bincount(rows, weight * v[column], minlength=n)
        alpha = w @ v
        w = w - alpha * v - beta * before
        w -= w.mean()
        beta = np.sqrt(w @ w)
        before, v = v, w / beta
        alphas.append(alpha)
        betas.append(beta)
    out = outputs(state)
    np.testing.assert_allclose(out["alphas"], alphas, rtol=1e-8)
    np.testing.assert_allclose(out["betas"], betas, rtol=1e-8)
    np.testing.assert_allclose(out["v"], v, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(state.values, eigenvalues(alphas, betas), rtol=1e-8)


if __name__ == "__main__":
    main(globals())
