"""Spline: natural cubic splines through the samples of many sensors at the same, uneven times.

Source: C. de Boor, "A Practical Guide to Splines" (1978). A workunit treats a sensor; arrays are
[time][sensor]. One run makes 4 maps: divided differences, both halves of the Thomas algorithm with
a matrix that all sensors share, and the slopes.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 200, "default": 60_000, "large": 250_000}
TIMES = 48


@pk.workunit
def differences(s, d, y, h, times):
    for k in range(times - 1):
        d[k][s] = (y[k + 1][s] - y[k][s]) / h[k]


@pk.workunit
def eliminate(s, r, d, h, pivot, times):
    r[0][s] = 0.0
    for k in range(1, times - 1):
        r[k][s] = (6.0 * (d[k][s] - d[k - 1][s]) - h[k - 1] * r[k - 1][s]) / pivot[k]


@pk.workunit
def substitute(s, m, r, ratio, times):
    m[times - 1][s] = 0.0
    for k in range(1, times):
        m[times - 1 - k][s] = r[times - 1 - k][s] - ratio[times - 1 - k] * m[times - k][s]


@pk.workunit
def slopes(s, slope, d, m, h, times):
    for k in range(times - 1):
        slope[k][s] = d[k][s] - h[k] * (2.0 * m[k][s] + m[k + 1][s]) / 6.0


def setup(size):
    rng = np.random.default_rng(12)
    y, m, slope = (pk.View([TIMES, size], pk.double) for _ in range(3))
    y.data[:] = np.cumsum(rng.normal(0.0, 1.0, (TIMES, size)), axis=0)
    h, pivot, ratio = (pk.View([TIMES], pk.double) for _ in range(3))
    h.data[:] = rng.uniform(0.5, 1.5, TIMES)
    for k in range(1, TIMES - 1):
        pivot.data[k] = 2.0 * (h.data[k - 1] + h.data[k]) - h.data[k - 1] * ratio.data[k - 1]
        ratio.data[k] = h.data[k] / pivot.data[k]
    return {"n": size, "y": y, "m": m, "slope": slope, "h": h, "pivot": pivot, "ratio": ratio}


def run(state):
    n, h = state["n"], state["h"]
    d, r = (pk.View([TIMES, n], pk.double) for _ in range(2))
    pk.parallel_for(n, differences, d=d, y=state["y"], h=h, times=TIMES)
    pk.parallel_for(n, eliminate, r=r, d=d, h=h, pivot=state["pivot"], times=TIMES)
    pk.parallel_for(n, substitute, m=state["m"], r=r, ratio=state["ratio"], times=TIMES)
    pk.parallel_for(n, slopes, slope=state["slope"], d=d, m=state["m"], h=h, times=TIMES)


def outputs(state):
    return {"m": np.array(state["m"].data), "slope": np.array(state["slope"].data)}


def check(state, size, runs):
    assert np.isfinite(np.array(state["m"].data)).all(), "not finite"
