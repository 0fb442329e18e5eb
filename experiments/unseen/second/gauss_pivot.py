"""Gaussian elimination with partial pivoting, then back substitution for several right-hand sides.

Source: G. Golub, C. Van Loan, "Matrix Computations", alg. 3.4.1. In step k the host looks for the
pivot in a copied column, then four launches over ranges that shrink with k.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 150, "large": 300}
SIDES = 5


@pk.workunit
def copy(i, j, target, source):
    target[i][j] = source[i][j]


@pk.workunit
def column(i, out, a, k):
    out[i] = abs(a[i][k])


@pk.workunit
def swap(j, a, k, p):
    t = a[k][j]
    a[k][j] = a[p][j]
    a[p][j] = t


@pk.workunit
def factors(i, factor, a, k):
    factor[i] = a[i][k] / a[k][k]


@pk.workunit
def eliminate(i, j, a, factor, k):
    a[i][j] -= factor[i] * a[k][j]


@pk.workunit
def divide(s, x, b, a, k):
    x[k][s] = b[k][s] / a[k][k]


@pk.workunit
def substitute(i, s, b, a, x, k):
    b[i][s] -= a[i][k] * x[k][s]


@pk.workunit
def log_pivot(i, acc, a):
    acc += log(abs(a[i][i]))


@dataclass
class State:
    n: int
    a: pk.View
    b: pk.View
    x: pk.View
    swaps: int = 0
    log_det: float = 0.0


def system(n: int):
    rng = np.random.default_rng(21)
    return rng.normal(size=(n, n)), rng.normal(size=(n, SIDES))


def setup(size: int) -> State:
    a, b, x = (pk.View([size, m], pk.double) for m in (size, SIDES, SIDES))
    a.data[:], b.data[:] = system(size)
    return State(size, a, b, x)


def run(state: State) -> None:
    n, x = state.n, state.x
    a, b = pk.View([n, n], pk.double), pk.View([n, SIDES], pk.double)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), copy, target=a, source=state.a)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, SIDES]), copy, target=b, source=state.b)
    candidates, factor = pk.View([n], pk.double), pk.View([n], pk.double)
    state.swaps = 0
    for k in range(n - 1):
        below = pk.RangePolicy(k + 1, n)
        pk.parallel_for(pk.RangePolicy(k, n), column, out=candidates, a=a, k=k)
        pivot = k + int(np.argmax(candidates.data[k:]))
        if pivot != k:
            pk.parallel_for(pk.RangePolicy(k, n), swap, a=a, k=k, p=pivot)
            pk.parallel_for(SIDES, swap, a=b, k=k, p=pivot)
            state.swaps += 1
        pk.parallel_for(below, factors, factor=factor, a=a, k=k)
        square = pk.MDRangePolicy([k + 1, k + 1], [n, n])
        pk.parallel_for(square, eliminate, a=a, factor=factor, k=k)
        pk.parallel_for(
            pk.MDRangePolicy([k + 1, 0], [n, SIDES]), eliminate, a=b, factor=factor, k=k
        )
    for k in range(n - 1, -1, -1):
        pk.parallel_for(SIDES, divide, x=x, b=b, a=a, k=k)
        if k > 0:
            pk.parallel_for(pk.MDRangePolicy([0, 0], [k, SIDES]), substitute, b=b, a=a, x=x, k=k)
    state.log_det = pk.parallel_reduce(n, log_pivot, a=a)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"x": np.array(state.x.data), "swaps": state.swaps, "log_det": float(state.log_det)}


def check(state: State, size: int, runs: int) -> None:
    a, b = system(size)
    out = outputs(state)
    np.testing.assert_allclose(a @ out["x"], b, atol=1e-9)
    np.testing.assert_allclose(out["log_det"], np.linalg.slogdet(a)[1], rtol=1e-9)


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
    print(f"gauss_pivot: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
