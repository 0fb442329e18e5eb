"""Layer means: tracers of an atmosphere on a new set of levels, scaled by the masses of layers.

A workunit treats a column; arrays are [level][column], the layers' masses are those of a reference
atmosphere. One run makes 4 maps: concentrations to mixing ratios, a smoothing over three levels,
the mean of the column, and the anomaly in parts of the mean.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 200, "default": 60_000, "large": 250_000}
LEVELS = 60


@pk.workunit
def mixing_ratio(c, ratio, tracer, mass, levels):
    for k in range(levels):
        ratio[k][c] = tracer[k][c] / mass[k]


@pk.workunit
def smooth(c, result, ratio, mass, levels):
    result[0][c] = ratio[0][c]
    for k in range(1, levels - 1):
        result[k][c] = (
            mass[k - 1] * ratio[k - 1][c] + mass[k] * ratio[k][c] + mass[k + 1] * ratio[k + 1][c]
        ) / (mass[k - 1] + mass[k] + mass[k + 1])
    result[levels - 1][c] = ratio[levels - 1][c]


@pk.workunit
def column_mean(c, mean, ratio, mass, everything, levels):
    total: float = 0.0
    for k in range(levels):
        total += mass[k] * ratio[k][c]
    mean[c] = total / everything


@pk.workunit
def anomaly(c, result, ratio, mean, levels):
    for k in range(levels):
        result[k][c] = ratio[k][c] / mean[c] - 1.0


def setup(size):
    rng = np.random.default_rng(11)
    tracer, result = (pk.View([LEVELS, size], pk.double) for _ in range(2))
    mean, mass = pk.View([size], pk.double), pk.View([LEVELS], pk.double)
    tracer.data[:] = rng.uniform(0.5, 1.5, (LEVELS, size))
    mass.data[:] = np.exp(-np.arange(LEVELS) / 20.0)
    return {"n": size, "tracer": tracer, "result": result, "mean": mean, "mass": mass}


def run(state):
    n, mass, mean = state["n"], state["mass"], state["mean"]
    ratio, smoothed = (pk.View([LEVELS, n], pk.double) for _ in range(2))
    everything = float(np.sum(mass.data))
    pk.parallel_for(n, mixing_ratio, ratio=ratio, tracer=state["tracer"], mass=mass, levels=LEVELS)
    pk.parallel_for(n, smooth, result=smoothed, ratio=ratio, mass=mass, levels=LEVELS)
    pk.parallel_for(
        n, column_mean, mean=mean, ratio=smoothed, mass=mass, everything=everything, levels=LEVELS
    )
    pk.parallel_for(n, anomaly, result=state["result"], ratio=smoothed, mean=mean, levels=LEVELS)


def outputs(state):
    return {"result": np.array(state["result"].data), "mean": np.array(state["mean"].data)}


def check(state, size, runs):
    assert np.array(state["mean"].data).min() > 0.0, "mean"
