"""Wave in 1-D: a string, one end held and driven, the other open; a record of its energy.

Source: leapfrog with the absorbing boundary of G. Mur (1981). A step makes 5 launches: inside,
both ends by a launch of one iteration each, and a rotation of the three arrays by name.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 500, "default": 8_000_000, "large": 32_000_000}
STEPS, COURANT = 6, 0.5


@pk.workunit
def inside(i, new, u, old, c2):
    new[i] = 2.0 * u[i] - old[i] + c2 * (u[i - 1] - 2.0 * u[i] + u[i + 1])


@pk.workunit
def drive(i, new, value):
    new[i] = value


@pk.workunit
def absorb(i, new, u, factor):
    new[i] = u[i - 1] + factor * (new[i - 1] - u[i])


@pk.workunit
def damp(i, new, u, factor):
    new[i] -= factor * (new[i] - u[i])


def setup(size):
    waves = [pk.View([size], pk.double) for _ in range(3)]
    x = np.linspace(0.0, 1.0, size)
    for wave in waves[:2]:
        wave.data[:] = np.exp(-200.0 * (x - 0.4) ** 2)
    return {"n": size, "waves": waves, "step": 0}


def run(state):
    n, (old, u, new) = state["n"], state["waves"]
    factor = (COURANT - 1.0) / (COURANT + 1.0)
    for _ in range(STEPS):
        state["step"] += 1
        pk.parallel_for(pk.RangePolicy(1, n - 1), inside, new=new, u=u, old=old, c2=COURANT**2)
        pk.parallel_for(pk.RangePolicy(1, n - 1), damp, new=new, u=u, factor=1e-4)
        pk.parallel_for(pk.RangePolicy(0, 1), drive, new=new, value=0.01 * state["step"])
        pk.parallel_for(pk.RangePolicy(n - 1, n), absorb, new=new, u=u, factor=factor)
        old, u, new = u, new, old
    state["waves"] = [old, u, new]


def outputs(state):
    return {"u": np.array(state["waves"][1].data)}


def check(state, size, runs):
    assert np.abs(np.array(state["waves"][1].data)).max() < 10.0, "unstable"
