"""Soft particles in a periodic box: ghosts, cells and neighbour lists, made anew every few steps.

Ghosts are images of the particles near a border, listed by a scan; their number changes each time.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1000, "default": 60_000, "large": 400_000}
STEPS, EVERY = 10, 5
REACH, SKIN = 0.9, 0.1


@pk.workunit
def start(i: int, to: pk.View2D[pk.double], source: pk.View2D[pk.double]):
    to[i][0] = source[i][0]
    to[i][1] = source[i][1]


@pk.workunit
def wrap(i: int, x: pk.View2D[pk.double], side: float):
    for a in range(2):
        if x[i][a] < 0.0:
            x[i][a] += side
        elif x[i][a] >= side:
            x[i][a] -= side


@pk.workunit
def count_images(i: int, x: pk.View2D[pk.double], images: pk.View1D[pk.int32], side: float):
    a: pk.int32 = 1
    b: pk.int32 = 1
    if x[i][0] < 1.0 or x[i][0] >= side - 1.0:
        a = 2
    if x[i][1] < 1.0 or x[i][1] >= side - 1.0:
        b = 2
    images[i] = a * b - 1


@pk.workunit
def offsets(
    i: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    count: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
):
    if last:
        first[i] = acc
    acc += count[i]


@pk.workunit
def list_images(
    i: int,
    x: pk.View2D[pk.double],
    first: pk.View1D[pk.int32],
    owner: pk.View1D[pk.int32],
    shift: pk.View2D[pk.double],
    side: float,
):
    sx: pk.double = 0.0
    sy: pk.double = 0.0
    if x[i][0] < 1.0:
        sx = side
    elif x[i][0] >= side - 1.0:
        sx = -side
    if x[i][1] < 1.0:
        sy = side
    elif x[i][1] >= side - 1.0:
        sy = -side
    k: pk.int32 = first[i]
    if sx != 0.0:
        owner[k] = i
        shift[k][0] = sx
        shift[k][1] = 0.0
        k += 1
    if sy != 0.0:
        owner[k] = i
        shift[k][0] = 0.0
        shift[k][1] = sy
        k += 1
    if sx != 0.0 and sy != 0.0:
        owner[k] = i
        shift[k][0] = sx
        shift[k][1] = sy


@pk.workunit
def move_images(
    g: int, x: pk.View2D[pk.double], owner: pk.View1D[pk.int32], shift: pk.View2D[pk.double], n: int
):
    x[n + g][0] = x[owner[g]][0] + shift[g][0]
    x[n + g][1] = x[owner[g]][1] + shift[g][1]


@pk.workunit
def zero(i: int, a: pk.View1D[pk.int32]):
    a[i] = 0


@pk.workunit
def find_cell(
    i: int, x: pk.View2D[pk.double], cell: pk.View1D[pk.int32], count: pk.View1D[pk.int32], w: int
):
    cx: pk.int32 = int(x[i][0] + 1.0)
    cy: pk.int32 = int(x[i][1] + 1.0)
    cell[i] = cx * w + cy
    pk.atomic_add(count, [cx * w + cy], 1)


@pk.workunit
def put(
    i: int,
    cell: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
    used: pk.View1D[pk.int32],
    member: pk.View1D[pk.int32],
):
    k: pk.int32 = pk.atomic_fetch_add(used, [cell[i]], 1)
    member[first[cell[i]] + k] = i


@pk.workunit
def order(
    c: int, count: pk.View1D[pk.int32], first: pk.View1D[pk.int32], member: pk.View1D[pk.int32]
):
    for a in range(1, count[c]):
        value: pk.int32 = member[first[c] + a]
        b: pk.int32 = a - 1
        while b >= 0 and member[first[c] + b] > value:
            member[first[c] + b + 1] = member[first[c] + b]
            b -= 1
        member[first[c] + b + 1] = value


@pk.workunit
def count_near(
    i: int,
    x: pk.View2D[pk.double],
    cell: pk.View1D[pk.int32],
    count: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
    member: pk.View1D[pk.int32],
    near: pk.View1D[pk.int32],
    w: int,
):
    found: pk.int32 = 0
    for a in range(-1, 2):
        for b in range(-1, 2):
            c: pk.int32 = cell[i] + a * w + b
            for k in range(first[c], first[c] + count[c]):
                j: pk.int32 = member[k]
                dx: pk.double = x[j][0] - x[i][0]
                dy: pk.double = x[j][1] - x[i][1]
                if j != i and dx * dx + dy * dy < 1.0:
                    found += 1
    near[i] = found


@pk.workunit
def list_near(
    i: int,
    x: pk.View2D[pk.double],
    cell: pk.View1D[pk.int32],
    count: pk.View1D[pk.int32],
    first: pk.View1D[pk.int32],
    member: pk.View1D[pk.int32],
    begin: pk.View1D[pk.int32],
    pairs: pk.View1D[pk.int32],
    w: int,
):
    at: pk.int32 = begin[i]
    for a in range(-1, 2):
        for b in range(-1, 2):
            c: pk.int32 = cell[i] + a * w + b
            for k in range(first[c], first[c] + count[c]):
                j: pk.int32 = member[k]
                dx: pk.double = x[j][0] - x[i][0]
                dy: pk.double = x[j][1] - x[i][1]
                if j != i and dx * dx + dy * dy < 1.0:
                    pairs[at] = j
                    at += 1


@pk.workunit
def push_apart(
    i: int,
    x: pk.View2D[pk.double],
    begin: pk.View1D[pk.int32],
    near: pk.View1D[pk.int32],
    pairs: pk.View1D[pk.int32],
    force: pk.View2D[pk.double],
    reach: float,
    stiff: float,
):
    fx: pk.double = 0.0
    fy: pk.double = 0.0
    for k in range(begin[i], begin[i] + near[i]):
        dx: pk.double = x[i][0] - x[pairs[k]][0]
        dy: pk.double = x[i][1] - x[pairs[k]][1]
        r2: pk.double = dx * dx + dy * dy
        if r2 < reach * reach:
            r: pk.double = pk.sqrt(r2)
            f: pk.double = stiff * (1.0 - r / reach) / r
            fx += f * dx
            fy += f * dy
    force[i][0] = fx
    force[i][1] = fy


@pk.workunit
def kick(i: int, v: pk.View2D[pk.double], force: pk.View2D[pk.double], dt: float):
    v[i][0] += dt * force[i][0]
    v[i][1] += dt * force[i][1]


@pk.workunit
def drift(i: int, x: pk.View2D[pk.double], v: pk.View2D[pk.double], dt: float):
    x[i][0] += dt * v[i][0]
    x[i][1] += dt * v[i][1]


@pk.workunit
def kinetic(i: int, acc: pk.Acc[pk.double], v: pk.View2D[pk.double]):
    acc += 0.5 * (v[i][0] * v[i][0] + v[i][1] * v[i][1])


@dataclass
class State:
    n: int
    cells: int
    dt: float
    x0: pk.View
    v0: pk.View
    x: pk.View
    v: pk.View
    force: pk.View
    energy: float = 0.0
    ghosts: int = 0
    pairs: int = 0


def setup(n: int) -> State:
    rng = np.random.default_rng(17)
    cells = max(int(np.sqrt(n / 3.0)), 3)
    row = int(np.ceil(np.sqrt(n)))
    place = np.arange(n)
    x = np.stack([place // row, place % row], 1) + 0.5 + rng.uniform(-0.35, 0.35, (n, 2))
    x0, v0, v, force = (pk.View([n, 2], pk.double) for _ in range(4))
    x0[...] = x * (cells / row)
    v0[...] = rng.normal(0.0, 0.4, (n, 2))
    room = n + 4 * int(4 * cells * n / cells**2) + 400
    return State(n, cells, 0.01, x0, v0, pk.View([room, 2], pk.double), v, force)


def run(s: State) -> None:
    n, x, v, force, side, dt = s.n, s.x, s.v, s.force, float(s.cells), s.dt
    w = s.cells + 2
    bins = pk.RangePolicy(0, w * w)
    own = pk.RangePolicy(0, n)
    room = x.shape[0]
    images, first_image, near, begin = (pk.View([n], pk.int32) for _ in range(4))
    owner, cell, member = (pk.View([room], pk.int32) for _ in range(3))
    shift = pk.View([room, 2], pk.double)
    count, first, used = (pk.View([w * w], pk.int32) for _ in range(3))
    pk.parallel_for(own, start, to=x, source=s.x0)
    pk.parallel_for(own, start, to=v, source=s.v0)
    for step in range(STEPS):
        if step % EVERY == 0:
            pk.parallel_for(own, wrap, x=x, side=side)
            pk.parallel_for(own, count_images, x=x, images=images, side=side)
            ghosts = int(pk.parallel_scan(own, offsets, count=images, first=first_image))
            pk.parallel_for(
                own, list_images, x=x, first=first_image, owner=owner, shift=shift, side=side
            )
            halo = pk.RangePolicy(0, ghosts)
            pk.parallel_for(halo, move_images, x=x, owner=owner, shift=shift, n=n)
            everyone = pk.RangePolicy(0, n + ghosts)
            pk.parallel_for(bins, zero, a=count)
            pk.parallel_for(bins, zero, a=used)
            pk.parallel_for(everyone, find_cell, x=x, cell=cell, count=count, w=w)
            pk.parallel_scan(bins, offsets, count=count, first=first)
            pk.parallel_for(everyone, put, cell=cell, first=first, used=used, member=member)
            pk.parallel_for(bins, order, count=count, first=first, member=member)
            where = {"x": x, "cell": cell, "count": count, "first": first, "member": member, "w": w}
            pk.parallel_for(own, count_near, near=near, **where)
            total = int(pk.parallel_scan(own, offsets, count=near, first=begin))
            pairs = pk.View([max(total, 1)], pk.int32)
            pk.parallel_for(own, list_near, begin=begin, pairs=pairs, **where)
        else:
            pk.parallel_for(halo, move_images, x=x, owner=owner, shift=shift, n=n)
        pk.parallel_for(
            own,
            push_apart,
            x=x,
            begin=begin,
            near=near,
            pairs=pairs,
            force=force,
            reach=REACH,
            stiff=20.0,
        )
        pk.parallel_for(own, kick, v=v, force=force, dt=dt)
        pk.parallel_for(own, drift, x=x, v=v, dt=dt)
    s.energy = float(pk.parallel_reduce(own, kinetic, v=v))
    s.ghosts, s.pairs = ghosts, total


def outputs(s: State) -> dict:
    numbers = np.array([s.energy, float(s.ghosts), float(s.pairs)])
    return {"x": np.array(s.x.data[: s.n]), "v": s.v, "numbers": numbers}


def check(s: State, n: int) -> None:
    x, v, side = np.array(s.x0.data), np.array(s.v0.data), float(s.cells)
    pairs = 0
    for step in range(STEPS):
        d = x[:, None] - x[None, :]
        d -= side * np.round(d / side)
        r = np.sqrt((d**2).sum(2))
        np.fill_diagonal(r, 9.0)
        if step % EVERY == 0:
            pairs = int((r < 1.0).sum())
        f = np.where(r < REACH, 20.0 * (1.0 - r / REACH) / r, 0.0)
        v += s.dt * (f[:, :, None] * d).sum(1)
        x += s.dt * v
    gap = s.x.data[:n] - x
    gap -= side * np.round(gap / side)
    np.testing.assert_allclose(gap, 0.0, atol=1e-10)
    np.testing.assert_allclose(s.v.data, v, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(s.energy, 0.5 * (v**2).sum(), rtol=1e-10)
    assert s.pairs == pairs, (s.pairs, pairs)


if __name__ == "__main__":
    main(globals())
