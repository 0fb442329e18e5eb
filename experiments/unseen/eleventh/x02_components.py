"""Connected components of a graph: the least label of the neighbours, and pointers that jump.

A round gives each node the least label around it, and replaces labels by their labels' labels
twice; it ends when nothing moves. Then the components are counted and measured.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 100_000, "large": 1_200_000}
MOST = 60


@pk.workunit
def own_label(i: int, label: pk.View1D[pk.int32]):
    label[i] = i


@pk.workunit
def least_around(
    i: int,
    best: pk.View1D[pk.int32],
    label: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    target: pk.View1D[pk.int32],
):
    least: int = label[i]
    for e in range(start[i], start[i + 1]):
        if label[target[e]] < least:
            least = label[target[e]]
    best[i] = least


@pk.workunit
def differs(
    i: int, moved: pk.View1D[pk.int32], best: pk.View1D[pk.int32], label: pk.View1D[pk.int32]
):
    if best[i] < label[i]:
        moved[i] = 1
    else:
        moved[i] = 0


@pk.workunit
def jump(i: int, out: pk.View1D[pk.int32], label: pk.View1D[pk.int32]):
    out[i] = label[label[i]]


@pk.workunit
def count(i: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.int32]):
    acc += x[i]


@pk.workunit
def clear(i: int, x: pk.View1D[pk.int32]):
    x[i] = 0


@pk.workunit
def measure(i: int, size: pk.View1D[pk.int32], label: pk.View1D[pk.int32]):
    pk.atomic_add(size, [label[i]], 1)


@pk.workunit
def degrees(
    i: int, inside: pk.View1D[pk.int32], label: pk.View1D[pk.int32], start: pk.View1D[pk.int32]
):
    pk.atomic_add(inside, [label[i]], start[i + 1] - start[i])


@pk.workunit
def own_size(
    i: int, mine: pk.View1D[pk.int32], size: pk.View1D[pk.int32], label: pk.View1D[pk.int32]
):
    mine[i] = size[label[i]]


@pk.workunit
def count_roots(i: int, acc: pk.Acc[pk.int64], label: pk.View1D[pk.int32]):
    if label[i] == i:
        acc += 1


@pk.workunit
def count_alone(i: int, acc: pk.Acc[pk.int64], mine: pk.View1D[pk.int32]):
    if mine[i] == 1:
        acc += 1


@pk.workunit
def count_trees(
    i: int,
    acc: pk.Acc[pk.int64],
    size: pk.View1D[pk.int32],
    inside: pk.View1D[pk.int32],
):
    """Components with one edge, stored twice, less than nodes."""
    if size[i] > 0 and inside[i] == 2 * (size[i] - 1):
        acc += 1


@pk.workunit
def add_sizes(i: int, acc: pk.Acc[pk.double], mine: pk.View1D[pk.int32]):
    acc += mine[i]


@dataclass
class State:
    """The graph, row by row; labels and sizes; how many moved in each round; the summary."""

    n: int
    start: pk.View
    target: pk.View
    label: pk.View
    mine: pk.View
    moves: list = field(default_factory=list)
    summary: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(112)
    a = rng.integers(0, n, int(1.4 * n))
    b = np.where(
        rng.random(a.size) < 0.1, rng.integers(0, n, a.size) // 3, a + rng.integers(1, 200, a.size)
    )
    keep = (b < n) & (a != b)
    rename = rng.permutation(n)
    a, b = rename[a[keep]], rename[b[keep]]
    a, b = np.concatenate([a, b]), np.concatenate([b, a])
    key = np.unique(a.astype(np.int64) * n + b)
    a, b = key // n, key % n
    start, target = pk.View([n + 1], pk.int32), pk.View([b.size], pk.int32)
    label, mine = pk.View([n], pk.int32), pk.View([n], pk.int32)
    start.data[:] = np.concatenate([[0], np.cumsum(np.bincount(a, minlength=n))])
    target.data[:] = b
    return State(n, start, target, label, mine)


def run(state: State) -> None:
    n, label, mine = state.n, state.label, state.mine
    best, moved, next, size, inside = (pk.View([n], pk.int32) for _ in range(5))
    state.moves = []
    pk.parallel_for(n, own_label, label=label)
    for _ in range(MOST):
        pk.parallel_for(
            n, least_around, best=best, label=label, start=state.start, target=state.target
        )
        pk.parallel_for(n, differs, moved=moved, best=best, label=label)
        pk.parallel_for(n, jump, out=next, label=best)
        pk.parallel_for(n, jump, out=label, label=next)
        moves = int(pk.parallel_reduce(n, count, x=moved))
        state.moves.append(moves)
        if moves == 0:
            break
    pk.parallel_for(n, clear, x=size)
    pk.parallel_for(n, clear, x=inside)
    pk.parallel_for(n, measure, size=size, label=label)
    pk.parallel_for(n, degrees, inside=inside, label=label, start=state.start)
    pk.parallel_for(n, own_size, mine=mine, size=size, label=label)
    roots = pk.parallel_reduce(n, count_roots, label=label)
    alone = pk.parallel_reduce(n, count_alone, mine=mine)
    trees = pk.parallel_reduce(n, count_trees, size=size, inside=inside)
    sizes = pk.parallel_reduce(n, add_sizes, mine=mine)
    state.summary = [float(roots), float(alone), float(trees), float(sizes) / n]


def outputs(state: State) -> dict:
    return {
        "label": np.array(state.label.data),
        "mine": np.array(state.mine.data),
        "moves": np.array(state.moves, dtype=np.float64),
        "summary": np.array(state.summary),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    start, target = np.array(fresh.start.data), np.array(fresh.target.data)
    label = np.full(n, -1)
    trees = 0
    for root in range(n):  # a search from each node not yet seen
        if label[root] < 0:
            label[root], stack, nodes, edges = root, [root], 0, 0
            while stack:
                i = stack.pop()
                nodes, edges = nodes + 1, edges + start[i + 1] - start[i]
                for j in target[start[i] : start[i + 1]]:
                    if label[j] < 0:
                        label[j] = root
                        stack.append(j)
            trees += edges == 2 * (nodes - 1)
    size = np.bincount(label, minlength=n)
    mine = size[label]
    out = outputs(state)
    np.testing.assert_array_equal(out["label"], label)
    np.testing.assert_array_equal(out["mine"], mine)
    assert out["moves"][-1] == 0
    roots, alone = np.sum(size > 0), np.sum(mine == 1)
    np.testing.assert_allclose(out["summary"], [roots, alone, trees, mine.mean()])


if __name__ == "__main__":
    main(globals())
