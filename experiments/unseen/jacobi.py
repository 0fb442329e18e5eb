"""Jacobi: a membrane under load, until the residual is small; the host looks after each step.

Source: R. Barrett et al., "Templates for the Solution of Linear Systems" (1994), ch. 2. A step
makes an update, a boundary that follows its neighbours (two launches), and a sum.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 1_000, "large": 2_500}
STEPS = 6


@pk.workunit
def update(i, j, new, u, f):
    new[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1] + f[i][j])


@pk.workunit
def slip_top(j, u):
    u[0][j] = u[1][j]


@pk.workunit
def slip_bottom(j, u, last):
    u[last][j] = u[last - 1][j]


@pk.workunit
def difference(i, j, acc, new, u):
    step: float = new[i][j] - u[i][j]
    acc += step * step


def setup(size):
    rng = np.random.default_rng(31)
    u, new, f = (pk.View([size, size], pk.double) for _ in range(3))
    f.data[:] = rng.uniform(0.0, 1.0, (size, size))
    return {"n": size, "u": u, "new": new, "f": f, "residual": 0.0}


def run(state):
    n = state["n"]
    inside = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    for _ in range(STEPS):
        u, new = state["u"], state["new"]
        pk.parallel_for(inside, update, new=new, u=u, f=state["f"])
        pk.parallel_for(n, slip_top, u=new)
        pk.parallel_for(n, slip_bottom, u=new, last=n - 1)
        residual = pk.parallel_reduce(inside, difference, new=new, u=u)
        state["u"], state["new"] = new, u
        state["residual"] = float(residual)
        if state["residual"] < 1e-12:
            break


def outputs(state):
    return {"u": np.array(state["u"].data), "residual": state["residual"]}


def check(state, size, runs):
    assert np.array(state["u"].data).min() >= 0.0, "sign"
