"""Shallow water in two dimensions: a flood wave over dry, hilly land.

Finite volumes with hydrostatic reconstruction (Audusse) and Rusanov's flux, walls, bottom drag; the
time step follows from the fastest wave.
"""

from dataclasses import dataclass
from math import fabs, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 900, "default": 40_000, "large": 1_000_000}
G, DRY, DRAG, STEPS = 9.81, 1e-6, 0.003, 5


@pk.workunit
def copy(i: int, j: int, to, source):
    to[i][j] = source[i][j]


@pk.workunit
def mirror_rows(j: int, h, hu, hv, m: int):
    h[0][j] = h[1][j]
    hu[0][j] = -hu[1][j]
    hv[0][j] = hv[1][j]
    h[m + 1][j] = h[m][j]
    hu[m + 1][j] = -hu[m][j]
    hv[m + 1][j] = hv[m][j]


@pk.workunit
def mirror_columns(i: int, h, hu, hv, m: int):
    h[i][0] = h[i][1]
    hu[i][0] = hu[i][1]
    hv[i][0] = -hv[i][1]
    h[i][m + 1] = h[i][m]
    hu[i][m + 1] = hu[i][m]
    hv[i][m + 1] = -hv[i][m]


@pk.workunit
def velocity(i: int, j: int, u, v, h, hu, hv):
    if h[i][j] > DRY:
        u[i][j] = hu[i][j] / h[i][j]
        v[i][j] = hv[i][j] / h[i][j]
    else:
        u[i][j] = 0.0
        v[i][j] = 0.0


@pk.workunit
def wave_speed(i: int, j: int, c, h, u, v):
    c[i][j] = max(fabs(u[i][j]), fabs(v[i][j])) + sqrt(G * h[i][j])


@pk.workunit
def faces(i: int, j: int, mass, left, right, across, h, u, v, b, di: int, dj: int):
    """Fluxes between the cells (i, j) and (i + di, j + dj); u is normal to the face, v along it."""
    h0: pk.double = h[i][j]
    h1: pk.double = h[i + di][j + dj]
    u0: pk.double = u[i][j]
    u1: pk.double = u[i + di][j + dj]
    top: pk.double = max(b[i][j], b[i + di][j + dj])
    hl: pk.double = max(0.0, h0 + b[i][j] - top)
    hr: pk.double = max(0.0, h1 + b[i + di][j + dj] - top)
    a: pk.double = max(fabs(u0) + sqrt(G * hl), fabs(u1) + sqrt(G * hr))
    ql: pk.double = hl * u0
    qr: pk.double = hr * u1
    q: pk.double = 0.5 * (ql * u0 + qr * u1 + 0.5 * G * (hl * hl + hr * hr)) - 0.5 * a * (qr - ql)
    mass[i][j] = 0.5 * (ql + qr) - 0.5 * a * (hr - hl)
    left[i][j] = q + 0.5 * G * (h0 * h0 - hl * hl)
    right[i][j] = q + 0.5 * G * (h1 * h1 - hr * hr)
    v0: pk.double = v[i][j]
    v1: pk.double = v[i + di][j + dj]
    across[i][j] = 0.5 * (ql * v0 + qr * v1) - 0.5 * a * (hr * v1 - hl * v0)


@pk.workunit
def update(i: int, j: int, h, q, r, mass, left, right, across, di: int, dj: int, k: float):
    h[i][j] = max(0.0, h[i][j] - k * (mass[i][j] - mass[i - di][j - dj]))
    q[i][j] -= k * (left[i][j] - right[i - di][j - dj])
    r[i][j] -= k * (across[i][j] - across[i - di][j - dj])


@pk.workunit
def drag(i: int, j: int, hu, hv, h, dt: float):
    if h[i][j] > DRY:
        speed: pk.double = sqrt(hu[i][j] * hu[i][j] + hv[i][j] * hv[i][j]) / h[i][j]
        factor: pk.double = 1.0 / (1.0 + dt * DRAG * speed / h[i][j])
        hu[i][j] *= factor
        hv[i][j] *= factor
    else:
        hu[i][j] = 0.0
        hv[i][j] = 0.0


@pk.workunit
def volume(i: int, j: int, acc: pk.Acc[pk.double], h):
    acc += h[i][j]


@pk.workunit
def wet(i: int, j: int, acc: pk.Acc[pk.int64], h):
    if h[i][j] > DRY:
        acc += 1


