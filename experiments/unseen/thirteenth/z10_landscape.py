# ruff: noqa: E501, SIM102
"""Mountains and rivers: uplift, erosion by streams, creep of slopes, on a grid that drains at its rim.

A step finds for each cell the lowest of its eight neighbours and the slope to it, lets drainage
areas flow on a few times (each cell asks which neighbours drain to it), erodes by the stream-power
law but not below the receiver, smooths by diffusion limited to gentle slopes, and lifts what is not
rim. Relief and sediment are kept for each step.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main
from peers.z10_numpy import solve

SIZES = {"small": 48, "default": 220, "large": 1_000}
SPACING, DT, ERODIBILITY, CREEP, STEEP, WET = 100.0, 400.0, 2e-5, 0.3, 0.6, 1.0


@pk.workunit
def restore(i: int, j: int, h: pk.View2D[pk.double], h0: pk.View2D[pk.double]):
    h[i][j] = h0[i][j]


@pk.workunit
def start_area(i: int, j: int, area: pk.View2D[pk.double], rain: pk.View2D[pk.double]):
    area[i][j] = rain[i][j]


@pk.workunit
def receivers(
    i: int,
    j: int,
    receiver: pk.View2D[pk.int8],
    slope: pk.View2D[pk.double],
    h: pk.View2D[pk.double],
    n: int,
    spacing: float,
):
    """0 to 8 are the places of a 3 x 3 block; 4 is the cell itself, a pit."""
    steepest: float = 0.0
    which: int = 4
    for k in range(9):
        a: int = max(0, min(n - 1, i + k // 3 - 1))
        b: int = max(0, min(n - 1, j + k % 3 - 1))
        length: float = spacing
        if k % 2 == 0:
            length = 1.4142135623730951 * spacing
        s: float = (h[i][j] - h[a][b]) / length
        if s > steepest:
            steepest = s
            which = k
    receiver[i][j] = which
    slope[i][j] = steepest


@pk.workunit
def drain(
    i: int,
    j: int,
    out: pk.View2D[pk.double],
    area: pk.View2D[pk.double],
    receiver: pk.View2D[pk.int8],
    rain: pk.View2D[pk.double],
    n: int,
):
    total: float = rain[i][j]
    for k in range(9):
        a: int = i + k // 3 - 1
        b: int = j + k % 3 - 1
        if k != 4 and a >= 0 and a < n and b >= 0 and b < n:
            if receiver[a][b] == 8 - k:
                total += area[a][b]
    out[i][j] = total


@pk.workunit
def stream_power(
    i: int,
    j: int,
    cut: pk.View2D[pk.double],
    area: pk.View2D[pk.double],
    slope: pk.View2D[pk.double],
    erodibility: float,
    dt: float,
):
    cut[i][j] = dt * erodibility * pk.sqrt(area[i][j]) * slope[i][j]


@pk.workunit
def not_too_deep(
    i: int,
    j: int,
    cut: pk.View2D[pk.double],
    h: pk.View2D[pk.double],
    receiver: pk.View2D[pk.int8],
):
    """The receiver's place depends on the data."""
    k: int = receiver[i][j]
    if k != 4:
        drop: float = h[i][j] - h[i + k // 3 - 1][j + k % 3 - 1]
        cut[i][j] = min(cut[i][j], 0.5 * drop)


@pk.workunit
def creep(
    i: int,
    j: int,
    move: pk.View2D[pk.double],
    h: pk.View2D[pk.double],
    slope: pk.View2D[pk.double],
    n: int,
    rate: float,
    steep: float,
):
    move[i][j] = 0.0
    if slope[i][j] < steep:
        up: int = max(i - 1, 0)
        down: int = min(i + 1, n - 1)
        left: int = max(j - 1, 0)
        right: int = min(j + 1, n - 1)
        around: float = h[up][j] + h[down][j] + h[i][left] + h[i][right]
        move[i][j] = rate * (around - 4.0 * h[i][j])


@pk.workunit
def uplift(
    i: int,
    j: int,
    h: pk.View2D[pk.double],
    lift: pk.View2D[pk.double],
    cut: pk.View2D[pk.double],
    move: pk.View2D[pk.double],
    dt: float,
):
    h[i][j] += dt * lift[i][j] + move[i][j] - cut[i][j]


@pk.workunit
def hold_rim(i: int, j: int, h: pk.View2D[pk.double], n: int):
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        h[i][j] = 0.0


@pk.workunit
def whole(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double]):
    acc += x[i][j]


