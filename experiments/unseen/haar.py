"""Haar: wavelet shrinkage of a long signal: transform, threshold, transform back.

Source: D. Donoho, "De-noising by soft-thresholding" (1995). A level forward makes 2 maps over half
as many elements as the one before, a level back 1 map, and 1 shrinks its differences.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1 << 10, "default": 1 << 22, "large": 1 << 24}
LEVELS = 8


@pk.workunit
def average(i, a, x):
    a[i] = 0.7071067811865476 * (x[2 * i] + x[2 * i + 1])


@pk.workunit
def difference(i, d, x):
    d[i] = 0.7071067811865476 * (x[2 * i] - x[2 * i + 1])


@pk.workunit
def shrink(i, d, threshold):
    if d[i] > threshold:
        d[i] -= threshold
    elif d[i] < -threshold:
        d[i] += threshold
    else:
        d[i] = 0.0


@pk.workunit
def restore(i, x, a, d):
    x[2 * i] = 0.7071067811865476 * (a[i] + d[i])
    x[2 * i + 1] = 0.7071067811865476 * (a[i] - d[i])


def setup(size):
    rng = np.random.default_rng(15)
    x, y = (pk.View([size], pk.double) for _ in range(2))
    x.data[:] = np.sin(np.linspace(0.0, 40.0, size)) + rng.normal(0.0, 0.1, size)
    return {"n": size, "x": x, "y": y}


def run(state):
    n, a = state["n"], state["x"]
    levels = []
    for _ in range(LEVELS):
        n //= 2
        mean, d = (pk.View([n], pk.double) for _ in range(2))
        pk.parallel_for(n, average, a=mean, x=a)
        pk.parallel_for(n, difference, d=d, x=a)
        pk.parallel_for(n, shrink, d=d, threshold=0.3)
        levels.append(d)
        a = mean
    for level, d in reversed(list(enumerate(levels))):
        x = state["y"] if level == 0 else pk.View([2 * n], pk.double)
        pk.parallel_for(n, restore, x=x, a=a, d=d)
        a, n = x, 2 * n


def outputs(state):
    return {"y": np.array(state["y"].data)}


def check(state, size, runs):
    assert np.abs(np.array(state["y"].data)).max() < 2.0, "signal"
