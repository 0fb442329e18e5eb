"""Curve fit: Gauss-Newton steps for a decay of two exponentials on a background.

Source: Gauss-Newton, see Å. Björck, "Numerical Methods for Least Squares Problems" (1996):
y = a exp(-b t) + c exp(-d t) + e. A step makes 6 maps (residuals and derivatives) and 20
sums for the normal equations, which the host solves.
"""

from math import exp

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 1_000_000, "large": 4_000_000}
STEPS = 2


@pk.workunit
def decay(i, f, t, rate):
    f[i] = exp(-rate * t[i])


@pk.workunit
def slope(i, g, f, t, amplitude):
    g[i] = -amplitude * t[i] * f[i]


@pk.workunit
def residual(i, r, y, f, g, a, c, e):
    r[i] = y[i] - (a * f[i] + c * g[i] + e)


@pk.workunit
def dot(i, acc, x, y):
    acc += x[i] * y[i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


def setup(size):
    rng = np.random.default_rng(2)
    t, y = pk.View([size], pk.double), pk.View([size], pk.double)
    t.data[:] = np.sort(rng.uniform(0.0, 5.0, size))
    clean = 3.0 * np.exp(-0.7 * t.data) + 1.5 * np.exp(-3.0 * t.data) + 0.2
    y.data[:] = clean + rng.normal(0.0, 0.01, size)
    return {"n": size, "t": t, "y": y, "p": np.array([2.8, 0.6, 1.7, 2.7, 0.25])}


def run(state):
    n, t, y = state["n"], state["t"], state["y"]
    p = np.array([2.8, 0.6, 1.7, 2.7, 0.25])
    for _ in range(STEPS):
        f, g, db, dd, r = (pk.View([n], pk.double) for _ in range(5))
        pk.parallel_for(n, decay, f=f, t=t, rate=p[1])
        pk.parallel_for(n, decay, f=g, t=t, rate=p[3])
        pk.parallel_for(n, slope, g=db, f=f, t=t, amplitude=p[0])
        pk.parallel_for(n, slope, g=dd, f=g, t=t, amplitude=p[2])
        pk.parallel_for(n, residual, r=r, y=y, f=f, g=g, a=p[0], c=p[2], e=p[4])
        columns = [f, db, g, dd]
        matrix, right = np.zeros((5, 5)), np.zeros(5)
        pairs = {
            (a, b): pk.parallel_reduce(n, dot, x=columns[a], y=columns[b])
            for a in range(4)
            for b in range(a + 1)
        }
        sums = [pk.parallel_reduce(n, total, x=x) for x in (*columns, r)]
        rights = [pk.parallel_reduce(n, dot, x=x, y=r) for x in columns]
        for (a, b), value in pairs.items():
            matrix[a, b] = matrix[b, a] = float(value)
        for a in range(4):
            matrix[a, 4] = matrix[4, a] = float(sums[a])
            right[a] = float(rights[a])
        matrix[4, 4], right[4] = n, float(sums[4])
        p = p + np.linalg.lstsq(matrix, right, rcond=None)[0]
    state["p"] = p


def outputs(state):
    return {"p": state["p"]}


def check(state, size, runs):
    np.testing.assert_allclose(state["p"], [3.0, 0.7, 1.5, 3.0, 0.2], rtol=0.3)
