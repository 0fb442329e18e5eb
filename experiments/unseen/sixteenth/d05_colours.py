# ruff: noqa: E501, SIM102
"""Colours of a graph by Jones and Plassmann, and a Gauss-Seidel sweep over one colour after another.

The vertices without a colour are a frontier, which a scan compacts after each round.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 100_000, "large": 2_000_000}
SHIFT = 0.05


@pk.workunit
def prioritise(v: int, priority):
    h: pk.uint32 = v
    h = (h ^ (h >> 16)) * 73244475
    h = (h ^ (h >> 16)) * 73244475
    priority[v] = h ^ (h >> 16)


@pk.workunit
def begin(v: int, colour, frontier, x):
    colour[v] = -1
    frontier[v] = v
    x[v] = 0.0


@pk.workunit
def choose(k: int, chosen, frontier, colour, priority, start, edges):
    """Those before all neighbours that have no colour yet."""
    v: int = frontier[k]
    first: int = 1
    for e in range(start[v], start[v + 1]):
        u: int = edges[e]
        if colour[u] < 0:
            if priority[u] > priority[v] or (priority[u] == priority[v] and u > v):
                first = 0
                break
    chosen[k] = first


@pk.workunit
def paint(k: int, colour, chosen, frontier, start, edges):
    """With the first colour that no neighbour has."""
    if chosen[k] == 1:
        v: int = frontier[k]
        one: pk.int64 = 1
        used: pk.int64 = 0
        for e in range(start[v], start[v + 1]):
            c: int = colour[edges[e]]
            if c >= 0:
                used = used | (one << c)
        free: int = 0
        while (used >> free) & 1 == 1:
            free += 1
        colour[v] = free


@pk.workunit
def place(k: int, acc: pk.Acc[pk.int64], last: bool, position, chosen):
    if last:
        position[k] = acc
    acc += 1 - chosen[k]


@pk.workunit
def compact(k: int, remaining, frontier, chosen, position):
    if chosen[k] == 0:
        remaining[position[k]] = frontier[k]


@pk.workunit
def clear(c: int, sizes):
    sizes[c] = 0


@pk.workunit
def count(v: int, sizes, colour):
    pk.atomic_increment(sizes, [colour[v]])


@pk.workunit
def conflicts(v: int, acc: pk.Acc[pk.int64], colour, start, edges):
    for e in range(start[v], start[v + 1]):
        if colour[edges[e]] == colour[v]:
            acc += 1


@pk.workunit
def gather_class(v: int, acc: pk.Acc[pk.int64], last: bool, members, colour, c: int):
    if colour[v] == c:
        if last:
            members[acc] = v
        acc += 1


@pk.workunit
def sweep(k: int, x, b, members, start, edges):
    v: int = members[k]
    total: pk.double = b[v]
    for e in range(start[v], start[v + 1]):
        total += x[edges[e]]
    x[v] = total / (start[v + 1] - start[v] + SHIFT)


@pk.workunit
def residual(v: int, acc: pk.Acc[pk.double], x, b, start, edges):
    r: pk.double = b[v] - (start[v + 1] - start[v] + SHIFT) * x[v]
    for e in range(start[v], start[v + 1]):
        r += x[edges[e]]
    acc += r * r


@dataclass
class State:
    n: int
    start: pk.View
    edges: pk.View
    b: pk.View
    colour: pk.View
    sizes: pk.View
    x: pk.View
    conflicts: int = 0
    residual: float = 0.0


def setup(n: int) -> State:
    random = np.random.default_rng(5)
    v = np.repeat(np.arange(n), 2)
    u = (v + random.integers(1, 100, 2 * n)) % n
    far = random.random(2 * n) < 0.05
    u[far] = random.integers(0, n, int(far.sum()))
    v, u = v[v != u], u[v != u]
    key = np.unique(np.concatenate([v * n + u, u * n + v]))
    start, edges = pk.View([n + 1], pk.int32), pk.View([len(key)], pk.int32)
    start.data[:] = np.searchsorted(key, np.arange(n + 1) * n)
    edges.data[:] = key % n
    b, x = pk.View([n], pk.double), pk.View([n], pk.double)
    b.data[:] = random.normal(0.0, 1.0, n)
    return State(n, start, edges, b, pk.View([n], pk.int32), pk.View([64], pk.int32), x)


def run(s: State) -> None:
    n, colour, x = s.n, s.colour, s.x
    graph = {"start": s.start, "edges": s.edges}
    priority = pk.View([n], pk.uint32)
    frontier, remaining, chosen, position = (pk.View([n], pk.int32) for _ in range(4))
    pk.parallel_for(n, prioritise, priority=priority)
    pk.parallel_for(n, begin, colour=colour, frontier=frontier, x=x)
    left = n
    while left > 0:
        here = {"frontier": frontier, "chosen": chosen}
        pk.parallel_for(left, choose, colour=colour, priority=priority, **here, **graph)
        pk.parallel_for(left, paint, colour=colour, **here, **graph)
        after = pk.parallel_scan(left, place, position=position, chosen=chosen)
        pk.parallel_for(left, compact, remaining=remaining, position=position, **here)
        frontier, remaining, left = remaining, frontier, int(after)
    pk.parallel_for(64, clear, sizes=s.sizes)
    pk.parallel_for(n, count, sizes=s.sizes, colour=colour)
    s.conflicts = int(pk.parallel_reduce(n, conflicts, colour=colour, **graph))
    members = frontier
    for c, size in enumerate(s.sizes.data[s.sizes.data > 0].tolist()):
        pk.parallel_scan(n, gather_class, members=members, colour=colour, c=c)
        pk.parallel_for(size, sweep, x=x, b=s.b, members=members, **graph)
    s.residual = float(pk.parallel_reduce(n, residual, x=x, b=s.b, **graph)) / n


def outputs(s: State) -> dict:
    found = {name: np.array(getattr(s, name).data) for name in ("colour", "sizes", "x")}
    return {**found, "conflicts": np.array([s.conflicts]), "residual": np.array([s.residual])}


def check(s: State, n: int) -> None:
    start, edges, b = (np.array(v.data) for v in (s.start, s.edges, s.b))
    h = np.arange(n, dtype=np.uint32)
    for _ in range(2):
        h = (h ^ (h >> np.uint32(16))) * np.uint32(73244475)
    h = h ^ (h >> np.uint32(16))
    colour, x = np.full(n, -1), np.zeros(n)
    for v in np.lexsort((-np.arange(n), -h.astype(np.int64))):
        used = set(colour[edges[start[v] : start[v + 1]]].tolist())
        colour[v] = next(c for c in range(64) if c not in used)
    for c in range(colour.max() + 1):
        for v in np.flatnonzero(colour == c):
            near = x[edges[start[v] : start[v + 1]]]
            x[v] = (b[v] + near.sum()) / (len(near) + SHIFT)
    near = np.add.reduceat(np.append(x[edges], 0.0), start[:-1]) * (np.diff(start) > 0)
    r = b - (np.diff(start) + SHIFT) * x + near
    np.testing.assert_array_equal(s.colour.data, colour)
    np.testing.assert_array_equal(s.sizes.data, np.bincount(colour, minlength=64))
    np.testing.assert_allclose(s.x.data, x, atol=1e-11)
    np.testing.assert_allclose(s.residual, (r**2).mean(), rtol=1e-9)
    assert s.conflicts == 0


if __name__ == "__main__":
    main(globals())
