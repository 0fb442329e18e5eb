"""Local alignment of two proteins with affine gaps, anti-diagonal by anti-diagonal.

Source: O. Gotoh, "An improved algorithm for matching biological sequences" (1982). Rows i of diagonal d
are max(1, d - n) to min(n, d - 1): they grow, then shrink. Three diagonals are kept, in turns.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 100, "default": 250, "large": 400}
OPEN, EXTEND, LETTERS = 11, 1, 20


@pk.workunit
def gaps(i, e, f, e_old, f_old, h_old):
    across = e_old[i] - EXTEND
    fresh = h_old[i] - OPEN
    e[i] = max(fresh, across)
    down = f_old[i - 1] - EXTEND
    fresh = h_old[i - 1] - OPEN
    f[i] = max(fresh, down)


@pk.workunit
def cell(i, h, h_older, e, f, a, b, table, d):
    best = h_older[i - 1] + table[a[i - 1] * LETTERS + b[d - i - 1]]
    best = max(best, e[i])
    best = max(best, f[i])
    h[i] = max(0, best)


@pk.workunit
def record(i, best, where, h, d):
    if h[i] > best[i]:
        best[i] = h[i]
        where[i] = d - i


@pk.workunit
def blank(i, x, value):
    x[i] = value


@pk.workunit
def area(i, acc, best):
    acc += best[i]


@dataclass
class State:
    n: int
    a: pk.View
    b: pk.View
    table: pk.View
    best: pk.View
    where: pk.View
    total: int = 0


def sequences(n: int):
    """Two random proteins that share mutated pieces, and a symmetric table of scores."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, LETTERS, n), rng.integers(0, LETTERS, n)
    b[n // 5 : n // 2] = a[n // 3 : n // 3 + n // 2 - n // 5]
    changed = rng.random(n) < 0.2
    b[changed] = rng.integers(0, LETTERS, changed.sum())
    table = rng.integers(-4, 2, (LETTERS, LETTERS))
    table = np.minimum(table, table.T)
    np.fill_diagonal(table, rng.integers(4, 9, LETTERS))
    return a, b, table


def setup(size: int) -> State:
    a, b, table = sequences(size)
    views = [pk.View([m.size], t) for m, t in ((a, pk.int8), (b, pk.int8), (table, pk.int32))]
    for view, values in zip(views, (a, b, table.ravel()), strict=True):
        view.data[:] = values
    return State(size, *views, pk.View([size + 1], pk.int32), pk.View([size + 1], pk.int32))


def run(state: State) -> None:
    n = state.n
    h, h_old, h_older, e, e_old, f, f_old = (pk.View([n + 1], pk.int32) for _ in range(7))
    for view, value in ((h, 0), (h_old, 0), (h_older, 0), (state.best, 0), (state.where, 0)):
        pk.parallel_for(n + 1, blank, x=view, value=value)
    for view in (e, e_old, f, f_old):
        pk.parallel_for(n + 1, blank, x=view, value=-1000)
    for d in range(2, 2 * n + 1):
        rows = pk.RangePolicy(max(1, d - n), min(n, d - 1) + 1)
        pk.parallel_for(rows, gaps, e=e, f=f, e_old=e_old, f_old=f_old, h_old=h_old)
        pk.parallel_for(
            rows, cell, h=h, h_older=h_older, e=e, f=f, a=state.a, b=state.b, table=state.table, d=d
        )
        pk.parallel_for(rows, record, best=state.best, where=state.where, h=h, d=d)
        h, h_old, h_older = h_older, h, h_old
        e, e_old, f, f_old = e_old, e, f_old, f
    state.total = pk.parallel_reduce(n + 1, area, best=state.best)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    views = {"best": state.best, "where": state.where}
    return {k: np.array(v.data) for k, v in views.items()} | {"total": float(state.total)}


def check(state: State, size: int, runs: int) -> None:
    """Cell by cell in Python where that is quick; else the sum and a plausible score."""
    out = outputs(state)
    assert out["total"] == out["best"].sum() and out["best"].max() > size // 2
    if size > 150:
        return
    a, b, table = sequences(size)
    h, e, f = np.zeros((size + 1,) * 2, int), *(np.full((size + 1,) * 2, -1000) for _ in "ef")
    for i in range(1, size + 1):
        for j in range(1, size + 1):
            e[i, j] = max(e[i, j - 1] - EXTEND, h[i, j - 1] - OPEN)
            f[i, j] = max(f[i - 1, j] - EXTEND, h[i - 1, j] - OPEN)
            h[i, j] = max(0, h[i - 1, j - 1] + table[a[i - 1], b[j - 1]], e[i, j], f[i, j])
    np.testing.assert_array_equal(out["best"], h.max(axis=1))
    np.testing.assert_array_equal(out["where"], h.argmax(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"gotoh_diagonals: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
