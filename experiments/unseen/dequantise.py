"""Dequantise: weights of a neural network from 8-bit integers with a scale a row to floats.

Source: symmetric quantisation per channel, R. Krishnamoorthi, "Quantizing deep convolutional
networks for efficient inference" (2018). One run makes 2 maps over a matrix: scale, then a shift of
outliers; the floats are what other code multiplies with.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 6_000, "large": 12_000}


@pk.workunit
def dequantise(i, j, w, q, scale):
    w[i][j] = scale[i] * q[i][j]


@pk.workunit
def clip(i, j, w, limit):
    if w[i][j] > limit:
        w[i][j] = limit
    if w[i][j] < -limit:
        w[i][j] = -limit


def setup(size):
    rng = np.random.default_rng(8)
    q, w = pk.View([size, size], pk.int8), pk.View([size, size], pk.float)
    scale = pk.View([size], pk.float)
    q.data[:] = rng.integers(-127, 128, (size, size))
    scale.data[:] = rng.uniform(0.001, 0.01, size)
    return {"n": size, "q": q, "w": w, "scale": scale}


def run(state):
    n = state["n"]
    policy = pk.MDRangePolicy([0, 0], [n, n])
    pk.parallel_for(policy, dequantise, w=state["w"], q=state["q"], scale=state["scale"])
    pk.parallel_for(policy, clip, w=state["w"], limit=1.0)


def outputs(state):
    return {"w": np.array(state["w"].data)}


def check(state, size, runs):
    assert np.abs(np.array(state["w"].data)).max() <= 1.0, "outlier"
