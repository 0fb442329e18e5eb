"""Flames on a 1-D grid that is refined where they are: cells split and merge every second step.

The chemistry takes sub-steps, as many as the total rate asks for; the number of cells comes from a scan.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1024, "default": 100_000, "large": 1_200_000}
STEPS, FINEST = 8, 3
SPLIT, MERGE = 0.06, 0.02
ARRHENIUS, COLD, HEAT = 6.0, 0.2, 0.9


@pk.workunit
def start(
    i: int,
    lev: pk.View1D[pk.int32],
    ix: pk.View1D[pk.int32],
    t: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    t0: pk.View1D[pk.double],
    y0: pk.View1D[pk.double],
):
    lev[i] = 0
    ix[i] = i
    t[i] = t0[i]
    y[i] = y0[i]


@pk.workunit
def widths(i: int, lev: pk.View1D[pk.int32], h: pk.View1D[pk.double]):
    h[i] = 1.0 / (1 << lev[i])


@pk.workunit
def rates(
    i: int,
    t: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    rate: pk.View1D[pk.double],
    beta: float,
):
    rate[i] = 40.0 * y[i] * pk.exp(-beta * (1.0 / t[i] - 1.0))


@pk.workunit
def total_rate(i: int, acc: pk.Acc[pk.double], rate: pk.View1D[pk.double], h: pk.View1D[pk.double]):
    acc += rate[i] * h[i]


@pk.workunit
def burn(
    i: int,
    t: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    rate: pk.View1D[pk.double],
    dt: float,
    heat: float,
):
    gone: pk.double = min(dt * rate[i], y[i])
    y[i] -= gone
    t[i] += heat * gone


@pk.workunit
def face(
    i: int,
    f: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    h: pk.View1D[pk.double],
    diffusion: float,
    m: int,
):
    if i == 0 or i == m:
        f[i] = 0.0
    else:
        f[i] = diffusion * (q[i] - q[i - 1]) / (0.5 * (h[i] + h[i - 1]))


@pk.workunit
def balance(
    i: int, q: pk.View1D[pk.double], f: pk.View1D[pk.double], h: pk.View1D[pk.double], dt: float
):
    q[i] += dt * (f[i + 1] - f[i]) / h[i]


@pk.workunit
def steepness(i: int, g: pk.View1D[pk.double], t: pk.View1D[pk.double], m: int):
    left: pk.double = 0.0
    right: pk.double = 0.0
    if i > 0:
        left = abs(t[i] - t[i - 1])
    if i < m - 1:
        right = abs(t[i + 1] - t[i])
    g[i] = max(left, right)


@pk.workunit
def wish(
    i: int,
    want: pk.View1D[pk.int32],
    g: pk.View1D[pk.double],
    lev: pk.View1D[pk.int32],
    split: float,
    merge: float,
    finest: int,
):
    want[i] = 0
    if g[i] > split and lev[i] < finest:
        want[i] = 1
    elif g[i] < merge and lev[i] > 0:
        want[i] = -1


@pk.workunit
def soften(
    i: int,
    decided: pk.View1D[pk.int32],
    want: pk.View1D[pk.int32],
    lev: pk.View1D[pk.int32],
    m: int,
    finest: int,
):
    top: pk.int32 = 0
    if i > 0:
        top = max(top, lev[i - 1] + want[i - 1])
    if i < m - 1:
        top = max(top, lev[i + 1] + want[i + 1])
    decided[i] = want[i]
    if top > lev[i] + want[i] + 1:
        decided[i] = want[i] + 1


@pk.workunit
def number(
    i: int,
    many: pk.View1D[pk.int32],
    decided: pk.View1D[pk.int32],
    lev: pk.View1D[pk.int32],
    ix: pk.View1D[pk.int32],
    m: int,
):
    many[i] = 1
    if decided[i] == 1:
        many[i] = 2
    elif decided[i] == -1:
        if ix[i] % 2 == 0:
            if i + 1 < m and decided[i + 1] == -1 and lev[i + 1] == lev[i]:
                many[i] = -1
        elif i > 0 and decided[i - 1] == -1 and lev[i - 1] == lev[i]:
            many[i] = 0


@pk.workunit
def place(
    i: int, acc: pk.Acc[pk.int32], last: bool, many: pk.View1D[pk.int32], to: pk.View1D[pk.int32]
):
    if last:
        to[i] = acc
    acc += abs(many[i])


@pk.workunit
def rebuild_tree(
    i: int,
    many: pk.View1D[pk.int32],
    to: pk.View1D[pk.int32],
    lev: pk.View1D[pk.int32],
    ix: pk.View1D[pk.int32],
    lev2: pk.View1D[pk.int32],
    ix2: pk.View1D[pk.int32],
):
    k: pk.int32 = to[i]
    if many[i] == 1:
        lev2[k] = lev[i]
        ix2[k] = ix[i]
    elif many[i] == -1:
        lev2[k] = lev[i] - 1
        ix2[k] = ix[i] // 2
    elif many[i] == 2:
        for a in range(2):
            lev2[k + a] = lev[i] + 1
            ix2[k + a] = 2 * ix[i] + a


@pk.workunit
def rebuild_field(
    i: int,
    many: pk.View1D[pk.int32],
    to: pk.View1D[pk.int32],
    q: pk.View1D[pk.double],
    q2: pk.View1D[pk.double],
    m: int,
):
    k: pk.int32 = to[i]
    if many[i] == 1:
        q2[k] = q[i]
    elif many[i] == -1:
        q2[k] = 0.5 * (q[i] + q[i + 1])
    elif many[i] == 2:
        slope: pk.double = 0.0
        if i > 0 and i < m - 1:
            a: pk.double = q[i] - q[i - 1]
            b: pk.double = q[i + 1] - q[i]
            if a * b > 0.0:
                slope = min(abs(a), abs(b))
                if a < 0.0:
                    slope = -slope
        q2[k] = q[i] - 0.25 * slope
        q2[k + 1] = q[i] + 0.25 * slope


@pk.workunit
def mass(i: int, acc: pk.Acc[pk.double], q: pk.View1D[pk.double], h: pk.View1D[pk.double]):
    acc += q[i] * h[i]


@dataclass
class State:
    n: int
    t0: pk.View
    y0: pk.View
    t: pk.View
    y: pk.View
    lev: pk.View
    cells: int = 0
    substeps: int = 0
    heat: float = 0.0
    fuel: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(11)
    at = np.arange(n) + 0.5
    t = np.full(n, COLD)
    for middle in rng.uniform(0, n, max(n // 128, 2)):
        low, high = max(int(middle) - 40, 0), min(int(middle) + 40, n)
        bump = 0.8 * np.exp(-(((at[low:high] - middle) / 6.0) ** 4))
        t[low:high] = np.maximum(t[low:high], COLD + bump)
    t0, y0 = pk.View([n], pk.double), pk.View([n], pk.double)
    t0[...] = t
    y0[...] = 1.0 - np.clip(1.2 * (t - COLD), 0.0, 0.9)
    room = 4 * n
    return State(
        n, t0, y0, pk.View([room], pk.double), pk.View([room], pk.double), pk.View([room], pk.int32)
    )


def run(s: State) -> None:
    n, room = s.n, 4 * s.n
    t, y, t2, y2, h, rate, ft, fy, g = (pk.View([room + 1], pk.double) for _ in range(9))
    lev, ix, lev2, ix2, want, decided, many, to = (pk.View([room], pk.int32) for _ in range(8))
    dt, m = 0.012, n
    s.substeps = 0
    pk.parallel_for(n, start, lev=lev, ix=ix, t=t, y=y, t0=s.t0, y0=s.y0)
    pk.parallel_for(n, widths, lev=lev, h=h)
    for step in range(STEPS):
        cells, faces = pk.RangePolicy(0, m), pk.RangePolicy(0, m + 1)
        if step % 2 == 0:
            pk.parallel_for(cells, steepness, g=g, t=t, m=m)
            pk.parallel_for(
                cells, wish, want=want, g=g, lev=lev, split=SPLIT, merge=MERGE, finest=FINEST
            )
            pk.parallel_for(cells, soften, decided=decided, want=want, lev=lev, m=m, finest=FINEST)
            pk.parallel_for(cells, number, many=many, decided=decided, lev=lev, ix=ix, m=m)
            new = int(pk.parallel_scan(cells, place, many=many, to=to))
            pk.parallel_for(
                cells, rebuild_tree, many=many, to=to, lev=lev, ix=ix, lev2=lev2, ix2=ix2
            )
            pk.parallel_for(cells, rebuild_field, many=many, to=to, q=t, q2=t2, m=m)
            pk.parallel_for(cells, rebuild_field, many=many, to=to, q=y, q2=y2, m=m)
            t, t2, y, y2, lev, lev2, ix, ix2, m = t2, t, y2, y, lev2, lev, ix2, ix, new
            cells, faces = pk.RangePolicy(0, m), pk.RangePolicy(0, m + 1)
            pk.parallel_for(cells, widths, lev=lev, h=h)
        pk.parallel_for(cells, rates, t=t, y=y, rate=rate, beta=ARRHENIUS)
        speed = float(pk.parallel_reduce(cells, total_rate, rate=rate, h=h)) / n
        subs = min(max(ceil(speed * dt / 0.01), 1), 8)
        s.substeps += subs
        for sub in range(subs):
            if sub > 0:
                pk.parallel_for(cells, rates, t=t, y=y, rate=rate, beta=ARRHENIUS)
            pk.parallel_for(cells, burn, t=t, y=y, rate=rate, dt=dt / subs, heat=HEAT)
        pk.parallel_for(faces, face, f=ft, q=t, h=h, diffusion=0.5, m=m)
        pk.parallel_for(faces, face, f=fy, q=y, h=h, diffusion=0.4, m=m)
        pk.parallel_for(cells, balance, q=t, f=ft, h=h, dt=dt)
        pk.parallel_for(cells, balance, q=y, f=fy, h=h, dt=dt)
    s.heat = float(pk.parallel_reduce(cells, mass, q=t, h=h))
    s.fuel = float(pk.parallel_reduce(cells, mass, q=y, h=h))
    s.t, s.y, s.lev, s.cells = t, y, lev, m


def outputs(s: State) -> dict:
    m = s.cells
    numbers = np.array([s.heat, s.fuel, float(m), float(s.substeps)])
    fields = {
        "t": np.array(s.t.data[:m]),
        "y": np.array(s.y.data[:m]),
        "lev": np.array(s.lev.data[:m]),
    }
    return {**fields, "numbers": numbers}


def check(s: State, n: int) -> None:
    t, y = np.array(s.t0.data), np.array(s.y0.data)
    lev, ix, dt, substeps, sizes = np.zeros(n, int), np.arange(n), 0.012, 0, []
    for step in range(STEPS):
        if step % 2 == 0:
            jump = np.abs(np.diff(t))
            g = np.maximum(np.append(0.0, jump), np.append(jump, 0.0))
            want = np.where(
                (g > SPLIT) & (lev < FINEST), 1, np.where((g < MERGE) & (lev > 0), -1, 0)
            )
            high = lev + want
            top = np.maximum(np.maximum(np.append(0, high[:-1]), np.append(high[1:], 0)), 0)
            want = want + (top > high + 1)
            new = []
            i = 0
            while i < t.size:
                if want[i] == 1:
                    for a in range(2):
                        pair = []
                        for q in (t, y):
                            slope = 0.0
                            if 0 < i < t.size - 1:
                                l, r = q[i] - q[i - 1], q[i + 1] - q[i]
                                slope = np.sign(l) * min(abs(l), abs(r)) if l * r > 0 else 0.0
                            pair.append(q[i] + (0.5 * a - 0.25) * slope)
                        new.append((*pair, lev[i] + 1, 2 * ix[i] + a))
                elif (
                    want[i] == -1
                    and ix[i] % 2 == 0
                    and i + 1 < t.size
                    and want[i + 1] == -1
                    and lev[i + 1] == lev[i]
                ):
                    new.append(
                        (0.5 * (t[i] + t[i + 1]), 0.5 * (y[i] + y[i + 1]), lev[i] - 1, ix[i] // 2)
                    )
                    i += 1
                else:
                    new.append((t[i], y[i], lev[i], ix[i]))
                i += 1
            t, y, lev, ix = (np.array(c) for c in zip(*new))
            sizes.append(t.size)
        h = 0.5**lev
        rate = 40.0 * y * np.exp(-ARRHENIUS * (1.0 / t - 1.0))
        subs = min(max(ceil((rate * h).sum() / n * dt / 0.01), 1), 8)
        substeps += subs
        for sub in range(subs):
            rate = 40.0 * y * np.exp(-ARRHENIUS * (1.0 / t - 1.0))
            gone = np.minimum(dt / subs * rate, y)
            y = y - gone
            t = t + HEAT * gone
        across = 0.5 * (h[1:] + h[:-1])
        t = t + dt * np.diff(np.concatenate([[0.0], 0.5 * np.diff(t) / across, [0.0]])) / h
        y = y + dt * np.diff(np.concatenate([[0.0], 0.4 * np.diff(y) / across, [0.0]])) / h
    assert sizes[-1] == s.cells and substeps == s.substeps, (sizes, s.cells, substeps, s.substeps)
    np.testing.assert_array_equal(s.lev.data[: s.cells], lev)
    np.testing.assert_allclose(s.t.data[: s.cells], t, rtol=1e-10)
    np.testing.assert_allclose(s.y.data[: s.cells], y, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose([s.heat, s.fuel], [(t * h).sum(), (y * h).sum()], rtol=1e-10)


if __name__ == "__main__":
    main(globals())
