"""Spectral moments of a sparse matrix (kernel polynomial method), CSR with rows of 3 to 8."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 800, "default": 1_200_000, "large": 3_000_000}
STEPS = 6


@pk.workunit
def multiply(i, y, x, start, col, val):
    total: float = 0.0
    for k in range(start[i], start[i + 1]):
        total += val[k] * x[col[k]]
    y[i] = total


@pk.workunit
def recur(i, t2, y, t0):
    t2[i] = 2.0 * y[i] - t0[i]


@pk.workunit
def dot(i, acc, a, b):
    acc += a[i] * b[i]


@pk.workunit
def collect(i, f, t, weight):
    f[i] += weight * t[i]


@pk.workunit
def copy(i, a, b):
    a[i] = b[i]


@pk.workunit
def scaled(i, a, b, w):
    a[i] = w * b[i]


@dataclass
class State:
    n: int
    start: pk.View
    col: pk.View
    val: pk.View
    v: pk.View
    f: pk.View
    moments: list


def matrix(n):
    count = 3 + (6 * rnd(n, 50)).astype(np.int32)
    start = np.zeros(n + 1, np.int32)
    np.cumsum(count, out=start[1:])
    nnz = int(start[-1])
    row = np.repeat(np.arange(n), count)
    col = (row + (2001.0 * rnd(nnz, 51)).astype(np.int64) - 1000 + n * 4) % n
    return start, col.astype(np.int32), (2.0 * rnd(nnz, 52) - 1.0) / 8.0


def setup(n):
    start, col, val = matrix(n)
    views = (
        pk.View([n + 1], pk.int32),
        pk.View([len(col)], pk.int32),
        pk.View([len(val)], pk.double),
    )
    for view, values in zip(views, (start, col, val)):
        view.data[:] = values
    v = pk.View([n], pk.double)
    v.data[:] = 2.0 * rnd(n, 53) - 1.0
    return State(n, *views, v, pk.View([n], pk.double), [])


def jackson(k, count):
    x = np.pi / (count + 1)
    return float(((count - k + 1) * np.cos(k * x) + np.sin(k * x) / np.tan(x)) / (count + 1))


def run(s):
    n = s.n
    t0, t1, t2, y = (pk.View([n], pk.double) for _ in range(4))
    moments = []
    pk.parallel_for(n, copy, a=t0, b=s.v)
    pk.parallel_for(n, multiply, y=t1, x=t0, start=s.start, col=s.col, val=s.val)
    pk.parallel_for(n, scaled, a=s.f, b=t0, w=jackson(0, STEPS))
    mu0 = pk.parallel_reduce(n, dot, a=t0, b=t0)
    mu1 = pk.parallel_reduce(n, dot, a=t1, b=t0)
    for k in range(STEPS):
        pk.parallel_for(n, collect, f=s.f, t=t1, weight=2.0 * jackson(k, STEPS))
        pk.parallel_for(n, multiply, y=y, x=t1, start=s.start, col=s.col, val=s.val)
        pk.parallel_for(n, recur, t2=t2, y=y, t0=t0)
        moments.append(pk.parallel_reduce(n, dot, a=t1, b=t1))
        moments.append(pk.parallel_reduce(n, dot, a=t2, b=t1))
        t0, t1, t2 = t1, t2, t0
    s.moments = [float(mu0), float(mu1)]
    for k, m in enumerate(moments):
        s.moments.append(2.0 * float(m) - s.moments[k % 2])


def outputs(s):
    return {"f": np.array(s.f.data), "moments": np.array(s.moments)}


def check(s, size, runs):
    assert len(s.moments) == 2 * STEPS + 2 and np.all(np.isfinite(s.moments))


if __name__ == "__main__":
    main(globals())
