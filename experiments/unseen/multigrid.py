"""Multigrid: V-cycles for Poisson's equation on a square, with weighted Jacobi smoothing.

Source: W. Briggs, V. Henson and S. McCormick, "A Multigrid Tutorial" (2000). A cycle smooths twice,
restricts the residual by full weighting, and on the way up adds the bilinear correction.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 17, "default": 1025, "large": 2049}
CYCLES, OMEGA = 1, 0.8


@pk.workunit
def smooth(i, j, new, u, f, h2, omega):
    around: float = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]
    new[i][j] = (1.0 - omega) * u[i][j] + 0.25 * omega * (around + h2 * f[i][j])


@pk.workunit
def residual(i, j, r, u, f, h2):
    around: float = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]
    r[i][j] = f[i][j] - (4.0 * u[i][j] - around) / h2


@pk.workunit
def restrict(i, j, coarse, r):
    near: float = (
        r[2 * i - 1][2 * j] + r[2 * i + 1][2 * j] + r[2 * i][2 * j - 1] + r[2 * i][2 * j + 1]
    )
    far: float = (
        r[2 * i - 1][2 * j - 1] + r[2 * i - 1][2 * j + 1]
        + r[2 * i + 1][2 * j - 1] + r[2 * i + 1][2 * j + 1]
    )  # fmt: skip
    coarse[i][j] = 0.25 * r[2 * i][2 * j] + 0.125 * near + 0.0625 * far


@pk.workunit
def correct(i, j, u, coarse):
    u[i][j] += 0.25 * (
        coarse[i // 2][j // 2] + coarse[(i + 1) // 2][j // 2]
        + coarse[i // 2][(j + 1) // 2] + coarse[(i + 1) // 2][(j + 1) // 2]
    )  # fmt: skip


@pk.workunit
def square(i, j, acc, r):
    acc += r[i][j] * r[i][j]


def setup(size):
    rng = np.random.default_rng(14)
    u, f = pk.View([size, size], pk.double), pk.View([size, size], pk.double)
    f.data[:] = rng.normal(0.0, 1.0, (size, size))
    return {"n": size, "u": u, "f": f, "norm": 0.0}


def inner(n):
    return pk.MDRangePolicy([1, 1], [n - 1, n - 1])


def smoothed(u, f, n, h2, times):
    other = pk.View([n, n], pk.double)
    for _ in range(times):
        pk.parallel_for(inner(n), smooth, new=other, u=u, f=f, h2=h2, omega=OMEGA)
        pk.parallel_for(inner(n), smooth, new=u, u=other, f=f, h2=h2, omega=OMEGA)


def cycle(u, f, n, h2):
    smoothed(u, f, n, h2, 1 if n > 3 else 4)
    if n <= 3:
        return
    half = (n + 1) // 2
    r = pk.View([n, n], pk.double)
    right, coarse = (pk.View([half, half], pk.double) for _ in range(2))
    pk.parallel_for(inner(n), residual, r=r, u=u, f=f, h2=h2)
    pk.parallel_for(inner(half), restrict, coarse=right, r=r)
    cycle(coarse, right, half, 4.0 * h2)
    pk.parallel_for(inner(n), correct, u=u, coarse=coarse)
    smoothed(u, f, n, h2, 1)


def run(state):
    n, u, f = state["n"], state["u"], state["f"]
    h2 = 1.0 / (n - 1) ** 2
    for _ in range(CYCLES):
        cycle(u, f, n, h2)
    r = pk.View([n, n], pk.double)
    pk.parallel_for(inner(n), residual, r=r, u=u, f=f, h2=h2)
    state["norm"] = float(pk.parallel_reduce(inner(n), square, r=r)) ** 0.5


def outputs(state):
    return {"u": np.array(state["u"].data), "norm": state["norm"]}


def check(state, size, runs):
    assert np.isfinite(state["norm"]), "norm"
