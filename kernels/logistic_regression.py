"""Logistic regression: batch gradient descent on the cross-entropy of two classes.

Source: C. Bishop, "Pattern Recognition and Machine Learning", section 4.3; features are stored one
row each, so that every launch reads memory in order.

One run makes ITERATIONS iterations of 5 + 2 * FEATURES launches, of which 1 + FEATURES are
reductions whose results (gradients) are scalar arguments of the updates. Unfused, an iteration
moves 3 * FEATURES + 8 doubles (256 bytes) a sample; score, probability and error die each time.
"""

import argparse
from dataclasses import dataclass
from math import exp, fabs, log1p
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 3_000_000, "large": 10_000_000, "gpu": 32_000_000}
FEATURES, ITERATIONS, RATE, DECAY = 8, 3, 0.5, 1e-3


@pk.workunit
def score(i, z, x, w, features):
    value: float = 0.0
    for f in range(features):
        value += w[f] * x[f][i]
    z[i] = value


@pk.workunit
def sigmoid(i, p, z):
    p[i] = 1.0 / (1.0 + exp(-z[i]))


@pk.workunit
def difference(i, error, p, y):
    error[i] = p[i] - y[i]


@pk.workunit
def cross_entropy(i, acc, z, y):
    loss: float = log1p(exp(-fabs(z[i]))) - z[i] * y[i]
    if z[i] > 0.0:
        loss += z[i]
    acc += loss


@pk.workunit
def gradient(i, acc, error, x, f):
    acc += error[i] * x[f][i]


@pk.workunit
def decay(f, w, factor):
    w[f] *= factor


@pk.workunit
def descend(k, w, f, slope, rate):
    """Change one weight (a launch of one element, k = 0)."""
    w[f + k] -= rate * slope


@dataclass
class State:
    """Samples, classes (0 or 1), weights and the last loss."""

    size: int
    x: pk.View
    y: pk.View
    w: pk.View
    loss: float = 0.0


def samples(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (one row each) and classes that follow a noisy plane."""
    rng = np.random.default_rng(10)
    x = rng.normal(0.0, 1.0, (FEATURES, size))
    plane = rng.uniform(-1.0, 1.0, FEATURES)
    return x, (plane @ x + rng.logistic(0.0, 0.5, size) > 0.0).astype(np.float64)


def setup(size: int) -> State:
    """Make random samples; weights start at zero."""
    x, y = pk.View([FEATURES, size], pk.double), pk.View([size], pk.double)
    x.data[:], y.data[:] = samples(size)
    return State(size, x, y, pk.View([FEATURES], pk.double))


def iterate(state: State) -> None:
    """Make one step of gradient descent."""
    n, x, y, w = state.size, state.x, state.y, state.w
    z, p, error = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, score, z=z, x=x, w=w, features=FEATURES)
    pk.parallel_for(n, sigmoid, p=p, z=z)
    pk.parallel_for(n, difference, error=error, p=p, y=y)
    state.loss = pk.parallel_reduce(n, cross_entropy, z=z, y=y)
    slopes = [pk.parallel_reduce(n, gradient, error=error, x=x, f=f) for f in range(FEATURES)]
    pk.parallel_for(FEATURES, decay, w=w, factor=1.0 - RATE * DECAY)
    for f, slope in enumerate(slopes):
        pk.parallel_for(1, descend, w=w, f=f, slope=slope, rate=RATE / n)


def run(state: State) -> None:
    """Make ITERATIONS steps."""
    for _ in range(ITERATIONS):
        iterate(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read weights and loss."""
    return {"w": np.array(state.w.data), "loss": float(state.loss)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Gradient descent with matrix products."""
    x, y = samples(size)
    w, loss = np.zeros(FEATURES), 0.0
    for _ in range(runs * ITERATIONS):
        z = w @ x
        loss = float(np.sum(np.logaddexp(0.0, z) - z * y))
        slope = x @ (1.0 / (1.0 + np.exp(-z)) - y) / size
        w = w - RATE * (slope + DECAY * w)
    return {"w": w, "loss": loss}


def check(state: State, size: int, runs: int) -> None:
    """Sums of n terms: n eps at most, 1e-9; the problem is convex, so errors do not grow."""
    actual, expected = outputs(state), reference(size, runs)
    for name in expected:
        np.testing.assert_allclose(
            actual[name], expected[name], rtol=1e-9, atol=1e-10, err_msg=name
        )


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
    print(f"logistic_regression: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
