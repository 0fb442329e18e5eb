"""An ensemble of Lorenz systems by the method of Bogacki and Shampine, with a step common to all.

Each member has its own Rayleigh number. A step has three stages, the third-order result, a fourth
stage that is the next step's first, and the scaled error of the embedded second-order result; the
host takes or repeats the step and chooses the next one's length. At the end: means and deviations.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 300, "default": 60_000, "large": 350_000}
SIGMA, BETA, END, TOLERANCE, FIRST = 10.0, 8.0 / 3.0, 0.2, 2e-5, 0.1


@pk.workunit
def restore(c: int, i: int, u: pk.View2D[pk.double], u0: pk.View2D[pk.double]):
    u[c][i] = u0[c][i]


@pk.workunit
def slope_x(i: int, k: pk.View2D[pk.double], u: pk.View2D[pk.double], sigma: float):
    k[0][i] = sigma * (u[1][i] - u[0][i])


@pk.workunit
def slope_y(i: int, k: pk.View2D[pk.double], u: pk.View2D[pk.double], rho: pk.View1D[pk.double]):
    k[1][i] = u[0][i] * (rho[i] - u[2][i]) - u[1][i]


@pk.workunit
def slope_z(i: int, k: pk.View2D[pk.double], u: pk.View2D[pk.double], beta: float):
    k[2][i] = u[0][i] * u[1][i] - beta * u[2][i]


@pk.workunit
def along(
    c: int,
    i: int,
    out: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    k: pk.View2D[pk.double],
    h: float,
):
    out[c][i] = u[c][i] + h * k[c][i]


@pk.workunit
def third_order(
    c: int,
    i: int,
    out: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    k1: pk.View2D[pk.double],
    k2: pk.View2D[pk.double],
    k3: pk.View2D[pk.double],
    h: float,
):
    out[c][i] = u[c][i] + h * (2.0 * k1[c][i] + 3.0 * k2[c][i] + 4.0 * k3[c][i]) / 9.0


@pk.workunit
def difference(
    c: int,
    i: int,
    e: pk.View2D[pk.double],
    k1: pk.View2D[pk.double],
    k2: pk.View2D[pk.double],
    k3: pk.View2D[pk.double],
    k4: pk.View2D[pk.double],
    h: float,
):
    sum: float = -5.0 * k1[c][i] + 6.0 * k2[c][i] + 8.0 * k3[c][i] - 9.0 * k4[c][i]
    e[c][i] = h * sum / 72.0


@pk.workunit
def scale(
    c: int,
    i: int,
    e: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    tolerance: float,
):
    e[c][i] /= tolerance * (1.0 + max(abs(u[c][i]), abs(v[c][i])))


@pk.workunit
def square_sum(c: int, i: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double]):
    acc += x[c][i] * x[c][i]


@pk.workunit
def component_sum(i: int, acc: pk.Acc[pk.double], u: pk.View2D[pk.double], c: int):
    acc += u[c][i]


@pk.workunit
def component_spread(i: int, acc: pk.Acc[pk.double], u: pk.View2D[pk.double], c: int, mean: float):
    acc += (u[c][i] - mean) * (u[c][i] - mean)


@dataclass
class State:
    """The members at first and at the end; their numbers; what steps were taken; statistics."""

    n: int
    u0: pk.View
    rho: pk.View
    end: list = field(default_factory=list)
    lengths: list = field(default_factory=list)
    statistics: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(124)
    u0, rho = pk.View([3, n], pk.double), pk.View([n], pk.double)
    u0.data[:] = np.array([[1.0], [2.0], [20.0]]) + rng.standard_normal((3, n))
    rho.data[:] = 28.0 + 4.0 * rng.random(n)
    return State(n, u0, rho)


def run(state: State) -> None:
    n, rho = state.n, state.rho
    every = pk.MDRangePolicy([0, 0], [3, n])
    u, v, w, e, k1, k2, k3, k4 = (pk.View([3, n], pk.double) for _ in range(8))

    def slope(k, u):
        pk.parallel_for(n, slope_x, k=k, u=u, sigma=SIGMA)
        pk.parallel_for(n, slope_y, k=k, u=u, rho=rho)
        pk.parallel_for(n, slope_z, k=k, u=u, beta=BETA)

    pk.parallel_for(every, restore, u=u, u0=state.u0)
    slope(k1, u)
    state.lengths = []
    t, h = 0.0, FIRST
    while t < END - 1e-12:
        h = min(h, END - t)
        pk.parallel_for(every, along, out=w, u=u, k=k1, h=0.5 * h)
        slope(k2, w)
        pk.parallel_for(every, along, out=w, u=u, k=k2, h=0.75 * h)
        slope(k3, w)
        pk.parallel_for(every, third_order, out=v, u=u, k1=k1, k2=k2, k3=k3, h=h)
        slope(k4, v)
        pk.parallel_for(every, difference, e=e, k1=k1, k2=k2, k3=k3, k4=k4, h=h)
        pk.parallel_for(every, scale, e=e, u=u, v=v, tolerance=TOLERANCE)
        error = sqrt(float(pk.parallel_reduce(every, square_sum, x=e)) / (3 * n))
        if error <= 1.0:
            t += h
            u, v = v, u
            k1, k4 = k4, k1
            state.lengths.append(h)
        else:
            state.lengths.append(-h)
        h *= min(2.0, max(0.3, 0.9 * error ** (-1.0 / 3.0)))
    state.end, state.statistics = [u], []
    for c in range(3):
        mean = float(pk.parallel_reduce(n, component_sum, u=u, c=c)) / n
        spread = float(pk.parallel_reduce(n, component_spread, u=u, c=c, mean=mean)) / n
        state.statistics += [mean, sqrt(spread)]


def outputs(state: State) -> dict:
    return {
        "u": np.array(state.end[0].data),
        "lengths": np.array(state.lengths),
        "statistics": np.array(state.statistics),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    u, rho = np.array(fresh.u0.data), np.array(fresh.rho.data)

    def slope(u):
        x, y, z = u
        return np.array([SIGMA * (y - x), x * (rho - z) - y, x * y - BETA * z])

    t, h, lengths = 0.0, FIRST, []
    k1 = slope(u)
    while t < END - 1e-12:
        h = min(h, END - t)
        k2 = slope(u + 0.5 * h * k1)
        k3 = slope(u + 0.75 * h * k2)
        v = u + h * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = slope(v)
        e = h * (-5.0 * k1 + 6.0 * k2 + 8.0 * k3 - 9.0 * k4) / 72.0
        e /= TOLERANCE * (1.0 + np.maximum(abs(u), abs(v)))
        error = sqrt(np.mean(e * e))
        lengths.append(h if error <= 1.0 else -h)
        if error <= 1.0:
            t, u, k1 = t + h, v, k4
        h *= min(2.0, max(0.3, 0.9 * error ** (-1.0 / 3.0)))
    out = outputs(state)
    assert min(lengths) < 0.0
    np.testing.assert_allclose(out["lengths"], lengths, rtol=1e-9)
    np.testing.assert_allclose(out["u"], u, rtol=1e-8, atol=1e-9)
    statistics = np.stack([u.mean(axis=1), u.std(axis=1)], axis=1).ravel()
    np.testing.assert_allclose(out["statistics"], statistics, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
