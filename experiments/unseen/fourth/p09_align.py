"""Gotoh's local alignments with affine gaps of many pairs at once, by anti-diagonals."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

LENGTH = 40
SIZES = {"small": 24, "default": 40_000, "large": 120_000}
OPEN, EXTEND, SAME, OTHER = 5, 1, 3, -2


@pk.workunit
def reset(k, b, h0, h1, h2, e, f0, f1, best):
    h0[k][b] = 0
    h1[k][b] = 0
    h2[k][b] = 0
    e[k][b] = 0
    f0[k][b] = 0
    f1[k][b] = 0
    best[k][b] = 0


@pk.workunit
def gap_right(k, b, e, h1, first: int, more: int):
    e[k][b] = max(e[k][b] - more, h1[k][b] - first)


@pk.workunit
def gap_down(k, b, f, old, h1, first: int, more: int):
    f[k][b] = max(old[k - 1][b] - more, h1[k - 1][b] - first)


@pk.workunit
def compare(k, b, s, x, y, d: int, same: int, other: int):
    s[k][b] = same if x[k - 1][b] == y[d - k - 1][b] else other


@pk.workunit
def cell(k, b, h, h2, s, e, f):
    h[k][b] = max(max(h2[k - 1][b] + s[k][b], 0), max(e[k][b], f[k][b]))


@pk.workunit
def keep(k, b, best, h):
    best[k][b] = max(best[k][b], h[k][b])


@pk.workunit
def top(b, score, best, rows: int):
    t: int = 0
    for k in range(1, rows):
        t = max(t, best[k][b])
    score[b] = t


@pk.workunit
def add(b, acc: pk.Acc[pk.int64], score):
    acc += score[b]


@dataclass
class State:
    n: int
    x: pk.View
    y: pk.View
    score: pk.View
    total: int = 0


def letters(n, seed):
    return (4.0 * rnd(LENGTH * n, seed)).astype(np.int32).reshape(LENGTH, n)


def setup(n):
    x, y = pk.View([LENGTH, n], pk.int32), pk.View([LENGTH, n], pk.int32)
    x.data[:], y.data[:] = letters(n, 70), letters(n, 71)
    return State(n, x, y, pk.View([n], pk.int32))


def run(st):
    n, rows = st.n, LENGTH + 1
    h0, h1, h2, e, f0, f1, s, best = (pk.View([rows, n], pk.int32) for _ in range(8))
    everything = pk.MDRangePolicy([0, 0], [rows, n])
    pk.parallel_for(everything, reset, h0=h0, h1=h1, h2=h2, e=e, f0=f0, f1=f1, best=best)
    for d in range(2, 2 * LENGTH + 1):
        low, high = max(1, d - LENGTH), min(LENGTH, d - 1)
        cells = pk.MDRangePolicy([low, 0], [high + 1, n])
        pk.parallel_for(cells, gap_right, e=e, h1=h1, first=OPEN, more=EXTEND)
        pk.parallel_for(cells, gap_down, f=f0, old=f1, h1=h1, first=OPEN, more=EXTEND)
        pk.parallel_for(cells, compare, s=s, x=st.x, y=st.y, d=d, same=SAME, other=OTHER)
        pk.parallel_for(cells, cell, h=h0, h2=h2, s=s, e=e, f=f0)
        pk.parallel_for(cells, keep, best=best, h=h0)
        h0, h1, h2, f0, f1 = h2, h0, h1, f1, f0
    pk.parallel_for(n, top, score=st.score, best=best, rows=rows)
    st.total = int(pk.parallel_reduce(n, add, score=st.score))


def outputs(st):
    return {"score": np.array(st.score.data), "total": float(st.total)}


def check(st, size, runs):
    assert st.total == int(st.score.data.sum()) > 0


if __name__ == "__main__":
    main(globals())
