"""A drift-diffusion network solved by BiCGStab with a Jacobi preconditioner; CSR, rows of any length."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 1500, "default": 250_000, "large": 1_500_000}
MOST, TOLERANCE = 12, 1e-9


@pk.workunit
def multiply(
    i: int,
    out: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    start: pk.View1D[pk.int32],
    column: pk.View1D[pk.int32],
    value: pk.View1D[pk.double],
):
    total: float = 0.0
    for e in range(start[i], start[i + 1]):
        total += value[e] * x[column[e]]
    out[i] = total


@pk.workunit
def diagonal(i, inverse, start, column, value):
    for e in range(start[i], start[i + 1]):
        if column[e] == i:
            inverse[i] = 1.0 / value[e]


@pk.workunit
def precondition(i, out, inverse, x):
    out[i] = inverse[i] * x[i]


@pk.workunit
def fill(i, out, a):
    out[i] = a


@pk.workunit
def assign(i, out, a):
    out[i] = a[i]


@pk.workunit
def minus(i, out, a, b, factor):
    out[i] = a[i] - factor * b[i]


@pk.workunit
def add(i, out, a, factor):
    out[i] += factor * a[i]


@pk.workunit
def direction(i, p, r, v, beta, omega):
    p[i] = r[i] + beta * (p[i] - omega * v[i])


@pk.workunit
def dot(i, acc, a, b):
    acc += a[i] * b[i]


@dataclass
class State:
    n: int
    csr: dict
    b: pk.View
    x: pk.View
    norm: float = 0.0
    iterations: int = 0


def network(n):
    """Rows of 3 to 9 entries within 400 columns, dominant diagonal, not symmetric."""
    length = 3 + (rnd(n, 11) * 7).astype(np.int32)
    start = np.zeros(n + 1, np.int32)
    np.cumsum(length, out=start[1:])
    row = np.repeat(np.arange(n), length)
    place = np.arange(start[-1]) - start[row]
    column = (row + ((rnd(start[-1], 12) - 0.5) * 400).astype(np.int64)) % n
    column = np.where(place == 0, row, column).astype(np.int32)
    value = -rnd(start[-1], 13)
    value[(place > 0) & (column == row)] = 0.0
    sums = np.add.reduceat(value * (place > 0), start[:-1])
    value[start[:-1]] = 0.15 - sums
    keep = (place == 0) | (column != row)  # no second entry on the diagonal
    length = np.add.reduceat(keep.astype(np.int32), start[:-1])
    start[1:] = np.cumsum(length)
    return start, column[keep], value[keep]


def setup(n):
    start, column, value = network(n)
    csr = {}
    for name, a, t in (
        ("start", start, pk.int32),
        ("column", column, pk.int32),
        ("value", value, pk.double),
    ):
        csr[name] = pk.View([len(a)], t)
        csr[name].data[:] = a
    b, x = pk.View([n], pk.double), pk.View([n], pk.double)
    b.data[:] = rnd(n, 14) - 0.3
    return State(n, csr, b, x)


def run(s):
    n, x = s.n, s.x
    r, r0, p, q, v, w, z, t, inverse = (pk.View([n], pk.double) for _ in range(9))
    pk.parallel_for(n, diagonal, inverse=inverse, **s.csr)
    pk.parallel_for(n, fill, out=x, a=0.0)
    for a in (p, v):
        pk.parallel_for(n, fill, out=a, a=0.0)
    pk.parallel_for(n, assign, out=r, a=s.b)
    pk.parallel_for(n, assign, out=r0, a=s.b)
    rho = alpha = omega = 1.0
    first = float(pk.parallel_reduce(n, dot, a=s.b, b=s.b))
    for k in range(MOST):
        before, rho = rho, pk.parallel_reduce(n, dot, a=r0, b=r)
        pk.parallel_for(
            n, direction, p=p, r=r, v=v, beta=(rho / before) * (alpha / omega), omega=omega
        )
        pk.parallel_for(n, precondition, out=q, inverse=inverse, x=p)
        pk.parallel_for(n, multiply, out=v, x=q, **s.csr)
        alpha = rho / pk.parallel_reduce(n, dot, a=r0, b=v)
        pk.parallel_for(n, minus, out=w, a=r, b=v, factor=alpha)
        pk.parallel_for(n, precondition, out=z, inverse=inverse, x=w)
        pk.parallel_for(n, multiply, out=t, x=z, **s.csr)
        omega = pk.parallel_reduce(n, dot, a=t, b=w) / pk.parallel_reduce(n, dot, a=t, b=t)
        pk.parallel_for(n, add, out=x, a=q, factor=alpha)
        pk.parallel_for(n, add, out=x, a=z, factor=omega)
        pk.parallel_for(n, minus, out=r, a=w, b=t, factor=omega)
        s.norm = float(pk.parallel_reduce(n, dot, a=r, b=r))
        s.iterations = k + 1
        if s.norm < TOLERANCE * first:
            break


def outputs(s):
    return {"x": np.array(s.x.data), "norm": s.norm, "iterations": float(s.iterations)}


def check(s, size, runs):
    assert s.norm < 0.1 * float(np.sum(np.asarray(s.b.data) ** 2)), s.norm


if __name__ == "__main__":
    main(globals())
