"""A monolayer of charged dust in a plasma: molecular dynamics with a pruned list of neighbours.

Screened Coulomb forces, the drag of the gas, a thermostat; the wide list that setup makes is pruned
to the pairs within reach every few steps.
"""

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 280, "large": 640}
STEPS, EVERY, DT = 6, 3, 0.01
SCREENING, CUT, SKIN = 2.0, 2.0, 0.4
DRAG, TEMPERATURE, TAU = 0.05, 0.02, 0.2


@pk.function
def nearest(d: pk.double, box: pk.double) -> pk.double:
    """The difference of two coordinates in a periodic box."""
    if d > 0.5 * box:
        return d - box
    if d < -0.5 * box:
        return d + box
    return d


@pk.workunit
def copy(i: int, to, source):
    to[i] = source[i]


@pk.workunit
def count_close(i: int, count, x, y, start, wide, box: float):
    close: int = 0
    for k in range(start[i], start[i + 1]):
        j: int = wide[k]
        dx: pk.double = nearest(x[i] - x[j], box)
        dy: pk.double = nearest(y[i] - y[j], box)
        if dx * dx + dy * dy < (CUT + 0.5 * SKIN) * (CUT + 0.5 * SKIN):
            close += 1
    count[i] = close


@pk.workunit
def place(i: int, acc: pk.Acc[pk.int64], last: bool, first, count):
    if last:
        first[i] = acc
    acc += count[i]


@pk.workunit
def fill_close(i: int, close, first, x, y, start, wide, box: float):
    to: int = first[i]
    for k in range(start[i], start[i + 1]):
        j: int = wide[k]
        dx: pk.double = nearest(x[i] - x[j], box)
        dy: pk.double = nearest(y[i] - y[j], box)
        if dx * dx + dy * dy < (CUT + 0.5 * SKIN) * (CUT + 0.5 * SKIN):
            close[to] = j
            to += 1


@pk.workunit
def forces(i: int, fx, fy, x, y, first, count, close, box: float):
    sx: pk.double = 0.0
    sy: pk.double = 0.0
    for k in range(first[i], first[i] + count[i]):
        j: int = close[k]
        dx: pk.double = nearest(x[i] - x[j], box)
        dy: pk.double = nearest(y[i] - y[j], box)
        r2: pk.double = dx * dx + dy * dy
        if r2 < CUT * CUT:
            r: pk.double = sqrt(r2)
            f: pk.double = exp(-SCREENING * r) * (1.0 + SCREENING * r) / (r2 * r)
            sx += f * dx
            sy += f * dy
    fx[i] = sx
    fy[i] = sy


@pk.workunit
def kick(i: int, v, f):
    v[i] += 0.5 * DT * f[i]


@pk.workunit
def drift(i: int, x, v, box: float):
    to: pk.double = x[i] + DT * v[i]
    if to < 0.0:
        to += box
    if to >= box:
        to -= box
    x[i] = to


@pk.workunit
def drag(i: int, vx, vy):
    vx[i] *= 1.0 - DRAG * DT
    vy[i] *= 1.0 - DRAG * DT


@pk.workunit
def kinetic(i: int, acc: pk.Acc[pk.double], vx, vy):
    acc += 0.5 * (vx[i] * vx[i] + vy[i] * vy[i])


@pk.workunit
def potential(i: int, acc: pk.Acc[pk.double], x, y, first, count, close, box: float):
    total: pk.double = 0.0
    for k in range(first[i], first[i] + count[i]):
        j: int = close[k]
        dx: pk.double = nearest(x[i] - x[j], box)
        dy: pk.double = nearest(y[i] - y[j], box)
        r2: pk.double = dx * dx + dy * dy
        if r2 < CUT * CUT:
            r: pk.double = sqrt(r2)
            total += exp(-SCREENING * r) / r
    acc += 0.5 * total


