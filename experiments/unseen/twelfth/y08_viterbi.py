"""Frames of a convolutional code, decoded by Viterbi's dynamic programme.

The code is that of rate 1/2 with 64 states. For each received pair of soft values a step finds the
costs of the four symbols, of both ways into each state, keeps the better and remembers which, and
subtracts each frame's least. Then the ways are followed back, and wrong bits counted.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 20, "default": 2_000, "large": 14_000}
LENGTH, STATES, GENERATORS = 36, 64, (0o133, 0o171)


@pk.workunit
def begin(b: int, s: int, metric: pk.View2D[pk.int32], far: int):
    if s == 0:
        metric[b][s] = 0
    else:
        metric[b][s] = far


@pk.workunit
def symbol_cost(b: int, y: int, cost: pk.View2D[pk.int32], received: pk.View3D[pk.int32], t: int):
    first: int = received[t][0][b]
    second: int = received[t][1][b]
    if y & 1:
        first = -first
    if y & 2:
        second = -second
    cost[b][y] = first + second


@pk.workunit
def way_into(
    b: int,
    s: int,
    out: pk.View2D[pk.int32],
    metric: pk.View2D[pk.int32],
    cost: pk.View2D[pk.int32],
    symbol: pk.View2D[pk.int32],
    way: int,
):
    out[b][s] = metric[b][((s & 31) << 1) | way] + cost[b][symbol[way][s]]


@pk.workunit
def decide(
    b: int,
    s: int,
    decision: pk.View3D[pk.uint8],
    zero: pk.View2D[pk.int32],
    one: pk.View2D[pk.int32],
    t: int,
):
    if one[b][s] < zero[b][s]:
        decision[t][b][s] = 1
    else:
        decision[t][b][s] = 0


@pk.workunit
def keep(
    b: int,
    s: int,
    metric: pk.View2D[pk.int32],
    zero: pk.View2D[pk.int32],
    one: pk.View2D[pk.int32],
):
    metric[b][s] = min(zero[b][s], one[b][s])


@pk.workunit
def least_of(b: int, least: pk.View1D[pk.int32], metric: pk.View2D[pk.int32], states: int):
    best: int = metric[b][0]
    for s in range(1, states):
        best = min(best, metric[b][s])
    least[b] = best


@pk.workunit
def lower(b: int, s: int, metric: pk.View2D[pk.int32], least: pk.View1D[pk.int32]):
    metric[b][s] -= least[b]


@pk.workunit
def gap(b: int, acc: pk.Acc[pk.int64], metric: pk.View2D[pk.int32], states: int):
    """How much worse the second best state is."""
    second: int = 1000000
    zeros: int = 0
    for s in range(states):
        if metric[b][s] == 0:
            zeros += 1
        else:
            second = min(second, metric[b][s])
    if zeros == 1:
        acc += second


@pk.workunit
def follow(b: int, bit: pk.View2D[pk.int32], decision: pk.View3D[pk.uint8], length: int):
    s: int = 0
    for k in range(length):
        t: int = length - 1 - k
        bit[b][t] = s >> 5
        s = ((s & 31) << 1) | decision[t][b][s]


@pk.workunit
def wrong_bits(
    b: int,
    wrong: pk.View1D[pk.int32],
    bit: pk.View2D[pk.int32],
    sent: pk.View2D[pk.int32],
    length: int,
):
    c: int = 0
    for t in range(length):
        if bit[b][t] != sent[b][t]:
            c += 1
    wrong[b] = c


@pk.workunit
def total(b: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.int32]):
    acc += x[b]


@pk.workunit
def frames_wrong(b: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.int32]):
    if x[b] > 0:
        acc += 1


@dataclass
class State:
    """What was received and sent; the code's symbols; metrics, bits, and the counts."""

    n: int
    length: int
    received: pk.View
    sent: pk.View
    symbol: pk.View
    metric: pk.View
    bit: pk.View
    counts: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(128)
    received, symbol = pk.View([LENGTH, 2, n], pk.int32), pk.View([2, STATES], pk.int32)
    sent, bit = pk.View([n, LENGTH], pk.int32), pk.View([n, LENGTH], pk.int32)
    metric = pk.View([n, STATES], pk.int32)

    def symbol_of(register):
        ones = [sum((register & g) >> k & 1 for k in range(7)) % 2 for g in GENERATORS]
        return ones[0] + 2 * ones[1]

    s = np.arange(STATES)
    for way in range(2):
        symbol.data[way] = symbol_of(((s >> 5) << 6) | ((s & 31) << 1) | way)
    sent.data[:, : LENGTH - 6] = rng.integers(0, 2, (n, LENGTH - 6))
    state = np.zeros(n, int)
    for t in range(LENGTH):
        register = (np.array(sent.data[:, t]).astype(int) << 6) | state
        y, state = symbol_of(register), register >> 1
        for k in range(2):
            clean = 20.0 * (2.0 * (y >> k & 1) - 1.0)
            received.data[t, k] = np.round(clean + rng.normal(0.0, 17.0, n))
    return State(n, LENGTH, received, sent, symbol, metric, bit)


