"""Softmax: attention weights of many rows of scores, and their entropy.

Source: the stable softmax of M. Milakov and N. Gimelshein, "Online normalizer calculation for
softmax" (2018), as its naive several-pass form: scale, mask, maximum, shift, exp, sum, divide.

One run makes 7 maps and 1 reduction over rows of COLUMNS scores; a workunit treats a row. Unfused
they move 12 doubles (96 bytes) a score; fused, scores are read and weights written (16 bytes).
"""

import argparse
from dataclasses import dataclass
from math import exp, log
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 200, "default": 200_000, "large": 600_000, "gpu": 2_000_000}
COLUMNS, SCALE = 64, 0.125


@pk.workunit
def scale(i, result, x, factor, columns):
    for j in range(columns):
        result[i][j] = factor * x[i][j]


@pk.workunit
def mask(i, x, columns):
    """A row sees only the columns up to its own number modulo the columns."""
    for j in range(i % columns + 1, columns):
        x[i][j] = -1e30


@pk.workunit
def row_maximum(i, top, x, columns):
    value: float = x[i][0]
    for j in range(1, columns):
        if x[i][j] > value:
            value = x[i][j]
    top[i] = value


@pk.workunit
def shift(i, x, top, columns):
    for j in range(columns):
        x[i][j] -= top[i]


@pk.workunit
def exponential(i, x, columns):
    for j in range(columns):
        x[i][j] = exp(x[i][j])


@pk.workunit
def row_sum(i, total, x, columns):
    value: float = 0.0
    for j in range(columns):
        value += x[i][j]
    total[i] = value


@pk.workunit
def normalise(i, weight, x, total, columns):
    for j in range(columns):
        weight[i][j] = x[i][j] / total[i]


@pk.workunit
def entropy(i, acc, weight, columns):
    for j in range(columns):
        if weight[i][j] > 0.0:
            acc += -weight[i][j] * log(weight[i][j])


@dataclass
class State:
    """Scores, weights and the weights' entropy."""

    rows: int
    scores: pk.View
    weight: pk.View
    entropy: float = 0.0


def scores(size: int) -> np.ndarray:
    """Return random scores, too large for exp without the shift."""
    return np.random.default_rng(16).normal(8000.0, 8.0, (size, COLUMNS))


def setup(size: int) -> State:
    """Make rows of scores."""
    given, weight = (pk.View([size, COLUMNS], pk.double) for _ in range(2))
    given.data[:] = scores(size)
    return State(size, given, weight)


def softmax(state: State) -> None:
    """Turn scores into weights; three temporaries die."""
    n = state.rows
    x, top, total = (
        pk.View([n, COLUMNS], pk.double),
        pk.View([n], pk.double),
        pk.View([n], pk.double),
    )
    pk.parallel_for(n, scale, result=x, x=state.scores, factor=SCALE, columns=COLUMNS)
    pk.parallel_for(n, mask, x=x, columns=COLUMNS)
    pk.parallel_for(n, row_maximum, top=top, x=x, columns=COLUMNS)
    pk.parallel_for(n, shift, x=x, top=top, columns=COLUMNS)
    pk.parallel_for(n, exponential, x=x, columns=COLUMNS)
    pk.parallel_for(n, row_sum, total=total, x=x, columns=COLUMNS)
    pk.parallel_for(n, normalise, weight=state.weight, x=x, total=total, columns=COLUMNS)


def run(state: State) -> None:
    """Compute weights and their entropy; each run does the same."""
    softmax(state)
    state.entropy = pk.parallel_reduce(state.rows, entropy, weight=state.weight, columns=COLUMNS)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read weights and entropy."""
    return {"weight": np.array(state.weight.data), "entropy": float(state.entropy)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Logarithms of the weights first: x - log sum exp x."""
    if runs == 0:
        return {"weight": np.zeros((size, COLUMNS)), "entropy": 0.0}
    x = SCALE * scores(size)
    seen = np.arange(COLUMNS) <= np.arange(size)[:, None] % COLUMNS
    logs = x - np.logaddexp.reduce(np.where(seen, x, -np.inf), axis=1, keepdims=True)
    weight = np.where(seen, np.exp(logs), 0.0)
    return {"weight": weight, "entropy": -float(np.sum(weight * logs, where=seen))}


def check(state: State, size: int, runs: int) -> None:
    """Weights' logarithms are differences of numbers near 1000: off by 1e-12 at most."""
    actual, expected = outputs(state), reference(size, runs)
    np.testing.assert_allclose(
        actual["weight"], expected["weight"], rtol=1e-11, atol=1e-14, err_msg="weight"
    )
    np.testing.assert_allclose(actual["entropy"], expected["entropy"], rtol=1e-9, err_msg="entropy")


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
    print(f"softmax: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
