"""Solve L L^T X = B for many right-hand sides by blocks of rows, forward and then backward.

Source: K. Gallivan et al., "The Use of BLAS3 in Linear Algebra on a Parallel Processor with a
Hierarchical Memory" (1987). A block's rows are solved column by column of B in an inner triangle;
then the remaining rows are updated by an inner product over the block. First row and range change.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 320, "large": 1_024}
BLOCK = 16


@pk.workunit
def copy(i, j, x, b):
    x[i][j] = b[i][j]


@pk.workunit
def solve_down(j: int, x: pk.View2D[pk.double], low: pk.View2D[pk.double], top: int, rows: int):
    for r in range(rows):
        s: float = x[top + r][j]
        for c in range(r):
            s -= low[top + r][top + c] * x[top + c][j]
        x[top + r][j] = s / low[top + r][top + r]


@pk.workunit
def update_down(
    i: int, j: int, x: pk.View2D[pk.double], low: pk.View2D[pk.double], top: int, rows: int
):
    s: float = 0.0
    for c in range(rows):
        s += low[i][top + c] * x[top + c][j]
    x[i][j] -= s


@pk.workunit
def solve_up(j: int, x: pk.View2D[pk.double], low: pk.View2D[pk.double], top: int, rows: int):
    for back in range(rows):
        r: int = top + rows - 1 - back
        s: float = x[r][j]
        for c in range(r + 1, top + rows):
            s -= low[c][r] * x[c][j]
        x[r][j] = s / low[r][r]


@pk.workunit
def update_up(
    i: int, j: int, x: pk.View2D[pk.double], low: pk.View2D[pk.double], top: int, rows: int
):
    s: float = 0.0
    for c in range(rows):
        s += low[top + c][i] * x[top + c][j]
    x[i][j] -= s


@pk.workunit
def square(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double]):
    acc += x[i][j] * x[i][j]


@dataclass
class State:
    n: int
    low: pk.View
    b: pk.View
    x: pk.View
    norm: float = 0.0


def system(n: int):
    rng = np.random.default_rng(4)
    low = np.tril(rng.uniform(-1.0, 1.0, (n, n))) / np.sqrt(n)
    np.fill_diagonal(low, rng.uniform(1.0, 2.0, n))
    return low, rng.normal(size=(n, n // 2))


def setup(size: int) -> State:
    low, b, x = (pk.View([size, m], pk.double) for m in (size, size // 2, size // 2))
    low.data[:], b.data[:] = system(size)
    return State(size, low, b, x)


def run(state: State) -> None:
    n, m, x, low = state.n, state.n // 2, state.x, state.low
    everything = pk.MDRangePolicy([0, 0], [n, m])
    pk.parallel_for(everything, copy, x=x, b=state.b)
    tops = range(0, n, BLOCK)
    for top in tops:
        rows = min(BLOCK, n - top)
        pk.parallel_for(m, solve_down, x=x, low=low, top=top, rows=rows)
        if top + rows < n:
            rest = pk.MDRangePolicy([top + rows, 0], [n, m])
            pk.parallel_for(rest, update_down, x=x, low=low, top=top, rows=rows)
    for top in reversed(tops):
        rows = min(BLOCK, n - top)
        pk.parallel_for(m, solve_up, x=x, low=low, top=top, rows=rows)
        if top > 0:
            rest = pk.MDRangePolicy([0, 0], [top, m])
            pk.parallel_for(rest, update_up, x=x, low=low, top=top, rows=rows)
    state.norm = pk.parallel_reduce(everything, square, x=x)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"x": np.array(state.x.data), "norm": float(state.norm)}


def check(state: State, size: int, runs: int) -> None:
    low, b = system(size)
    out = outputs(state)
    np.testing.assert_allclose(low @ (low.T @ out["x"]), b, atol=1e-9)
    np.testing.assert_allclose(out["norm"], np.sum(out["x"] ** 2), rtol=1e-12)


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
    print(f"blocked_trsm: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
