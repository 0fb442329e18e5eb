"""Colours for the nodes of a graph, by independent sets that Luby's method finds.

In a round each node without a colour draws a number from a generator of its own; those greater than
all of their uncoloured neighbours get the round's colour. Rounds go on until none is left.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 800, "default": 80_000, "large": 1_200_000}
MOST = 60


@pk.workunit
def uncoloured(i: int, colour: pk.View1D[pk.int32]):
    colour[i] = -1


@pk.workunit
def reseed(i: int, state: pk.View1D[pk.uint32], seed: pk.View1D[pk.uint32]):
    state[i] = seed[i]


@pk.workunit
def draw(i: int, state: pk.View1D[pk.uint32]):
    state[i] = state[i] * 1664525 + 1013904223


@pk.workunit
def priorities(
    i: int, priority: pk.View1D[pk.int32], state: pk.View1D[pk.uint32], colour: pk.View1D[pk.int32]
):
    """The upper bits; a coloured node has none."""
    if colour[i] < 0:
        priority[i] = state[i] >> 4
    else:
        priority[i] = -1


@pk.workunit
def greatest(
    i: int,
    wins: pk.View1D[pk.uint8],
    priority: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    column: pk.View1D[pk.int32],
):
    """Whether no neighbour has more; of equals the one with the lower number wins."""
    result: int = 1
    if priority[i] < 0:
        result = 0
    else:
        for e in range(row[i], row[i + 1]):
            other: int = column[e]
            if priority[other] > priority[i]:
                result = 0
            if priority[other] == priority[i] and other < i:
                result = 0
    wins[i] = result


@pk.workunit
def paint(i: int, colour: pk.View1D[pk.int32], wins: pk.View1D[pk.uint8], now: int):
    if wins[i] == 1:
        colour[i] = now


@pk.workunit
def painted(i: int, acc: pk.Acc[pk.int64], wins: pk.View1D[pk.uint8]):
    acc += wins[i]


@pk.workunit
def conflicts(
    i: int,
    acc: pk.Acc[pk.int64],
    colour: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    column: pk.View1D[pk.int32],
):
    for e in range(row[i], row[i + 1]):
        if colour[column[e]] == colour[i]:
            acc += 1


@dataclass
class State:
    """The graph, the seeds, the colours, how many got which; and edges between equal ones."""

    n: int
    row: pk.View
    column: pk.View
    seed: pk.View
    colour: pk.View
    sizes: list = field(default_factory=list)
    wrong: int = 0


def setup(n: int) -> State:
    """About six neighbours a node, most of them near."""
    rng = np.random.default_rng(110)
    a = rng.integers(0, n, 3 * n)
    b = (a + 1 + (n // 100 * rng.random(3 * n) ** 3).astype(int)) % n
    edges = np.unique(np.concatenate([a * n + b, b * n + a]))
    source, target = edges // n, edges % n
    row, column = pk.View([n + 1], pk.int32), pk.View([len(edges)], pk.int32)
    seed, colour = pk.View([n], pk.uint32), pk.View([n], pk.int32)
    row.data[1:] = np.cumsum(np.bincount(source, minlength=n))
    column.data[:] = target
    seed.data[:] = rng.integers(0, 2**32, n, dtype=np.uint32)
    return State(n, row, column, seed, colour)


def run(state: State) -> None:
    n, colour = state.n, state.colour
    random = pk.View([n], pk.uint32)
    priority, wins = pk.View([n], pk.int32), pk.View([n], pk.uint8)
    pk.parallel_for(n, uncoloured, colour=colour)
    pk.parallel_for(n, reseed, state=random, seed=state.seed)
    state.sizes, left = [], n
    while left > 0 and len(state.sizes) < MOST:
        pk.parallel_for(n, draw, state=random)
        pk.parallel_for(n, priorities, priority=priority, state=random, colour=colour)
        pk.parallel_for(
            n, greatest, wins=wins, priority=priority, row=state.row, column=state.column
        )
        pk.parallel_for(n, paint, colour=colour, wins=wins, now=len(state.sizes))
        number = int(pk.parallel_reduce(n, painted, wins=wins))
        state.sizes.append(number)
        left -= number
    state.wrong = int(
        pk.parallel_reduce(n, conflicts, colour=colour, row=state.row, column=state.column)
    )


def outputs(state: State) -> dict:
    return {
        "colour": np.array(state.colour.data),
        "sizes": np.array(state.sizes, dtype=float),
        "wrong": float(state.wrong),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    row, column, seed = (np.array(v.data) for v in (fresh.row, fresh.column, fresh.seed))
    source = np.repeat(np.arange(n), np.diff(row))
    colour, sizes = np.full(n, -1), []
    while (colour < 0).any():
        seed = seed * np.uint32(1664525) + np.uint32(1013904223)
        priority = np.where(
            colour < 0, (seed >> 4).astype(np.int64) * n + (n - 1 - np.arange(n)), -1
        )
        best = np.full(n, -1)
        np.maximum.at(best, source, priority[column])
        wins = (colour < 0) & (priority > best)
        colour[wins] = len(sizes)
        sizes.append(np.count_nonzero(wins))
    out = outputs(state)
    np.testing.assert_array_equal(out["colour"], colour)
    np.testing.assert_array_equal(out["sizes"], sizes)
    assert out["wrong"] == 0 and not (colour[source] == colour[column]).any()


if __name__ == "__main__":
    main(globals())
