"""Gravity among bodies, all pairs: accelerations, then a step of velocities and positions.

Source: L. Nyland, M. Harris and J. Prins, "Fast N-Body Simulation with CUDA" (2007).
"""

from math import sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 64, "default": 2_000, "large": 6_000}
SOFT, STEP = 1e-3, 1e-3


@pk.workunit
def attract(i, force, place, mass, n: int, soft):
    fx: float = 0.0
    fy: float = 0.0
    fz: float = 0.0
    for j in range(n):
        dx: float = place[j][0] - place[i][0]
        dy: float = place[j][1] - place[i][1]
        dz: float = place[j][2] - place[i][2]
        square: float = dx * dx + dy * dy + dz * dz + soft
        factor: float = mass[j] / (square * sqrt(square))
        fx += factor * dx
        fy += factor * dy
        fz += factor * dz
    force[i][0] = fx
    force[i][1] = fy
    force[i][2] = fz


@pk.workunit
def kick(i, speed, force, step):
    for c in range(3):
        speed[i][c] += step * force[i][c]


@pk.workunit
def drift(i, place, speed, step):
    for c in range(3):
        place[i][c] += step * speed[i][c]


def setup(size):
    rng = np.random.default_rng(56)
    state = {"n": size, "mass": pk.View([size], pk.double)}
    state["mass"].data[:] = rng.random(size) / size
    for name in ("place", "speed"):
        state[name] = pk.View([size, 3], pk.double)
        state[name].data[:] = rng.random((size, 3))
    return state


def run(state):
    n = state["n"]
    force = pk.View([n, 3], pk.double)
    pk.parallel_for(
        n, attract, force=force, place=state["place"], mass=state["mass"], n=n, soft=SOFT
    )
    pk.parallel_for(n, kick, speed=state["speed"], force=force, step=STEP)
    pk.parallel_for(n, drift, place=state["place"], speed=state["speed"], step=STEP)


def outputs(state):
    return {"place": np.array(state["place"].data), "speed": np.array(state["speed"].data)}


def check(state, size, runs):
    rng = np.random.default_rng(56)
    mass, place, speed = rng.random(size) / size, rng.random((size, 3)), rng.random((size, 3))
    for _ in range(runs):
        d = place[None] - place[:, None]
        s = (d**2).sum(axis=2) + SOFT
        speed += STEP * (mass[None, :, None] * d / s[:, :, None] ** 1.5).sum(axis=1)
        place += STEP * speed
    np.testing.assert_allclose(np.array(state["place"].data), place, rtol=1e-9)
