"""Sine and cosine: sin(x)^2 + cos(x)^2 by whole arrays, which is 1 up to rounding.

Source: the first measurement of J. M. Morton et al., "DelayRepay: Delayed Execution for Kernel
Fusion in Python" (2020), there in NumPy and CuPy.

One run makes 5 launches with 4 temporaries. Unfused they move 11 doubles (88 bytes) an element;
fused, 1 input and 1 output are left (16 bytes), and a sine and a cosine.
"""

import argparse
from dataclasses import dataclass
from math import cos, sin
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 10_000, "default": 10_000_000, "large": 40_000_000, "gpu": 83_000_000}


@pk.workunit
def sine(i, result, x):
    result[i] = sin(x[i])


@pk.workunit
def cosine(i, result, x):
    result[i] = cos(x[i])


@pk.workunit
def square(i, result, x):
    result[i] = x[i] * x[i]


@pk.workunit
def add(i, result, x, y):
    result[i] = x[i] + y[i]


@dataclass
class State:
    """Angles, and the sums of the squares."""

    size: int
    x: pk.View
    total: pk.View


def angles(size: int) -> np.ndarray:
    """Return some turns' worth of angles."""
    return np.random.default_rng(17).uniform(-20.0, 20.0, size)


def setup(size: int) -> State:
    """Make random angles."""
    x, total = (pk.View([size], pk.double) for _ in range(2))
    x.data[:] = angles(size)
    return State(size, x, total)


def run(state: State) -> None:
    """Compute the sums; each run does the same."""
    n = state.size
    s, s2, c, c2 = (pk.View([n], pk.double) for _ in range(4))
    pk.parallel_for(n, sine, result=s, x=state.x)
    pk.parallel_for(n, square, result=s2, x=s)
    pk.parallel_for(n, cosine, result=c, x=state.x)
    pk.parallel_for(n, square, result=c2, x=c)
    pk.parallel_for(n, add, result=state.total, x=s2, y=c2)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the sums."""
    return {"total": np.array(state.total.data)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Pythagoras."""
    return {"total": np.full(size, 1.0 if runs else 0.0)}


def check(state: State, size: int, runs: int) -> None:
    """Sine and cosine are off by 4 units in the last place at most, squares by twice that.

    That all sums are 1 hides which angle they are of: other programs show wrong indices.
    """
    actual, expected = outputs(state), reference(size, runs)
    np.testing.assert_allclose(actual["total"], expected["total"], rtol=0, atol=3e-15)


def main() -> None:
    """Run and check from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--space", default=None, help="an execution space, such as OpenMP")
    args = parser.parse_args()
    if args.space:
        pk.set_default_space(pk.ExecutionSpace(args.space))
    state = setup(args.size)
    start = perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"sine_cosine: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
