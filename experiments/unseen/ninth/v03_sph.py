"""Smoothed particle hydrodynamics: a liquid in a box, neighbours by lists of cells.

Cells are filled with atomics and each is sorted then, so that sums have one order.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 400, "default": 8_000, "large": 80_000}
STEPS, REST, STIFF, GRAVITY = 2, 1.0, 50.0, -5.0


@pk.function
def poly(q: float) -> float:
    return q * q * q


@pk.workunit
def clear(c: int, v: pk.View1D[pk.int32]):
    v[c] = 0


@pk.workunit
def find_cell(p: int, cell: pk.View1D[pk.int32], x: pk.View2D[pk.double], h: float, m: int):
    a: int = x[p][0] / h
    b: int = x[p][1] / h
    a = max(0, min(m - 1, a))
    b = max(0, min(m - 1, b))
    cell[p] = a * m + b


@pk.workunit
def count(p: int, number: pk.View1D[pk.int32], cell: pk.View1D[pk.int32]):
    pk.atomic_increment(number, [cell[p]])


@pk.workunit
def starts(
    c: int,
    acc: pk.Acc[pk.int64],
    last: bool,
    start: pk.View1D[pk.int32],
    number: pk.View1D[pk.int32],
):
    if last:
        start[c] = acc
    acc += number[c]


@pk.workunit
def fill_lists(
    p: int,
    items: pk.View1D[pk.int32],
    used: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    cell: pk.View1D[pk.int32],
):
    slot: int = pk.atomic_fetch_add(used, [cell[p]], 1)
    items[start[cell[p]] + slot] = p


@pk.workunit
def sort_cell(
    c: int, items: pk.View1D[pk.int32], start: pk.View1D[pk.int32], number: pk.View1D[pk.int32]
):
    for a in range(1, number[c]):
        item: int = items[start[c] + a]
        b: int = a
        while b > 0 and items[start[c] + b - 1] > item:
            items[start[c] + b] = items[start[c] + b - 1]
            b = b - 1
        items[start[c] + b] = item


@pk.workunit
def density(
    p: int,
    rho: pk.View1D[pk.double],
    x: pk.View2D[pk.double],
    items: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    number: pk.View1D[pk.int32],
    cell: pk.View1D[pk.int32],
    h: float,
    scale: float,
    m: int,
):
    ca: int = cell[p] // m
    cb: int = cell[p] % m
    total: float = 0.0
    for a in range(max(0, ca - 1), min(m, ca + 2)):
        for b in range(max(0, cb - 1), min(m, cb + 2)):
            c: int = a * m + b
            for k in range(start[c], start[c] + number[c]):
                q: int = items[k]
                dx: float = x[q][0] - x[p][0]
                dy: float = x[q][1] - x[p][1]
                r2: float = dx * dx + dy * dy
                if r2 < h * h:
                    total += poly(h * h - r2)
    rho[p] = total * scale


@pk.workunit
def pressure(
    p: int, pr: pk.View1D[pk.double], rho: pk.View1D[pk.double], rest: float, stiff: float
):
    pr[p] = stiff * max(rho[p] - rest, 0.0)


@pk.workunit
def forces(
    p: int,
    acc: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    rho: pk.View1D[pk.double],
    pr: pk.View1D[pk.double],
    items: pk.View1D[pk.int32],
    start: pk.View1D[pk.int32],
    number: pk.View1D[pk.int32],
    cell: pk.View1D[pk.int32],
    h: float,
    mass: float,
    spiky: float,
    visc: float,
    m: int,
):
    ca: int = cell[p] // m
    cb: int = cell[p] % m
    ax: float = 0.0
    ay: float = 0.0
    for a in range(max(0, ca - 1), min(m, ca + 2)):
        for b in range(max(0, cb - 1), min(m, cb + 2)):
            c: int = a * m + b
            for k in range(start[c], start[c] + number[c]):
                q: int = items[k]
                dx: float = x[q][0] - x[p][0]
                dy: float = x[q][1] - x[p][1]
                r: float = pk.sqrt(dx * dx + dy * dy)
                if q != p and r < h and r > 1e-9:
                    w: float = h - r
                    push: float = -mass * 0.5 * (pr[p] + pr[q]) / rho[q] * spiky * w * w / r
                    drag: float = visc * mass / rho[q] * spiky * w
                    ax += push * dx + drag * (v[q][0] - v[p][0])
                    ay += push * dy + drag * (v[q][1] - v[p][1])
    acc[p][0] = ax / rho[p]
    acc[p][1] = ay / rho[p]


@pk.workunit
def gravity(p: int, acc: pk.View2D[pk.double], g: float):
    acc[p][1] += g


@pk.workunit
def kick(p: int, v: pk.View2D[pk.double], acc: pk.View2D[pk.double], dt: float):
    for a in range(2):
        v[p][a] += dt * acc[p][a]


@pk.workunit
def drift(p: int, x: pk.View2D[pk.double], v: pk.View2D[pk.double], dt: float):
    for a in range(2):
        x[p][a] += dt * v[p][a]


@pk.workunit
def walls(p: int, x: pk.View2D[pk.double], v: pk.View2D[pk.double], low: float, high: float):
    for a in range(2):
        if x[p][a] < low:
            x[p][a] = low
            v[p][a] = -0.5 * v[p][a]
        if x[p][a] > high:
            x[p][a] = high
            v[p][a] = -0.5 * v[p][a]


@pk.workunit
def kinetic(p: int, acc: pk.Acc[pk.double], v: pk.View2D[pk.double]):
    acc += 0.5 * (v[p][0] * v[p][0] + v[p][1] * v[p][1])


@pk.workunit
def compression(p: int, acc: pk.Acc[pk.double], rho: pk.View1D[pk.double], rest: float):
    acc += abs(rho[p] - rest)


@dataclass
class State:
    size: int
    m: int
    h: float
    mass: float
    x: pk.View
    v: pk.View
    rho: pk.View
    energy: list = field(default_factory=list)
    error: list = field(default_factory=list)


def problem(n):
    rng = np.random.default_rng(3)
    side = int(np.ceil(np.sqrt(n)))
    grid = (np.indices((side, side)).reshape(2, -1).T[:n] + 0.5) / side
    x = 0.02 + 0.96 * grid + 0.2 / side * rng.uniform(-1, 1, (n, 2))
    v = rng.normal(0, 0.1, (n, 2))
    h = 2.5 / side
    return x, v, h


def setup(n):
    x, v, h = problem(n)
    return State(n, int(1.0 / h), h, REST / n, view(x), view(v), pk.View([n], pk.double))


def constants(h, mass):
    """Scales of both kernels, viscosity and time step."""
    return mass * 4 / (np.pi * h**8), 30 / (np.pi * h**5), 5 * h, 0.005 * h


def step(s):
    n, m, h = s.size, s.m, s.h
    width = 1.0 / m
    cells = m * m
    scale, spiky, visc, dt = constants(h, s.mass)
    cell, items = pk.View([n], pk.int32), pk.View([n], pk.int32)
    number, start, used = (pk.View([cells], pk.int32) for _ in range(3))
    pr, acc = pk.View([n], pk.double), pk.View([n, 2], pk.double)
    lists = {"items": items, "start": start, "number": number, "cell": cell}
    pk.parallel_for(cells, clear, v=number)
    pk.parallel_for(cells, clear, v=used)
    pk.parallel_for(n, find_cell, cell=cell, x=s.x, h=width, m=m)
    pk.parallel_for(n, count, number=number, cell=cell)
    pk.parallel_scan(cells, starts, start=start, number=number)
    pk.parallel_for(n, fill_lists, items=items, used=used, start=start, cell=cell)
    pk.parallel_for(cells, sort_cell, items=items, start=start, number=number)
    pk.parallel_for(n, density, rho=s.rho, x=s.x, h=h, scale=float(scale), m=m, **lists)
    pk.parallel_for(n, pressure, pr=pr, rho=s.rho, rest=REST, stiff=STIFF)
    pk.parallel_for(
        n,
        forces,
        acc=acc,
        x=s.x,
        v=s.v,
        rho=s.rho,
        pr=pr,
        h=h,
        mass=s.mass,
        spiky=float(spiky),
        visc=visc,
        m=m,
        **lists,
    )
    pk.parallel_for(n, gravity, acc=acc, g=GRAVITY)
    pk.parallel_for(n, kick, v=s.v, acc=acc, dt=dt)
    pk.parallel_for(n, drift, x=s.x, v=s.v, dt=dt)
    pk.parallel_for(n, walls, x=s.x, v=s.v, low=0.0, high=1.0)
    e = pk.parallel_reduce(n, kinetic, v=s.v)
    d = pk.parallel_reduce(n, compression, rho=s.rho, rest=REST)
    return e / n, d / n


def run(s):
    s.energy, s.error = [], []
    for _ in range(STEPS):
        e, d = step(s)
        s.energy.append(e)
        s.error.append(d)
    s.energy, s.error = [float(e) for e in s.energy], [float(d) for d in s.error]


def outputs(s):
    return {
        "x": np.array(s.x.data),
        "v": np.array(s.v.data),
        "rho": np.array(s.rho.data),
        "energy": np.array(s.energy),
        "error": np.array(s.error),
    }


def check(s):
    n = s.size
    if n > 10_000:
        assert np.isfinite(s.v.data).all() and 0.5 < s.rho.data.mean() < 1.5
        return
    x, v, h = problem(n)
    mass = REST / n
    scale, spiky, visc, dt = constants(h, mass)
    for k in range(STEPS):
        # neighbours by brute force, in slices
        pairs = [
            [*np.argwhere(((x[a : a + 500, None] - x) ** 2).sum(-1) < h * h), a, 0]
            for a in range(0, n, 500)
        ]
        p, q = np.concatenate(pairs).T
        d = x[q] - x[p]
        r = np.sqrt((d**2).sum(-1))
        rho = scale * np.bincount(p, (h * h - r**2) ** 3, n)
        pr = STIFF * np.maximum(rho - REST, 0)
        w = np.where(p != q, h - r, 0)
        push = -mass * 0.5 * (pr[p] + pr[q]) / rho[q] * spiky * w * w / np.maximum(r, 1e-9)
        drag = visc * mass / rho[q] * spiky * w
        f = push[:, None] * d + drag[:, None] * (v[q] - v[p])
        a = np.stack([np.bincount(p, f[:, c], n) for c in range(2)], 1) / rho[:, None]
        a[:, 1] += GRAVITY
        v = v + dt * a
        x = x + dt * v
        out = (x < 0) | (x > 1)
        x, v = np.clip(x, 0, 1), np.where(out, -0.5 * v, v)
        np.testing.assert_allclose(s.energy[k], 0.5 * (v**2).sum() / n, rtol=1e-8)
        np.testing.assert_allclose(s.error[k], abs(rho - REST).sum() / n, rtol=1e-8)
    np.testing.assert_allclose(s.x.data, x, atol=1e-9)
    np.testing.assert_allclose(s.v.data, v, atol=1e-7)
    np.testing.assert_allclose(s.rho.data, rho, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
