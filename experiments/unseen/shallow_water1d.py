"""Shallow water in 1-D: a dam breaks in a channel between two walls.

Source: the Lax-Friedrichs scheme, see R. LeVeque, "Finite Volume Methods for Hyperbolic Problems"
(2002), ch. 13. A step makes 4 maps (fluxes and both updates) and 4 launches of one iteration for
the ghost cells at the walls.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 500, "default": 4_000_000, "large": 16_000_000}
STEPS, RATIO, GRAVITY = 4, 0.2, 1.0


@pk.workunit
def flux(i, f, h, q, g):
    f[i] = q[i] * q[i] / h[i] + 0.5 * g * h[i] * h[i]


@pk.workunit
def advance(i, new, w, f, ratio):
    new[i] = 0.5 * (w[i - 1] + w[i + 1]) - 0.5 * ratio * (f[i + 1] - f[i - 1])


@pk.workunit
def mirror_left(i, w, sign):
    w[i] = sign * w[i + 1]


@pk.workunit
def mirror_right(i, w, sign):
    w[i] = sign * w[i - 1]


def setup(size):
    h, q, h2, q2 = (pk.View([size], pk.double) for _ in range(4))
    h.data[:] = np.where(np.arange(size) < size // 2, 2.0, 1.0)
    return {"n": size, "now": (h, q), "then": (h2, q2)}


def run(state):
    n = state["n"]
    f = pk.View([n], pk.double)
    left, right = pk.RangePolicy(0, 1), pk.RangePolicy(n - 1, n)
    for _ in range(STEPS):
        (h, q), (h2, q2) = state["now"], state["then"]
        pk.parallel_for(n, flux, f=f, h=h, q=q, g=GRAVITY)
        pk.parallel_for(pk.RangePolicy(1, n - 1), advance, new=h2, w=h, f=q, ratio=RATIO)
        pk.parallel_for(pk.RangePolicy(1, n - 1), advance, new=q2, w=q, f=f, ratio=RATIO)
        pk.parallel_for(left, mirror_left, w=h2, sign=1.0)
        pk.parallel_for(left, mirror_left, w=q2, sign=-1.0)
        pk.parallel_for(right, mirror_right, w=h2, sign=1.0)
        pk.parallel_for(right, mirror_right, w=q2, sign=-1.0)
        state["now"], state["then"] = (h2, q2), (h, q)


def outputs(state):
    return {"h": np.array(state["now"][0].data), "q": np.array(state["now"][1].data)}


def check(state, size, runs):
    h = np.array(state["now"][0].data)
    assert h.min() > 0.5 and h.max() < 2.5, "depth"
