"""Cars and lorries on a ring road: Nagel and Schreckenberg's automaton, slow starts, detectors."""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 50_000, "large": 4_000_000}
STEPS, SECTIONS = 5, 100


@pk.workunit
def place(
    i: int,
    x: pk.View1D[pk.int32],
    v: pk.View1D[pk.int32],
    x0: pk.View1D[pk.int32],
    v0: pk.View1D[pk.int32],
):
    x[i] = x0[i]
    v[i] = v0[i]


@pk.workunit
def headway(i: int, gap: pk.View1D[pk.int32], x: pk.View1D[pk.int32], n: int, cells: int):
    ahead: int = i + 1
    if ahead == n:
        ahead = 0
    d: int = x[ahead] - x[i] - 1
    if d < 0:
        d += cells
    gap[i] = d


@pk.workunit
def dice(i: int, roll: pk.View1D[pk.uint32], seed: pk.uint32):
    h: pk.uint32 = i + seed
    h = (h ^ (h >> 16)) * 2146121005
    h = (h ^ (h >> 15)) * 2221713035
    roll[i] = (h ^ (h >> 16)) % 1000


@pk.workunit
def patience(
    i: int, odds: pk.View1D[pk.uint32], v: pk.View1D[pk.int32], normal: int, starting: int
):
    if v[i] == 0:
        odds[i] = starting
    else:
        odds[i] = normal


@pk.workunit
def accelerate(i: int, v: pk.View1D[pk.int32], lorry: pk.View1D[pk.uint8]):
    limit: int = 5
    if lorry[i] == 1:
        limit = 3
    if v[i] < limit:
        v[i] += 1


@pk.workunit
def brake(i: int, v: pk.View1D[pk.int32], gap: pk.View1D[pk.int32]):
    v[i] = min(v[i], gap[i])


@pk.workunit
def dawdle(i: int, v: pk.View1D[pk.int32], roll: pk.View1D[pk.uint32], odds: pk.View1D[pk.uint32]):
    if v[i] > 0 and roll[i] < odds[i]:
        v[i] -= 1


@pk.workunit
def drive(i: int, x: pk.View1D[pk.int32], v: pk.View1D[pk.int32], cells: int):
    x[i] += v[i]
    if x[i] >= cells:
        x[i] -= cells


@pk.workunit
def flow(i: int, acc: pk.Acc[pk.int64], v: pk.View1D[pk.int32]):
    acc += v[i]


@pk.workunit
def standing(i: int, acc: pk.Acc[pk.int64], v: pk.View1D[pk.int32]):
    if v[i] == 0:
        acc += 1


@pk.workunit
def open_detectors(k: int, count: pk.View1D[pk.int32]):
    count[k] = 0


@pk.workunit
def detect(i: int, count: pk.View1D[pk.int32], x: pk.View1D[pk.int32], length: int):
    pk.atomic_add(count, [x[i] // length], 1)


@dataclass
class State:
    n: int
    cells: int
    x0: pk.View
    v0: pk.View
    lorry: pk.View
    x: pk.View
    v: pk.View
    count: pk.View
    flows: list = field(default_factory=list)
    jams: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(214)
    x0, v0, x, v = (pk.View([n], pk.int32) for _ in range(4))
    lorry, count = pk.View([n], pk.uint8), pk.View([SECTIONS], pk.int32)
    x0.data[:] = np.cumsum(rng.geometric(0.15, n)) - 1
    cells = int(x0.data[-1]) + 7
    cells += -cells % SECTIONS
    v0.data[:] = rng.integers(0, 5, n)
    lorry.data[:] = rng.random(n) < 0.12
    return State(n, cells, x0, v0, lorry, x, v, count)


def run(s: State) -> None:
    n, x, v = s.n, s.x, s.v
    gap = pk.View([n], pk.int32)
    roll, odds = pk.View([n], pk.uint32), pk.View([n], pk.uint32)
    s.flows, s.jams = [], []
    pk.parallel_for(n, place, x=x, v=v, x0=s.x0, v0=s.v0)
    for step in range(STEPS):
        pk.parallel_for(n, headway, gap=gap, x=x, n=n, cells=s.cells)
        pk.parallel_for(n, dice, roll=roll, seed=104729 * (step + 1))
        pk.parallel_for(n, patience, odds=odds, v=v, normal=150, starting=450)
        pk.parallel_for(n, accelerate, v=v, lorry=s.lorry)
        pk.parallel_for(n, brake, v=v, gap=gap)
        pk.parallel_for(n, dawdle, v=v, roll=roll, odds=odds)
        pk.parallel_for(n, drive, x=x, v=v, cells=s.cells)
        s.flows.append(pk.parallel_reduce(n, flow, v=v))
        s.jams.append(pk.parallel_reduce(n, standing, v=v))
    pk.parallel_for(SECTIONS, open_detectors, count=s.count)
    pk.parallel_for(n, detect, count=s.count, x=x, length=s.cells // SECTIONS)


def outputs(s: State) -> dict:
    views = {k: np.array(getattr(s, k).data) for k in ("x", "v", "count")}
    return {**views, "numbers": np.array([int(k) for k in s.flows + s.jams])}


def check(s: State, n: int) -> None:
    x, v, lorry = (np.array(q.data).astype(np.int64) for q in (s.x0, s.v0, s.lorry))
    for step in range(STEPS):
        gap = (np.roll(x, -1) - x - 1) % s.cells
        h = np.arange(n, dtype=np.uint32) + np.uint32(104729 * (step + 1))
        h = (h ^ (h >> np.uint32(16))) * np.uint32(2146121005)
        h = (h ^ (h >> np.uint32(15))) * np.uint32(2221713035)
        roll, odds = (h ^ (h >> np.uint32(16))) % np.uint32(1000), np.where(v == 0, 450, 150)
        v = np.minimum(np.minimum(v + 1, np.maximum(v, np.where(lorry == 1, 3, 5))), gap)
        v -= (v > 0) & (roll < odds)
        x = (x + v) % s.cells
        assert int(s.flows[step]) == v.sum() and int(s.jams[step]) == (v == 0).sum()
    np.testing.assert_array_equal(s.x.data, x)
    np.testing.assert_array_equal(s.v.data, v)
    sections = np.bincount(x // (s.cells // SECTIONS), minlength=SECTIONS)
    np.testing.assert_array_equal(s.count.data, sections)
    assert len(np.unique(x)) == n


if __name__ == "__main__":
    main(globals())
