"""Soil: implicit heat conduction into the ground under each of many places, in layers.

Source: the Thomas algorithm on layers of growing thickness that all places share, as in land models
(CLM, ch. 6). A workunit treats a place; arrays are [layer][place]. One run makes 5 maps.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 200, "default": 100_000, "large": 400_000}
LAYERS = 30


@pk.workunit
def conduct(i, flux, t, dz, conductivity, layers):
    for k in range(1, layers):
        flux[k][i] = conductivity * (t[k][i] - t[k - 1][i]) / dz[k]


@pk.workunit
def heat(i, right, t, flux, thickness, source, dt, layers):
    right[0][i] = t[0][i] + dt * (source[i] + flux[1][i]) / thickness[0]
    for k in range(1, layers - 1):
        right[k][i] = t[k][i] + dt * (flux[k + 1][i] - flux[k][i]) / thickness[k]
    right[layers - 1][i] = t[layers - 1][i]


@pk.workunit
def forward(i, d, right, lower, pivot, layers):
    d[0][i] = right[0][i] / pivot[0]
    for k in range(1, layers):
        d[k][i] = (right[k][i] - lower[k] * d[k - 1][i]) / pivot[k]


@pk.workunit
def backward(i, t, d, factor, layers):
    t[layers - 1][i] = d[layers - 1][i]
    for k in range(1, layers):
        t[layers - 1 - k][i] = d[layers - 1 - k][i] - factor[layers - 1 - k] * t[layers - k][i]


def setup(size):
    rng = np.random.default_rng(10)
    t, source = pk.View([LAYERS, size], pk.double), pk.View([size], pk.double)
    t.data[:] = rng.uniform(270.0, 290.0, (LAYERS, size))
    source.data[:] = rng.uniform(-1.0, 1.0, size)
    thickness, dz, lower, pivot, factor = (pk.View([LAYERS], pk.double) for _ in range(5))
    thickness.data[:] = 0.02 * 1.2 ** np.arange(LAYERS)
    dz.data[:] = 0.02 * 1.15 ** np.arange(LAYERS)
    lower.data[:] = -0.1
    ratio = 0.0
    for k in range(LAYERS):
        pivot.data[k] = 1.2 + 0.1 * ratio
        ratio = -0.1 / pivot.data[k]
        factor.data[k] = ratio
    vectors = {"thickness": thickness, "dz": dz, "lower": lower, "pivot": pivot, "factor": factor}
    return {"n": size, "t": t, "source": source, **vectors}


def run(state):
    n, t = state["n"], state["t"]
    flux, right, d = (pk.View([LAYERS, n], pk.double) for _ in range(3))
    pk.parallel_for(n, conduct, flux=flux, t=t, dz=state["dz"], conductivity=1e-3, layers=LAYERS)
    pk.parallel_for(
        n, heat, right=right, t=t, flux=flux, thickness=state["thickness"],
        source=state["source"], dt=0.1, layers=LAYERS,
    )  # fmt: skip
    pk.parallel_for(
        n, forward, d=d, right=right, lower=state["lower"], pivot=state["pivot"], layers=LAYERS
    )
    pk.parallel_for(n, backward, t=t, d=d, factor=state["factor"], layers=LAYERS)


def outputs(state):
    return {"t": np.array(state["t"].data)}


def check(state, size, runs):
    assert np.isfinite(np.array(state["t"].data)).all(), "not finite"