@pk.workunit
def pits(i: int, j: int, acc: pk.Acc[pk.int64], receiver: pk.View2D[pk.int8], n: int):
    if receiver[i][j] == 4 and i > 0 and j > 0 and i < n - 1 and j < n - 1:
        acc += 1


@dataclass
class State:
    """First heights, uplift, rain; heights, receivers, areas; sums of each step."""

    n: int
    steps: int
    h0: pk.View
    lift: pk.View
    rain: pk.View
    h: pk.View
    receiver: pk.View
    area: pk.View
    sediment: list = field(default_factory=list)
    relief: list = field(default_factory=list)
    pits: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1310)
    h0, lift, rain, h, area = (pk.View([n, n], pk.double) for _ in range(5))
    receiver = pk.View([n, n], pk.int8)
    y, x = np.mgrid[0:n, 0:n] / (n - 1.0)
    h0.data[:] = 300.0 * x * (1.0 - x) * y * (1.0 - y) * (1.0 + 0.3 * np.sin(9.0 * x + 5.0 * y))
    h0.data[:] += 3.0 * rng.random((n, n))
    lift.data[:] = 1e-3 * (0.5 + x * y)
    rain.data[:] = SPACING**2 * WET * (0.7 + 0.6 * x)
    for edge in (h0.data, lift.data):
        edge[0] = edge[-1] = 0.0
        edge[:, 0] = edge[:, -1] = 0.0
    return State(n, 40 if n <= 60 else 12 if n <= 300 else 3, h0, lift, rain, h, receiver, area)


def run(state: State) -> None:
    n, h, receiver, area, rain = state.n, state.h, state.receiver, state.area, state.rain
    every = pk.MDRangePolicy([0, 0], [n, n])
    slope, cut, move, flow = (pk.View([n, n], pk.double) for _ in range(4))
    state.sediment, state.relief, state.pits = [], [], []
    pk.parallel_for(every, restore, h=h, h0=state.h0)
    pk.parallel_for(every, start_area, area=area, rain=rain)
    for _ in range(state.steps):
        pk.parallel_for(every, receivers, receiver=receiver, slope=slope, h=h, n=n, spacing=SPACING)
        for _ in range(2):
            pk.parallel_for(every, drain, out=flow, area=area, receiver=receiver, rain=rain, n=n)
            pk.parallel_for(every, drain, out=area, area=flow, receiver=receiver, rain=rain, n=n)
        pk.parallel_for(
            every, stream_power, cut=cut, area=area, slope=slope, erodibility=ERODIBILITY, dt=DT
        )
        pk.parallel_for(every, not_too_deep, cut=cut, h=h, receiver=receiver)
        pk.parallel_for(
            every,
            creep,
            move=move,
            h=h,
            slope=slope,
            n=n,
            rate=DT * CREEP / SPACING**2,
            steep=STEEP,
        )
        pk.parallel_for(every, uplift, h=h, lift=state.lift, cut=cut, move=move, dt=DT)
        pk.parallel_for(every, hold_rim, h=h, n=n)
        state.sediment.append(pk.parallel_reduce(every, whole, x=cut))
        state.relief.append(pk.parallel_reduce(every, whole, x=h))
        state.pits.append(pk.parallel_reduce(every, pits, receiver=receiver, n=n))


def outputs(state: State) -> dict:
    return {
        "h": np.array(state.h.data),
        "area": np.array(state.area.data),
        "receiver": np.array(state.receiver.data),
        "sediment": np.array([float(x) for x in state.sediment]),
        "relief": np.array([float(x) for x in state.relief]),
        "pits": np.array([int(x) for x in state.pits]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    inputs = (np.array(v.data) for v in (fresh.h0, fresh.lift, fresh.rain))
    expected = solve(n, fresh.steps, *inputs)
    for name, value in outputs(state).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    main(globals())
