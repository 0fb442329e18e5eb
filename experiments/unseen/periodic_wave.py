"""Periodic wave: two fields on a torus that excite each other, by a Laplacian with wrapped indices.

Source: D. Barkley, "A model for fast computer simulation of waves in excitable media" (1991).
A step makes a Laplacian, 2 reaction maps, and 2 updates.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 1_200, "large": 3_000}
STEPS, DT, RATE = 3, 0.01, 50.0


@pk.workunit
def laplacian(i, j, lap, u, n):
    lap[i][j] = (
        u[(i + 1) % n][j] + u[(i + n - 1) % n][j] + u[i][(j + 1) % n] + u[i][(j + n - 1) % n]
        - 4.0 * u[i][j]
    )  # fmt: skip


@pk.workunit
def excite(i, j, f, u, v, rate):
    f[i][j] = rate * u[i][j] * (1.0 - u[i][j]) * (u[i][j] - (v[i][j] + 0.02) / 0.75)


@pk.workunit
def recover(i, j, v, u, dt):
    v[i][j] += dt * (u[i][j] - v[i][j])


@pk.workunit
def advance(i, j, u, f, lap, dt, spread):
    u[i][j] += dt * (f[i][j] + spread * lap[i][j])


def setup(size):
    u, v = (pk.View([size, size], pk.double) for _ in range(2))
    u.data[: size // 2, :] = 0.9
    v.data[:, : size // 2] = 0.4
    return {"n": size, "u": u, "v": v}


def run(state):
    n, u, v = state["n"], state["u"], state["v"]
    every = pk.MDRangePolicy([0, 0], [n, n])
    lap, f = (pk.View([n, n], pk.double) for _ in range(2))
    for _ in range(STEPS):
        pk.parallel_for(every, laplacian, lap=lap, u=u, n=n)
        pk.parallel_for(every, excite, f=f, u=u, v=v, rate=RATE)
        pk.parallel_for(every, recover, v=v, u=u, dt=DT)
        pk.parallel_for(every, advance, u=u, f=f, lap=lap, dt=DT, spread=1.0)


def outputs(state):
    return {"u": np.array(state["u"].data), "v": np.array(state["v"].data)}


def check(state, size, runs):
    assert np.abs(np.array(state["u"].data)).max() < 2.0, "unstable"
