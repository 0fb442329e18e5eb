"""An ice sheet by the shallow-ice approximation, over a bed that sinks under its weight.

A step finds the surface and its slopes, the diffusivity between the nodes by Glen's law, what ice
flows, what snow brings and melting takes by altitude, and the new thickness; the sheet ends in the
sea, so the rim has none. Volume and area are summed after each step.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 400, "large": 1_000}
DX, DT, GLEN, CAP = 1.0, 0.2, 0.02, 0.9
RATE, ELA, MOST, SINK, DENSITY = 0.02, 1.2, 0.01, 0.002, 0.28


@pk.workunit
def restore(i: int, j: int, x: pk.View2D[pk.double], x0: pk.View2D[pk.double]):
    x[i][j] = x0[i][j]


@pk.workunit
def surface(
    i: int, j: int, s: pk.View2D[pk.double], bed: pk.View2D[pk.double], h: pk.View2D[pk.double]
):
    s[i][j] = bed[i][j] + h[i][j]


@pk.workunit
def slope_x(i: int, j: int, gx: pk.View2D[pk.double], s: pk.View2D[pk.double], dx: float):
    gx[i][j] = (s[i][j + 1] - s[i][j]) / dx


@pk.workunit
def slope_y(i: int, j: int, gy: pk.View2D[pk.double], s: pk.View2D[pk.double], dx: float):
    gy[i][j] = (s[i + 1][j] - s[i][j]) / dx


@pk.workunit
def diffusivity(
    i: int,
    j: int,
    d: pk.View2D[pk.double],
    h: pk.View2D[pk.double],
    gx: pk.View2D[pk.double],
    gy: pk.View2D[pk.double],
    glen: float,
    cap: float,
):
    """Between four nodes, capped where the explicit step would not be stable."""
    ice: float = 0.25 * (h[i][j] + h[i][j + 1] + h[i + 1][j] + h[i + 1][j + 1])
    x: float = 0.5 * (gx[i][j] + gx[i + 1][j])
    y: float = 0.5 * (gy[i][j] + gy[i][j + 1])
    d[i][j] = min(glen * ice * ice * ice * ice * ice * (x * x + y * y), cap)


@pk.workunit
def flux_x(
    i: int, j: int, qx: pk.View2D[pk.double], d: pk.View2D[pk.double], gx: pk.View2D[pk.double]
):
    qx[i][j] = 0.5 * (d[i - 1][j] + d[i][j]) * gx[i][j]


@pk.workunit
def flux_y(
    i: int, j: int, qy: pk.View2D[pk.double], d: pk.View2D[pk.double], gy: pk.View2D[pk.double]
):
    qy[i][j] = 0.5 * (d[i][j - 1] + d[i][j]) * gy[i][j]


@pk.workunit
def mass_balance(
    i: int,
    j: int,
    m: pk.View2D[pk.double],
    s: pk.View2D[pk.double],
    rate: float,
    ela: float,
    most: float,
):
    m[i][j] = min(rate * (s[i][j] - ela), most)


@pk.workunit
def flow(
    i: int,
    j: int,
    h: pk.View2D[pk.double],
    qx: pk.View2D[pk.double],
    qy: pk.View2D[pk.double],
    dt: float,
    dx: float,
):
    h[i][j] += dt * ((qx[i][j] - qx[i][j - 1]) / dx + (qy[i][j] - qy[i - 1][j]) / dx)


@pk.workunit
def snow(i: int, j: int, h: pk.View2D[pk.double], m: pk.View2D[pk.double], dt: float):
    h[i][j] += dt * m[i][j]


@pk.workunit
def no_negative(i: int, j: int, h: pk.View2D[pk.double]):
    if h[i][j] < 0.0:
        h[i][j] = 0.0


@pk.workunit
def rim(k: int, h: pk.View2D[pk.double], n: int):
    h[0][k] = 0.0
    h[n - 1][k] = 0.0
    h[k][0] = 0.0
    h[k][n - 1] = 0.0


@pk.workunit
def isostasy(
    i: int,
    j: int,
    bed: pk.View2D[pk.double],
    bed0: pk.View2D[pk.double],
    h: pk.View2D[pk.double],
    sink: float,
    density: float,
):
    bed[i][j] += sink * (bed0[i][j] - density * h[i][j] - bed[i][j])


@pk.workunit
def volume(i: int, j: int, acc: pk.Acc[pk.double], h: pk.View2D[pk.double]):
    acc += h[i][j]


@pk.workunit
def area(i: int, j: int, acc: pk.Acc[pk.double], h: pk.View2D[pk.double]):
    if h[i][j] > 0.01:
        acc += 1.0


@dataclass
class State:
    """The first thickness and bed; the present ones; volume and area after each step."""

    n: int
    steps: int
    h0: pk.View
    bed0: pk.View
    h: pk.View
    bed: pk.View
    volumes: list = field(default_factory=list)
    areas: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(111)
    h0, bed0, h, bed = (pk.View([n, n], pk.double) for _ in range(4))
    y, x = (np.mgrid[0:n, 0:n] - 0.5 * (n - 1)) / (0.4 * n)
    h0.data[:] = 2.0 * np.maximum(1.0 - x * x - y * y, 0.0) ** 0.5
    h0.data[:] *= 1.0 + 0.1 * rng.random((n, n))
    bed0.data[:] = 0.3 * np.sin(3.0 * x + 1.0) * np.cos(4.0 * y) + 0.05 * rng.random((n, n))
    return State(n, 20 if n <= 60 else 8, h0, bed0, h, bed)


def run(state: State) -> None:
    n, h, bed = state.n, state.h, state.bed
    s, m = pk.View([n, n], pk.double), pk.View([n, n], pk.double)
    gx, qx = pk.View([n, n - 1], pk.double), pk.View([n, n - 1], pk.double)
    gy, qy = pk.View([n - 1, n], pk.double), pk.View([n - 1, n], pk.double)
    d = pk.View([n - 1, n - 1], pk.double)
    everywhere = pk.MDRangePolicy([0, 0], [n, n])
    inner = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    state.volumes, state.areas = [], []
    pk.parallel_for(everywhere, restore, x=h, x0=state.h0)
    pk.parallel_for(everywhere, restore, x=bed, x0=state.bed0)
    for _ in range(state.steps):
        pk.parallel_for(everywhere, surface, s=s, bed=bed, h=h)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n - 1]), slope_x, gx=gx, s=s, dx=DX)
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n - 1, n]), slope_y, gy=gy, s=s, dx=DX)
        pk.parallel_for(
            pk.MDRangePolicy([0, 0], [n - 1, n - 1]),
            diffusivity,
            d=d,
            h=h,
            gx=gx,
            gy=gy,
            glen=GLEN,
            cap=CAP,
        )
        pk.parallel_for(pk.MDRangePolicy([1, 0], [n - 1, n - 1]), flux_x, qx=qx, d=d, gx=gx)
        pk.parallel_for(pk.MDRangePolicy([0, 1], [n - 1, n - 1]), flux_y, qy=qy, d=d, gy=gy)
        pk.parallel_for(everywhere, mass_balance, m=m, s=s, rate=RATE, ela=ELA, most=MOST)
        pk.parallel_for(inner, flow, h=h, qx=qx, qy=qy, dt=DT, dx=DX)
        pk.parallel_for(everywhere, snow, h=h, m=m, dt=DT)
        pk.parallel_for(everywhere, no_negative, h=h)
        pk.parallel_for(n, rim, h=h, n=n)
        pk.parallel_for(
            everywhere, isostasy, bed=bed, bed0=state.bed0, h=h, sink=SINK, density=DENSITY
        )
        state.volumes.append(pk.parallel_reduce(everywhere, volume, h=h))
        state.areas.append(pk.parallel_reduce(everywhere, area, h=h))


def outputs(state: State) -> dict:
    return {
        "h": np.array(state.h.data),
        "bed": np.array(state.bed.data),
        "volumes": np.array([float(x) for x in state.volumes]),
        "areas": np.array([float(x) for x in state.areas]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    h, bed0 = np.array(fresh.h0.data), np.array(fresh.bed0.data)
    bed, volumes, areas = bed0.copy(), [], []
    for _ in range(fresh.steps):
        s = bed + h
        gx, gy = np.diff(s, axis=1) / DX, np.diff(s, axis=0) / DX
        ice = 0.25 * (h[:-1, :-1] + h[:-1, 1:] + h[1:, :-1] + h[1:, 1:])
        x, y = 0.5 * (gx[:-1] + gx[1:]), 0.5 * (gy[:, :-1] + gy[:, 1:])
        d = np.minimum(GLEN * ice**5 * (x * x + y * y), CAP)
        qx = 0.5 * (d[:-1] + d[1:]) * gx[1:-1]
        qy = 0.5 * (d[:, :-1] + d[:, 1:]) * gy[:, 1:-1]
        h[1:-1, 1:-1] += DT * (np.diff(qx, axis=1) + np.diff(qy, axis=0)) / DX
        h = np.maximum(h + DT * np.minimum(RATE * (s - ELA), MOST), 0.0)
        h[0] = h[-1] = 0.0
        h[:, 0] = h[:, -1] = 0.0
        bed += SINK * (bed0 - DENSITY * h - bed)
        volumes.append(h.sum())
        areas.append(np.sum(h > 0.01))
    out = outputs(state)
    np.testing.assert_allclose(out["h"], h, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(out["bed"], bed, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(out["volumes"], volumes, rtol=1e-10)
    np.testing.assert_allclose(out["areas"], areas)


if __name__ == "__main__":
    main(globals())
