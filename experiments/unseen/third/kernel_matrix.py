"""The matrix of a Gaussian kernel over points with 8 features, and its action on a vector.

Source: B. Schoelkopf and A. Smola, "Learning with Kernels" (2002).
"""

from math import exp

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 700, "large": 2_000}
FEATURES = 8


@pk.workunit
def distances(i, j, r, x, d: int):
    total: float = 0.0
    for c in range(d):
        step: float = x[i][c] - x[j][c]
        total += step * step
    r[i][j] = total


@pk.workunit
def gaussian(i, j, r, width):
    r[i][j] = exp(-r[i][j] / width)


@pk.workunit
def apply(i, y, r, w, n: int):
    total: float = 0.0
    for j in range(n):
        total += r[i][j] * w[j]
    y[i] = total


def setup(size):
    rng = np.random.default_rng(53)
    x, w, y = (
        pk.View([size, FEATURES], pk.double),
        pk.View([size], pk.double),
        pk.View([size], pk.double),
    )
    x.data[:] = rng.random((size, FEATURES))
    w.data[:] = rng.random(size)
    return {"n": size, "x": x, "w": w, "y": y}


def run(state):
    n = state["n"]
    r = pk.View([n, n], pk.double)
    box = pk.MDRangePolicy([0, 0], [n, n])
    pk.parallel_for(box, distances, r=r, x=state["x"], d=FEATURES)
    pk.parallel_for(box, gaussian, r=r, width=0.7)
    pk.parallel_for(n, apply, y=state["y"], r=r, w=state["w"], n=n)


def outputs(state):
    return {"y": np.array(state["y"].data)}


def check(state, size, runs):
    x, w = np.array(state["x"].data), np.array(state["w"].data)
    r = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.array(state["y"].data), np.exp(-r / 0.7) @ w, rtol=1e-9)
