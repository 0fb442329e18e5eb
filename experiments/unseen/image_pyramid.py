"""Image pyramid: details of an image at several scales are amplified.

Source: P. Burt and E. Adelson, "The Laplacian pyramid as a compact image code" (1983). A level
makes 2 blurs along the axes, a map that takes every second pixel, one that expands and subtracts;
on the way back one that expands, amplifies and adds. Sizes halve from level to level.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 2048, "large": 4096}
LEVELS = 5


@pk.workunit
def blur_rows(i, j, t, x):
    t[i][j] = 0.25 * x[i][j - 1] + 0.5 * x[i][j] + 0.25 * x[i][j + 1]


@pk.workunit
def blur_columns(i, j, b, t):
    b[i][j] = 0.25 * t[i - 1][j] + 0.5 * t[i][j] + 0.25 * t[i + 1][j]


@pk.workunit
def reduce_by_two(i, j, small, b):
    small[i][j] = b[2 * i][2 * j]


@pk.workunit
def detail(i, j, d, x, small):
    d[i][j] = x[i][j] - small[i // 2][j // 2]


@pk.workunit
def add_back(i, j, y, d, small, gain):
    y[i][j] = small[i // 2][j // 2] + gain * d[i][j]


def setup(size):
    rng = np.random.default_rng(16)
    x, y = (pk.View([size, size], pk.float) for _ in range(2))
    x.data[:] = rng.random((size, size), dtype=np.float32)
    return {"n": size, "x": x, "y": y}


def run(state):
    n, x = state["n"], state["x"]
    details = []
    for _ in range(LEVELS):
        t, b, d = (pk.View([n, n], pk.float) for _ in range(3))
        small = pk.View([n // 2, n // 2], pk.float)
        inside = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
        pk.parallel_for(pk.MDRangePolicy([0, 1], [n, n - 1]), blur_rows, t=t, x=x)
        pk.parallel_for(inside, blur_columns, b=b, t=t)
        half = pk.MDRangePolicy([0, 0], [n // 2, n // 2])
        pk.parallel_for(half, reduce_by_two, small=small, b=b)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), detail, d=d, x=x, small=small)
        details.append(d)
        x, n = small, n // 2
    for level, d in reversed(list(enumerate(details))):
        n *= 2
        y = state["y"] if level == 0 else pk.View([n, n], pk.float)
        every = pk.MDRangePolicy([0, 0], [n, n])
        pk.parallel_for(every, add_back, y=y, d=d, small=x, gain=1.0 + 0.2 * level)
        x = y


def outputs(state):
    return {"y": np.array(state["y"].data)}


def check(state, size, runs):
    assert np.isfinite(np.array(state["y"].data)).all(), "not finite"
