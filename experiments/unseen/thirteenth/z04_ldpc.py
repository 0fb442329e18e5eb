"""Decoding a low-density parity-check code: messages between bits and checks, by scaled min-sum.

Each bit is in three checks, each check has six bits; messages are on the edges, which are stored by
bits, and checks, not far from their bits, reach theirs through a list. Rounds end when all checks
hold. Single precision.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_200, "default": 48_000, "large": 400_000}
PER_BIT, PER_CHECK, DEVIATION, SCALE, MOST, SPREAD = 3, 6, 0.76, 0.75, 30, 20_000


@pk.workunit
def likelihood(b: int, llr: pk.View1D[pk.float], y: pk.View1D[pk.float], variance: float):
    llr[b] = 2.0 * y[b] / variance


@pk.workunit
def silence(e: int, c2b: pk.View1D[pk.float]):
    c2b[e] = 0.0


@pk.workunit
def belief(b: int, total: pk.View1D[pk.float], llr: pk.View1D[pk.float], c2b: pk.View1D[pk.float]):
    total[b] = llr[b] + c2b[3 * b] + c2b[3 * b + 1] + c2b[3 * b + 2]


@pk.workunit
def decide(b: int, bit: pk.View1D[pk.int8], total: pk.View1D[pk.float]):
    if total[b] < 0.0:
        bit[b] = 1
    else:
        bit[b] = 0


@pk.workunit
def fails(
    c: int,
    acc: pk.Acc[pk.int64],
    bit: pk.View1D[pk.int8],
    edge: pk.View1D[pk.int32],
    per_check: int,
    per_bit: int,
):
    parity: int = 0
    for k in range(per_check):
        parity += bit[edge[per_check * c + k] // per_bit]
    acc += parity % 2


@pk.workunit
def to_checks(
    e: int,
    b2c: pk.View1D[pk.float],
    total: pk.View1D[pk.float],
    c2b: pk.View1D[pk.float],
    per_bit: int,
):
    b2c[e] = total[e // per_bit] - c2b[e]


@pk.workunit
def weakest(
    c: int,
    least: pk.View1D[pk.float],
    second: pk.View1D[pk.float],
    which: pk.View1D[pk.int32],
    b2c: pk.View1D[pk.float],
    edge: pk.View1D[pk.int32],
    per_check: int,
):
    low: float = 1.0e30
    next: float = 1.0e30
    place: int = -1
    for k in range(per_check):
        e: int = edge[per_check * c + k]
        size: float = abs(b2c[e])
        if size < low:
            next = low
            low = size
            place = e
        elif size < next:
            next = size
    least[c] = low
    second[c] = next
    which[c] = place


@pk.workunit
def signs(
    c: int,
    sign: pk.View1D[pk.int32],
    b2c: pk.View1D[pk.float],
    edge: pk.View1D[pk.int32],
    per_check: int,
):
    s: int = 1
    for k in range(per_check):
        if b2c[edge[per_check * c + k]] < 0.0:
            s = -s
    sign[c] = s


@pk.workunit
def to_bits(
    e: int,
    c2b: pk.View1D[pk.float],
    b2c: pk.View1D[pk.float],
    least: pk.View1D[pk.float],
    second: pk.View1D[pk.float],
    which: pk.View1D[pk.int32],
    sign: pk.View1D[pk.int32],
    check_of: pk.View1D[pk.int32],
    scale: float,
):
    c: int = check_of[e]
    size: float = least[c]
    if which[c] == e:
        size = second[c]
    if b2c[e] < 0.0:
        size = -size
    c2b[e] = scale * sign[c] * size


@pk.workunit
def wrong(b: int, acc: pk.Acc[pk.int64], bit: pk.View1D[pk.int8]):
    """The word that was sent is all zeros."""
    acc += bit[b]


@pk.workunit
def certainty(b: int, acc: pk.Acc[pk.double], total: pk.View1D[pk.float]):
    acc += abs(total[b])


@dataclass
class State:
    """What was received, the code's edges; beliefs, rounds, failing checks, errors of each word."""

    n: int
    words: int
    received: pk.View
    edge: pk.View
    check_of: pk.View
    beliefs: list = field(default_factory=list)
    rounds: list = field(default_factory=list)
    failing: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    certainties: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1304)
    words, edges = 8 if n <= 2_000 else 2 if n <= 100_000 else 1, PER_BIT * n
    received = pk.View([words, n], pk.float)
    edge, check_of = pk.View([edges], pk.int32), pk.View([edges], pk.int32)
    received.data[:] = 1.0 + rng.normal(0.0, DEVIATION, (words, n))
    order = np.argsort(np.arange(edges) + rng.uniform(0.0, SPREAD, edges))
    edge.data[:] = order
    check_of.data[order] = np.arange(edges) // PER_CHECK
    return State(n, words, received, edge, check_of)


