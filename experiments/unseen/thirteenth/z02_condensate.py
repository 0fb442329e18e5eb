"""A rotating Bose-Einstein condensate in a trap: the Gross-Pitaevskii equation in imaginary time.

The wave function is two Views, real and imaginary. A step finds its density, the Laplacians, how
rotation mixes the two, the self-energy, moves it down and makes its norm 1 again, which the host
reads; every few steps energy and angular momentum are read. Beyond the rim the wave is 0 (indices
are clamped and the rim is held).
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main
from peers.z02_numpy import solve

SIZES = {"small": 44, "default": 220, "large": 900}
LENGTH, DT_SHARE, OMEGA, STRENGTH, EVERY = 16.0, 0.2, 0.7, 120.0, 4


@pk.workunit
def trap(i: int, j: int, pot: pk.View2D[pk.double], h: float, n: int):
    y: float = (i - 0.5 * (n - 1)) * h
    x: float = (j - 0.5 * (n - 1)) * h
    pot[i][j] = 0.5 * (x * x + 1.1 * y * y)


@pk.workunit
def first_guess(
    i: int,
    j: int,
    u: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    noise: pk.View2D[pk.double],
    h: float,
    n: int,
):
    y: float = (i - 0.5 * (n - 1)) * h
    x: float = (j - 0.5 * (n - 1)) * h
    g: float = pk.exp(-0.25 * (x * x + y * y)) * (1.0 + noise[i][j])
    u[i][j] = g * (1.0 + 0.3 * x)
    v[i][j] = g * 0.3 * y


@pk.workunit
def hold_rim(i: int, j: int, x: pk.View2D[pk.double], n: int):
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        x[i][j] = 0.0


@pk.workunit
def density(
    i: int, j: int, rho: pk.View2D[pk.double], u: pk.View2D[pk.double], v: pk.View2D[pk.double]
):
    rho[i][j] = u[i][j] * u[i][j] + v[i][j] * v[i][j]


@pk.workunit
def laplacian(
    i: int, j: int, lap: pk.View2D[pk.double], x: pk.View2D[pk.double], n: int, h2: float
):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    lap[i][j] = (x[up][j] + x[down][j] + x[i][left] + x[i][right] - 4.0 * x[i][j]) / h2


@pk.workunit
def turn(i: int, j: int, out: pk.View2D[pk.double], x: pk.View2D[pk.double], n: int):
    """x d/dy - y d/dx, where the spacing cancels."""
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    dy: float = 0.5 * (x[down][j] - x[up][j])
    dx: float = 0.5 * (x[i][right] - x[i][left])
    out[i][j] = (j - 0.5 * (n - 1)) * dy - (i - 0.5 * (n - 1)) * dx


@pk.workunit
def self_energy(
    i: int,
    j: int,
    w: pk.View2D[pk.double],
    pot: pk.View2D[pk.double],
    rho: pk.View2D[pk.double],
    strength: float,
):
    w[i][j] = pot[i][j] + strength * rho[i][j]


@pk.workunit
def hamilton(
    i: int,
    j: int,
    out: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    lap: pk.View2D[pk.double],
    w: pk.View2D[pk.double],
    other: pk.View2D[pk.double],
    omega: float,
):
    """`other` is how the other part turns; the sign is in omega."""
    out[i][j] = -0.5 * lap[i][j] + w[i][j] * x[i][j] + omega * other[i][j]


@pk.workunit
def descend(i: int, j: int, x: pk.View2D[pk.double], hx: pk.View2D[pk.double], dt: float):
    x[i][j] -= dt * hx[i][j]


@pk.workunit
def norm2(i: int, j: int, acc: pk.Acc[pk.double], u: pk.View2D[pk.double], v: pk.View2D[pk.double]):
    acc += u[i][j] * u[i][j] + v[i][j] * v[i][j]


@pk.workunit
def scale(i: int, j: int, x: pk.View2D[pk.double], by: float):
    x[i][j] *= by


@pk.workunit
def expected_energy(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    u: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    hu: pk.View2D[pk.double],
    hv: pk.View2D[pk.double],
):
    acc += u[i][j] * hu[i][j] + v[i][j] * hv[i][j]


@pk.workunit
def spin(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    u: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    tu: pk.View2D[pk.double],
    tv: pk.View2D[pk.double],
):
    acc += u[i][j] * tv[i][j] - v[i][j] * tu[i][j]


@dataclass
class State:
    """The wave, noise for its first guess; norms of each step, energies and spins of some."""

    n: int
    steps: int
    noise: pk.View
    u: pk.View
    v: pk.View
    norms: list = field(default_factory=list)
    energies: list = field(default_factory=list)
    spins: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1302)
    noise, u, v = (pk.View([n, n], pk.double) for _ in range(3))
    noise.data[:] = 0.1 * rng.random((n, n))
    return State(n, 130 if n <= 60 else 72 if n <= 300 else 6, noise, u, v)


def run(state: State) -> None:
    n, u, v = state.n, state.u, state.v
    h = LENGTH / (n - 1)
    dt = DT_SHARE * h * h
    plane = pk.MDRangePolicy([0, 0], [n, n])
    pot, rho, w = (pk.View([n, n], pk.double) for _ in range(3))
    lu, lv, tu, tv, hu, hv = (pk.View([n, n], pk.double) for _ in range(6))
    state.norms, state.energies, state.spins = [], [], []
    pk.parallel_for(plane, trap, pot=pot, h=h, n=n)
    pk.parallel_for(plane, first_guess, u=u, v=v, noise=state.noise, h=h, n=n)
    for x in (u, v):
        pk.parallel_for(plane, hold_rim, x=x, n=n)
    for step in range(state.steps):
        norm = float(pk.parallel_reduce(plane, norm2, u=u, v=v)) * h * h
        state.norms.append(norm)
        for x in (u, v):
            pk.parallel_for(plane, scale, x=x, by=1.0 / sqrt(norm))
        pk.parallel_for(plane, density, rho=rho, u=u, v=v)
        pk.parallel_for(plane, self_energy, w=w, pot=pot, rho=rho, strength=STRENGTH)
        for x, lap, t in ((u, lu, tu), (v, lv, tv)):
            pk.parallel_for(plane, laplacian, lap=lap, x=x, n=n, h2=h * h)
            pk.parallel_for(plane, turn, out=t, x=x, n=n)
        pk.parallel_for(plane, hamilton, out=hu, x=u, lap=lu, w=w, other=tv, omega=-OMEGA)
        pk.parallel_for(plane, hamilton, out=hv, x=v, lap=lv, w=w, other=tu, omega=OMEGA)
        if step % EVERY == EVERY - 1:
            energy = pk.parallel_reduce(plane, expected_energy, u=u, v=v, hu=hu, hv=hv)
            state.energies.append(h * h * float(energy))
            state.spins.append(
                h * h * float(pk.parallel_reduce(plane, spin, u=u, v=v, tu=tu, tv=tv))
            )
        for x, hx in ((u, hu), (v, hv)):
            pk.parallel_for(plane, descend, x=x, hx=hx, dt=dt)
            pk.parallel_for(plane, hold_rim, x=x, n=n)


def outputs(state: State) -> dict:
    return {
        "u": np.array(state.u.data),
        "v": np.array(state.v.data),
        "norms": np.array(state.norms),
        "energies": np.array(state.energies),
        "spins": np.array(state.spins),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    expected = solve(n, fresh.steps, np.array(fresh.noise.data))
    for name, value in outputs(state).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    main(globals())
