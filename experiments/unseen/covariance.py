"""Covariance: means and the covariance matrix of six columns of measurements.

Source: the two-pass algorithm, see T. Chan, G. Golub and R. LeVeque, "Algorithms for computing the
sample variance" (1983). One run makes 6 sums, 6 maps that subtract the means and 21 sums.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 2_000_000, "large": 8_000_000}
COLUMNS = 6


@pk.workunit
def column_sum(i, acc, x):
    acc += x[i]


@pk.workunit
def centre(i, y, x, mean):
    y[i] = x[i] - mean


@pk.workunit
def product_sum(i, acc, x, y):
    acc += x[i] * y[i]


def setup(size):
    rng = np.random.default_rng(1)
    columns = []
    for _ in range(COLUMNS):
        view = pk.View([size], pk.double)
        view.data[:] = rng.normal(5.0, 2.0, size)
        columns.append(view)
    return {"n": size, "columns": columns, "result": np.zeros((COLUMNS, COLUMNS))}


def run(state):
    n, columns = state["n"], state["columns"]
    sums = [pk.parallel_reduce(n, column_sum, x=x) for x in columns]
    centred = [pk.View([n], pk.double) for _ in columns]
    for x, y, total in zip(columns, centred, sums, strict=True):
        pk.parallel_for(n, centre, y=y, x=x, mean=total / n)
    found = {
        (a, b): pk.parallel_reduce(n, product_sum, x=centred[a], y=centred[b])
        for a in range(COLUMNS)
        for b in range(a + 1)
    }
    for (a, b), value in found.items():
        state["result"][a, b] = state["result"][b, a] = float(value) / (n - 1)


def outputs(state):
    return {"covariance": state["result"]}


def check(state, size, runs):
    columns = np.stack([np.array(view.data) for view in state["columns"]])
    np.testing.assert_allclose(state["result"], np.cov(columns), rtol=1e-8, atol=1e-10)
