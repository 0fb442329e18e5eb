"""Roads: levels from a few sources, shares of shortest paths (Brandes), then distances by frontiers.

Each level and each frontier is a list whose length is read before the next launch.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1000, "default": 80_000, "large": 600_000}
DEGREE = 3
FAR = 1 << 29


@pk.workunit
def reset(
    i: int,
    level: pk.View1D[pk.int32],
    dist: pk.View1D[pk.int32],
    stamp: pk.View1D[pk.int32],
    far: int,
):
    level[i] = -1
    dist[i] = far
    stamp[i] = -1


@pk.workunit
def clear(i: int, paths: pk.View1D[pk.double], share: pk.View1D[pk.double]):
    paths[i] = 0.0
    share[i] = 0.0


@pk.workunit
def begin_at(
    k: int,
    source: pk.View1D[pk.int32],
    order: pk.View1D[pk.int32],
    level: pk.View1D[pk.int32],
    paths: pk.View1D[pk.double],
    length: pk.View1D[pk.int32],
    many: int,
):
    order[k] = source[k]
    level[source[k]] = 0
    paths[source[k]] = 1.0
    if k == 0:
        length[0] = many


@pk.workunit
def visit(
    k: int,
    order: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    level: pk.View1D[pk.int32],
    length: pk.View1D[pk.int32],
    depth: int,
):
    u: pk.int32 = order[k]
    for e in range(row[u], row[u + 1]):
        if level[col[e]] == -1:
            old: pk.int32 = pk.atomic_compare_exchange(level, [col[e]], -1, depth + 1)
            if old == -1:
                slot: pk.int32 = pk.atomic_fetch_add(length, [0], 1)
                order[slot] = col[e]


@pk.workunit
def sum_paths(
    k: int,
    order: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    level: pk.View1D[pk.int32],
    paths: pk.View1D[pk.double],
):
    v: pk.int32 = order[k]
    total: pk.double = 0.0
    for e in range(row[v], row[v + 1]):
        if level[col[e]] == level[v] - 1:
            total += paths[col[e]]
    paths[v] = total


@pk.workunit
def sum_shares(
    k: int,
    order: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    level: pk.View1D[pk.int32],
    paths: pk.View1D[pk.double],
    share: pk.View1D[pk.double],
):
    v: pk.int32 = order[k]
    total: pk.double = 0.0
    for e in range(row[v], row[v + 1]):
        w: pk.int32 = col[e]
        if level[w] == level[v] + 1:
            total += (1.0 + share[w]) * paths[v] / paths[w]
    share[v] = total


@pk.workunit
def first_front(
    k: int, source: pk.View1D[pk.int32], front: pk.View1D[pk.int32], dist: pk.View1D[pk.int32]
):
    front[k] = source[k]
    dist[source[k]] = 0


@pk.workunit
def hold(
    k: int,
    front: pk.View1D[pk.int32],
    dist: pk.View1D[pk.int32],
    held: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    degree: pk.View1D[pk.int32],
):
    u: pk.int32 = front[k]
    held[k] = dist[u]
    degree[k] = row[u + 1] - row[u]


@pk.workunit
def offsets(
    k: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    count: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
):
    if last:
        first[k] = acc
    acc += count[k]


@pk.workunit
def spread(
    k: int,
    front: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    degree: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
    edge: pk.View1D[pk.int32],
    who: pk.View1D[pk.int32],
):
    for e in range(degree[k]):
        edge[first[k] + e] = row[front[k]] + e
        who[first[k] + e] = k


@pk.workunit
def relax(
    j: int,
    edge: pk.View1D[pk.int32],
    who: pk.View1D[pk.int32],
    held: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    weight: pk.View1D[pk.int32],
    dist: pk.View1D[pk.int32],
    stamp: pk.View1D[pk.int32],
    turn: int,
):
    to: pk.int32 = col[edge[j]]
    through: pk.int32 = held[who[j]] + weight[edge[j]]
    old: pk.int32 = pk.atomic_fetch_min(dist, [to], through)
    if through < old:
        stamp[to] = turn


@pk.workunit
def gather(
    v: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    stamp: pk.View1D[pk.int32],
    front: pk.View1D[pk.int32],
    turn: int,
):
    if stamp[v] == turn:
        if last:
            front[acc] = v
        acc += 1


@pk.workunit
def total_of(v: int, acc: pk.Acc[pk.double], dist: pk.View1D[pk.int32], far: int):
    if dist[v] < far:
        acc += dist[v]


@dataclass
class State:
    n: int
    row: pk.View
    col: pk.View
    weight: pk.View
    source: pk.View
    level: pk.View
    paths: pk.View
    share: pk.View
    dist: pk.View
    mean: float = 0.0
    depth: int = 0
    turns: int = 0


def setup(n: int) -> State:
    rng = np.random.default_rng(3)
    a = np.repeat(np.arange(n), DEGREE)
    b = (a + 1 + rng.integers(0, n - 1, n * DEGREE)) % n
    near = rng.random(n * DEGREE) < 0.5
    b[near] = (a[near] + 1 + rng.integers(0, 30, near.sum())) % n
    low, high = np.minimum(a, b), np.maximum(a, b)
    keys = np.unique(low.astype(np.int64) * n + high)
    low, high = keys // n, keys % n
    cost = rng.integers(1, 10, keys.size)
    tail, head, cost = np.concatenate([low, high]), np.concatenate([high, low]), np.tile(cost, 2)
    by = np.lexsort((head, tail))
    row, col, weight = (pk.View([m], pk.int32) for m in (n + 1, by.size, by.size))
    row[...] = np.searchsorted(tail[by], np.arange(n + 1)).astype(np.int32)
    col[...] = head[by].astype(np.int32)
    weight[...] = cost[by].astype(np.int32)
    source = pk.View([4], pk.int32)
    source[...] = (np.arange(4) * (n // 4)).astype(np.int32)
    level, dist = (pk.View([n], pk.int32) for _ in range(2))
    paths, share = (pk.View([n], pk.double) for _ in range(2))
    return State(n, row, col, weight, source, level, paths, share, dist)


def run(s: State) -> None:
    n, row, col, level, dist = s.n, s.row, s.col, s.level, s.dist
    every = pk.RangePolicy(0, n)
    order, front, held, degree, first, stamp = (pk.View([n], pk.int32) for _ in range(6))
    edge, who = (pk.View([col.shape[0]], pk.int32) for _ in range(2))
    length = pk.View([1], pk.int32)
    many = s.source.shape[0]
    pk.parallel_for(every, reset, level=level, dist=dist, stamp=stamp, far=FAR)
    pk.parallel_for(every, clear, paths=s.paths, share=s.share)
    pk.parallel_for(
        many,
        begin_at,
        source=s.source,
        order=order,
        level=level,
        paths=s.paths,
        length=length,
        many=many,
    )
    graph = {"row": row, "col": col, "level": level}
    bounds = [0, many]
    while bounds[-1] > bounds[-2]:
        layer = pk.RangePolicy(bounds[-2], bounds[-1])
        pk.parallel_for(layer, visit, order=order, length=length, depth=len(bounds) - 2, **graph)
        bounds.append(int(length[0]))
        pk.parallel_for(
            pk.RangePolicy(bounds[-2], bounds[-1]), sum_paths, order=order, paths=s.paths, **graph
        )
    for d in range(len(bounds) - 3, -1, -1):
        layer = pk.RangePolicy(bounds[d], bounds[d + 1])
        pk.parallel_for(layer, sum_shares, order=order, paths=s.paths, share=s.share, **graph)
    s.depth = len(bounds) - 2

    pk.parallel_for(1, first_front, source=s.source, front=front, dist=dist)
    size, turn = 1, 0
    while size > 0:
        now = pk.RangePolicy(0, size)
        pk.parallel_for(now, hold, front=front, dist=dist, held=held, row=row, degree=degree)
        edges = int(pk.parallel_scan(now, offsets, count=degree, first=first))
        pk.parallel_for(
            now, spread, front=front, row=row, degree=degree, first=first, edge=edge, who=who
        )
        pk.parallel_for(
            pk.RangePolicy(0, edges),
            relax,
            edge=edge,
            who=who,
            held=held,
            col=col,
            weight=s.weight,
            dist=dist,
            stamp=stamp,
            turn=turn,
        )
        size = int(pk.parallel_scan(every, gather, stamp=stamp, front=front, turn=turn))
        turn += 1
    s.turns = turn
    s.mean = float(pk.parallel_reduce(every, total_of, dist=dist, far=FAR)) / n


def outputs(s: State) -> dict:
    numbers = np.array([s.mean, float(s.depth), float(s.turns)])
    return {
        "level": s.level,
        "paths": s.paths,
        "share": s.share,
        "dist": s.dist,
        "numbers": numbers,
    }


def check(s: State, n: int) -> None:
    import heapq

    row, col, weight, source = (np.array(v.data) for v in (s.row, s.col, s.weight, s.source))
    tail = np.repeat(np.arange(n), np.diff(row))
    level, paths, share = np.full(n, -1), np.zeros(n), np.zeros(n)
    level[source], paths[source] = 0, 1.0
    d = 0
    while (level == d).any():
        fresh = np.unique(col[(level[tail] == d) & (level[col] == -1)])
        level[fresh] = d + 1
        on = (level[tail] == d) & (level[col] == d + 1)
        np.add.at(paths, col[on], paths[tail[on]])
        d += 1
    for k in range(d - 1, -1, -1):
        on = (level[tail] == k) & (level[col] == k + 1)
        np.add.at(share, tail[on], (1.0 + share[col[on]]) * paths[tail[on]] / paths[col[on]])
    np.testing.assert_array_equal(s.level.data, level)
    np.testing.assert_allclose(s.paths.data, paths)
    np.testing.assert_allclose(s.share.data, share, rtol=1e-11)
    dist, heap = np.full(n, FAR), [(0, int(source[0]))]
    dist[source[0]] = 0
    while heap:
        far, u = heapq.heappop(heap)
        if far > dist[u]:
            continue
        for e in range(row[u], row[u + 1]):
            if far + weight[e] < dist[col[e]]:
                dist[col[e]] = far + weight[e]
                heapq.heappush(heap, (int(dist[col[e]]), int(col[e])))
    np.testing.assert_array_equal(s.dist.data, dist)
    np.testing.assert_allclose(s.mean, dist[dist < FAR].sum() / n, rtol=1e-12)


if __name__ == "__main__":
    main(globals())
