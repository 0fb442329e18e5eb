"""Nonlinear conjugate gradients: a smooth function of many variables, with a backtracking search.

Source: J. Nocedal and S. Wright, "Numerical Optimization" (2006), ch. 5 (Polak-Ribière). A step
makes a gradient, 2 sums, a new direction, trial points with a sum each, and an update.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 2_000_000, "large": 8_000_000}
STEPS, TRIALS = 3, 3


@pk.workunit
def gradient(i, g, x, b):
    g[i] = x[i] * x[i] * x[i] + b[i] * x[i] - 1.0


@pk.workunit
def value(i, acc, x, b):
    acc += 0.25 * x[i] * x[i] * x[i] * x[i] + 0.5 * b[i] * x[i] * x[i] - x[i]


@pk.workunit
def dot(i, acc, x, y):
    acc += x[i] * y[i]


@pk.workunit
def along(i, y, x, d, length):
    y[i] = x[i] + length * d[i]


@pk.workunit
def new_direction(i, d, g, beta):
    d[i] = beta * d[i] - g[i]


def setup(size):
    rng = np.random.default_rng(32)
    x, b = (pk.View([size], pk.double) for _ in range(2))
    b.data[:] = rng.uniform(0.5, 2.0, size)
    return {"n": size, "x": x, "b": b, "value": 0.0}


def run(state):
    n, x, b = state["n"], state["x"], state["b"]
    g, old, d, y = (pk.View([n], pk.double) for _ in range(4))
    last = 1.0
    for step in range(STEPS):
        pk.parallel_for(n, gradient, g=g, x=x, b=b)
        square = float(pk.parallel_reduce(n, dot, x=g, y=g))
        mixed = float(pk.parallel_reduce(n, dot, x=g, y=old))
        beta = max(0.0, (square - mixed) / last) if step else 0.0
        pk.parallel_for(n, new_direction, d=d, g=g, beta=beta)
        now, length = float(pk.parallel_reduce(n, value, x=x, b=b)), 0.4
        for _ in range(TRIALS):
            pk.parallel_for(n, along, y=y, x=x, d=d, length=length)
            if float(pk.parallel_reduce(n, value, x=y, b=b)) < now:
                break
            length *= 0.5
        pk.parallel_for(n, along, y=x, x=x, d=d, length=length)
        g, old, last = old, g, square
    state["value"] = float(pk.parallel_reduce(n, value, x=x, b=b))


def outputs(state):
    return {"x": np.array(state["x"].data), "value": state["value"]}


def check(state, size, runs):
    assert state["value"] < 0.0, "no descent"
