"""A graph made coarser by matching heavy edges, level by level, and V-cycles over the levels.

Each level's nodes and edges are counted by scans; its rows are merged, doubles removed, then packed.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 34, "default": 280, "large": 760}
FEWEST, MOST, CYCLES = 24, 24, 2
SOFT = 0.05


@pk.workunit
def alone(i: int, match: pk.View1D[pk.int32]):
    match[i] = -1


@pk.workunit
def choose(
    i: int,
    row: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    weight: pk.View1D[pk.int32],
    match: pk.View1D[pk.int32],
    pick: pk.View1D[pk.int32],
):
    best: pk.int64 = -1
    pick[i] = -1
    if match[i] == -1:
        for e in range(row[i], row[i + 1]):
            j: pk.int32 = col[e]
            if match[j] == -1:
                low: pk.int64 = min(i, j)
                high: pk.int64 = max(i, j)
                value: pk.int64 = weight[e]
                value = value * 1048576 + ((low * 7919 + high * 104729) & 1048575)
                if value > best:
                    best = value
                    pick[i] = j


@pk.workunit
def shake(i: int, match: pk.View1D[pk.int32], pick: pk.View1D[pk.int32]):
    if pick[i] >= 0 and pick[pick[i]] == i:
        match[i] = pick[i]


@pk.workunit
def matched(i: int, acc: pk.Acc[pk.int32], match: pk.View1D[pk.int32]):
    if match[i] >= 0:
        acc += 1


@pk.workunit
def number(
    i: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    match: pk.View1D[pk.int32],
    coarse: pk.View1D[pk.int32],
    root: pk.View1D[pk.int32],
):
    if match[i] < 0 or match[i] > i:
        if last:
            coarse[i] = acc
            root[acc] = i
        acc += 1


@pk.workunit
def follow(i: int, match: pk.View1D[pk.int32], coarse: pk.View1D[pk.int32]):
    if match[i] >= 0 and match[i] < i:
        coarse[i] = coarse[match[i]]


@pk.workunit
def bound(
    c: int,
    root: pk.View1D[pk.int32],
    match: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    size: pk.View1D[pk.int32],
):
    i: pk.int32 = root[c]
    size[c] = row[i + 1] - row[i]
    if match[i] >= 0:
        size[c] += row[match[i] + 1] - row[match[i]]


@pk.workunit
def offsets(
    c: int, acc: pk.Acc[pk.int32], last: bool, size: pk.View1D[pk.int32], first: pk.View1D[pk.int32]
):
    if last:
        first[c] = acc
    acc += size[c]


@pk.workunit
def merge(
    c: int,
    root: pk.View1D[pk.int32],
    match: pk.View1D[pk.int32],
    coarse: pk.View1D[pk.int32],
    row: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    weight: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
    wide: pk.View1D[pk.int32],
    load: pk.View1D[pk.int32],
    size: pk.View1D[pk.int32],
):
    used: pk.int32 = 0
    for half in range(2):
        i: pk.int32 = root[c]
        if half == 1:
            i = match[root[c]]
        if i >= 0:
            for e in range(row[i], row[i + 1]):
                to: pk.int32 = coarse[col[e]]
                if to != c:
                    k: pk.int32 = 0
                    while k < used and wide[first[c] + k] != to:
                        k += 1
                    if k == used:
                        wide[first[c] + k] = to
                        load[first[c] + k] = weight[e]
                        used += 1
                    else:
                        load[first[c] + k] += weight[e]
    size[c] = used


@pk.workunit
def pack(
    c: int,
    first: pk.View1D[pk.int32],
    wide: pk.View1D[pk.int32],
    load: pk.View1D[pk.int32],
    size: pk.View1D[pk.int32],
    row2: pk.View1D[pk.int32],
    col2: pk.View1D[pk.int32],
    weight2: pk.View1D[pk.int32],
):
    for k in range(size[c]):
        col2[row2[c] + k] = wide[first[c] + k]
        weight2[row2[c] + k] = load[first[c] + k]


@pk.workunit
def finish(c: int, row2: pk.View1D[pk.int32], nodes: int, edges: int):
    row2[nodes] = edges


@pk.workunit
def join_soft(
    c: int,
    root: pk.View1D[pk.int32],
    match: pk.View1D[pk.int32],
    soft: pk.View1D[pk.double],
    soft2: pk.View1D[pk.double],
):
    soft2[c] = soft[root[c]]
    if match[root[c]] >= 0:
        soft2[c] += soft[match[root[c]]]


@pk.workunit
def diagonal(
    i: int,
    row: pk.View1D[pk.int32],
    weight: pk.View1D[pk.int32],
    soft: pk.View1D[pk.double],
    diag: pk.View1D[pk.double],
):
    total: pk.double = soft[i]
    for e in range(row[i], row[i + 1]):
        total += weight[e]
    diag[i] = total


@pk.workunit
def zero(i: int, x: pk.View1D[pk.double]):
    x[i] = 0.0


@pk.workunit
def residual(
    i: int,
    row: pk.View1D[pk.int32],
    col: pk.View1D[pk.int32],
    weight: pk.View1D[pk.int32],
    diag: pk.View1D[pk.double],
    b: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    r: pk.View1D[pk.double],
):
    total: pk.double = b[i] - diag[i] * x[i]
    for e in range(row[i], row[i + 1]):
        total += weight[e] * x[col[e]]
    r[i] = total


@pk.workunit
def correct(
    i: int,
    x: pk.View1D[pk.double],
    r: pk.View1D[pk.double],
    diag: pk.View1D[pk.double],
    omega: float,
):
    x[i] += omega * r[i] / diag[i]


@pk.workunit
def restrict(
    c: int,
    root: pk.View1D[pk.int32],
    match: pk.View1D[pk.int32],
    r: pk.View1D[pk.double],
    b2: pk.View1D[pk.double],
):
    b2[c] = r[root[c]]
    if match[root[c]] >= 0:
        b2[c] += r[match[root[c]]]


@pk.workunit
def prolong(
    i: int,
    coarse: pk.View1D[pk.int32],
    x: pk.View1D[pk.double],
    x2: pk.View1D[pk.double],
    over: float,
):
    x[i] += over * x2[coarse[i]]


@pk.workunit
def square(i: int, acc: pk.Acc[pk.double], r: pk.View1D[pk.double]):
    acc += r[i] * r[i]


@dataclass
class State:
    n: int
    row: pk.View
    col: pk.View
    weight: pk.View
    b: pk.View
    x: pk.View
    soft: pk.View
    sizes: tuple = ()
    norms: tuple = ()


def setup(n: int) -> State:
    rng = np.random.default_rng(21)
    at = np.arange(n * n).reshape(n, n)
    low = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    high = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    stay = rng.random(low.size) < 0.9
    low, high = low[stay], high[stay]
    cost = rng.integers(1, 60, low.size)
    tail, head, cost = np.concatenate([low, high]), np.concatenate([high, low]), np.tile(cost, 2)
    by = np.lexsort((head, tail))
    row, col, weight = (pk.View([m], pk.int32) for m in (n * n + 1, by.size, by.size))
    row[...] = np.searchsorted(tail[by], np.arange(n * n + 1)).astype(np.int32)
    col[...] = head[by].astype(np.int32)
    weight[...] = cost[by].astype(np.int32)
    b, x, soft = (pk.View([n * n], pk.double) for _ in range(3))
    b[...] = rng.normal(0.0, 1.0, n * n)
    soft[...] = SOFT * rng.uniform(0.5, 2.0, n * n)
    return State(n, row, col, weight, b, x, soft)


def coarsen(level: dict) -> dict:
    m, row, col, weight = level["m"], level["row"], level["col"], level["weight"]
    every = pk.RangePolicy(0, m)
    match, pick, coarse, root = (pk.View([m], pk.int32) for _ in range(4))
    pk.parallel_for(every, alone, match=match)
    before = -1
    for _ in range(5):
        pk.parallel_for(every, choose, row=row, col=col, weight=weight, match=match, pick=pick)
        pk.parallel_for(every, shake, match=match, pick=pick)
        now = int(pk.parallel_reduce(every, matched, match=match))
        if now - before < m // 20:
            break
        before = now
    m2 = int(pk.parallel_scan(every, number, match=match, coarse=coarse, root=root))
    pk.parallel_for(every, follow, match=match, coarse=coarse)
    fewer = pk.RangePolicy(0, m2)
    size, first = pk.View([m2], pk.int32), pk.View([m2], pk.int32)
    row2, soft2 = pk.View([m2 + 1], pk.int32), pk.View([m2], pk.double)
    pk.parallel_for(fewer, bound, root=root, match=match, row=row, size=size)
    room = int(pk.parallel_scan(fewer, offsets, size=size, first=first))
    wide, load = pk.View([max(room, 1)], pk.int32), pk.View([max(room, 1)], pk.int32)
    rows = {"first": first, "wide": wide, "load": load, "size": size}
    pk.parallel_for(
        fewer, merge, root=root, match=match, coarse=coarse, row=row, col=col, weight=weight, **rows
    )
    edges = int(pk.parallel_scan(fewer, offsets, size=size, first=row2))
    pk.parallel_for(1, finish, row2=row2, nodes=m2, edges=edges)
    col2, weight2 = pk.View([max(edges, 1)], pk.int32), pk.View([max(edges, 1)], pk.int32)
    pk.parallel_for(fewer, pack, row2=row2, col2=col2, weight2=weight2, **rows)
    pk.parallel_for(fewer, join_soft, root=root, match=match, soft=level["soft"], soft2=soft2)
    level.update(root=root, match=match, coarse=coarse)
    b2, x2 = pk.View([m2], pk.double), pk.View([m2], pk.double)
    return {"m": m2, "row": row2, "col": col2, "weight": weight2, "soft": soft2, "b": b2, "x": x2}


def smooth(level: dict, times: int) -> None:
    every = pk.RangePolicy(0, level["m"])
    graph = {name: level[name] for name in ("row", "col", "weight", "diag", "b", "x", "r")}
    for _ in range(times):
        pk.parallel_for(every, residual, **graph)
        pk.parallel_for(every, correct, x=level["x"], r=level["r"], diag=level["diag"], omega=0.7)


def run(s: State) -> None:
    levels = [
        {
            "m": s.n**2,
            "row": s.row,
            "col": s.col,
            "weight": s.weight,
            "soft": s.soft,
            "b": s.b,
            "x": s.x,
        }
    ]
    while levels[-1]["m"] > FEWEST and len(levels) < MOST:
        level = coarsen(levels[-1])
        if level["m"] > 0.85 * levels[-1]["m"]:
            break
        levels.append(level)
    for level in levels:
        level["diag"], level["r"] = (
            pk.View([level["m"]], pk.double),
            pk.View([level["m"]], pk.double),
        )
        every = pk.RangePolicy(0, level["m"])
        pk.parallel_for(
            every,
            diagonal,
            row=level["row"],
            weight=level["weight"],
            soft=level["soft"],
            diag=level["diag"],
        )
    fine = levels[0]
    all_fine = pk.RangePolicy(0, fine["m"])
    pk.parallel_for(all_fine, zero, x=fine["x"])
    norms = []
    for _ in range(CYCLES):
        for level, below in zip(levels, levels[1:]):
            smooth(level, 1)
            graph = {name: level[name] for name in ("row", "col", "weight", "diag", "b", "x", "r")}
            pk.parallel_for(pk.RangePolicy(0, level["m"]), residual, **graph)
            fewer = pk.RangePolicy(0, below["m"])
            pk.parallel_for(
                fewer,
                restrict,
                root=level["root"],
                match=level["match"],
                r=level["r"],
                b2=below["b"],
            )
            pk.parallel_for(fewer, zero, x=below["x"])
        smooth(levels[-1], 8)
        for level, below in zip(levels[-2::-1], levels[:0:-1]):
            every = pk.RangePolicy(0, level["m"])
            pk.parallel_for(
                every, prolong, coarse=level["coarse"], x=level["x"], x2=below["x"], over=1.2
            )
            smooth(level, 1)
        graph = {name: fine[name] for name in ("row", "col", "weight", "diag", "b", "x", "r")}
        pk.parallel_for(all_fine, residual, **graph)
        norms.append(float(pk.parallel_reduce(all_fine, square, r=fine["r"])) ** 0.5)
        if norms[-1] < 1e-9:
            break
    s.sizes, s.norms = tuple(level["m"] for level in levels), tuple(norms)


def outputs(s: State) -> dict:
    return {"x": s.x, "sizes": np.array(s.sizes, float), "norms": np.array(s.norms)}


def check(s: State, n: int) -> None:
    row, col, weight, b, soft = (
        np.array(v.data).astype(float) for v in (s.row, s.col, s.weight, s.b, s.soft)
    )
    matrix = np.zeros((n * n, n * n), np.int64)
    matrix[np.repeat(np.arange(n * n), np.diff(row).astype(int)), col.astype(int)] = weight
    systems, maps = [], []
    while True:
        m = matrix.shape[0]
        systems.append(np.diag(soft + matrix.sum(1)) - matrix)
        if m <= FEWEST or len(systems) == MOST:
            break
        low, high = (
            np.minimum.outer(np.arange(m), np.arange(m)),
            np.maximum.outer(np.arange(m), np.arange(m)),
        )
        value = np.where(
            matrix > 0, matrix * 1048576 + ((low * 7919 + high * 104729) & 1048575), -1
        )
        match, before = np.full(m, -1), -1
        for _ in range(5):
            free = match < 0
            usable = np.where(free[:, None] & free[None, :], value, -1)
            pick = np.where(usable.max(1) >= 0, usable.argmax(1), -1)
            both = (pick >= 0) & (pick[pick] == np.arange(m))
            match[both] = pick[both]
            now = (match >= 0).sum()
            if now - before < m // 20:
                break
            before = now
        root = (match < 0) | (match > np.arange(m))
        coarse = np.cumsum(root) - 1
        coarse[~root] = coarse[match[~root]]
        if root.sum() > 0.85 * m:
            break
        p = np.zeros((m, root.sum()), np.int64)
        p[np.arange(m), coarse] = 1
        maps.append(p)
        matrix = p.T @ matrix @ p
        np.fill_diagonal(matrix, 0)
        soft = p.T @ soft
    assert s.sizes == tuple(a.shape[0] for a in systems), (s.sizes, [a.shape[0] for a in systems])

    def jacobi(a, b, x, times):
        for _ in range(times):
            x = x + 0.7 * (b - a @ x) / np.diag(a)
        return x

    def cycle(k, b, x):
        a = systems[k]
        if k == len(systems) - 1:
            return jacobi(a, b, x, 8)
        x = jacobi(a, b, x, 1)
        x = x + 1.2 * (maps[k] @ cycle(k + 1, maps[k].T @ (b - a @ x), np.zeros(maps[k].shape[1])))
        return jacobi(a, b, x, 1)

    x, norms = np.zeros(n * n), []
    for _ in range(CYCLES):
        x = cycle(0, b, x)
        norms.append(np.linalg.norm(b - systems[0] @ x))
    np.testing.assert_allclose(s.norms, norms, rtol=1e-9)
    np.testing.assert_allclose(s.x.data, x, rtol=1e-9, atol=1e-11)


if __name__ == "__main__":
    main(globals())
