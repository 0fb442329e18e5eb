"""Ising: Metropolis sweeps of a magnet on a periodic square lattice, black sites, then white.

Source: N. Metropolis et al. (1953). A half sweep makes 4 maps: random numbers (a generator a site),
the energy of a flip, its acceptance (an exponential where energy rises), the flip; sums follow.
"""

from math import exp

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 1_200, "large": 3_000}
BETA = 0.44


@pk.workunit
def draw(i, j, u, seed):
    seed[i][j] = seed[i][j] * 1664525 + 1013904223
    u[i][j] = seed[i][j] / 4294967296.0


@pk.workunit
def flip_energy(i, j, de, s, n):
    around: int = (
        s[(i + 1) % n][j] + s[(i + n - 1) % n][j] + s[i][(j + 1) % n] + s[i][(j + n - 1) % n]
    )
    de[i][j] = 2 * s[i][j] * around


@pk.workunit
def accept(i, j, flips, de, u, beta, colour):
    flips[i][j] = 0
    if (i + j) % 2 == colour:
        if de[i][j] <= 0:
            flips[i][j] = 1
        elif u[i][j] < exp(-beta * de[i][j]):
            flips[i][j] = 1


@pk.workunit
def flip(i, j, s, flips):
    if flips[i][j] == 1:
        s[i][j] = -s[i][j]


@pk.workunit
def magnetisation(i, j, acc, s):
    acc += s[i][j]


def setup(size):
    rng = np.random.default_rng(26)
    s, seed = pk.View([size, size], pk.int32), pk.View([size, size], pk.uint32)
    s.data[:] = rng.choice([-1, 1], (size, size))
    seed.data[:] = rng.integers(0, 2**32, (size, size), dtype=np.uint32)
    return {"n": size, "s": s, "seed": seed, "m": []}


def run(state):
    n, s = state["n"], state["s"]
    every = pk.MDRangePolicy([0, 0], [n, n])
    u = pk.View([n, n], pk.double)
    de, flips = (pk.View([n, n], pk.int32) for _ in range(2))
    for colour in (0, 1):
        pk.parallel_for(every, draw, u=u, seed=state["seed"])
        pk.parallel_for(every, flip_energy, de=de, s=s, n=n)
        pk.parallel_for(every, accept, flips=flips, de=de, u=u, beta=BETA, colour=colour)
        pk.parallel_for(every, flip, s=s, flips=flips)
    state["m"].append(pk.parallel_reduce(every, magnetisation, s=s))


def outputs(state):
    return {"s": np.array(state["s"].data), "m": np.array([float(m) for m in state["m"]])}


def check(state, size, runs):
    assert float(state["m"][-1]) == np.array(state["s"].data).sum(), "sum"
