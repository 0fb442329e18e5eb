"""Kepler: places of satellites from their orbital elements, by Newton's method.

Source: J. Danby, "Fundamentals of Celestial Mechanics" (1988), ch. 6. One run makes a start value,
ROUNDS Newton steps for the eccentric anomaly (a map each), and 3 maps for distance and place.
"""

from math import cos, sin, sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 1_000_000, "large": 4_000_000}
ROUNDS = 4


@pk.workunit
def start(i, anomaly, mean, e):
    anomaly[i] = mean[i] + 0.85 * e[i]


@pk.workunit
def newton(i, anomaly, mean, e):
    anomaly[i] -= (anomaly[i] - e[i] * sin(anomaly[i]) - mean[i]) / (1.0 - e[i] * cos(anomaly[i]))


@pk.workunit
def distance(i, r, anomaly, a, e):
    r[i] = a[i] * (1.0 - e[i] * cos(anomaly[i]))


@pk.workunit
def place_x(i, x, anomaly, a, e):
    x[i] = a[i] * (cos(anomaly[i]) - e[i])


@pk.workunit
def place_y(i, y, anomaly, a, e):
    y[i] = a[i] * sqrt(1.0 - e[i] * e[i]) * sin(anomaly[i])


def setup(size):
    rng = np.random.default_rng(5)
    views = [pk.View([size], pk.double) for _ in range(6)]
    a, e, mean = views[:3]
    a.data[:] = rng.uniform(6.6e6, 4.2e7, size)
    e.data[:] = rng.uniform(0.0, 0.7, size)
    mean.data[:] = rng.uniform(0.0, np.pi, size)
    return {"n": size, "views": views}


def run(state):
    n, (a, e, mean, x, y, r) = state["n"], state["views"]
    anomaly = pk.View([n], pk.double)
    pk.parallel_for(n, start, anomaly=anomaly, mean=mean, e=e)
    for _ in range(ROUNDS):
        pk.parallel_for(n, newton, anomaly=anomaly, mean=mean, e=e)
    pk.parallel_for(n, distance, r=r, anomaly=anomaly, a=a, e=e)
    pk.parallel_for(n, place_x, x=x, anomaly=anomaly, a=a, e=e)
    pk.parallel_for(n, place_y, y=y, anomaly=anomaly, a=a, e=e)


def outputs(state):
    return dict(zip("xyr", (np.array(v.data) for v in state["views"][3:]), strict=True))


def check(state, size, runs):
    x, y, r = (np.array(v.data) for v in state["views"][3:])
    np.testing.assert_allclose(np.hypot(x, y), r, rtol=1e-6)
