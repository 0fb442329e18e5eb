"""Correlations between many short time series of 60 days, and how many are strong.

Source: R. Mantegna, "Hierarchical structure in financial markets" (1999).
"""

from math import fabs, sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 24, "default": 800, "large": 2_500}
DAYS = 60


@pk.workunit
def standardise(i, z, price, days: int):
    mean: float = 0.0
    for t in range(days):
        mean += price[i][t]
    mean = mean / days
    square: float = 0.0
    for t in range(days):
        square += (price[i][t] - mean) * (price[i][t] - mean)
    for t in range(days):
        z[i][t] = (price[i][t] - mean) / sqrt(square)


@pk.workunit
def correlate(i, j, r, z, days: int):
    total: float = 0.0
    for t in range(days):
        total += z[i][t] * z[j][t]
    r[i][j] = total


@pk.workunit
def strong(i, j, acc, r, limit):
    if i != j and fabs(r[i][j]) > limit:
        acc += 1


def setup(size):
    rng = np.random.default_rng(64)
    price = pk.View([size, DAYS], pk.double)
    price.data[:] = rng.standard_normal((size, DAYS)).cumsum(axis=1) + 100.0
    return {"n": size, "price": price, "r": pk.View([size, size], pk.double), "strong": 0}


def run(state):
    n = state["n"]
    z = pk.View([n, DAYS], pk.double)
    pairs = pk.MDRangePolicy([0, 0], [n, n])
    pk.parallel_for(n, standardise, z=z, price=state["price"], days=DAYS)
    pk.parallel_for(pairs, correlate, r=state["r"], z=z, days=DAYS)
    state["strong"] = int(pk.parallel_reduce(pairs, strong, r=state["r"], limit=0.8))


def outputs(state):
    return {"r": np.array(state["r"].data), "strong": state["strong"]}


def check(state, size, runs):
    expected = np.corrcoef(np.array(state["price"].data))
    np.testing.assert_allclose(np.array(state["r"].data), expected, rtol=1e-6, atol=1e-9)
