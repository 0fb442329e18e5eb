"""Arrival times from many sources on a 3-D grid: only cells whose neighbours changed are solved again.

The list of active cells is packed by a scan each step; the march ends when it is empty.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 12, "default": 46, "large": 100}
BIG = 1.0e9
TINY = 1.0e-12
MOST = 60


@pk.workunit
def fill(c: int, t: pk.View1D[pk.double], stamp: pk.View1D[pk.int32], big: float):
    t[c] = big
    stamp[c] = -1


@pk.workunit
def ignite(
    k: int,
    source: pk.View1D[pk.int32],
    t: pk.View1D[pk.double],
    stamp: pk.View1D[pk.int32],
    row: int,
    plane: int,
):
    c: pk.int32 = source[k]
    t[c] = 0.0
    stamp[c - 1] = 0
    stamp[c + 1] = 0
    stamp[c - row] = 0
    stamp[c + row] = 0
    stamp[c - plane] = 0
    stamp[c + plane] = 0


@pk.workunit
def gather(
    c: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    stamp: pk.View1D[pk.int32],
    slow: pk.View1D[pk.double],
    active: pk.View1D[pk.int32],
    step: int,
):
    if stamp[c] == step and slow[c] > 0.0:
        if last:
            active[acc] = c
        acc += 1


@pk.workunit
def nearest(
    k: int,
    active: pk.View1D[pk.int32],
    t: pk.View1D[pk.double],
    low: pk.View1D[pk.double],
    stride: int,
):
    low[k] = min(t[active[k] - stride], t[active[k] + stride])


@pk.workunit
def in_order(k: int, a: pk.View1D[pk.double], b: pk.View1D[pk.double], c: pk.View1D[pk.double]):
    x: pk.double = min(a[k], b[k])
    y: pk.double = max(a[k], b[k])
    z: pk.double = c[k]
    a[k] = min(x, z)
    b[k] = max(x, min(y, z))
    c[k] = max(y, z)


@pk.workunit
def cost(
    k: int, active: pk.View1D[pk.int32], slow: pk.View1D[pk.double], price: pk.View1D[pk.double]
):
    price[k] = slow[active[k]]


@pk.workunit
def solve(
    k: int,
    a: pk.View1D[pk.double],
    b: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    price: pk.View1D[pk.double],
    new: pk.View1D[pk.double],
):
    f: pk.double = price[k]
    u: pk.double = a[k] + f
    if u > b[k]:
        d: pk.double = a[k] - b[k]
        u = 0.5 * (a[k] + b[k] + pk.sqrt(max(2.0 * f * f - d * d, 0.0)))
        if u > c[k]:
            s: pk.double = a[k] + b[k] + c[k]
            q: pk.double = a[k] * a[k] + b[k] * b[k] + c[k] * c[k]
            u = (s + pk.sqrt(max(s * s - 3.0 * (q - f * f), 0.0))) / 3.0
    new[k] = u


@pk.workunit
def compare(
    k: int,
    active: pk.View1D[pk.int32],
    t: pk.View1D[pk.double],
    new: pk.View1D[pk.double],
    better: pk.View1D[pk.int32],
    tiny: float,
):
    better[k] = 0
    if new[k] < t[active[k]] - tiny:
        better[k] = 1


@pk.workunit
def accept(
    k: int,
    active: pk.View1D[pk.int32],
    t: pk.View1D[pk.double],
    new: pk.View1D[pk.double],
    better: pk.View1D[pk.int32],
):
    if better[k] == 1:
        t[active[k]] = new[k]


@pk.workunit
def wake(
    k: int,
    active: pk.View1D[pk.int32],
    better: pk.View1D[pk.int32],
    stamp: pk.View1D[pk.int32],
    step: int,
    row: int,
    plane: int,
):
    if better[k] == 1:
        c: pk.int32 = active[k]
        stamp[c - 1] = step
        stamp[c + 1] = step
        stamp[c - row] = step
        stamp[c + row] = step
        stamp[c - plane] = step
        stamp[c + plane] = step


@pk.workunit
def gained(k: int, acc: pk.Acc[pk.int32], better: pk.View1D[pk.int32]):
    acc += better[k]


@pk.workunit
def sum_times(c: int, acc: pk.Acc[pk.double], t: pk.View1D[pk.double], slow: pk.View1D[pk.double]):
    if slow[c] > 0.0:
        acc += t[c]


@dataclass
class State:
    n: int
    slow: pk.View
    source: pk.View
    t: pk.View
    solved: int = 0
    steps: int = 0
    mean: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(5)
    m = n + 2
    x = np.arange(m)
    wave = (
        np.sin(0.31 * x)[:, None, None] * np.cos(0.23 * x)[None, :, None]
        + np.sin(0.17 * x)[None, None, :]
    )
    field = np.zeros((m, m, m))
    inner = (slice(1, -1),) * 3
    field[inner] = 1.0 + 0.3 * wave[inner] + 0.2 * rng.random((n, n, n))
    places = rng.choice(n**3, max(n**3 // 900, 2), replace=False)
    i, j, k = np.unravel_index(places, (n, n, n))
    slow, t = pk.View([m**3], pk.double), pk.View([m**3], pk.double)
    source = pk.View([places.size], pk.int32)
    slow[...] = field.ravel()
    source[...] = np.sort(((i + 1) * m + j + 1) * m + k + 1).astype(np.int32)
    return State(n, slow, source, t)


def run(s: State) -> None:
    m = s.n + 2
    row, plane, every = m, m * m, pk.RangePolicy(0, m**3)
    t, slow = s.t, s.slow
    stamp, active, better = (pk.View([m**3], pk.int32) for _ in range(3))
    a, b, c, new, price = (pk.View([m**3], pk.double) for _ in range(5))
    pk.parallel_for(every, fill, t=t, stamp=stamp, big=BIG)
    sources = pk.RangePolicy(0, s.source.shape[0])
    pk.parallel_for(sources, ignite, source=s.source, t=t, stamp=stamp, row=row, plane=plane)
    s.solved = 0
    for step in range(MOST):
        size = int(
            pk.parallel_scan(every, gather, stamp=stamp, slow=slow, active=active, step=step)
        )
        if size == 0:
            break
        s.solved += size
        now = pk.RangePolicy(0, size)
        for low, stride in ((a, 1), (b, row), (c, plane)):
            pk.parallel_for(now, nearest, active=active, t=t, low=low, stride=stride)
        pk.parallel_for(now, in_order, a=a, b=b, c=c)
        pk.parallel_for(now, cost, active=active, slow=slow, price=price)
        pk.parallel_for(now, solve, a=a, b=b, c=c, price=price, new=new)
        pk.parallel_for(now, compare, active=active, t=t, new=new, better=better, tiny=TINY)
        pk.parallel_for(now, accept, active=active, t=t, new=new, better=better)
        pk.parallel_for(
            now,
            wake,
            active=active,
            better=better,
            stamp=stamp,
            step=step + 1,
            row=row,
            plane=plane,
        )
        if int(pk.parallel_reduce(now, gained, better=better)) == 0:
            break
    s.steps = step
    s.mean = float(pk.parallel_reduce(every, sum_times, t=t, slow=slow)) / s.n**3


def outputs(s: State) -> dict:
    m = s.n + 2
    inner = np.array(s.t.data).reshape(m, m, m)[1:-1, 1:-1, 1:-1]
    return {"t": inner, "numbers": np.array([s.mean, float(s.solved), float(s.steps)])}


def check(s: State, n: int) -> None:
    m = n + 2
    slow = np.array(s.slow.data).reshape(m, m, m)
    t = np.full(m**3, BIG)
    t[s.source.data] = 0.0
    t = t.reshape(m, m, m)
    i = (slice(1, -1),) * 3
    f = slow[i]
    while True:
        lows = [np.minimum(np.roll(t, 1, x), np.roll(t, -1, x))[i] for x in range(3)]
        a, b, c = np.sort(np.stack(lows), 0)
        u = a + f
        two = 0.5 * (a + b + np.sqrt(np.maximum(2 * f * f - (a - b) ** 2, 0)))
        v = a + b + c
        three = (v + np.sqrt(np.maximum(v * v - 3 * (a * a + b * b + c * c - f * f), 0))) / 3
        u = np.where(u > b, np.where(two > c, three, two), u)
        better = u < t[i] - TINY
        if not better.any():
            break
        t[i] = np.where(better, u, t[i])
    ours = np.array(s.t.data).reshape(m, m, m)[i]
    np.testing.assert_allclose(ours, t[i], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(s.mean, t[i].mean(), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
