# ruff: noqa: E501
"""A yield curve (Nelson, Siegel and Svensson) fitted to bond prices by a swarm of particles.

Each particle has six parameters. A step prices all bonds with every particle's curve, adds a penalty
for parameters without sense, keeps each particle's best, and the host looks for the best of all.
Velocities get random numbers from counters; walls reflect. The inertia falls over time.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main
from peers.z03_numpy import solve

SIZES = {"small": 120, "default": 5_000, "large": 40_000}
BONDS, MASK, OWN, COMMON = 24, (1 << 32) - 1, 1.6, 1.5


@pk.workunit
def bits(i: int, j: int, h: pk.View2D[pk.int64], counter: pk.int64, mask: pk.int64):
    x: pk.int64 = i
    x = (x * 747796405 + j * 40503 + counter) & mask
    x = x ^ (x >> 16)
    x = (x * 2146121005) & mask
    x = x ^ (x >> 15)
    x = (x * 1845390219) & mask
    h[i][j] = x ^ (x >> 16)


@pk.workunit
def uniform(i: int, j: int, r: pk.View2D[pk.double], h: pk.View2D[pk.int64]):
    r[i][j] = (h[i][j] + 0.5) * 2.3283064365386963e-10


@pk.workunit
def scatter_particles(
    i: int,
    j: int,
    x: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    r: pk.View2D[pk.double],
    low: pk.View1D[pk.double],
    high: pk.View1D[pk.double],
):
    x[i][j] = low[j] + r[i][j] * (high[j] - low[j])
    v[i][j] = 0.0


@pk.workunit
def unknown(i: int, best: pk.View1D[pk.double]):
    best[i] = 1.0e300


@pk.workunit
def discount(
    i: int,
    b: int,
    price: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    time: pk.View1D[pk.double],
):
    t: float = time[b]
    a1: float = t / x[i][4]
    a2: float = t / x[i][5]
    e1: float = pk.exp(-a1)
    e2: float = pk.exp(-a2)
    f1: float = (1.0 - e1) / a1
    f2: float = (1.0 - e2) / a2
    y: float = x[i][0] + x[i][1] * f1 + x[i][2] * (f1 - e1) + x[i][3] * (f2 - e2)
    price[i][b] = pk.exp(-y * t)


@pk.workunit
def misfit(
    i: int,
    cost: pk.View1D[pk.double],
    price: pk.View2D[pk.double],
    market: pk.View1D[pk.double],
    weight: pk.View1D[pk.double],
    bonds: int,
):
    s: float = 0.0
    for b in range(bonds):
        d: float = price[i][b] - market[b]
        s += weight[b] * d * d
    cost[i] = s


@pk.workunit
def penalise(i: int, cost: pk.View1D[pk.double], x: pk.View2D[pk.double]):
    """The short rate is not negative, and the second hump comes later than the first."""
    short: float = x[i][0] + x[i][1]
    if short < 0.0:
        cost[i] += 10.0 * short * short
    if x[i][5] < x[i][4]:
        cost[i] += 0.01 * (x[i][4] - x[i][5])


@pk.workunit
def mark_better(
    i: int,
    better: pk.View1D[pk.int32],
    best: pk.View1D[pk.double],
    cost: pk.View1D[pk.double],
):
    better[i] = 0
    if cost[i] < best[i]:
        better[i] = 1
        best[i] = cost[i]


@pk.workunit
def keep_place(
    i: int,
    j: int,
    place: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    better: pk.View1D[pk.int32],
):
    if better[i] == 1:
        place[i][j] = x[i][j]


@pk.workunit
def improved(i: int, acc: pk.Acc[pk.int64], better: pk.View1D[pk.int32]):
    acc += better[i]


@pk.workunit
def accelerate(
    i: int,
    j: int,
    v: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    place: pk.View2D[pk.double],
    r: pk.View2D[pk.double],
    s: pk.View2D[pk.double],
    leader: int,
    inertia: float,
    own: float,
    common: float,
):
    pull: float = own * r[i][j] * (place[i][j] - x[i][j])
    v[i][j] = inertia * v[i][j] + pull + common * s[i][j] * (place[leader][j] - x[i][j])


@pk.workunit
def limit_speed(
    i: int,
    j: int,
    v: pk.View2D[pk.double],
    low: pk.View1D[pk.double],
    high: pk.View1D[pk.double],
):
    most: float = 0.2 * (high[j] - low[j])
    v[i][j] = max(-most, min(most, v[i][j]))


@pk.workunit
def move(i: int, j: int, x: pk.View2D[pk.double], v: pk.View2D[pk.double]):
    x[i][j] += v[i][j]


@pk.workunit
def reflect(
    i: int,
    j: int,
    x: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    low: pk.View1D[pk.double],
    high: pk.View1D[pk.double],
):
    if x[i][j] < low[j]:
        x[i][j] = 2.0 * low[j] - x[i][j]
        v[i][j] = -v[i][j]
    elif x[i][j] > high[j]:
        x[i][j] = 2.0 * high[j] - x[i][j]
        v[i][j] = -v[i][j]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], cost: pk.View1D[pk.double]):
    acc += cost[i]


@dataclass
class State:
    """The market; the swarm and its best; the leaders' costs, mean costs and how many improved."""

    n: int
    steps: int
    time: pk.View
    market: pk.View
    weight: pk.View
    low: pk.View
    high: pk.View
    x: pk.View
    best: pk.View
    leaders: list = field(default_factory=list)
    means: list = field(default_factory=list)
    improvements: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1303)
    time, market, weight = (pk.View([BONDS], pk.double) for _ in range(3))
    low, high, best = pk.View([6], pk.double), pk.View([6], pk.double), pk.View([n], pk.double)
    t = np.linspace(0.25, 30.0, BONDS)
    a, b = t / 1.7, t / 6.5
    hump = (1.0 - np.exp(-a)) / a
    curve = 0.041 - 0.018 * hump - 0.021 * (hump - np.exp(-a))
    curve += 0.016 * ((1.0 - np.exp(-b)) / b - np.exp(-b))
    time.data[:] = t
    market.data[:] = np.exp(-curve * t) * (1.0 + rng.normal(0.0, 2e-4, BONDS))
    weight.data[:] = 1.0 / t
    low.data[:] = [0.0, -0.1, -0.1, -0.1, 0.3, 0.5]
    high.data[:] = [0.1, 0.1, 0.1, 0.1, 5.0, 15.0]
    steps = 40 if n <= 500 else 20 if n <= 10_000 else 8
    return State(n, steps, time, market, weight, low, high, pk.View([n, 6], pk.double), best)


