"""Pairs of reads aligned along anti-diagonals, affine gaps; pairs whose score drops too far are given up.

The diagonal grows and shrinks; the list of live pairs is packed by a scan every few diagonals.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 16, "default": 1600, "large": 10_000}
LENGTH, EVERY, DROP = 64, 8, 14
OPEN, EXTEND, SAME, OTHER = 4, 1, 2, -3
NEVER = -1000000


@pk.workunit
def fresh(
    p: int,
    i: int,
    h0: pk.View2D[pk.int32],
    h1: pk.View2D[pk.int32],
    h2: pk.View2D[pk.int32],
    e: pk.View2D[pk.int32],
    f1: pk.View2D[pk.int32],
    f0: pk.View2D[pk.int32],
    never: int,
):
    h0[p][i] = never
    h1[p][i] = never
    h2[p][i] = never
    e[p][i] = never
    f1[p][i] = never
    f0[p][i] = never
    if i == 0:
        h1[p][i] = 0


@pk.workunit
def everyone(
    p: int,
    live: pk.View1D[pk.int32],
    best: pk.View1D[pk.int32],
    where: pk.View1D[pk.int32],
    last_seen: pk.View1D[pk.int32],
):
    live[p] = p
    best[p] = 0
    where[p] = 0
    last_seen[p] = 0


@pk.workunit
def gap_right(
    a: int,
    i: int,
    live: pk.View1D[pk.int32],
    h1: pk.View2D[pk.int32],
    e: pk.View2D[pk.int32],
    opening: int,
    extend: int,
):
    p: pk.int32 = live[a]
    e[p][i] = max(h1[p][i] - opening, e[p][i] - extend)


@pk.workunit
def gap_down(
    a: int,
    i: int,
    live: pk.View1D[pk.int32],
    h1: pk.View2D[pk.int32],
    f1: pk.View2D[pk.int32],
    f0: pk.View2D[pk.int32],
    opening: int,
    extend: int,
    never: int,
):
    p: pk.int32 = live[a]
    if i > 0:
        f0[p][i] = max(h1[p][i - 1] - opening, f1[p][i - 1] - extend)
    else:
        f0[p][i] = never


@pk.workunit
def letters(
    a: int,
    i: int,
    live: pk.View1D[pk.int32],
    x: pk.View2D[pk.int8],
    y: pk.View2D[pk.int8],
    h2: pk.View2D[pk.int32],
    h0: pk.View2D[pk.int32],
    d: int,
    same: int,
    other: int,
    never: int,
):
    p: pk.int32 = live[a]
    j: pk.int32 = d - i
    h0[p][i] = never
    if i > 0 and j > 0:
        if x[p][i - 1] == y[p][j - 1]:
            h0[p][i] = h2[p][i - 1] + same
        else:
            h0[p][i] = h2[p][i - 1] + other


@pk.workunit
def choose(
    a: int,
    i: int,
    live: pk.View1D[pk.int32],
    h0: pk.View2D[pk.int32],
    e: pk.View2D[pk.int32],
    f0: pk.View2D[pk.int32],
):
    p: pk.int32 = live[a]
    h0[p][i] = max(h0[p][i], max(e[p][i], f0[p][i]))


@pk.workunit
def top(
    a: int,
    live: pk.View1D[pk.int32],
    h0: pk.View2D[pk.int32],
    now: pk.View1D[pk.int32],
    best: pk.View1D[pk.int32],
    where: pk.View1D[pk.int32],
    last_seen: pk.View1D[pk.int32],
    low: int,
    high: int,
    d: int,
):
    p: pk.int32 = live[a]
    most: pk.int32 = h0[p][low]
    for i in range(low + 1, high):
        most = max(most, h0[p][i])
    now[p] = most
    last_seen[p] = d
    if most > best[p]:
        best[p] = most
        where[p] = d


@pk.workunit
def remain(
    a: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    live: pk.View1D[pk.int32],
    live2: pk.View1D[pk.int32],
    now: pk.View1D[pk.int32],
    best: pk.View1D[pk.int32],
    drop: int,
):
    if now[live[a]] >= best[live[a]] - drop:
        if last:
            live2[acc] = live[a]
        acc += 1


@pk.workunit
def total(p: int, acc: pk.Acc[pk.int64], best: pk.View1D[pk.int32]):
    acc += best[p]


@dataclass
class State:
    n: int
    x: pk.View
    y: pk.View
    best: pk.View
    where: pk.View
    last_seen: pk.View
    score: int = 0
    alive: int = 0
    cells: int = 0


def setup(n: int) -> State:
    rng = np.random.default_rng(12)
    x = rng.integers(0, 4, (n, LENGTH)).astype(np.int8)
    y = rng.integers(0, 4, (n, LENGTH)).astype(np.int8)
    for p in range(0, n, 2):
        copy = np.where(rng.random(LENGTH) < 0.05 * (1 + p % 5), y[p], x[p])
        y[p] = np.roll(copy, p % 3)
        if p % 4 == 0:
            y[p, LENGTH // 2 :] = rng.integers(0, 4, LENGTH - LENGTH // 2)
    first, second = pk.View([n, LENGTH], pk.int8), pk.View([n, LENGTH], pk.int8)
    first[...] = x
    second[...] = y
    best, where, seen = (pk.View([n], pk.int32) for _ in range(3))
    return State(n, first, second, best, where, seen)


def run(s: State) -> None:
    n = s.n
    h0, h1, h2, e, f0, f1 = (pk.View([n, LENGTH + 1], pk.int32) for _ in range(6))
    live, live2, now = (pk.View([n], pk.int32) for _ in range(3))
    box = pk.MDRangePolicy([0, 0], [n, LENGTH + 1])
    pk.parallel_for(box, fresh, h0=h0, h1=h1, h2=h2, e=e, f1=f1, f0=f0, never=NEVER)
    pk.parallel_for(n, everyone, live=live, best=s.best, where=s.where, last_seen=s.last_seen)
    m, s.cells = n, 0
    for d in range(1, 2 * LENGTH + 1):
        low, high = max(0, d - LENGTH), min(d, LENGTH) + 1
        band = pk.MDRangePolicy([0, low], [m, high])
        s.cells += m * (high - low)
        pk.parallel_for(band, gap_right, live=live, h1=h1, e=e, opening=OPEN, extend=EXTEND)
        pk.parallel_for(
            band, gap_down, live=live, h1=h1, f1=f1, f0=f0, opening=OPEN, extend=EXTEND, never=NEVER
        )
        pk.parallel_for(
            band,
            letters,
            live=live,
            x=s.x,
            y=s.y,
            h2=h2,
            h0=h0,
            d=d,
            same=SAME,
            other=OTHER,
            never=NEVER,
        )
        pk.parallel_for(band, choose, live=live, h0=h0, e=e, f0=f0)
        pairs = pk.RangePolicy(0, m)
        pk.parallel_for(
            pairs,
            top,
            live=live,
            h0=h0,
            now=now,
            best=s.best,
            where=s.where,
            last_seen=s.last_seen,
            low=low,
            high=high,
            d=d,
        )
        if d % EVERY == 0:
            m = int(
                pk.parallel_scan(
                    pairs, remain, live=live, live2=live2, now=now, best=s.best, drop=DROP
                )
            )
            if m == 0:
                break
            live, live2 = live2, live
        h0, h1, h2, f0, f1 = h2, h0, h1, f1, f0
    s.alive = m
    s.score = int(pk.parallel_reduce(n, total, best=s.best))


def outputs(s: State) -> dict:
    numbers = np.array([s.score, s.alive, s.cells], float)
    return {"best": s.best, "where": s.where, "last_seen": s.last_seen, "numbers": numbers}


def check(s: State, n: int) -> None:
    x, y = np.array(s.x.data), np.array(s.y.data)
    alive, m = 0, LENGTH + 1
    for p in range(n):
        h = np.full((m, m), NEVER)
        e, f = h.copy(), h.copy()
        h[0, 0] = 0
        best, where, seen, living = 0, 0, 0, True
        for i in range(m):
            for j in range(m):
                if j > 0:
                    e[i, j] = max(h[i, j - 1] - OPEN, e[i, j - 1] - EXTEND)
                if i > 0:
                    f[i, j] = max(h[i - 1, j] - OPEN, f[i - 1, j] - EXTEND)
                if i > 0 and j > 0:
                    h[i, j] = h[i - 1, j - 1] + (SAME if x[p, i - 1] == y[p, j - 1] else OTHER)
                h[i, j] = max(h[i, j], e[i, j], f[i, j])
        for d in range(1, 2 * LENGTH + 1):
            most, seen = max(h[i, d - i] for i in range(max(0, d - LENGTH), min(d, LENGTH) + 1)), d
            if most > best:
                best, where = most, d
            if d % EVERY == 0 and most < best - DROP:
                living = False
                break
        alive += living
        got = (s.best.data[p], s.where.data[p], s.last_seen.data[p])
        assert got == (best, where, seen), (p, got, best, where, seen)
    assert s.alive == alive, (s.alive, alive)
    assert s.score == int(np.array(s.best.data).sum())


if __name__ == "__main__":
    main(globals())
