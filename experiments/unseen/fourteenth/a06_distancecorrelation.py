"""Distance correlation (Szekely 2007) of two samples, for several shifts of one against the other.

Triangular loops fill the distances, then row and column means, double centring, and three sums.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 50, "default": 300, "large": 2_400}
SHIFTS = (0, 3, 11)


@pk.workunit
def distances(i: int, a: pk.View2D[pk.double], x: pk.View2D[pk.double], shift: int, n: int):
    """The lower triangle."""
    p: int = (i + shift) % n
    for j in range(i):
        q: int = (j + shift) % n
        dx: float = x[p][0] - x[q][0]
        dy: float = x[p][1] - x[q][1]
        a[i][j] = pk.sqrt(dx * dx + dy * dy)


@pk.workunit
def diagonal(i: int, a: pk.View2D[pk.double]):
    a[i][i] = 0.0


@pk.workunit
def mirror(i: int, a: pk.View2D[pk.double], n: int):
    for j in range(i + 1, n):
        a[i][j] = a[j][i]


@pk.workunit
def row_mean(i: int, r: pk.View1D[pk.double], a: pk.View2D[pk.double], n: int):
    s: float = 0.0
    for j in range(n):
        s += a[i][j]
    r[i] = s / n


@pk.workunit
def column_mean(j: int, c: pk.View1D[pk.double], a: pk.View2D[pk.double], n: int):
    s: float = 0.0
    for i in range(n):
        s += a[i][j]
    c[j] = s / n


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@pk.workunit
def centre(
    i: int,
    j: int,
    a: pk.View2D[pk.double],
    r: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    mean: float,
):
    a[i][j] += mean - r[i] - c[j]


@pk.workunit
def product(
    i: int, j: int, acc: pk.Acc[pk.double], a: pk.View2D[pk.double], b: pk.View2D[pk.double]
):
    acc += a[i][j] * b[i][j]


@pk.workunit
def row_covariance(
    i: int, r: pk.View1D[pk.double], a: pk.View2D[pk.double], b: pk.View2D[pk.double], n: int
):
    """How much each point adds."""
    s: float = 0.0
    for j in range(n):
        s += a[i][j] * b[i][j]
    r[i] = s / n


@dataclass
class State:
    n: int
    x: pk.View
    y: pk.View
    share: pk.View
    table: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1406)
    x, y, share = pk.View([n, 2], pk.double), pk.View([n, 2], pk.double), pk.View([n], pk.double)
    x.data[:] = rng.normal(0.0, 1.0, (n, 2))
    y.data[:] = np.abs(x.data) + 0.3 * rng.normal(0.0, 1.0, (n, 2))
    return State(n, x, y, share)


def centred(n: int, points, shift: int):
    a, r, c = pk.View([n, n], pk.double), pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(n, distances, a=a, x=points, shift=shift, n=n)
    pk.parallel_for(n, diagonal, a=a)
    pk.parallel_for(n, mirror, a=a, n=n)
    pk.parallel_for(n, row_mean, r=r, a=a, n=n)
    pk.parallel_for(n, column_mean, c=c, a=a, n=n)
    mean = float(pk.parallel_reduce(n, total, x=r)) / n
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), centre, a=a, r=r, c=c, mean=mean)
    return a


def run(s: State) -> None:
    n = s.n
    plane = pk.MDRangePolicy([0, 0], [n, n])
    s.table = []
    a = centred(n, s.x, 0)
    for shift in SHIFTS:
        b = centred(n, s.y, shift)
        covariance = pk.parallel_reduce(plane, product, a=a, b=b)
        own = pk.parallel_reduce(plane, product, a=a, b=a)
        other = pk.parallel_reduce(plane, product, a=b, b=b)
        pk.parallel_for(n, row_covariance, r=s.share, a=a, b=b, n=n)
        s.table.append(sqrt(float(covariance) / sqrt(float(own) * float(other))))


def outputs(s: State) -> dict:
    return {"share": np.array(s.share.data), "table": np.array(s.table)}


def check(s: State, n: int) -> None:
    def matrix(p):
        d = np.sqrt(((p[:, None] - p[None]) ** 2).sum(2))
        return d - d.mean(0) - d.mean(1)[:, None] + d.mean()

    a = matrix(np.array(s.x.data))
    for shift, value in zip(SHIFTS, s.table):
        b = matrix(np.roll(np.array(s.y.data), -shift, 0))
        expected = np.sqrt((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
        np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(s.share.data, (a * b).mean(1), rtol=1e-8, atol=1e-12)


if __name__ == "__main__":
    main(globals())