def run(state: State) -> None:
    n, x, best = state.n, state.x, state.best
    every, prices = pk.MDRangePolicy([0, 0], [n, 6]), pk.MDRangePolicy([0, 0], [n, BONDS])
    walls = {"low": state.low, "high": state.high}
    v, place, r, s = (pk.View([n, 6], pk.double) for _ in range(4))
    h, price = pk.View([n, 6], pk.int64), pk.View([n, BONDS], pk.double)
    cost, better = pk.View([n], pk.double), pk.View([n], pk.int32)
    state.leaders, state.means, state.improvements = [], [], []
    pk.parallel_for(every, bits, h=h, counter=977, mask=MASK)
    pk.parallel_for(every, uniform, r=r, h=h)
    pk.parallel_for(every, scatter_particles, x=x, v=v, r=r, **walls)
    pk.parallel_for(n, unknown, best=best)
    for step in range(state.steps):
        pk.parallel_for(prices, discount, price=price, x=x, time=state.time)
        pk.parallel_for(
            n, misfit, cost=cost, price=price, market=state.market, weight=state.weight, bonds=BONDS
        )
        pk.parallel_for(n, penalise, cost=cost, x=x)
        pk.parallel_for(n, mark_better, better=better, best=best, cost=cost)
        pk.parallel_for(every, keep_place, place=place, x=x, better=better)
        state.improvements.append(int(pk.parallel_reduce(n, improved, better=better)))
        state.means.append(float(pk.parallel_reduce(n, total, cost=cost)) / n)
        leader = int(np.argmin(best.data))
        state.leaders.append(float(best.data[leader]))
        for numbers, stream in ((r, 1), (s, 2)):
            pk.parallel_for(every, bits, h=h, counter=977 + 7919 * (2 * step + stream), mask=MASK)
            pk.parallel_for(every, uniform, r=numbers, h=h)
        pk.parallel_for(
            every,
            accelerate,
            v=v,
            x=x,
            place=place,
            r=r,
            s=s,
            leader=leader,
            inertia=0.9 - 0.5 * step / state.steps,
            own=OWN,
            common=COMMON,
        )
        pk.parallel_for(every, limit_speed, v=v, **walls)
        pk.parallel_for(every, move, x=x, v=v)
        pk.parallel_for(every, reflect, x=x, v=v, **walls)


def outputs(state: State) -> dict:
    return {
        "x": np.array(state.x.data),
        "best": np.array(state.best.data),
        "leaders": np.array(state.leaders),
        "means": np.array(state.means),
        "improvements": np.array(state.improvements),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    inputs = (fresh.time, fresh.market, fresh.weight, fresh.low, fresh.high)
    expected = solve(n, fresh.steps, *(np.array(view.data) for view in inputs))
    for name, value in outputs(state).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    main(globals())
