"""Values at new points from those at 400 given ones: Gaussian weights of distances, 18 coordinates.

Source: D. Broomhead and D. Lowe, "Radial Basis Functions" (1988).
"""

from math import exp

import numpy as np
import pykokkos as pk

SIZES = {"small": 40, "default": 2_000, "large": 10_000}
COORDINATES, GIVEN = 18, 400


@pk.workunit
def scale(i, x, factor, d: int):
    for c in range(d):
        x[i][c] = x[i][c] * factor


@pk.workunit
def evaluate(i, value, x, place, weight, m: int, d: int):
    total: float = 0.0
    around: float = 0.0
    for j in range(m):
        square: float = 0.0
        for c in range(d):
            step: float = x[i][c] - place[j][c]
            square += step * step
        near: float = exp(-square)
        total += near * weight[j]
        around += near
    value[i] = total / (around + 1e-9)


@pk.workunit
def clip(i, value, low, high):
    value[i] = min(max(value[i], low), high)


def setup(size):
    rng = np.random.default_rng(65)
    state = {"n": size, "value": pk.View([size], pk.double), "weight": pk.View([GIVEN], pk.double)}
    state["x"], state["place"] = (pk.View([n, COORDINATES], pk.double) for n in (size, GIVEN))
    state["x"].data[:] = rng.random((size, COORDINATES))
    state["place"].data[:] = rng.random((GIVEN, COORDINATES))
    state["weight"].data[:] = rng.random(GIVEN)
    return state


def run(state):
    n = state["n"]
    pk.parallel_for(n, scale, x=state["x"], factor=0.999, d=COORDINATES)
    pk.parallel_for(
        n,
        evaluate,
        value=state["value"],
        x=state["x"],
        place=state["place"],
        weight=state["weight"],
        m=GIVEN,
        d=COORDINATES,
    )
    pk.parallel_for(n, clip, value=state["value"], low=0.1, high=0.9)


def outputs(state):
    return {"value": np.array(state["value"].data)}


def check(state, size, runs):
    x, place, w = (np.array(state[name].data) for name in ("x", "place", "weight"))
    near = np.exp(-((x[:, None] - place[None]) ** 2).sum(axis=2))
    expected = np.clip(near @ w / (near.sum(axis=1) + 1e-9), 0.1, 0.9)
    np.testing.assert_allclose(np.array(state["value"].data), expected, rtol=1e-8)
