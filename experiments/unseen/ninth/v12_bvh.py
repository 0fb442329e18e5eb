"""Queries of a bounding-volume hierarchy: spheres sorted by Morton codes, an implicit binary tree.

Boxes of leaves and of each level above, then the nearest hit of each ray, by a stack.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 5, "default": 9, "large": 12}  # levels: 2**levels spheres, 4 * that many rays
STACK = 32


@pk.function
def expand(v: int) -> int:
    """Bits of 10 apart by two zeros."""
    x: int = v & 1023
    x = (x | (x << 16)) & 50331903
    x = (x | (x << 8)) & 50393103
    x = (x | (x << 4)) & 51130563
    return (x | (x << 2)) & 153391689


@pk.workunit
def move(
    i: int, c: pk.View2D[pk.double], c0: pk.View2D[pk.double], v: pk.View2D[pk.double], t: float
):
    for d in range(3):
        c[i][d] = c0[i][d] + t * v[i][d]


@pk.workunit
def morton(i: int, code: pk.View1D[pk.int32], c: pk.View2D[pk.double]):
    x: int = min(max(c[i][0] * 1024.0, 0.0), 1023.0)
    y: int = min(max(c[i][1] * 1024.0, 0.0), 1023.0)
    z: int = min(max(c[i][2] * 1024.0, 0.0), 1023.0)
    code[i] = expand(x) * 4 + expand(y) * 2 + expand(z)


@pk.workunit
def rank_of(i: int, rank: pk.View1D[pk.int32], code: pk.View1D[pk.int32], n: int):
    """The place in the sorted order, by counting; equal codes by their number."""
    r: int = 0
    for k in range(n):
        if code[k] < code[i] or (code[k] == code[i] and k < i):
            r += 1
    rank[i] = r


@pk.workunit
def permute(i: int, order: pk.View1D[pk.int32], rank: pk.View1D[pk.int32]):
    order[rank[i]] = i


@pk.workunit
def leaf_boxes(
    k: int,
    low: pk.View2D[pk.double],
    high: pk.View2D[pk.double],
    c: pk.View2D[pk.double],
    radius: pk.View1D[pk.double],
    order: pk.View1D[pk.int32],
    n: int,
):
    """Leaf k is node n + k of a heap whose root is 1."""
    s: int = order[k]
    for d in range(3):
        low[n + k][d] = c[s][d] - radius[s]
        high[n + k][d] = c[s][d] + radius[s]


@pk.workunit
def merge_low(k: int, low: pk.View2D[pk.double], first: int):
    for d in range(3):
        low[first + k][d] = min(low[2 * (first + k)][d], low[2 * (first + k) + 1][d])


@pk.workunit
def merge_high(k: int, high: pk.View2D[pk.double], first: int):
    for d in range(3):
        high[first + k][d] = max(high[2 * (first + k)][d], high[2 * (first + k) + 1][d])


@pk.workunit
def aim(r: int, inv: pk.View2D[pk.double], d: pk.View2D[pk.double]):
    for a in range(3):
        inv[r][a] = 1.0 / d[r][a]


@pk.function
def sphere_hit(
    ox: float, oy: float, oz: float, dx: float, dy: float, dz: float, radius: float
) -> float:
    """Distance along a unit direction from an origin relative to the centre, or a huge number."""
    b: float = ox * dx + oy * dy + oz * dz
    c: float = ox * ox + oy * oy + oz * oz - radius * radius
    disc: float = b * b - c
    t: float = 1e30
    if disc > 0.0:
        t = -b - pk.sqrt(disc)
        if t < 0.0:
            t = 1e30
    return t


@pk.workunit
def trace(
    r: int,
    dist: pk.View1D[pk.double],
    hit: pk.View1D[pk.int32],
    visits: pk.View1D[pk.int32],
    stack: pk.View2D[pk.int32],
    o: pk.View2D[pk.double],
    d: pk.View2D[pk.double],
    inv: pk.View2D[pk.double],
    low: pk.View2D[pk.double],
    high: pk.View2D[pk.double],
    c: pk.View2D[pk.double],
    radius: pk.View1D[pk.double],
    order: pk.View1D[pk.int32],
    n: int,
):
    best: float = 1e30
    which: int = -1
    seen: int = 0
    depth: int = 1
    stack[r][0] = 1
    while depth > 0:
        depth -= 1
        node: int = stack[r][depth]
        seen += 1
        near: float = 0.0
        far: float = best
        for a in range(3):
            t0: float = (low[node][a] - o[r][a]) * inv[r][a]
            t1: float = (high[node][a] - o[r][a]) * inv[r][a]
            near = max(near, min(t0, t1))
            far = min(far, max(t0, t1))
        if near <= far:
            if node >= n:
                s: int = order[node - n]
                t: float = sphere_hit(
                    o[r][0] - c[s][0],
                    o[r][1] - c[s][1],
                    o[r][2] - c[s][2],
                    d[r][0],
                    d[r][1],
                    d[r][2],
                    radius[s],
                )
                if t < best:
                    best = t
                    which = s
            else:
                stack[r][depth] = 2 * node + 1
                stack[r][depth + 1] = 2 * node
                depth += 2
    dist[r] = best
    hit[r] = which
    visits[r] = seen


@pk.workunit
def shade(
    r: int,
    light: pk.View1D[pk.double],
    dist: pk.View1D[pk.double],
    hit: pk.View1D[pk.int32],
    o: pk.View2D[pk.double],
    d: pk.View2D[pk.double],
    c: pk.View2D[pk.double],
    radius: pk.View1D[pk.double],
):
    light[r] = 0.1
    if hit[r] >= 0:
        z: float = (o[r][2] + dist[r] * d[r][2] - c[hit[r]][2]) / radius[hit[r]]
        light[r] = max(z, 0.0)


@pk.workunit
def fog(r: int, light: pk.View1D[pk.double], dist: pk.View1D[pk.double]):
    if dist[r] < 1e29:
        light[r] *= pk.exp(-0.5 * dist[r])


@pk.workunit
def sum_of(r: int, acc: pk.Acc[pk.double], light: pk.View1D[pk.double]):
    acc += light[r]


@pk.workunit
def count(r: int, acc: pk.Acc[pk.int64], hit: pk.View1D[pk.int32]):
    if hit[r] >= 0:
        acc += 1


@pk.workunit
def work(r: int, acc: pk.Acc[pk.int64], visits: pk.View1D[pk.int32]):
    acc += visits[r]


@dataclass
class State:
    size: int
    c0: pk.View
    v: pk.View
    radius: pk.View
    o: pk.View
    d: pk.View
    c: pk.View
    light: pk.View
    hit: pk.View
    brightness: float = 0.0
    hits: int = 0
    visited: int = 0


def problem(levels):
    rng = np.random.default_rng(12)
    n = 2**levels
    c = rng.uniform(0.1, 0.9, (n, 3))
    v = rng.normal(0, 0.05, (n, 3))
    radius = rng.uniform(0.2, 0.6, n) / n ** (1 / 3) / 2
    m = 4 * n
    o = np.stack([rng.uniform(0, 1, m), rng.uniform(0, 1, m), np.full(m, 2.0)], axis=1)
    d = [*rng.normal(0, 0.1, (m, 3)), 0, 0, -1]
    d /= np.sqrt((d**2).sum(axis=1, keepdims=True))
    return c, v, radius, o, d


def setup(levels):
    arrays = problem(levels)
    n = 2**levels
    return State(
        levels,
        *map(view, arrays),
        pk.View([n, 3], pk.double),
        pk.View([4 * n], pk.double),
        pk.View([4 * n], pk.int32),
    )


def run(s):
    n = 2**s.size
    m = 4 * n
    code, rank, order = (pk.View([n], pk.int32) for _ in range(3))
    low, high = pk.View([2 * n, 3], pk.double), pk.View([2 * n, 3], pk.double)
    inv, dist = pk.View([m, 3], pk.double), pk.View([m], pk.double)
    visits, stack = pk.View([m], pk.int32), pk.View([m, STACK], pk.int32)
    pk.parallel_for(n, move, c=s.c, c0=s.c0, v=s.v, t=0.5)
    pk.parallel_for(n, morton, code=code, c=s.c)
    pk.parallel_for(n, rank_of, rank=rank, code=code, n=n)
    pk.parallel_for(n, permute, order=order, rank=rank)
    pk.parallel_for(n, leaf_boxes, low=low, high=high, c=s.c, radius=s.radius, order=order, n=n)
    first = n // 2
    while first >= 1:
        pk.parallel_for(first, merge_low, low=low, first=first)
        pk.parallel_for(first, merge_high, high=high, first=first)
        first //= 2
    pk.parallel_for(m, aim, inv=inv, d=s.d)
    pk.parallel_for(
        m,
        trace,
        dist=dist,
        hit=s.hit,
        visits=visits,
        stack=stack,
        o=s.o,
        d=s.d,
        inv=inv,
        low=low,
        high=high,
        c=s.c,
        radius=s.radius,
        order=order,
        n=n,
    )
    pk.parallel_for(
        m, shade, light=s.light, dist=dist, hit=s.hit, o=s.o, d=s.d, c=s.c, radius=s.radius
    )
    pk.parallel_for(m, fog, light=s.light, dist=dist)
    total = pk.parallel_reduce(m, sum_of, light=s.light)
    hits = pk.parallel_reduce(m, count, hit=s.hit)
    visited = pk.parallel_reduce(m, work, visits=visits)
    s.brightness, s.hits, s.visited = float(total) / m, int(hits), int(visited)


def outputs(s):
    return {a: np.array(getattr(s, a).data) for a in ("c", "light", "hit")} | {
        a: getattr(s, a) for a in ("brightness", "hits", "visited")
    }


def check(s):
    c, v, radius, o, d = problem(s.size)
    c = c + 0.5 * v
    best, which = np.full(len(o), 1e30), np.full(len(o), -1)
    for a in range(0, len(o), 1024):
        part = slice(a, a + 1024)
        rel = o[part, None] - c
        b = (rel * d[part, None]).sum(-1)
        disc = b * b - (rel**2).sum(-1) + radius**2
        t = np.where(disc > 0, -b - np.sqrt(np.maximum(disc, 0)), 1e30)
        t[t < 0] = 1e30
        best[part] = t.min(axis=1)
        which[part] = np.where(best[part] < 1e29, t.argmin(axis=1), -1)
    assert (s.hit.data == which).mean() > 0.9999 and s.hits == (s.hit.data >= 0).sum() > 0
    z = (o[:, 2] + best * d[:, 2] - c[which, 2]) / radius[which]
    light = np.where(which >= 0, np.maximum(z, 0) * np.exp(-0.5 * np.minimum(best, 1e3)), 0.1)
    assert (abs(s.light.data - light) < 1e-9).mean() > 0.9999
    np.testing.assert_allclose(s.brightness, s.light.data.mean(), rtol=1e-9)
    assert 4 * 2**s.size <= s.visited


if __name__ == "__main__":
    main(globals())
