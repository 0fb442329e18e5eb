# ruff: noqa: E501
"""Who matters in a network: cores by peeling, then closeness by breadth-first search from some nodes.

The graph is in CSR form. For k = 1, 2, ... nodes with fewer than k neighbours left are taken away
until none is found. Searches go level by level. Tables by core: nodes, links within, mean distance.
All in integers.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_200, "default": 25_000, "large": 220_000}
SHELLS = 32


@pk.workunit
def degrees(i: int, degree: pk.View1D[pk.int32], start: pk.View1D[pk.int32]):
    degree[i] = start[i + 1] - start[i]


@pk.workunit
def fill(i: int, x: pk.View1D[pk.int32], value: int):
    x[i] = value


@pk.workunit
def mark(
    i: int,
    leaves: pk.View1D[pk.int32],
    alive: pk.View1D[pk.int32],
    degree: pk.View1D[pk.int32],
    k: int,
):
    leaves[i] = 0
    if alive[i] == 1 and degree[i] < k:
        leaves[i] = 1


@pk.workunit
def number(i: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.int32]):
    acc += x[i]


@pk.workunit
def take_away(
    i: int,
    alive: pk.View1D[pk.int32],
    core: pk.View1D[pk.int32],
    leaves: pk.View1D[pk.int32],
    k: int,
):
    if leaves[i] == 1:
        alive[i] = 0
        core[i] = k - 1


@pk.workunit
def loosen(
    i: int,
    degree: pk.View1D[pk.int32],
    leaves: pk.View1D[pk.int32],
    alive: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32],
):
    if alive[i] == 1:
        lost: int = 0
        for e in range(start[i], start[i + 1]):
            lost += leaves[target[e]]
        degree[i] -= lost


@pk.workunit
def seek(
    i: int,
    found: pk.View1D[pk.int32],
    distance: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32],
    level: int,
):
    found[i] = 0
    if distance[i] < 0:
        for e in range(start[i], start[i + 1]):
            if distance[target[e]] == level:
                found[i] = 1


@pk.workunit
def settle(i: int, distance: pk.View1D[pk.int32], found: pk.View1D[pk.int32], level: int):
    if found[i] == 1:
        distance[i] = level + 1


@pk.workunit
def add_distance(i: int, total: pk.View1D[pk.int32], distance: pk.View1D[pk.int32]):
    if distance[i] > 0:
        total[i] += distance[i]


@pk.workunit
def far(i: int, acc: pk.Acc[pk.int64], distance: pk.View1D[pk.int32]):
    if distance[i] > 0:
        acc += distance[i]


@pk.workunit
def links_within(
    i: int,
    inside: pk.View1D[pk.int32],
    core: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32],
):
    count: int = 0
    for e in range(start[i], start[i + 1]):
        if core[target[e]] >= core[i]:
            count += 1
    inside[i] = count


@pk.workunit
def tally(
    i: int,
    table: pk.View1D[pk.int64],
    core: pk.View1D[pk.int32],
    x: pk.View1D[pk.int32],
    shells: int,
):
    pk.atomic_add(table, [min(core[i], shells - 1)], x[i])


@dataclass
class State:
    """The graph, where searches start; cores, sums of distances, tables and what was counted."""

    n: int
    start: pk.View
    target: pk.View
    sources: pk.View
    core: pk.View
    total: pk.View
    tables: list = field(default_factory=list)
    leavers: list = field(default_factory=list)
    levels: list = field(default_factory=list)
    closeness: list = field(default_factory=list)


def setup(n: int) -> State:
    """Some nodes are much more popular than others, and most links are to nodes nearby."""
    rng = np.random.default_rng(1306)
    links = 5 * n
    a = rng.integers(0, n, links)
    near = (a + np.rint(rng.normal(0.0, 0.02 * n, links)).astype(np.int64)) % n
    popular = (n * rng.random(links) ** 4).astype(np.int64)
    b = np.where(rng.random(links) < 0.7, near, popular)
    pairs = np.unique(
        np.stack([np.concatenate([a, b]), np.concatenate([b, a])], 1)[np.tile(a != b, 2)], axis=0
    )
    start, target = pk.View([n + 1], pk.int32), pk.View([len(pairs)], pk.int32)
    start.data[1:] = np.cumsum(np.bincount(pairs[:, 0], minlength=n))
    target.data[:] = pairs[:, 1]
    count = 24 if n <= 2_000 else 6 if n <= 100_000 else 2
    sources = pk.View([count], pk.int32)
    sources.data[:] = rng.choice(n, count, replace=False)
    return State(n, start, target, sources, pk.View([n], pk.int32), pk.View([n], pk.int32))


def run(state: State) -> None:
    n, core, total = state.n, state.core, state.total
    graph = {"start": state.start, "target": state.target}
    degree, alive, leaves, inside, ones = (pk.View([n], pk.int32) for _ in range(5))
    distance, found = pk.View([n], pk.int32), pk.View([n], pk.int32)
    state.leavers, state.levels, state.closeness = [], [], []
    pk.parallel_for(n, degrees, degree=degree, start=state.start)
    pk.parallel_for(n, fill, x=alive, value=1)
    pk.parallel_for(n, fill, x=ones, value=1)
    left, k = n, 1
    while left > 0:
        pk.parallel_for(n, mark, leaves=leaves, alive=alive, degree=degree, k=k)
        count = int(pk.parallel_reduce(n, number, x=leaves))
        if count == 0:
            k += 1
            continue
        state.leavers.append(count)
        left -= count
        pk.parallel_for(n, take_away, alive=alive, core=core, leaves=leaves, k=k)
        pk.parallel_for(n, loosen, degree=degree, leaves=leaves, alive=alive, **graph)
    pk.parallel_for(n, fill, x=total, value=0)
    for source in np.array(state.sources.data):
        pk.parallel_for(n, fill, x=distance, value=-1)
        distance[int(source)] = 0
        level, reached = 0, 1
        while True:
            pk.parallel_for(n, seek, found=found, distance=distance, level=level, **graph)
            pk.parallel_for(n, settle, distance=distance, found=found, level=level)
            count = int(pk.parallel_reduce(n, number, x=found))
            if count == 0:
                break
            level += 1
            reached += count
        pk.parallel_for(n, add_distance, total=total, distance=distance)
        away = int(pk.parallel_reduce(n, far, distance=distance))
        state.levels.append(level)
        state.closeness.append((reached - 1) / max(away, 1))
    pk.parallel_for(n, links_within, inside=inside, core=core, **graph)
    state.tables = []
    for x in (ones, inside, total):
        table = pk.View([SHELLS], pk.int64)
        pk.parallel_for(n, tally, table=table, core=core, x=x, shells=SHELLS)
        state.tables.append(table)


def outputs(state: State) -> dict:
    return {
        "core": np.array(state.core.data),
        "distances": np.array(state.total.data),
        "tables": np.array([table.data for table in state.tables]),
        "leavers": np.array(state.leavers),
        "levels": np.array(state.levels),
        "closeness": np.array(state.closeness),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    start, target = np.array(state.start.data), np.array(state.target.data)
    row = np.repeat(np.arange(n), np.diff(start))
    degree, alive, core, k = np.diff(start), np.ones(n, bool), np.zeros(n, int), 1
    leavers = []
    while alive.any():
        leaves = alive & (degree < k)
        if not leaves.any():
            k += 1
            continue
        leavers.append(leaves.sum())
        alive &= ~leaves
        core[leaves] = k - 1
        degree = degree - np.bincount(row[leaves[target]], minlength=n)
    total, levels = np.zeros(n, int), []
    for source in np.array(state.sources.data):
        distance, level = np.full(n, -1), 0
        distance[source] = 0
        while True:
            found = np.zeros(n, bool)
            found[row[distance[target] == level]] = True
            found &= distance < 0
            if not found.any():
                break
            level += 1
            distance[found] = level
        total += np.maximum(distance, 0)
        levels.append(level)
    inside = np.bincount(row[core[target] >= core[row]], minlength=n)
    shell = np.minimum(core, SHELLS - 1)
    tables = [np.bincount(shell, weights=x, minlength=SHELLS) for x in (np.ones(n), inside, total)]
    out = outputs(state)
    expected = {
        "core": core,
        "distances": total,
        "tables": tables,
        "leavers": leavers,
        "levels": levels,
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(out[name], value, err_msg=name)


if __name__ == "__main__":
    main(globals())