def run(state: State) -> None:
    n, metric, symbol = state.n, state.metric, state.symbol
    trellis = pk.MDRangePolicy([0, 0], [n, STATES])
    zero, one = (pk.View([n, STATES], pk.int32) for _ in range(2))
    cost, least = pk.View([n, 4], pk.int32), pk.View([n], pk.int32)
    decision = pk.View([LENGTH, n, STATES], pk.uint8)
    pk.parallel_for(trellis, begin, metric=metric, far=10_000)
    for t in range(LENGTH):
        pk.parallel_for(
            pk.MDRangePolicy([0, 0], [n, 4]), symbol_cost, cost=cost, received=state.received, t=t
        )
        pk.parallel_for(trellis, way_into, out=zero, metric=metric, cost=cost, symbol=symbol, way=0)
        pk.parallel_for(trellis, way_into, out=one, metric=metric, cost=cost, symbol=symbol, way=1)
        pk.parallel_for(trellis, decide, decision=decision, zero=zero, one=one, t=t)
        pk.parallel_for(trellis, keep, metric=metric, zero=zero, one=one)
        pk.parallel_for(n, least_of, least=least, metric=metric, states=STATES)
        pk.parallel_for(trellis, lower, metric=metric, least=least)
    gaps = pk.parallel_reduce(n, gap, metric=metric, states=STATES)
    wrong = pk.View([n], pk.int32)
    pk.parallel_for(n, follow, bit=state.bit, decision=decision, length=LENGTH)
    pk.parallel_for(n, wrong_bits, wrong=wrong, bit=state.bit, sent=state.sent, length=LENGTH)
    bits = pk.parallel_reduce(n, total, x=wrong)
    frames = pk.parallel_reduce(n, frames_wrong, x=wrong)
    state.counts = [int(gaps), int(bits), int(frames)]


def outputs(state: State) -> dict:
    return {
        "metric": np.array(state.metric.data),
        "bit": np.array(state.bit.data),
        "counts": np.array(state.counts, dtype=np.float64),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    received, sent = np.array(fresh.received.data), np.array(fresh.sent.data)
    symbol = np.array(fresh.symbol.data)
    s = np.arange(STATES)
    metric = np.full((n, STATES), 10_000)
    metric[:, 0] = 0
    decisions = []
    for t in range(LENGTH):
        both = []
        for way in range(2):
            sign = 1 - 2 * np.array([symbol[way] & 1, symbol[way] >> 1])
            cost = received[t, 0][:, None] * sign[0] + received[t, 1][:, None] * sign[1]
            both.append(metric[:, ((s & 31) << 1) | way] + cost)
        decisions.append(both[1] < both[0])
        metric = np.minimum(*both)
        metric -= metric.min(axis=1, keepdims=True)
    at, bit = np.zeros(n, int), np.zeros((n, LENGTH), int)
    for t in range(LENGTH - 1, -1, -1):
        bit[:, t] = at >> 5
        at = ((at & 31) << 1) | decisions[t][np.arange(n), at]
    ordered = np.sort(metric, axis=1)
    wrong = np.sum(bit != sent, axis=1)
    out = outputs(state)
    np.testing.assert_array_equal(out["metric"], metric)
    np.testing.assert_array_equal(out["bit"], bit)
    np.testing.assert_array_equal(
        out["counts"], [ordered[:, 1].sum(), wrong.sum(), np.sum(wrong > 0)]
    )
    assert 0 <= wrong.sum() < 0.1 * wrong.size * LENGTH


if __name__ == "__main__":
    main(globals())