@dataclass
class State:
    m: int
    dx: float
    start: pk.View
    ground: pk.View
    h: pk.View
    hu: pk.View
    hv: pk.View
    still: pk.View
    time: float = 0.0
    volume: float = 0.0
    wet: int = 0


def setup(n: int) -> State:
    m = int(n**0.5)
    views = [pk.View([m + 2, m + 2], pk.double) for _ in range(6)]
    x, y = np.meshgrid((np.arange(m + 2) - 0.5) / m, (np.arange(m + 2) - 0.5) / m, indexing="ij")
    ground = 0.6 * x + 0.25 * np.sin(9 * x + 1) * np.cos(7 * y) + 0.3
    ground[0], ground[-1], ground[:, 0], ground[:, -1] = (
        ground[1],
        ground[-2],
        ground[:, 1],
        ground[:, -2],
    )
    views[1].data[:] = ground
    views[0].data[:] = np.maximum(0.0, np.where((x < 0.3) & (y < 0.6), 1.1, 0.45) - ground)
    return State(m, 100.0 / m, *views)


def run(s: State) -> None:
    m, h, hu, hv, b = s.m, s.h, s.hu, s.hv, s.ground
    everything = pk.MDRangePolicy([0, 0], [m + 2, m + 2])
    inside = pk.MDRangePolicy([1, 1], [m + 1, m + 1])
    u, v, mass, left, right, across = (pk.View([m + 2, m + 2], pk.double) for _ in range(6))
    c = pk.View([m + 2, m + 2], pk.double)
    pk.parallel_for(everything, copy, to=h, source=s.start)
    pk.parallel_for(everything, copy, to=hu, source=s.still)
    pk.parallel_for(everything, copy, to=hv, source=s.still)
    time = 0.0
    flux = {"mass": mass, "left": left, "right": right, "across": across}
    for _ in range(STEPS):
        pk.parallel_for(m + 2, mirror_rows, h=h, hu=hu, hv=hv, m=m)
        pk.parallel_for(m + 2, mirror_columns, h=h, hu=hu, hv=hv, m=m)
        pk.parallel_for(everything, velocity, u=u, v=v, h=h, hu=hu, hv=hv)
        pk.parallel_for(inside, wave_speed, c=c, h=h, u=u, v=v)
        dt = 0.4 * s.dx / float(c.data.max())
        x_faces = pk.MDRangePolicy([0, 1], [m + 1, m + 1])
        pk.parallel_for(x_faces, faces, **flux, h=h, u=u, v=v, b=b, di=1, dj=0)
        pk.parallel_for(inside, update, h=h, q=hu, r=hv, **flux, di=1, dj=0, k=dt / s.dx)
        pk.parallel_for(m + 2, mirror_columns, h=h, hu=hu, hv=hv, m=m)
        pk.parallel_for(everything, velocity, u=u, v=v, h=h, hu=hu, hv=hv)
        y_faces = pk.MDRangePolicy([1, 0], [m + 1, m + 1])
        pk.parallel_for(y_faces, faces, **flux, h=h, u=v, v=u, b=b, di=0, dj=1)
        pk.parallel_for(inside, update, h=h, q=hv, r=hu, **flux, di=0, dj=1, k=dt / s.dx)
        pk.parallel_for(inside, drag, hu=hu, hv=hv, h=h, dt=dt)
        time += dt
    s.time = time
    s.volume = float(pk.parallel_reduce(inside, volume, h=h)) * s.dx * s.dx
    s.wet = int(pk.parallel_reduce(inside, wet, h=h))


def outputs(s: State) -> dict:
    inner = slice(1, -1)
    views = {k: np.array(getattr(s, k).data)[inner, inner] for k in ("h", "hu", "hv")}
    return {**views, "numbers": np.array([s.time, s.volume, s.wet])}


def check(s: State, n: int) -> None:
    inner = (slice(1, -1), slice(1, -1))
    h, h0 = np.array(s.h.data)[inner], np.array(s.start.data)[inner]
    assert h.min() >= 0 and h.max() <= 1.2 and 0 < s.time
    np.testing.assert_allclose(h.sum(), h0.sum(), rtol=1e-3)
    assert s.wet == (h > DRY).sum() >= (h0 > DRY).sum()
    lake = setup(n)
    lake.start.data[:] = np.maximum(0.0, 0.8 - lake.ground.data)
    run(lake)
    np.testing.assert_allclose(lake.h.data[1:-1, 1:-1], lake.start.data[1:-1, 1:-1], atol=1e-12)


if __name__ == "__main__":
    main(globals())
