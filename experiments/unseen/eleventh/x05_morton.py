"""Particles put in Morton order by a radix sort, and the clusters of the sorted cells.

Coordinates become cells and their bits interleave to a key of 18 bits. A pass of the sort moves
the particles without a bit before those with it, by a scan. Then positions are gathered, occupied
cells are numbered by another scan, and their particles, centres and crowds are found.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 100_000, "large": 1_400_000}
LEVELS = 6


@pk.workunit
def cell(i: int, c: pk.View1D[pk.int32], x: pk.View1D[pk.double], cells: int):
    c[i] = int(x[i] * cells)


@pk.workunit
def spread(i: int, s: pk.View1D[pk.int32], c: pk.View1D[pk.int32]):
    """Two zeros between any two bits."""
    v: int = c[i]
    v = (v | (v << 8)) & 0x0300F00F
    v = (v | (v << 4)) & 0x030C30C3
    v = (v | (v << 2)) & 0x09249249
    s[i] = v


@pk.workunit
def interleave(
    i: int,
    key: pk.View1D[pk.int32],
    a: pk.View1D[pk.int32],
    b: pk.View1D[pk.int32],
    c: pk.View1D[pk.int32],
):
    key[i] = a[i] | (b[i] << 1) | (c[i] << 2)


@pk.workunit
def number(i: int, order: pk.View1D[pk.int32]):
    order[i] = i


@pk.workunit
def bit_unset(i: int, zero: pk.View1D[pk.int32], key: pk.View1D[pk.int32], bit: int):
    zero[i] = 1 - ((key[i] >> bit) & 1)


@pk.workunit
def before(
    i: int, acc: pk.Acc[pk.int64], last: bool, place: pk.View1D[pk.int32], x: pk.View1D[pk.int32]
):
    if last:
        place[i] = acc
    acc += x[i]


@pk.workunit
def destination(
    i: int,
    to: pk.View1D[pk.int32],
    zero: pk.View1D[pk.int32],
    place: pk.View1D[pk.int32],
    zeros: int,
):
    if zero[i] == 1:
        to[i] = place[i]
    else:
        to[i] = zeros + i - place[i]


@pk.workunit
def scatter(i: int, out: pk.View1D[pk.int32], x: pk.View1D[pk.int32], to: pk.View1D[pk.int32]):
    out[to[i]] = x[i]


@pk.workunit
def gather(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double], order: pk.View1D[pk.int32]):
    out[i] = x[order[i]]


@pk.workunit
def first_start(i: int, start: pk.View1D[pk.int32]):
    start[i] = 1


@pk.workunit
def starts(i: int, start: pk.View1D[pk.int32], key: pk.View1D[pk.int32]):
    if key[i] != key[i - 1]:
        start[i] = 1
    else:
        start[i] = 0


@pk.workunit
def find_begin(
    i: int, begin: pk.View1D[pk.int32], start: pk.View1D[pk.int32], place: pk.View1D[pk.int32]
):
    if start[i] == 1:
        begin[place[i]] = i


@pk.workunit
def end_mark(k: int, begin: pk.View1D[pk.int32], cells: int, n: int):
    begin[cells + k] = n


@pk.workunit
def centre(c: int, mean: pk.View1D[pk.double], x: pk.View1D[pk.double], begin: pk.View1D[pk.int32]):
    s: float = 0.0
    for i in range(begin[c], begin[c + 1]):
        s += x[i]
    mean[c] = s / (begin[c + 1] - begin[c])


@pk.workunit
def crowded(c: int, acc: pk.Acc[pk.int64], begin: pk.View1D[pk.int32], least: int):
    if begin[c + 1] - begin[c] >= least:
        acc += 1


@pk.workunit
def path(
    i: int,
    acc: pk.Acc[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
):
    """How far it is from one particle to the next."""
    dx: float = x[i] - x[i - 1]
    dy: float = y[i] - y[i - 1]
    dz: float = z[i] - z[i - 1]
    acc += pk.sqrt(dx * dx + dy * dy + dz * dz)


@dataclass
class State:
    """Coordinates as they came and sorted; keys and order; centres of the cells; a summary."""

    n: int
    x: list
    sorted: list
    key: pk.View
    order: pk.View
    means: list = field(default_factory=list)
    summary: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(115)
    x, after = ([pk.View([n], pk.double) for _ in range(3)] for _ in range(2))
    middle = rng.random((20, 3))
    which = rng.integers(0, 20, n)
    for axis in range(3):
        clump = middle[which, axis] + rng.normal(0.0, 0.05, n)
        x[axis].data[:] = np.where(rng.random(n) < 0.5, clump, rng.random(n)) % 1.0
    return State(n, x, after, pk.View([n], pk.int32), pk.View([n], pk.int32))


def run(state: State) -> None:
    n = state.n
    key, order = pk.View([n], pk.int32), pk.View([n], pk.int32)
    key2, order2 = pk.View([n], pk.int32), pk.View([n], pk.int32)
    zero, place, to = (pk.View([n], pk.int32) for _ in range(3))
    bits = []
    for x in state.x:
        c, s = pk.View([n], pk.int32), pk.View([n], pk.int32)
        pk.parallel_for(n, cell, c=c, x=x, cells=1 << LEVELS)
        pk.parallel_for(n, spread, s=s, c=c)
        bits.append(s)
    pk.parallel_for(n, interleave, key=key, a=bits[0], b=bits[1], c=bits[2])
    pk.parallel_for(n, number, order=order)
    for bit in range(3 * LEVELS):
        pk.parallel_for(n, bit_unset, zero=zero, key=key, bit=bit)
        zeros = int(pk.parallel_scan(n, before, place=place, x=zero))
        pk.parallel_for(n, destination, to=to, zero=zero, place=place, zeros=zeros)
        pk.parallel_for(n, scatter, out=key2, x=key, to=to)
        pk.parallel_for(n, scatter, out=order2, x=order, to=to)
        key, key2 = key2, key
        order, order2 = order2, order
    state.key, state.order = key, order
    for x, after in zip(state.x, state.sorted):
        pk.parallel_for(n, gather, out=after, x=x, order=order)
    start = pk.View([n], pk.int32)
    pk.parallel_for(1, first_start, start=start)
    pk.parallel_for(pk.RangePolicy(1, n), starts, start=start, key=key)
    cells = int(pk.parallel_scan(n, before, place=place, x=start))
    begin = pk.View([cells + 1], pk.int32)
    pk.parallel_for(n, find_begin, begin=begin, start=start, place=place)
    pk.parallel_for(1, end_mark, begin=begin, cells=cells, n=n)
    state.means = []
    for after in state.sorted:
        mean = pk.View([cells], pk.double)
        pk.parallel_for(cells, centre, mean=mean, x=after, begin=begin)
        state.means.append(mean)
    crowds = pk.parallel_reduce(cells, crowded, begin=begin, least=4)
    x, y, z = state.sorted
    length = pk.parallel_reduce(pk.RangePolicy(1, n), path, x=x, y=y, z=z)
    state.summary = [float(cells), float(crowds), float(length)]


def outputs(state: State) -> dict:
    return {
        "key": np.array(state.key.data),
        "order": np.array(state.order.data),
        "sorted": np.array([x.data for x in state.sorted]),
        "means": np.array([m.data for m in state.means]),
        "summary": np.array(state.summary),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    x = np.array([v.data for v in setup(n).x])
    cells = (x * (1 << LEVELS)).astype(int)
    key = np.zeros(n, int)
    for bit in range(LEVELS):
        for axis in range(3):
            key += ((cells[axis] >> bit) & 1) << (3 * bit + axis)
    order = np.argsort(key, kind="stable")
    x = x[:, order]
    _, begin, count = np.unique(key[order], return_index=True, return_counts=True)
    length = np.sum(np.sqrt(np.sum(np.diff(x, axis=1) ** 2, axis=0)))
    out = outputs(state)
    np.testing.assert_array_equal(out["key"], key[order])
    np.testing.assert_array_equal(out["order"], order)
    np.testing.assert_array_equal(out["sorted"], x)
    np.testing.assert_allclose(out["means"], np.add.reduceat(x, begin, axis=1) / count, rtol=1e-12)
    np.testing.assert_allclose(out["summary"], [begin.size, np.sum(count >= 4), length], rtol=1e-12)


if __name__ == "__main__":
    main(globals())