@pk.workunit
def rescale(i: int, vx, vy, factor: float):
    vx[i] *= factor
    vy[i] *= factor


@pk.workunit
def order(i: int, psi, x, y, first, count, close, box: float):
    """How fourfold the bonds to the nearest neighbours are: the mean of cos(4 angle)."""
    bonds: int = 0
    total: pk.double = 0.0
    for k in range(first[i], first[i] + count[i]):
        j: int = close[k]
        dx: pk.double = nearest(x[i] - x[j], box)
        dy: pk.double = nearest(y[i] - y[j], box)
        r2: pk.double = dx * dx + dy * dy
        if r2 < 1.7:
            c: pk.double = (dx * dx - dy * dy) / r2
            total += 2.0 * c * c - 1.0
            bonds += 1
    psi[i] = 0.0
    if bonds > 0:
        psi[i] = total / bonds


@pk.workunit
def total_order(i: int, acc: pk.Acc[pk.double], psi):
    acc += psi[i]


@dataclass
class State:
    n: int
    box: float
    start: pk.View
    wide: pk.View
    x0: pk.View
    y0: pk.View
    vx0: pk.View
    vy0: pk.View
    x: pk.View
    y: pk.View
    vx: pk.View
    vy: pk.View
    psi: pk.View
    energies: pk.View
    order: float = 0.0


