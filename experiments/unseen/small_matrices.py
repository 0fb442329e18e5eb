"""Small matrices: strain, stress and energy of the elements of a mesh, a 3 x 3 tensor each.

Source: T. Belytschko et al., "Nonlinear Finite Elements" (2014), ch. 3 (St. Venant-Kirchhoff).
A workunit treats an element: Green's strain, its trace, the stress, the first Piola tensor, energy.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 200, "default": 400_000, "large": 1_500_000}


@pk.workunit
def strain(e, green, f):
    for a in range(3):
        for b in range(3):
            total: float = 0.0
            for k in range(3):
                total += f[e][k][a] * f[e][k][b]
            green[e][a][b] = 0.5 * total
        green[e][a][a] -= 0.5


@pk.workunit
def trace(e, t, green):
    t[e] = green[e][0][0] + green[e][1][1] + green[e][2][2]


@pk.workunit
def stress(e, s, green, t, lame, shear):
    for a in range(3):
        for b in range(3):
            s[e][a][b] = 2.0 * shear * green[e][a][b]
        s[e][a][a] += lame * t[e]


@pk.workunit
def piola(e, p, f, s):
    for a in range(3):
        for b in range(3):
            total: float = 0.0
            for k in range(3):
                total += f[e][a][k] * s[e][k][b]
            p[e][a][b] = total


@pk.workunit
def energy(e, acc, s, green):
    for a in range(3):
        for b in range(3):
            acc += 0.5 * s[e][a][b] * green[e][a][b]


def setup(size):
    rng = np.random.default_rng(36)
    f, p = (pk.View([size, 3, 3], pk.double) for _ in range(2))
    f.data[:] = np.eye(3) + rng.normal(0.0, 0.05, (size, 3, 3))
    return {"n": size, "f": f, "p": p, "energy": 0.0}


def run(state):
    n, f, p = state["n"], state["f"], state["p"]
    green, s = (pk.View([n, 3, 3], pk.double) for _ in range(2))
    t = pk.View([n], pk.double)
    pk.parallel_for(n, strain, green=green, f=f)
    pk.parallel_for(n, trace, t=t, green=green)
    pk.parallel_for(n, stress, s=s, green=green, t=t, lame=1.2, shear=0.8)
    pk.parallel_for(n, piola, p=p, f=f, s=s)
    state["energy"] = float(pk.parallel_reduce(n, energy, s=s, green=green))


def outputs(state):
    return {"p": np.array(state["p"].data), "energy": state["energy"]}


def check(state, size, runs):
    assert state["energy"] > 0.0, "energy"
