"""Monitoring of a factory: a table of sensor readings, principal components and strange rows.

Missing readings get the mean of their column; two components by power iteration with deflation;
rows are strange by Hotelling's T2 or by their residual, and are listed in order.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 300, "default": 15_000, "large": 500_000}
COLUMNS, COMPONENTS, SWEEPS = 8, 2, 2
MISSING = -999.0
LIMIT = 4.0


@pk.workunit
def known_sum(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    if x[i] > MISSING:
        acc += x[i]


@pk.workunit
def known_count(i: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.double]):
    if x[i] > MISSING:
        acc += 1


@pk.workunit
def centre(
    i: int, c: int, z: pk.View2D[pk.double], x: pk.View2D[pk.double], mean: pk.View1D[pk.double]
):
    value: pk.double = x[i][c]
    if value <= MISSING:
        value = mean[c]
    z[i][c] = value - mean[c]


@pk.workunit
def square_sum(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i] * x[i]


@pk.workunit
def standardise(i: int, c: int, z: pk.View2D[pk.double], sd: pk.View1D[pk.double]):
    z[i][c] = z[i][c] / sd[c]


@pk.workunit
def winsorise(i: int, c: int, z: pk.View2D[pk.double], limit: float):
    z[i][c] = min(max(z[i][c], -limit), limit)


@pk.workunit
def project(
    i: int, score: pk.View1D[pk.double], z: pk.View2D[pk.double], loading: pk.View1D[pk.double]
):
    total: pk.double = 0.0
    for c in range(COLUMNS):
        total += z[i][c] * loading[c]
    score[i] = total


@pk.workunit
def inner(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], score: pk.View1D[pk.double]):
    acc += x[i] * score[i]


@pk.workunit
def deflate(
    i: int,
    c: int,
    z: pk.View2D[pk.double],
    score: pk.View1D[pk.double],
    loading: pk.View1D[pk.double],
):
    z[i][c] -= score[i] * loading[c]


@pk.workunit
def hotelling(i: int, t2, first, second, var_first: float, var_second: float):
    t2[i] = first[i] * first[i] / var_first + second[i] * second[i] / var_second


@pk.workunit
def residual(i: int, q, z):
    total: pk.double = 0.0
    for c in range(COLUMNS):
        total += z[i][c] * z[i][c]
    q[i] = total


@pk.workunit
def plain_sum(i: int, acc: pk.Acc[pk.double], x):
    acc += x[i]


@pk.workunit
def judge(i: int, flag, t2, q, t2_limit: float, q_limit: float):
    flag[i] = 0
    if t2[i] > t2_limit or q[i] > q_limit:
        flag[i] = 1


@pk.workunit
def number(i: int, acc: pk.Acc[pk.int64], last: bool, flag, rank):
    acc += flag[i]
    if last:
        rank[i] = acc


@pk.workunit
def collect(i: int, strange, flag, rank):
    if flag[i] == 1:
        strange[rank[i] - 1] = i


@dataclass
class State:
    n: int
    x: pk.View
    first: pk.View
    second: pk.View
    t2: pk.View
    q: pk.View
    strange: pk.View
    loadings: pk.View
    found: int = 0


def setup(n: int) -> State:
    rng = np.random.default_rng(2)
    x = pk.View([n, COLUMNS], pk.double)
    hidden = rng.normal(size=(n, 3)) * [2.0, 1.2, 0.4]
    table = hidden @ rng.normal(size=(3, COLUMNS)) + 0.5 * rng.normal(size=(n, COLUMNS))
    table[rng.random(n) < 0.01] *= 4
    table = table * (1 + np.arange(COLUMNS)) + 20.0 * np.arange(COLUMNS)
    table[rng.random(table.shape) < 0.02] = MISSING
    x.data[:] = table
    first, second, t2, q = (pk.View([n], pk.double) for _ in range(4))
    return State(
        n, x, first, second, t2, q, pk.View([n], pk.int32), pk.View([2, COLUMNS], pk.double)
    )


def run(s: State) -> None:
    n = s.n
    rows = pk.RangePolicy(pk.ExecutionSpace.OpenMP, 0, n)
    cells = pk.MDRangePolicy([0, 0], [n, COLUMNS])
    z = pk.View([n, COLUMNS], pk.double)
    mean, sd = pk.View([COLUMNS], pk.double), pk.View([COLUMNS], pk.double)
    for c in range(COLUMNS):
        total = pk.parallel_reduce(rows, known_sum, x=s.x[:, c])
        count = pk.parallel_reduce(rows, known_count, x=s.x[:, c])
        mean[c] = total / count
    pk.parallel_for(cells, centre, z=z, x=s.x, mean=mean)
    for c in range(COLUMNS):
        sd[c] = float(pk.parallel_reduce(rows, square_sum, x=z[:, c]) / n) ** 0.5
    pk.parallel_for(cells, standardise, z=z, sd=sd)
    pk.parallel_for(cells, winsorise, z=z, limit=6.0)
    scores, variances = [s.first, s.second], []
    for k in range(COMPONENTS):
        loading = s.loadings[k, :]
        for c in range(COLUMNS):
            s.loadings[k, c] = (1.0 + 0.25 * ((c + k) % 3)) / COLUMNS**0.5
        for _ in range(SWEEPS):
            pk.parallel_for(rows, project, score=scores[k], z=z, loading=loading)
            new = [
                float(pk.parallel_reduce(rows, inner, x=z[:, c], score=scores[k]))
                for c in range(COLUMNS)
            ]
            length = sum(value * value for value in new) ** 0.5
            for c in range(COLUMNS):
                s.loadings[k, c] = new[c] / length
        pk.parallel_for(rows, project, score=scores[k], z=z, loading=loading)
        pk.parallel_for(cells, deflate, z=z, score=scores[k], loading=loading)
        variances.append(pk.parallel_reduce(rows, square_sum, x=scores[k]) / n)
    pk.parallel_for(
        rows,
        hotelling,
        t2=s.t2,
        first=s.first,
        second=s.second,
        var_first=float(variances[0]),
        var_second=float(variances[1]),
    )
    pk.parallel_for(rows, residual, q=s.q, z=z)
    t2_limit = LIMIT * pk.parallel_reduce(rows, plain_sum, x=s.t2) / n
    q_limit = LIMIT * pk.parallel_reduce(rows, plain_sum, x=s.q) / n
    flag, rank = pk.View([n], pk.int32), pk.View([n], pk.int32)
    pk.parallel_for(rows, judge, flag=flag, t2=s.t2, q=s.q, t2_limit=t2_limit, q_limit=q_limit)
    s.found = int(pk.parallel_scan(rows, number, flag=flag, rank=rank))
    pk.parallel_for(rows, collect, strange=s.strange, flag=flag, rank=rank)


def outputs(s: State) -> dict:
    whole = {"loadings": s.loadings, "first": s.first, "second": s.second, "t2": s.t2, "q": s.q}
    arrays = {name: np.array(view.data) for name, view in whole.items()}
    return {**arrays, "strange": np.array(s.strange.data[: s.found]), "found": np.array([s.found])}


def check(s: State, n: int) -> None:
    x = np.array(s.x.data)
    x[x <= MISSING] = np.nan
    z = x - np.nanmean(x, axis=0)
    z[np.isnan(z)] = 0
    z = np.clip(z / np.sqrt((z**2).mean(axis=0)), -6, 6)
    t2 = 0
    for k, score in enumerate((s.first, s.second)):
        v = (1.0 + 0.25 * ((np.arange(COLUMNS) + k) % 3)) / COLUMNS**0.5
        for _ in range(SWEEPS):
            v = z.T @ (z @ v)
            v /= np.sqrt(v @ v)
        np.testing.assert_allclose(s.loadings.data[k], v, atol=1e-10)
        t = z @ v
        np.testing.assert_allclose(score.data, t, atol=1e-9)
        z = z - t[:, None] * v
        t2 = t2 + t**2 / (t @ t / n)
    q = (z**2).sum(axis=1)
    np.testing.assert_allclose(s.t2.data, t2, atol=1e-9)
    np.testing.assert_allclose(s.q.data, q, atol=1e-9)
    strange = np.flatnonzero((t2 > LIMIT * t2.mean()) | (q > LIMIT * q.mean()))
    assert 0 < s.found < n / 4
    np.testing.assert_array_equal(s.strange.data[: s.found], strange)


if __name__ == "__main__":
    main(globals())