def setup(side: int) -> State:
    n, box, jitter = side * side, float(side), 0.1
    random = np.random.default_rng(11)
    x0, y0, vx0, vy0, x, y, vx, vy, psi = (pk.View([n], pk.double) for _ in range(9))
    row, col = np.divmod(np.arange(n), side)
    x0.data[:] = row + 0.5 + random.uniform(-jitter, jitter, n)
    y0.data[:] = col + 0.5 + random.uniform(-jitter, jitter, n)
    vx0.data[:] = random.normal(0.0, np.sqrt(TEMPERATURE), n)
    vy0.data[:] = random.normal(0.0, np.sqrt(TEMPERATURE), n)
    far = CUT + SKIN + 2 * np.sqrt(2) * jitter
    near = [(a, b) for a in range(-3, 4) for b in range(-3, 4) if 0 < a * a + b * b <= far**2]
    other = np.empty((n, len(near)), np.int32)
    within = np.empty((n, len(near)), bool)
    for k, (a, b) in enumerate(near):
        j = (row + a) % side * side + (col + b) % side
        dx = (x0.data - x0.data[j] + box / 2) % box - box / 2
        dy = (y0.data - y0.data[j] + box / 2) % box - box / 2
        other[:, k], within[:, k] = j, dx**2 + dy**2 < (CUT + SKIN) ** 2
    start = pk.View([n + 1], pk.int32)
    start.data[0] = 0
    start.data[1:] = np.cumsum(within.sum(1))
    wide = pk.View([int(start.data[n])], pk.int32)
    wide.data[:] = other[within]
    energies = pk.View([STEPS // EVERY, 2], pk.double)
    return State(n, box, start, wide, x0, y0, vx0, vy0, x, y, vx, vy, psi, energies)


def run(s: State) -> None:
    n, box, x, y, vx, vy = s.n, s.box, s.x, s.y, s.vx, s.vy
    fx, fy = pk.View([n], pk.double), pk.View([n], pk.double)
    count, first = pk.View([n], pk.int32), pk.View([n], pk.int32)
    close = pk.View([len(s.wide)], pk.int32)
    wide = {"x": x, "y": y, "start": s.start, "wide": s.wide, "box": box}
    pairs = {"x": x, "y": y, "first": first, "count": count, "close": close, "box": box}

    def prune():
        pk.parallel_for(n, count_close, count=count, **wide)
        pk.parallel_scan(n, place, first=first, count=count)
        pk.parallel_for(n, fill_close, close=close, first=first, **wide)

    for to, source in ((x, s.x0), (y, s.y0), (vx, s.vx0), (vy, s.vy0)):
        pk.parallel_for(n, copy, to=to, source=source)
    prune()
    pk.parallel_for(n, forces, fx=fx, fy=fy, **pairs)
    for step in range(STEPS):
        pk.parallel_for(n, kick, v=vx, f=fx)
        pk.parallel_for(n, kick, v=vy, f=fy)
        pk.parallel_for(n, drift, x=x, v=vx, box=box)
        pk.parallel_for(n, drift, x=y, v=vy, box=box)
        pk.parallel_for(n, forces, fx=fx, fy=fy, **pairs)
        pk.parallel_for(n, kick, v=vx, f=fx)
        pk.parallel_for(n, kick, v=vy, f=fy)
        pk.parallel_for(n, drag, vx=vx, vy=vy)
        if step % EVERY == EVERY - 1:
            moving = float(pk.parallel_reduce(n, kinetic, vx=vx, vy=vy)) / n
            stored = float(pk.parallel_reduce(n, potential, **pairs)) / n
            s.energies.data[step // EVERY] = moving, stored
            factor = sqrt(1.0 + EVERY * DT / TAU * (TEMPERATURE / moving - 1.0))
            pk.parallel_for(n, rescale, vx=vx, vy=vy, factor=factor)
            prune()
    pk.parallel_for(n, order, psi=s.psi, **pairs)
    s.order = float(pk.parallel_reduce(n, total_order, psi=s.psi)) / n


def outputs(s: State) -> dict:
    names = ("x", "y", "vx", "vy", "psi", "energies")
    found = {name: np.array(getattr(s, name).data) for name in names}
    return {**found, "order": np.array([s.order])}


def check(s: State, side: int) -> None:
    n, box = s.n, s.box
    x, y, vx, vy = (np.array(v.data) for v in (s.x0, s.y0, s.vx0, s.vy0))

    def apart(x):
        return (x[:, None] - x + box / 2) % box - box / 2

    def pairs(x, y):
        dx, dy = apart(x), apart(y)
        r = np.sqrt(dx**2 + dy**2)
        r[np.diag_indices(n)] = 2 * CUT
        f = np.where(r < CUT, np.exp(-SCREENING * r) * (1 + SCREENING * r) / r**3, 0)
        u = 0.5 * np.where(r < CUT, np.exp(-SCREENING * r) / r, 0).sum() / n
        return (f * dx).sum(1), (f * dy).sum(1), u, r, dx

    fx, fy = pairs(x, y)[:2]
    for step in range(STEPS):
        vx, vy = vx + 0.5 * DT * fx, vy + 0.5 * DT * fy
        x, y = (x + DT * vx) % box, (y + DT * vy) % box
        fx, fy, u, r, dx = pairs(x, y)
        vx, vy = vx + 0.5 * DT * fx, vy + 0.5 * DT * fy
        vx, vy = vx * (1 - DRAG * DT), vy * (1 - DRAG * DT)
        if step % EVERY == EVERY - 1:
            moving = 0.5 * (vx**2 + vy**2).mean()
            np.testing.assert_allclose(s.energies.data[step // EVERY], [moving, u], rtol=1e-10)
            factor = np.sqrt(1 + EVERY * DT / TAU * (TEMPERATURE / moving - 1))
            vx, vy = vx * factor, vy * factor
    bond = r**2 < 1.7
    psi = np.where(bond, np.cos(4 * np.arccos(np.clip(dx / r, -1, 1))), 0).sum(1) / bond.sum(1)
    for view, value in ((s.x, x), (s.y, y), (s.vx, vx), (s.vy, vy)):
        np.testing.assert_allclose(view.data, value, atol=1e-10)
    np.testing.assert_allclose(s.psi.data, psi, atol=1e-7)
    np.testing.assert_allclose(s.order, psi.mean(), atol=1e-8)


if __name__ == "__main__":
    main(globals())
