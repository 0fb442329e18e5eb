"""The surface of least area over a frame, sagging a little, by the method L-BFGS.

Slopes of the cells give the area and, divided by it, the gradient at the nodes. An iteration runs
both loops of the recursion over the kept differences, searches along the direction by halving, and
renews the oldest difference; the host holds all scalars.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 32, "default": 260, "large": 1_000}
KEPT, WEIGHT, ARMIJO = 4, 1e-3, 1e-4


@pk.workunit
def copy(i: int, j: int, out: pk.View2D[pk.double], x: pk.View2D[pk.double]):
    out[i][j] = x[i][j]


@pk.workunit
def slope_x(i: int, j: int, out: pk.View2D[pk.double], u: pk.View2D[pk.double]):
    out[i][j] = 0.5 * (u[i][j + 1] - u[i][j] + u[i + 1][j + 1] - u[i + 1][j])


@pk.workunit
def slope_y(i: int, j: int, out: pk.View2D[pk.double], u: pk.View2D[pk.double]):
    out[i][j] = 0.5 * (u[i + 1][j] - u[i][j] + u[i + 1][j + 1] - u[i][j + 1])


@pk.workunit
def area(
    i: int, j: int, out: pk.View2D[pk.double], x: pk.View2D[pk.double], y: pk.View2D[pk.double]
):
    out[i][j] = pk.sqrt(1.0 + x[i][j] * x[i][j] + y[i][j] * y[i][j])


@pk.workunit
def total(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double]):
    acc += x[i][j]


@pk.workunit
def divide(i: int, j: int, x: pk.View2D[pk.double], by: pk.View2D[pk.double]):
    x[i][j] /= by[i][j]


@pk.workunit
def gradient(
    i: int,
    j: int,
    g: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    weight: float,
):
    a: float = x[i - 1][j - 1] - x[i - 1][j] + x[i][j - 1] - x[i][j]
    b: float = y[i - 1][j - 1] + y[i - 1][j] - y[i][j - 1] - y[i][j]
    g[i][j] = 0.5 * (a + b) + weight


@pk.workunit
def dot(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double], y: pk.View2D[pk.double]):
    acc += x[i][j] * y[i][j]


@pk.workunit
def add(i: int, j: int, x: pk.View2D[pk.double], y: pk.View2D[pk.double], a: float):
    x[i][j] += a * y[i][j]


@pk.workunit
def scale(i: int, j: int, x: pk.View2D[pk.double], a: float):
    x[i][j] *= a


@pk.workunit
def trial(
    i: int,
    j: int,
    out: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    q: pk.View2D[pk.double],
    t: float,
):
    out[i][j] = u[i][j] - t * q[i][j]


@pk.workunit
def subtract(
    i: int, j: int, out: pk.View2D[pk.double], x: pk.View2D[pk.double], y: pk.View2D[pk.double]
):
    out[i][j] = x[i][j] - y[i][j]


@dataclass
class State:
    """The first surface; the last surface and gradient; energy, slope and length of each step."""

    n: int
    steps: int
    u0: pk.View
    last: list = field(default_factory=list)
    history: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(130)
    u0 = pk.View([n, n], pk.double)
    y, x = np.mgrid[0:n, 0:n] / (n - 1)
    u0.data[:] = 0.2 * n * (np.sin(3.0 * x) * np.cos(4.0 * y) + 0.3 * x * y)
    u0.data[1:-1, 1:-1] += 0.8 * rng.standard_normal((n - 2, n - 2))
    return State(n, 20 if n <= 50 else 15 if n <= 400 else 6, u0)


def run(state: State) -> None:
    n = state.n
    u, v, g, h, q = (pk.View([n, n], pk.double) for _ in range(5))
    x, y, a = (pk.View([n - 1, n - 1], pk.double) for _ in range(3))
    nodes = pk.MDRangePolicy([0, 0], [n, n])
    inner = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    cells = pk.MDRangePolicy([0, 0], [n - 1, n - 1])

    def energy_at(u):
        pk.parallel_for(cells, slope_x, out=x, u=u)
        pk.parallel_for(cells, slope_y, out=y, u=u)
        pk.parallel_for(cells, area, out=a, x=x, y=y)
        return float(pk.parallel_reduce(cells, total, x=a)) + WEIGHT * float(
            pk.parallel_reduce(inner, total, x=u)
        )

    def gradient_here(g):
        pk.parallel_for(cells, divide, x=x, by=a)
        pk.parallel_for(cells, divide, x=y, by=a)
        pk.parallel_for(inner, gradient, g=g, x=x, y=y, weight=WEIGHT)

    pk.parallel_for(nodes, copy, out=u, x=state.u0)
    state.history, kept = [], []
    energy = energy_at(u)
    gradient_here(g)
    for _ in range(state.steps):
        pk.parallel_for(inner, copy, out=q, x=g)
        alphas = []
        for s, d, rho, _ in reversed(kept):
            alpha = rho * float(pk.parallel_reduce(inner, dot, x=s, y=q))
            pk.parallel_for(inner, add, x=q, y=d, a=-alpha)
            alphas.append(alpha)
        gamma = kept[-1][3] if kept else 0.5
        pk.parallel_for(inner, scale, x=q, a=gamma)
        for (s, d, rho, _), alpha in zip(kept, reversed(alphas)):
            beta = rho * float(pk.parallel_reduce(inner, dot, x=d, y=q))
            pk.parallel_for(inner, add, x=q, y=s, a=alpha - beta)
        slope = float(pk.parallel_reduce(inner, dot, x=g, y=q))
        t = 1.0
        while True:
            pk.parallel_for(nodes, trial, out=v, u=u, q=q, t=t)
            new = energy_at(v)
            if new <= energy - ARMIJO * t * slope or t < 1e-3:
                break
            t *= 0.5
        gradient_here(h)
        s, d = (
            kept.pop(0)[:2]
            if len(kept) == KEPT
            else (
                pk.View([n, n], pk.double),
                pk.View([n, n], pk.double),
            )
        )
        pk.parallel_for(inner, subtract, out=s, x=v, y=u)
        pk.parallel_for(inner, subtract, out=d, x=h, y=g)
        sd = float(pk.parallel_reduce(inner, dot, x=s, y=d))
        dd = float(pk.parallel_reduce(inner, dot, x=d, y=d))
        kept.append((s, d, 1.0 / sd, sd / dd))
        u, v, g, h, energy = v, u, h, g, new
        state.history.append([energy, slope, t])
    state.last = [u, g]


def outputs(state: State) -> dict:
    return {
        "u": np.array(state.last[0].data),
        "g": np.array(state.last[1].data)[1:-1, 1:-1],
        "history": np.array(state.history),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)

    def both(u):
        x = 0.5 * (u[:-1, 1:] - u[:-1, :-1] + u[1:, 1:] - u[1:, :-1])
        y = 0.5 * (u[1:, :-1] - u[:-1, :-1] + u[1:, 1:] - u[:-1, 1:])
        a = np.sqrt(1.0 + x * x + y * y)
        g = np.zeros((n, n))
        for row, up in ((slice(0, -1), -0.5), (slice(1, None), 0.5)):
            for column, left in ((slice(0, -1), -0.5), (slice(1, None), 0.5)):
                g[row, column] += (left * x + up * y) / a
        g[1:-1, 1:-1] += WEIGHT
        g[0] = g[-1] = g[:, 0] = g[:, -1] = 0.0
        return a.sum() + WEIGHT * u[1:-1, 1:-1].sum(), g

    u, kept, history = np.array(fresh.u0.data), [], []
    energy, g = both(u)
    for _ in range(fresh.steps):
        q, alphas = g.copy(), []
        for s, d in reversed(kept):
            alphas.append(np.sum(s * q) / np.sum(s * d))
            q -= alphas[-1] * d
        if kept:
            s, d = kept[-1]
            q *= np.sum(s * d) / np.sum(d * d)
        else:
            q *= 0.5
        for (s, d), alpha in zip(kept, reversed(alphas)):
            q += (alpha - np.sum(d * q) / np.sum(s * d)) * s
        slope, t = np.sum(g * q), 1.0
        while both(u - t * q)[0] > energy - ARMIJO * t * slope and t >= 1e-3:
            t *= 0.5
        new, h = both(u - t * q)
        kept = [*kept, (-t * q, h - g)][-KEPT:]
        u, g, energy = u - t * q, h, new
        history.append([energy, slope, t])
    out = outputs(state)
    np.testing.assert_allclose(out["u"], u, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(out["g"], g[1:-1, 1:-1], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(out["history"], history, rtol=1e-7)


if __name__ == "__main__":
    main(globals())
