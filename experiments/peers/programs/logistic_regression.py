"""Logistic regression: score, error, loss and all slopes in one pass over the samples."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.logistic_regression import DECAY, FEATURES, ITERATIONS, RATE, samples

KEEP = 1.0 - RATE * DECAY


def setup(size: int) -> State:
    """The samples, one row a feature; weights start at zero."""
    x, y = samples(size)
    return State(x=x, y=y, w=np.zeros(FEATURES), loss=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read weights and loss."""
    return {"w": s.w, "loss": float(s.loss[0])}


def floor(size: int) -> int:
    """An iteration reads the features and the classes."""
    return 8 * (FEATURES + 1) * ITERATIONS * size


def cpp(build):
    run_cpp = build("logistic_regression", FEATURES=FEATURES, KEEP=KEEP, RATE=RATE)

    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            run_cpp(s.y.size, s.x, s.y, s.w, s.loss)

    return run


def numba(njit):
    from math import exp, log1p

    from numba import get_num_threads, prange

    @njit(parallel=False)
    def part(x, y, w, begin, end, out):
        slope, loss = np.zeros(FEATURES), 0.0
        for i in range(begin, end):
            z = 0.0
            for f in range(FEATURES):
                z += w[f] * x[f, i]
            e = exp(-abs(z))
            loss += log1p(e) + max(z, 0.0) - z * y[i]
            error = (1.0 if z >= 0.0 else e) / (1.0 + e) - y[i]
            for f in range(FEATURES):
                slope[f] += error * x[f, i]
        out[:] = slope
        return loss

    @njit
    def slopes(x, y, w, parts):
        threads, n, loss = len(parts), y.size, 0.0
        for k in prange(threads):
            loss += part(x, y, w, n * k // threads, n * (k + 1) // threads, parts[k])
        return loss

    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            parts = np.empty((get_num_threads(), FEATURES))
            s.loss[0] = slopes(s.x, s.y, s.w, parts)
            s.w *= KEEP
            s.w -= RATE / s.y.size * parts.sum(axis=0)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            z = s.w @ s.x
            error = 1.0 / (1.0 + np.exp(-z)) - s.y
            loss = np.log1p(np.exp(-np.abs(z)))
            s.loss[0] = loss.sum() + np.maximum(z, 0.0).sum() - np.dot(z, s.y)
            s.w *= KEEP
            s.w -= RATE / s.y.size * (s.x @ error)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit
    from jax.nn import sigmoid

    @jit
    def iterate(x, y, w):
        z = w @ x
        loss = jnp.sum(jnp.log1p(jnp.exp(-jnp.abs(z))) + jnp.maximum(z, 0.0) - z * y)
        return KEEP * w - RATE / y.size * (x @ (sigmoid(z) - y)), loss.reshape(1)

    def run(s: State) -> None:
        for _ in range(ITERATIONS):
            s.w, s.loss = iterate(s.x, s.y, s.w)

    return run
