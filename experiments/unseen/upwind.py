"""Upwind: two species in a river, carried along, reacting, with an inflow that changes in time.

Source: first-order upwind differences with a splitting of the reaction, see W. Hundsdorfer and
J. Verwer, "Numerical Solution of Time-Dependent Advection-Diffusion-Reaction Equations" (2003).
A step makes 2 transports, 2 inflows (one cell each), and 3 maps for the reaction.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 500, "default": 3_000_000, "large": 12_000_000}
STEPS, COURANT, RATE = 5, 0.8, 0.05


@pk.workunit
def transport(i, new, c, courant):
    new[i] = c[i] - courant * (c[i] - c[i - 1])


@pk.workunit
def inflow(i, new, value):
    new[i] = value


@pk.workunit
def react(i, r, a, b, rate):
    r[i] = rate * a[i] * b[i]


@pk.workunit
def consume(i, c, r):
    c[i] -= r[i]


def setup(size):
    rng = np.random.default_rng(9)
    views = [pk.View([size], pk.double) for _ in range(4)]
    for view in views[:2]:
        view.data[:] = rng.uniform(0.0, 1.0, size)
    return {"n": size, "now": views[:2], "then": views[2:]}


def run(state):
    n = state["n"]
    r = pk.View([n], pk.double)
    for step in range(STEPS):
        (a, b), (a2, b2) = state["now"], state["then"]
        for new, c, value in ((a2, a, 1.0), (b2, b, 0.5 + 0.1 * step)):
            pk.parallel_for(pk.RangePolicy(1, n), transport, new=new, c=c, courant=COURANT)
            pk.parallel_for(pk.RangePolicy(0, 1), inflow, new=new, value=value)
        pk.parallel_for(n, react, r=r, a=a2, b=b2, rate=RATE)
        pk.parallel_for(n, consume, c=a2, r=r)
        pk.parallel_for(n, consume, c=b2, r=r)
        state["now"], state["then"] = [a2, b2], [a, b]


def outputs(state):
    return {"a": np.array(state["now"][0].data), "b": np.array(state["now"][1].data)}


def check(state, size, runs):
    assert np.array(state["now"][0].data).min() >= 0.0, "negative"
