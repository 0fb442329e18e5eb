"""Light in layered tissue: photons hop, are absorbed, scatter and leave; the live ones are packed each step.

Random numbers are hashes of a photon's number and the step; what is absorbed is counted in fixed point.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1000, "default": 60_000, "large": 1_000_000}
STEPS = 14
DEPTH, RADIAL = 48, 32
THICK = 2.4
ONE = 1048576.0


@pk.workunit
def launch(
    i: int,
    pos: pk.View2D[pk.double],
    way: pk.View2D[pk.double],
    w: pk.View1D[pk.double],
    who: pk.View1D[pk.int32],
):
    pos[i][0] = 0.0
    pos[i][1] = 0.0
    pos[i][2] = 0.0
    way[i][0] = 0.0
    way[i][1] = 0.0
    way[i][2] = 1.0
    w[i] = 1.0
    who[i] = i


@pk.workunit
def clear(a: int, b: int, grid: pk.View2D[pk.int64]):
    grid[a][b] = 0


@pk.workunit
def draw(i: int, u: pk.View2D[pk.double], who: pk.View1D[pk.int32], step: int):
    for k in range(4):
        x: pk.int64 = (who[i] * 2654435761 + (step * 4 + k) * 40503 + 12345) & 4294967295
        x = ((x ^ (x >> 16)) * 739982445) & 4294967295
        x = ((x ^ (x >> 15)) * 695872825) & 4294967295
        x = x ^ (x >> 16)
        u[i][k] = (pk.double(x) + 0.5) / 4294967296.0


@pk.workunit
def properties(
    i: int, pos: pk.View2D[pk.double], mua: pk.View1D[pk.double], mut: pk.View1D[pk.double]
):
    z: pk.double = pos[i][2]
    if z < 0.3:
        mua[i] = 0.8
        mut[i] = 8.8
    elif z < 0.9:
        mua[i] = 2.5
        mut[i] = 12.0
    else:
        mua[i] = 0.4
        mut[i] = 6.0


@pk.workunit
def hop(
    i: int,
    pos: pk.View2D[pk.double],
    way: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    mut: pk.View1D[pk.double],
):
    length: pk.double = -pk.log(u[i][0]) / mut[i]
    for a in range(3):
        pos[i][a] += length * way[i][a]


@pk.workunit
def leave(
    i: int,
    pos: pk.View2D[pk.double],
    w: pk.View1D[pk.double],
    out: pk.View1D[pk.int64],
    through: pk.View1D[pk.int64],
    thick: float,
    one: float,
):
    if pos[i][2] < 0.0 or pos[i][2] > thick:
        r: pk.double = pk.sqrt(pos[i][0] * pos[i][0] + pos[i][1] * pos[i][1])
        b: pk.int32 = int(min(r * 16.0, 31.0))
        part: pk.int64 = int(w[i] * one + 0.5)
        if pos[i][2] < 0.0:
            pk.atomic_add(out, [b], part)
        else:
            pk.atomic_add(through, [b], part)
        w[i] = 0.0


@pk.workunit
def absorb(
    i: int,
    pos: pk.View2D[pk.double],
    w: pk.View1D[pk.double],
    mua: pk.View1D[pk.double],
    mut: pk.View1D[pk.double],
    grid: pk.View2D[pk.int64],
    scale: float,
    one: float,
):
    if w[i] > 0.0:
        part: pk.double = w[i] * mua[i] / mut[i]
        r: pk.double = pk.sqrt(pos[i][0] * pos[i][0] + pos[i][1] * pos[i][1])
        a: pk.int32 = int(min(pos[i][2] * scale, 47.0))
        b: pk.int32 = int(min(r * 16.0, 31.0))
        amount: pk.int64 = int(part * one + 0.5)
        pk.atomic_add(grid, [a, b], amount)
        w[i] -= part


@pk.workunit
def turn(i: int, way: pk.View2D[pk.double], u: pk.View2D[pk.double], g: float):
    inner: pk.double = (1.0 - g * g) / (1.0 - g + 2.0 * g * u[i][1])
    c: pk.double = (1.0 + g * g - inner * inner) / (2.0 * g)
    s: pk.double = pk.sqrt(max(1.0 - c * c, 0.0))
    angle: pk.double = 6.283185307179586 * u[i][2]
    cp: pk.double = pk.cos(angle)
    sp: pk.double = pk.sin(angle)
    x: pk.double = way[i][0]
    y: pk.double = way[i][1]
    z: pk.double = way[i][2]
    if abs(z) > 0.99999:
        way[i][0] = s * cp
        way[i][1] = s * sp
        way[i][2] = c
        if z < 0.0:
            way[i][2] = -c
    else:
        root: pk.double = pk.sqrt(1.0 - z * z)
        way[i][0] = s * (x * z * cp - y * sp) / root + x * c
        way[i][1] = s * (y * z * cp + x * sp) / root + y * c
        way[i][2] = -s * cp * root + z * c


@pk.workunit
def roulette(i: int, w: pk.View1D[pk.double], u: pk.View2D[pk.double], least: float):
    if w[i] > 0.0 and w[i] < least:
        if u[i][3] < 0.25:
            w[i] *= 4.0
        else:
            w[i] = 0.0


@pk.workunit
def mark(i: int, w: pk.View1D[pk.double], alive: pk.View1D[pk.int32]):
    alive[i] = 0
    if w[i] > 0.0:
        alive[i] = 1


@pk.workunit
def slots(
    i: int, acc: pk.Acc[pk.int32], last: bool, alive: pk.View1D[pk.int32], slot: pk.View1D[pk.int32]
):
    if last:
        slot[i] = acc
    acc += alive[i]


@pk.workunit
def pack3(
    i: int,
    alive: pk.View1D[pk.int32],
    slot: pk.View1D[pk.int32],
    a: pk.View2D[pk.double],
    a2: pk.View2D[pk.double],
):
    if alive[i] == 1:
        for k in range(3):
            a2[slot[i]][k] = a[i][k]


@pk.workunit
def pack(
    i: int,
    alive: pk.View1D[pk.int32],
    slot: pk.View1D[pk.int32],
    w: pk.View1D[pk.double],
    w2: pk.View1D[pk.double],
    who: pk.View1D[pk.int32],
    who2: pk.View1D[pk.int32],
):
    if alive[i] == 1:
        w2[slot[i]] = w[i]
        who2[slot[i]] = who[i]


@pk.workunit
def left_over(i: int, acc: pk.Acc[pk.double], w: pk.View1D[pk.double]):
    acc += w[i]


@dataclass
class State:
    n: int
    grid: pk.View
    out: pk.View
    through: pk.View
    rest: float = 0.0
    live: int = 0


def setup(n: int) -> State:
    grid = pk.View([DEPTH, RADIAL], pk.int64)
    return State(n, grid, pk.View([RADIAL], pk.int64), pk.View([RADIAL], pk.int64))


def run(s: State) -> None:
    n, m = s.n, s.n
    pos, way, pos2, way2 = (pk.View([n, 3], pk.double) for _ in range(4))
    w, w2, mua, mut = (pk.View([n], pk.double) for _ in range(4))
    who, who2, alive, slot = (pk.View([n], pk.int32) for _ in range(4))
    u = pk.View([n, 4], pk.double)
    pk.parallel_for(n, launch, pos=pos, way=way, w=w, who=who)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [DEPTH, RADIAL]), clear, grid=s.grid)
    s.out.fill(0)
    s.through.fill(0)
    for step in range(STEPS):
        live = pk.RangePolicy(0, m)
        pk.parallel_for(live, draw, u=u, who=who, step=step)
        pk.parallel_for(live, properties, pos=pos, mua=mua, mut=mut)
        pk.parallel_for(live, hop, pos=pos, way=way, u=u, mut=mut)
        pk.parallel_for(
            live, leave, pos=pos, w=w, out=s.out, through=s.through, thick=THICK, one=ONE
        )
        pk.parallel_for(
            live, absorb, pos=pos, w=w, mua=mua, mut=mut, grid=s.grid, scale=DEPTH / THICK, one=ONE
        )
        pk.parallel_for(live, turn, way=way, u=u, g=0.8)
        pk.parallel_for(live, roulette, w=w, u=u, least=0.35)
        pk.parallel_for(live, mark, w=w, alive=alive)
        new = int(pk.parallel_scan(live, slots, alive=alive, slot=slot))
        if new == 0:
            m = 0
            break
        if new < m:
            pk.parallel_for(live, pack3, alive=alive, slot=slot, a=pos, a2=pos2)
            pk.parallel_for(live, pack3, alive=alive, slot=slot, a=way, a2=way2)
            pk.parallel_for(live, pack, alive=alive, slot=slot, w=w, w2=w2, who=who, who2=who2)
            pos, pos2, way, way2, w, w2, who, who2 = pos2, pos, way2, way, w2, w, who2, who
            m = new
    s.rest = float(pk.parallel_reduce(pk.RangePolicy(0, m), left_over, w=w))
    s.live = m


def outputs(s: State) -> dict:
    return {
        "grid": s.grid,
        "out": s.out,
        "through": s.through,
        "numbers": np.array([s.rest, float(s.live)]),
    }


def check(s: State, n: int) -> None:
    pos, way, w, who = np.zeros((n, 3)), np.zeros((n, 3)), np.ones(n), np.arange(n)
    way[:, 2] = 1.0

    def fixed(x):
        return np.floor(x * ONE + 0.5) / ONE

    grid, out, through, g = np.zeros((DEPTH, RADIAL)), np.zeros(RADIAL), np.zeros(RADIAL), 0.8
    for step in range(STEPS):
        x = (who[:, None] * 2654435761 + (step * 4 + np.arange(4)) * 40503 + 12345) & 4294967295
        x = ((x ^ (x >> 16)) * 739982445) & 4294967295
        x = ((x ^ (x >> 15)) * 695872825) & 4294967295
        u = ((x ^ (x >> 16)) + 0.5) / 4294967296.0
        z = pos[:, 2]
        mua, mut = (
            np.select([z < 0.3, z < 0.9], [0.8, 2.5], 0.4),
            np.select([z < 0.3, z < 0.9], [8.8, 12.0], 6.0),
        )
        pos = pos - (np.log(u[:, 0]) / mut)[:, None] * way
        b = np.minimum(np.hypot(pos[:, 0], pos[:, 1]) * 16.0, 31.0).astype(int)
        up, down = pos[:, 2] < 0, pos[:, 2] > THICK
        np.add.at(out, b[up], fixed(w[up]))
        np.add.at(through, b[down], fixed(w[down]))
        w = np.where(up | down, 0.0, w)
        part = w * mua / mut
        a = np.clip(pos[:, 2] * DEPTH / THICK, 0.0, 47.0).astype(int)
        np.add.at(grid, (a, b), fixed(part))
        w = w - part
        c = (1 + g * g - ((1 - g * g) / (1 - g + 2 * g * u[:, 1])) ** 2) / (2 * g)
        si, angle = np.sqrt(np.maximum(1 - c * c, 0)), 2 * np.pi * u[:, 2]
        cp, sp = np.cos(angle), np.sin(angle)
        vx, vy, vz = way.T
        root = np.sqrt(np.maximum(1 - vz * vz, 1e-300))
        bent = [
            si * (vx * vz * cp - vy * sp) / root + vx * c,
            si * (vy * vz * cp + vx * sp) / root + vy * c,
        ]
        bent = np.stack([*bent, -si * cp * root + vz * c], 1)
        straight = np.stack([si * cp, si * sp, np.where(vz < 0, -c, c)], 1)
        way = np.where((np.abs(vz) > 0.99999)[:, None], straight, bent)
        w = np.where((w > 0) & (w < 0.35), np.where(u[:, 3] < 0.25, 4 * w, 0.0), w)
        keep = w > 0
        pos, way, w, who = pos[keep], way[keep], w[keep], who[keep]
    assert s.live == w.size, (s.live, w.size)
    np.testing.assert_allclose(s.rest, w.sum(), rtol=1e-9)
    for view, ref in ((s.grid, grid), (s.out, out), (s.through, through)):
        np.testing.assert_allclose(np.array(view.data) / ONE, ref, atol=5e-4)
    total = (s.grid.data.sum() + s.out.data.sum() + s.through.data.sum()) / ONE
    np.testing.assert_allclose(total, grid.sum() + out.sum() + through.sum(), rtol=1e-5)


if __name__ == "__main__":
    main(globals())
