"""BabelStream: the five memory-bandwidth kernels copy, mul, add, triad and dot.

Source: T. Deakin et al., "GPU-STREAM v2.0" (2016), after McCalpin's STREAM; starting values here
are random, so that no element may stand for another.

One run makes PASSES passes of 5 launches (4 maps, 1 reduction): 20 launches. Unfused, a pass moves
12 doubles (96 bytes) an element; the least for a run is to read a and write a, b, c (32 bytes).
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 10_000, "default": 16_000_000, "large": 50_000_000, "gpu": 100_000_000}
PASSES = 4
SCALAR = 0.4


@pk.workunit
def copy(i, a, c):
    c[i] = a[i]


@pk.workunit
def mul(i, b, c, scalar):
    b[i] = scalar * c[i]


@pk.workunit
def add(i, a, b, c):
    c[i] = a[i] + b[i]


@pk.workunit
def triad(i, a, b, c, scalar):
    a[i] = b[i] + scalar * c[i]


@pk.workunit
def dot(i, acc, a, b):
    acc += a[i] * b[i]


@dataclass
class State:
    """The three arrays of the benchmark and the last dot product."""

    a: pk.View
    b: pk.View
    c: pk.View
    total: float = 0.0


def initial(size: int) -> np.ndarray:
    """Return the starting values of a."""
    return np.random.default_rng(1).uniform(0.1, 1.0, size)


def setup(size: int) -> State:
    """Make a random a; b and c start at zero."""
    a, b, c = (pk.View([size], pk.double) for _ in range(3))
    a.data[:] = initial(size)
    return State(a, b, c)


def run(state: State) -> None:
    """Make PASSES passes of the five kernels."""
    a, b, c = state.a, state.b, state.c
    policy = pk.RangePolicy(0, a.extent(0))
    for _ in range(PASSES):
        pk.parallel_for("copy", policy, copy, a=a, c=c)
        pk.parallel_for("mul", policy, mul, b=b, c=c, scalar=SCALAR)
        pk.parallel_for("add", policy, add, a=a, b=b, c=c)
        pk.parallel_for("triad", policy, triad, a=a, b=b, c=c, scalar=SCALAR)
        state.total = pk.parallel_reduce("dot", policy, dot, a=a, b=b)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the arrays and the dot product."""
    return {
        "a": np.array(state.a.data),
        "b": np.array(state.b.data),
        "c": np.array(state.c.data),
        "dot": float(state.total),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Closed form: a pass makes c = (1 + s) a, b = s a and then a = (2 s + s^2) a."""
    passes = runs * PASSES
    shrink = 2 * SCALAR + SCALAR**2
    if passes == 0:
        return {"a": initial(size), "b": np.zeros(size), "c": np.zeros(size), "dot": 0.0}
    before = initial(size) * shrink ** (passes - 1)
    a, b, c = shrink * before, SCALAR * before, (1 + SCALAR) * before
    return {"a": a, "b": b, "c": c, "dot": float(np.dot(a, b))}


def check(state: State, size: int, runs: int) -> None:
    """Four roundings a pass, one eps each; a sum of n positive terms is safe within 1e-11."""
    actual, expected = outputs(state), reference(size, runs)
    for name in expected:
        rtol = 1e-11 if name == "dot" else 4 * 2.3e-16 * (runs * PASSES + 2)
        np.testing.assert_allclose(actual[name], expected[name], rtol=rtol, err_msg=name)


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
    print(f"babelstream: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
