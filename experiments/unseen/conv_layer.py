"""Convolution layer: 3 x 3 convolution of 4 channels to 8, bias, ReLU, 2 x 2 maximum.

Source: Y. LeCun et al. (1998). Maps over [channel][row][column].
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 18, "default": 386, "large": 770}
INPUTS, OUTPUTS = 4, 8


@pk.workunit
def convolve(o, i, j, y, x, w, inputs):
    total: float = 0.0
    for c in range(inputs):
        for a in range(3):
            for b in range(3):
                total += w[o][c][3 * a + b] * x[c][i + a][j + b]
    y[o][i][j] = total


@pk.workunit
def add_bias(o, i, j, y, bias):
    y[o][i][j] += bias[o]


@pk.workunit
def relu(o, i, j, y):
    if y[o][i][j] < 0.0:
        y[o][i][j] = 0.0


@pk.workunit
def pool(o, i, j, z, y):
    top: float = y[o][2 * i][2 * j]
    if y[o][2 * i][2 * j + 1] > top:
        top = y[o][2 * i][2 * j + 1]
    if y[o][2 * i + 1][2 * j] > top:
        top = y[o][2 * i + 1][2 * j]
    if y[o][2 * i + 1][2 * j + 1] > top:
        top = y[o][2 * i + 1][2 * j + 1]
    z[o][i][j] = top


def setup(size):
    rng = np.random.default_rng(37)
    m = (size - 2) // 2
    x, w = pk.View([INPUTS, size, size], pk.double), pk.View([OUTPUTS, INPUTS, 9], pk.double)
    bias, z = pk.View([OUTPUTS], pk.double), pk.View([OUTPUTS, m, m], pk.double)
    x.data[:] = rng.normal(0.0, 1.0, x.data.shape)
    w.data[:] = rng.normal(0.0, 0.2, w.data.shape)
    bias.data[:] = rng.normal(0.0, 0.1, OUTPUTS)
    return {"n": size, "x": x, "w": w, "bias": bias, "z": z}


def run(state):
    n, m = state["n"] - 2, (state["n"] - 2) // 2
    y = pk.View([OUTPUTS, n, n], pk.double)
    every = pk.MDRangePolicy([0, 0, 0], [OUTPUTS, n, n])
    pk.parallel_for(every, convolve, y=y, x=state["x"], w=state["w"], inputs=INPUTS)
    pk.parallel_for(every, add_bias, y=y, bias=state["bias"])
    pk.parallel_for(every, relu, y=y)
    pk.parallel_for(pk.MDRangePolicy([0, 0, 0], [OUTPUTS, m, m]), pool, z=state["z"], y=y)


def outputs(state):
    return {"z": np.array(state["z"].data)}


def check(state, size, runs):
    assert np.array(state["z"].data).min() >= 0.0, "ReLU"
