"""Traffic on a motorway: the cell transmission model of Lighthill, Whitham and Richards.

Each cell has a density of cars, a speed limit and a ramp. A step finds speeds and flows, what each
cell sends and what the next one takes, moves the cars, and sums what time and fuel drivers lose.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 120_000, "large": 2_500_000}
JAM, RATIO = 1.0, 0.45


@pk.workunit
def restore(i: int, rho: pk.View1D[pk.double], rho0: pk.View1D[pk.double]) -> None:
    rho[i] = rho0[i]


@pk.workunit
def speed(
    i: int,
    v: pk.View1D[pk.double],
    rho: pk.View1D[pk.double],
    limit: pk.View1D[pk.double],
    jam: float,
) -> None:
    v[i] = limit[i] * (1.0 - rho[i] / jam)


@pk.workunit
def flow(
    i: int, q: pk.View1D[pk.double], rho: pk.View1D[pk.double], v: pk.View1D[pk.double]
) -> None:
    q[i] = rho[i] * v[i]


@pk.workunit
def capacity(i: int, c: pk.View1D[pk.double], limit: pk.View1D[pk.double], jam: float) -> None:
    c[i] = 0.25 * limit[i] * jam


@pk.workunit
def sending(
    i: int,
    s: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    rho: pk.View1D[pk.double],
    jam: float,
) -> None:
    if rho[i] < 0.5 * jam:
        s[i] = q[i]
    else:
        s[i] = c[i]


@pk.workunit
def receiving(
    i: int,
    r: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    rho: pk.View1D[pk.double],
    jam: float,
) -> None:
    if rho[i] < 0.5 * jam:
        r[i] = c[i]
    else:
        r[i] = q[i]


@pk.workunit
def face_flow(
    i: int, f: pk.View1D[pk.double], s: pk.View1D[pk.double], r: pk.View1D[pk.double]
) -> None:
    """What passes from cell i - 1 to cell i."""
    f[i] = min(s[i - 1], r[i])


@pk.workunit
def entrance(k: int, f: pk.View1D[pk.double], r: pk.View1D[pk.double], inflow: float) -> None:
    f[k] = min(inflow, r[k])


@pk.workunit
def leave(k: int, f: pk.View1D[pk.double], s: pk.View1D[pk.double], n: int) -> None:
    f[n + k] = s[n - 1 + k]


@pk.workunit
def move(i: int, rho: pk.View1D[pk.double], f: pk.View1D[pk.double], ratio: float) -> None:
    rho[i] += ratio * (f[i] - f[i + 1])


@pk.workunit
def ramps(
    i: int, rho: pk.View1D[pk.double], ramp: pk.View1D[pk.double], ratio: float, jam: float
) -> None:
    rho[i] += ratio * ramp[i] * rho[i] * (1.0 - rho[i] / jam)


@pk.workunit
def lost_time(
    i: int,
    acc: pk.Acc[pk.double],
    rho: pk.View1D[pk.double],
    v: pk.View1D[pk.double],
    limit: pk.View1D[pk.double],
) -> None:
    acc += rho[i] * (1.0 - v[i] / limit[i])


@pk.workunit
def fuel(
    i: int, acc: pk.Acc[pk.double], rho: pk.View1D[pk.double], v: pk.View1D[pk.double]
) -> None:
    acc += rho[i] * (0.2 + 0.3 * v[i] * v[i])


@dataclass
class State:
    """The first densities, limits and ramps; the densities; what was lost in each step."""

    n: int
    steps: int
    rho0: pk.View
    limit: pk.View
    ramp: pk.View
    rho: pk.View
    delay: list = field(default_factory=list)
    burnt: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(101)
    rho0, limit, ramp, rho = (pk.View([n], pk.double) for _ in range(4))
    rho0.data[:] = 0.45 + 0.3 * np.sin(np.arange(n) * 0.02) + rng.uniform(-0.1, 0.1, n)
    limit.data[:] = np.repeat(rng.choice([0.6, 0.8, 1.0], n // 50 + 1), 50)[:n]
    ramp.data[:] = np.where(rng.random(n) < 0.05, rng.uniform(-0.2, 0.2, n), 0.0)
    return State(n, 25 if n <= 5_000 else 8, rho0, limit, ramp, rho)


def run(state: State) -> None:
    n, rho, limit = state.n, state.rho, state.limit
    v, q, c, s, r = (pk.View([n], pk.double) for _ in range(5))
    f = pk.View([n + 1], pk.double)
    state.delay, state.burnt = [], []
    pk.parallel_for(n, restore, rho=rho, rho0=state.rho0)
    for step in range(state.steps):
        inflow = 0.1 + 0.01 * (step % 5)
        pk.parallel_for(n, speed, v=v, rho=rho, limit=limit, jam=JAM)
        pk.parallel_for(n, flow, q=q, rho=rho, v=v)
        pk.parallel_for(n, capacity, c=c, limit=limit, jam=JAM)
        pk.parallel_for(n, sending, s=s, q=q, c=c, rho=rho, jam=JAM)
        pk.parallel_for(n, receiving, r=r, q=q, c=c, rho=rho, jam=JAM)
        pk.parallel_for(pk.RangePolicy(1, n), face_flow, f=f, s=s, r=r)
        pk.parallel_for(1, entrance, f=f, r=r, inflow=inflow)
        pk.parallel_for(1, leave, f=f, s=s, n=n)
        state.delay.append(pk.parallel_reduce(n, lost_time, rho=rho, v=v, limit=limit))
        state.burnt.append(pk.parallel_reduce(n, fuel, rho=rho, v=v))
        pk.parallel_for(n, move, rho=rho, f=f, ratio=RATIO)
        pk.parallel_for(n, ramps, rho=rho, ramp=state.ramp, ratio=RATIO, jam=JAM)


def outputs(state: State) -> dict:
    return {
        "rho": np.array(state.rho.data),
        "delay": np.array([float(x) for x in state.delay]),
        "burnt": np.array([float(x) for x in state.burnt]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    rho, limit, ramp = (np.array(x.data) for x in (fresh.rho0, fresh.limit, fresh.ramp))
    delay, burnt = [], []
    for step in range(fresh.steps):
        v = limit * (1.0 - rho / JAM)
        q, c = rho * v, 0.25 * limit * JAM
        free = rho < 0.5 * JAM
        s, r = np.where(free, q, c), np.where(free, c, q)
        inflow = 0.1 + 0.01 * (step % 5)
        f = np.concatenate([[min(inflow, r[0])], np.minimum(s[:-1], r[1:]), [s[-1]]])
        delay.append(np.sum(rho * (1.0 - v / limit)))
        burnt.append(np.sum(rho * (0.2 + 0.3 * v * v)))
        rho = rho + RATIO * (f[:-1] - f[1:])
        rho = rho + RATIO * ramp * rho * (1.0 - rho / JAM)
    out = outputs(state)
    np.testing.assert_allclose(out["rho"], rho, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(out["delay"], delay, rtol=1e-10)
    np.testing.assert_allclose(out["burnt"], burnt, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