def run(state: State) -> None:
    n, edge, check_of = state.n, state.edge, state.check_of
    edges, checks = PER_BIT * n, PER_BIT * n // PER_CHECK
    llr, c2b, b2c = pk.View([n], pk.float), pk.View([edges], pk.float), pk.View([edges], pk.float)
    least, second = pk.View([checks], pk.float), pk.View([checks], pk.float)
    which, sign = pk.View([checks], pk.int32), pk.View([checks], pk.int32)
    bit = pk.View([n], pk.int8)
    state.beliefs, state.rounds, state.failing = [], [], []
    state.errors, state.certainties = [], []
    for word in range(state.words):
        total = pk.View([n], pk.float)
        y = state.received[word, :]
        pk.parallel_for(n, likelihood, llr=llr, y=y, variance=DEVIATION**2)
        pk.parallel_for(edges, silence, c2b=c2b)
        rounds = 0
        while True:
            pk.parallel_for(n, belief, total=total, llr=llr, c2b=c2b)
            pk.parallel_for(n, decide, bit=bit, total=total)
            failing = int(
                pk.parallel_reduce(
                    checks, fails, bit=bit, edge=edge, per_check=PER_CHECK, per_bit=PER_BIT
                )
            )
            state.failing.append(failing)
            if failing == 0 or rounds == MOST:
                break
            rounds += 1
            pk.parallel_for(edges, to_checks, b2c=b2c, total=total, c2b=c2b, per_bit=PER_BIT)
            pk.parallel_for(
                checks,
                weakest,
                least=least,
                second=second,
                which=which,
                b2c=b2c,
                edge=edge,
                per_check=PER_CHECK,
            )
            pk.parallel_for(checks, signs, sign=sign, b2c=b2c, edge=edge, per_check=PER_CHECK)
            pk.parallel_for(
                edges,
                to_bits,
                c2b=c2b,
                b2c=b2c,
                least=least,
                second=second,
                which=which,
                sign=sign,
                check_of=check_of,
                scale=SCALE,
            )
        state.beliefs.append(total)
        state.rounds.append(rounds)
        state.errors.append(int(pk.parallel_reduce(n, wrong, bit=bit)))
        state.certainties.append(float(pk.parallel_reduce(n, certainty, total=total)) / n)


def outputs(state: State) -> dict:
    return {
        "beliefs": np.array([view.data for view in state.beliefs]),
        "rounds": np.array(state.rounds),
        "failing": np.array(state.failing),
        "errors": np.array(state.errors),
        "certainties": np.array(state.certainties),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    edge = np.array(fresh.edge.data).reshape(-1, PER_CHECK)
    beliefs, rounds, failing = [], [], []
    for y in np.array(fresh.received.data):
        llr = (2.0 * y.astype(np.float64) / DEVIATION**2).astype(np.float32)
        c2b = np.zeros(PER_BIT * n, np.float32)
        for step in range(MOST + 1):
            m = c2b.reshape(-1, PER_BIT)
            total = llr + m[:, 0] + m[:, 1] + m[:, 2]
            bad = int(((total < 0)[edge // PER_BIT].sum(1) % 2).sum())
            failing.append(bad)
            if bad == 0 or step == MOST:
                break
            b2c = np.repeat(total, PER_BIT) - c2b
            q = b2c[edge]
            size = np.abs(q)
            two = np.sort(size, axis=1)[:, :2]
            first = np.argmin(size, axis=1)[:, None] == np.arange(PER_CHECK)
            sign = np.where(q < 0, -1.0, 1.0)
            c2b[edge] = (
                SCALE * sign.prod(1)[:, None] * sign * np.where(first, two[:, 1:], two[:, :1])
            )
        beliefs.append(total)
        rounds.append(step)
    out = outputs(state)
    assert list(out["rounds"]) == rounds and list(out["failing"]) == failing
    np.testing.assert_allclose(out["beliefs"], beliefs, rtol=1e-6)


if __name__ == "__main__":
    main(globals())
