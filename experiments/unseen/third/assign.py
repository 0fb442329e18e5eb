"""The assignment of k-means with 20 features and 64 centres, then the sum of squared distances.

Source: S. Lloyd, IEEE Transactions on Information Theory 28 (1982).
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 20_000, "large": 100_000}
FEATURES, CENTRES = 20, 64


@pk.workunit
def assign(i, label, far, x, centre, k: int, d: int):
    least: float = 1e300
    best: int = 0
    for j in range(k):
        total: float = 0.0
        for c in range(d):
            total += (x[i][c] - centre[j][c]) * (x[i][c] - centre[j][c])
        if total < least:
            least = total
            best = j
    label[i] = best
    far[i] = least


@pk.workunit
def inertia(i, acc, far):
    acc += far[i]


@pk.workunit
def move(i, x, centre, label, d: int, rate):
    for c in range(d):
        x[i][c] += rate * (centre[label[i]][c] - x[i][c])


def setup(size):
    rng = np.random.default_rng(63)
    x, centre = pk.View([size, FEATURES], pk.double), pk.View([CENTRES, FEATURES], pk.double)
    x.data[:] = rng.random((size, FEATURES))
    centre.data[:] = rng.random((CENTRES, FEATURES))
    return {"n": size, "x": x, "centre": centre, "label": pk.View([size], pk.int32), "inertia": 0.0}


def run(state):
    n = state["n"]
    far = pk.View([n], pk.double)
    pk.parallel_for(
        n,
        assign,
        label=state["label"],
        far=far,
        x=state["x"],
        centre=state["centre"],
        k=CENTRES,
        d=FEATURES,
    )
    total = pk.parallel_reduce(n, inertia, far=far)
    pk.parallel_for(
        n, move, x=state["x"], centre=state["centre"], label=state["label"], d=FEATURES, rate=0.01
    )
    state["inertia"] = float(total)


def outputs(state):
    return {"x": np.array(state["x"].data), "inertia": state["inertia"]}


def check(state, size, runs):
    assert 0.0 < state["inertia"] < size * FEATURES
