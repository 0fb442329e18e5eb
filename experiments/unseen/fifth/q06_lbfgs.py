"""Total-variation denoising of a signal by L-BFGS with a backtracking line search."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 3000, "default": 800_000, "large": 4_000_000}
PAIRS, ITERATIONS, WEIGHT, SOFT = 4, 7, 0.3, 0.01


@pk.workunit
def steepness(i, t, r, x, n, soft):
    """Slope over its smoothed length, which r has."""
    d = 0.0
    if i < n - 1:
        d = x[i + 1] - x[i]
    r[i] = sqrt(d * d + soft)
    t[i] = d / r[i]


@pk.workunit
def misfit(i, acc, x, y):
    acc += 0.5 * (x[i] - y[i]) * (x[i] - y[i])


@pk.workunit
def add_up(i, acc, a):
    acc += a[i]


@pk.workunit
def gradient(i, g, x, y, t, weight):
    before = 0.0
    if i > 0:
        before = t[i - 1]
    g[i] = x[i] - y[i] + weight * (before - t[i])


@pk.workunit
def assign(i, out, a):
    out[i] = a[i]


@pk.workunit
def scale(i, out, a, factor):
    out[i] = factor * a[i]


@pk.workunit
def axpy(i, out, a, factor):
    out[i] += factor * a[i]


@pk.workunit
def combine(i, out, x, d, step):
    out[i] = x[i] + step * d[i]


@pk.workunit
def subtract(i, out, a, b):
    out[i] = a[i] - b[i]


@pk.workunit
def dot(i, acc, a, b):
    acc += a[i] * b[i]


@dataclass
class State:
    n: int
    y: pk.View
    x: pk.View
    value: float = 0.0
    norm: float = 0.0
    tries: int = 0


def setup(n):
    y, x = pk.View([n], pk.double), pk.View([n], pk.double)
    y.data[:] = (np.arange(n) // 50 * 7 % 11) * 0.3 + rnd(n, 10) - 0.5
    return State(n, y, x)


def run(s):
    n, y = s.n, s.y
    x, trial, g, fresh, d, t, r = (pk.View([n], pk.double) for _ in range(7))
    steps, changes = ([pk.View([n], pk.double) for _ in range(PAIRS)] for _ in range(2))

    def objective(at):
        pk.parallel_for(n, steepness, t=t, r=r, x=at, n=n, soft=SOFT)
        return pk.parallel_reduce(n, misfit, x=at, y=y) + WEIGHT * pk.parallel_reduce(
            n, add_up, a=r
        )

    pk.parallel_for(n, assign, out=x, a=y)
    value = float(objective(x))
    pk.parallel_for(n, gradient, g=g, x=x, y=y, t=t, weight=WEIGHT)
    pairs, s.tries = [], 0
    for _ in range(ITERATIONS):
        pk.parallel_for(n, scale, out=d, a=g, factor=-1.0)
        alphas = []
        for u, v, rho in reversed(pairs):
            alpha = rho * pk.parallel_reduce(n, dot, a=u, b=d)
            pk.parallel_for(n, axpy, out=d, a=v, factor=-alpha)
            alphas.append(alpha)
        if pairs:
            u, v, rho = pairs[-1]
            pk.parallel_for(
                n, scale, out=d, a=d, factor=1.0 / (rho * pk.parallel_reduce(n, dot, a=v, b=v))
            )
        for (u, v, rho), alpha in zip(pairs, reversed(alphas)):
            beta = rho * pk.parallel_reduce(n, dot, a=v, b=d)
            pk.parallel_for(n, axpy, out=d, a=u, factor=alpha - beta)
        descent, step = float(pk.parallel_reduce(n, dot, a=g, b=d)), 1.0
        while True:
            s.tries += 1
            pk.parallel_for(n, combine, out=trial, x=x, d=d, step=step)
            new = float(objective(trial))
            if new <= value + 1e-4 * step * descent or step < 1e-6:
                break
            step *= 0.5
        value = new
        pk.parallel_for(n, gradient, g=fresh, x=trial, y=y, t=t, weight=WEIGHT)
        u, v = (
            (pairs.pop(0)[:2]) if len(pairs) == PAIRS else (steps[len(pairs)], changes[len(pairs)])
        )
        pk.parallel_for(n, subtract, out=u, a=trial, b=x)
        pk.parallel_for(n, subtract, out=v, a=fresh, b=g)
        pairs.append((u, v, 1.0 / pk.parallel_reduce(n, dot, a=u, b=v)))
        x, trial, g, fresh = trial, x, fresh, g
    s.x, s.value, s.norm = x, value, sqrt(float(pk.parallel_reduce(n, dot, a=g, b=g)))


def outputs(s):
    return {"x": np.array(s.x.data), "value": s.value, "norm": s.norm, "tries": float(s.tries)}


def check(s, size, runs):
    assert s.tries >= ITERATIONS and s.norm < size**0.5


if __name__ == "__main__":
    main(globals())
