"""Lorenz: an ensemble of Lorenz systems, a few steps of Heun's method in time.

Source: E. Lorenz, "Deterministic nonperiodic flow" (1963). One run makes STEPS steps of 8 maps on
ensembles of three coordinates, then normalises the spread of each member by its norm.
"""

from math import sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 2_000_000, "large": 8_000_000}
STEPS, DT, SIGMA, RHO, BETA = 3, 0.005, 10.0, 28.0, 8.0 / 3.0


@pk.workunit
def rates(i, dx, dy, dz, x, y, z, sigma, rho, beta):
    dx[i] = sigma * (y[i] - x[i])
    dy[i] = x[i] * (rho - z[i]) - y[i]
    dz[i] = x[i] * y[i] - beta * z[i]


@pk.workunit
def euler(i, to, x, dx, dt):
    to[i] = x[i] + dt * dx[i]


@pk.workunit
def heun(i, x, a, b, dt):
    x[i] += 0.5 * dt * (a[i] + b[i])


@pk.workunit
def norm(i, r, x, y, z):
    r[i] = sqrt(x[i] * x[i] + y[i] * y[i] + z[i] * z[i])


@pk.workunit
def scale(i, x, r, radius):
    if r[i] > radius:
        x[i] = x[i] / r[i] * radius


def setup(size):
    rng = np.random.default_rng(4)
    x, y, z = (pk.View([size], pk.double) for _ in range(3))
    for view in (x, y, z):
        view.data[:] = rng.normal(1.0, 5.0, size)
    return {"n": size, "place": (x, y, z)}


def run(state):
    n, (x, y, z) = state["n"], state["place"]
    first, second, middle = ([pk.View([n], pk.double) for _ in range(3)] for _ in range(3))
    r = pk.View([n], pk.double)
    constants = {"sigma": SIGMA, "rho": RHO, "beta": BETA}
    for _ in range(STEPS):
        for rate, at in ((first, (x, y, z)), (second, middle)):
            names = dict(zip(("dx", "dy", "dz", "x", "y", "z"), (*rate, *at), strict=True))
            pk.parallel_for(n, rates, **names, **constants)
            if rate is first:
                for to, view, change in zip(middle, (x, y, z), first, strict=True):
                    pk.parallel_for(n, euler, to=to, x=view, dx=change, dt=DT)
        for view, a, b in zip((x, y, z), first, second, strict=True):
            pk.parallel_for(n, heun, x=view, a=a, b=b, dt=DT)
    pk.parallel_for(n, norm, r=r, x=x, y=y, z=z)
    for view in (x, y, z):
        pk.parallel_for(n, scale, x=view, r=r, radius=60.0)


def outputs(state):
    return dict(zip("xyz", (np.array(v.data) for v in state["place"]), strict=True))


def check(state, size, runs):
    x, y, z = (np.array(v.data) for v in state["place"])
    assert np.sqrt(x * x + y * y + z * z).max() <= 60.001, "a member left the ball"
