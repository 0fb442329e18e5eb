"""A crystal growing from a melt: Kobayashi's phase field with fourfold anisotropy.

A step finds the gradient of the phase and its angle, the anisotropic mobility and its derivative,
the fluxes and their divergence, the drive from the undercooling, the reaction, and how heat spreads
and is released. The domain is periodic; what is solid is summed after each step.
"""

from dataclasses import dataclass, field
from math import pi

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 30, "default": 260, "large": 1_200}
DX, DT, TAU, EPSILON, STRENGTH, ANGLE = 0.03, 1e-4, 3e-4, 0.01, 0.04, 0.2
ALPHA, GAMMA, MELTING, LATENT = 0.9, 10.0, 1.0, 1.8


@pk.workunit
def restore(i: int, j: int, x: pk.View2D[pk.double], x0: pk.View2D[pk.double]):
    x[i][j] = x0[i][j]


@pk.workunit
def gradient_x(
    i: int, j: int, gx: pk.View2D[pk.double], p: pk.View2D[pk.double], n: int, dx: float
):
    gx[i][j] = (p[i][(j + 1) % n] - p[i][(j + n - 1) % n]) / (2.0 * dx)


@pk.workunit
def gradient_y(
    i: int, j: int, gy: pk.View2D[pk.double], p: pk.View2D[pk.double], n: int, dx: float
):
    gy[i][j] = (p[(i + 1) % n][j] - p[(i + n - 1) % n][j]) / (2.0 * dx)


@pk.workunit
def direction(
    i: int, j: int, theta: pk.View2D[pk.double], gx: pk.View2D[pk.double], gy: pk.View2D[pk.double]
):
    theta[i][j] = pk.atan2(gy[i][j], gx[i][j])


@pk.workunit
def anisotropy(
    i: int,
    j: int,
    e: pk.View2D[pk.double],
    theta: pk.View2D[pk.double],
    epsilon: float,
    strength: float,
    angle: float,
):
    e[i][j] = epsilon * (1.0 + strength * pk.cos(4.0 * (theta[i][j] - angle)))


@pk.workunit
def anisotropy_slope(
    i: int,
    j: int,
    de: pk.View2D[pk.double],
    theta: pk.View2D[pk.double],
    epsilon: float,
    strength: float,
    angle: float,
):
    de[i][j] = -4.0 * epsilon * strength * pk.sin(4.0 * (theta[i][j] - angle))


@pk.workunit
def flux_x(
    i: int,
    j: int,
    q: pk.View2D[pk.double],
    e: pk.View2D[pk.double],
    de: pk.View2D[pk.double],
    gx: pk.View2D[pk.double],
    gy: pk.View2D[pk.double],
):
    q[i][j] = e[i][j] * (e[i][j] * gx[i][j] - de[i][j] * gy[i][j])


@pk.workunit
def flux_y(
    i: int,
    j: int,
    q: pk.View2D[pk.double],
    e: pk.View2D[pk.double],
    de: pk.View2D[pk.double],
    gx: pk.View2D[pk.double],
    gy: pk.View2D[pk.double],
):
    q[i][j] = e[i][j] * (e[i][j] * gy[i][j] + de[i][j] * gx[i][j])


@pk.workunit
def divergence(
    i: int,
    j: int,
    out: pk.View2D[pk.double],
    qx: pk.View2D[pk.double],
    qy: pk.View2D[pk.double],
    n: int,
    dx: float,
):
    across: float = qx[i][(j + 1) % n] - qx[i][(j + n - 1) % n]
    along: float = qy[(i + 1) % n][j] - qy[(i + n - 1) % n][j]
    out[i][j] = (across + along) / (2.0 * dx)


@pk.workunit
def drive(
    i: int,
    j: int,
    m: pk.View2D[pk.double],
    t: pk.View2D[pk.double],
    alpha: float,
    gamma: float,
    melting: float,
):
    m[i][j] = alpha / 3.141592653589793 * pk.atan(gamma * (melting - t[i][j]))


@pk.workunit
def react(
    i: int,
    j: int,
    rate: pk.View2D[pk.double],
    p: pk.View2D[pk.double],
    m: pk.View2D[pk.double],
    div: pk.View2D[pk.double],
    tau: float,
):
    p1: float = p[i][j]
    rate[i][j] = (div[i][j] + p1 * (1.0 - p1) * (p1 - 0.5 + m[i][j])) / tau


@pk.workunit
def heat(i: int, j: int, lap: pk.View2D[pk.double], t: pk.View2D[pk.double], n: int, dx: float):
    s: float = t[i][(j + 1) % n] + t[i][(j + n - 1) % n] + t[(i + 1) % n][j] + t[(i + n - 1) % n][j]
    lap[i][j] = (s - 4.0 * t[i][j]) / (dx * dx)


