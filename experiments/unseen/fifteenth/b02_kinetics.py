"""Chemical kinetics in many well-stirred cells: A + B -> C <-> D with heat, by Runge-Kutta 4.

Steps until the changes are small, or three of them.
"""

from dataclasses import dataclass
from math import exp

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 300, "default": 15_000, "large": 300_000}
DT, STEPS, TOLERANCE = 0.05, 3, 1e-5


@pk.workunit
def load(s: int, i: int, y: pk.View2D[pk.double], start: pk.View2D[pk.double]):
    y[s][i] = start[s][i]


@pk.workunit
def arrhenius(i: int, k: pk.View2D[pk.double], y: pk.View2D[pk.double]):
    beta: pk.double = 1.0 / y[4][i]
    k[0][i] = 40.0 * exp(-4.0 * beta)
    k[1][i] = 15.0 * exp(-3.0 * beta)
    k[2][i] = 25.0 * exp(-5.0 * beta)


@pk.workunit
def production(i: int, dy: pk.View2D[pk.double], y: pk.View2D[pk.double], k: pk.View2D[pk.double]):
    forward: pk.double = k[0][i] * y[0][i] * y[1][i]
    isomer: pk.double = k[1][i] * y[2][i] - k[2][i] * y[3][i]
    dy[0][i] = -forward
    dy[1][i] = -forward
    dy[2][i] = forward - isomer
    dy[3][i] = isomer
    dy[4][i] = 1.5 * forward + 0.3 * isomer


@pk.workunit
def heat_loss(i: int, dy: pk.View2D[pk.double], y: pk.View2D[pk.double]):
    t: pk.double = y[4][i]
    if t > 1.2:  # hot cells radiate
        dy[4][i] -= 0.1 * (t * t * t * t - 1.0)
    else:
        dy[4][i] -= 0.2 * (t - 1.0)


@pk.workunit
def stage(
    s: int,
    i: int,
    out: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    dy: pk.View2D[pk.double],
    a: float,
):
    out[s][i] = y[s][i] + a * dy[s][i]


@pk.workunit
def first_slope(s: int, i: int, total: pk.View2D[pk.double], dy: pk.View2D[pk.double]):
    total[s][i] = dy[s][i]


@pk.workunit
def add_slope(s: int, i: int, total: pk.View2D[pk.double], dy: pk.View2D[pk.double], w: float):
    total[s][i] += w * dy[s][i]


@pk.workunit
def advance(s: int, i: int, y: pk.View2D[pk.double], total: pk.View2D[pk.double], h: float):
    y[s][i] = max(y[s][i] + h * total[s][i], 0.0)


@pk.workunit
def change(s: int, i: int, acc: pk.Acc[pk.double], total: pk.View2D[pk.double], h: float):
    acc += (h * total[s][i]) * (h * total[s][i])


@pk.workunit
def burnt(i: int, acc: pk.Acc[pk.int64], y: pk.View2D[pk.double]):
    if y[4][i] > 1.5 and y[0][i] < 0.5:
        acc += 1


@dataclass
class State:
    n: int
    start: pk.View
    y: pk.View
    steps: int = 0
    burnt: int = 0
    change: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(202)
    start, y = pk.View([5, n], pk.double), pk.View([5, n], pk.double)
    start.data[:4] = rng.uniform(0.0, 1.5, (4, n))
    start.data[4] = rng.uniform(0.8, 1.7, n)
    return State(n, start, y)


def slopes(n, dy, y, k):
    pk.parallel_for(n, arrhenius, k=k, y=y)
    pk.parallel_for(n, production, dy=dy, y=y, k=k)
    pk.parallel_for(n, heat_loss, dy=dy, y=y)


def run(s: State) -> None:
    n, y = s.n, s.y
    table = pk.MDRangePolicy([0, 0], [5, n])
    dy, total, mid = (pk.View([5, n], pk.double) for _ in range(3))
    k = pk.View([3, n], pk.double)
    pk.parallel_for(table, load, y=y, start=s.start)
    for step in range(STEPS):
        slopes(n, dy, y, k)
        pk.parallel_for(table, first_slope, total=total, dy=dy)
        for a, w in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
            pk.parallel_for(table, stage, out=mid, y=y, dy=dy, a=a * DT)
            slopes(n, dy, mid, k)
            pk.parallel_for(table, add_slope, total=total, dy=dy, w=w)
        pk.parallel_for(table, advance, y=y, total=total, h=DT / 6)
        s.change = float(pk.parallel_reduce(table, change, total=total, h=DT / 6)) / n
        s.steps = step + 1
        if s.change < TOLERANCE:
            break
    s.burnt = int(pk.parallel_reduce(n, burnt, y=y))


def outputs(s: State) -> dict:
    return {"y": np.array(s.y.data), "numbers": np.array([s.steps, s.burnt, s.change])}


def check(s: State, n: int) -> None:
    def f(y):
        a, b, c, d, t = y
        r = 40 * np.exp(-4 / t) * a * b
        q = 15 * np.exp(-3 / t) * c - 25 * np.exp(-5 / t) * d
        loss = np.where(t > 1.2, 0.1 * (t**4 - 1), 0.2 * (t - 1))
        return np.array([-r, -r, r - q, q, 1.5 * r + 0.3 * q - loss])

    y = np.array(s.start.data)
    for _ in range(s.steps):
        k1 = f(y)
        k2 = f(y + DT / 2 * k1)
        k3 = f(y + DT / 2 * k2)
        k4 = f(y + DT * k3)
        y = np.maximum(y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4), 0)
    np.testing.assert_allclose(s.y.data, y, rtol=1e-11, atol=1e-13)
    assert s.burnt == ((y[4] > 1.5) & (y[0] < 0.5)).sum()


if __name__ == "__main__":
    main(globals())