@pk.workunit
def advance(i: int, j: int, x: pk.View2D[pk.double], rate: pk.View2D[pk.double], dt: float):
    x[i][j] += dt * rate[i][j]


@pk.workunit
def release(
    i: int, j: int, t: pk.View2D[pk.double], rate: pk.View2D[pk.double], dt: float, latent: float
):
    t[i][j] += latent * dt * rate[i][j]


@pk.workunit
def solid(i: int, j: int, acc: pk.Acc[pk.double], p: pk.View2D[pk.double]):
    acc += p[i][j]


@dataclass
class State:
    """Phase and temperature, first and present; how much is solid after each step."""

    n: int
    steps: int
    p0: pk.View
    t0: pk.View
    p: pk.View
    t: pk.View
    amount: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(123)
    p0, t0, p, t = (pk.View([n, n], pk.double) for _ in range(4))
    y, x = (np.mgrid[0:n, 0:n] - 0.5 * n + 0.25) / n
    p0.data[:] = 0.5 - 0.5 * np.tanh((np.sqrt(x * x + y * y) - 0.2) * 0.4 * n)
    p0.data[:] += 0.01 * rng.random((n, n))
    t0.data[:] = 0.05 * rng.random((n, n))
    return State(n, 24 if n <= 50 else 12 if n <= 400 else 4, p0, t0, p, t)


def run(state: State) -> None:
    n, p, t = state.n, state.p, state.t
    everywhere = pk.MDRangePolicy([0, 0], [n, n])
    shape = {"epsilon": EPSILON, "strength": STRENGTH, "angle": ANGLE}
    state.amount = []
    pk.parallel_for(everywhere, restore, x=p, x0=state.p0)
    pk.parallel_for(everywhere, restore, x=t, x0=state.t0)
    for _ in range(state.steps):
        gx, gy, theta, e, de = (pk.View([n, n], pk.double) for _ in range(5))
        qx, qy, div, m, rate, lap = (pk.View([n, n], pk.double) for _ in range(6))
        pk.parallel_for(everywhere, gradient_x, gx=gx, p=p, n=n, dx=DX)
        pk.parallel_for(everywhere, gradient_y, gy=gy, p=p, n=n, dx=DX)
        pk.parallel_for(everywhere, direction, theta=theta, gx=gx, gy=gy)
        pk.parallel_for(everywhere, anisotropy, e=e, theta=theta, **shape)
        pk.parallel_for(everywhere, anisotropy_slope, de=de, theta=theta, **shape)
        pk.parallel_for(everywhere, flux_x, q=qx, e=e, de=de, gx=gx, gy=gy)
        pk.parallel_for(everywhere, flux_y, q=qy, e=e, de=de, gx=gx, gy=gy)
        pk.parallel_for(everywhere, divergence, out=div, qx=qx, qy=qy, n=n, dx=DX)
        pk.parallel_for(everywhere, drive, m=m, t=t, alpha=ALPHA, gamma=GAMMA, melting=MELTING)
        pk.parallel_for(everywhere, react, rate=rate, p=p, m=m, div=div, tau=TAU)
        pk.parallel_for(everywhere, heat, lap=lap, t=t, n=n, dx=DX)
        pk.parallel_for(everywhere, advance, x=p, rate=rate, dt=DT)
        pk.parallel_for(everywhere, advance, x=t, rate=lap, dt=DT)
        pk.parallel_for(everywhere, release, t=t, rate=rate, dt=DT, latent=LATENT)
        state.amount.append(pk.parallel_reduce(everywhere, solid, p=p))


def outputs(state: State) -> dict:
    return {
        "p": np.array(state.p.data),
        "t": np.array(state.t.data),
        "amount": np.array([float(x) for x in state.amount]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    p, t = np.array(fresh.p0.data), np.array(fresh.t0.data)
    amount = []

    def slope(x, axis):
        return (np.roll(x, -1, axis) - np.roll(x, 1, axis)) / (2.0 * DX)

    for _ in range(fresh.steps):
        gx, gy = slope(p, 1), slope(p, 0)
        theta = 4.0 * (np.arctan2(gy, gx) - ANGLE)
        e = EPSILON * (1.0 + STRENGTH * np.cos(theta))
        de = -4.0 * EPSILON * STRENGTH * np.sin(theta)
        div = slope(e * (e * gx - de * gy), 1) + slope(e * (e * gy + de * gx), 0)
        m = ALPHA / pi * np.arctan(GAMMA * (MELTING - t))
        rate = (div + p * (1.0 - p) * (p - 0.5 + m)) / TAU
        around = sum(np.roll(t, s, a) for s in (1, -1) for a in (0, 1))
        t = t + DT * (around - 4.0 * t) / DX**2 + LATENT * DT * rate
        p = p + DT * rate
        amount.append(p.sum())
    out = outputs(state)
    np.testing.assert_allclose(out["p"], p, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(out["t"], t, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(out["amount"], amount, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
