"""Taubin's smoothing of a triangle mesh: a step that shrinks, then one that swells a little more.

A vertex moves along the mean of the edges to its neighbours. After each pair of steps the mesh's
area and volume are summed over its triangles, and it is scaled about its centre to keep its volume;
smoothing ends when the area hardly falls.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 24, "default": 160, "large": 800}
SHRINK, SWELL, MOST, ENOUGH = 0.5, -0.53, 10, 1e-4


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]) -> None:
    out[i] = x[i]


@pk.workunit
def laplacian(
    i: int,
    d: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    row: pk.View1D[pk.int32],
    neighbour: pk.View1D[pk.int32],
) -> None:
    """The mean of the neighbours, less the vertex."""
    s: float = 0.0
    for e in range(row[i], row[i + 1]):
        s += x[neighbour[e]]
    d[i] = s / (row[i + 1] - row[i]) - x[i]


@pk.workunit
def step(i: int, x: pk.View1D[pk.double], d: pk.View1D[pk.double], factor: float) -> None:
    x[i] += factor * d[i]


@pk.workunit
def normals(
    t: int,
    nx: pk.View1D[pk.double],
    ny: pk.View1D[pk.double],
    nz: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    corner: pk.View2D[pk.int32],
) -> None:
    """The cross product of two edges."""
    a: int = corner[t][0]
    b: int = corner[t][1]
    c: int = corner[t][2]
    ux: float = x[b] - x[a]
    uy: float = y[b] - y[a]
    uz: float = z[b] - z[a]
    vx: float = x[c] - x[a]
    vy: float = y[c] - y[a]
    vz: float = z[c] - z[a]
    nx[t] = uy * vz - uz * vy
    ny[t] = uz * vx - ux * vz
    nz[t] = ux * vy - uy * vx


@pk.workunit
def area(
    t: int,
    acc: pk.Acc[pk.double],
    nx: pk.View1D[pk.double],
    ny: pk.View1D[pk.double],
    nz: pk.View1D[pk.double],
) -> None:
    acc += 0.5 * sqrt(nx[t] * nx[t] + ny[t] * ny[t] + nz[t] * nz[t])


@pk.workunit
def volume(
    t: int,
    acc: pk.Acc[pk.double],
    nx: pk.View1D[pk.double],
    ny: pk.View1D[pk.double],
    nz: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    corner: pk.View2D[pk.int32],
) -> None:
    a: int = corner[t][0]
    acc += (nx[t] * x[a] + ny[t] * y[a] + nz[t] * z[a]) / 6.0


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]) -> None:
    acc += x[i]


@pk.workunit
def scale(i: int, x: pk.View1D[pk.double], centre: float, factor: float) -> None:
    x[i] = centre + factor * (x[i] - centre)


@dataclass
class State:
    """The mesh as it came, the smoothed vertices, the areas and volumes on the way."""

    n: int
    triangles: int
    row: pk.View
    neighbour: pk.View
    corner: pk.View
    first: list
    now: list
    areas: list = field(default_factory=list)
    volumes: list = field(default_factory=list)


def setup(n: int) -> State:
    """A torus of n x n vertices with noise on it."""
    rng = np.random.default_rng(112)
    i, j = (v.ravel() for v in np.mgrid[0:n, 0:n])

    def at(di, dj):
        return (i + di) % n * n + (j + dj) % n

    around = np.stack([at(0, 1), at(1, 1), at(1, 0), at(0, -1), at(-1, -1), at(-1, 0)], axis=1)
    faces = np.concatenate(
        [np.stack([at(0, 0), at(1, 0), at(1, 1)], 1), np.stack([at(0, 0), at(1, 1), at(0, 1)], 1)]
    )
    row, neighbour = pk.View([n * n + 1], pk.int32), pk.View([6 * n * n], pk.int32)
    corner = pk.View(list(faces.shape), pk.int32)
    row.data[:] = 6 * np.arange(n * n + 1)
    neighbour.data[:] = around.ravel()
    corner.data[:] = faces
    first, now = ([pk.View([n * n], pk.double) for _ in range(3)] for _ in range(2))
    u, v = 2 * np.pi * i / n, 2 * np.pi * j / n
    r = 1.0 + rng.normal(0.0, 0.5 / n, n * n)
    first[0].data[:] = (3.0 + r * np.cos(v)) * np.cos(u) + 0.5
    first[1].data[:] = (3.0 + r * np.cos(v)) * np.sin(u) - 0.5
    first[2].data[:] = r * np.sin(v) + 1.0
    return State(n * n, len(faces), row, neighbour, corner, first, now)


def run(state: State) -> None:
    n, m, now = state.n, state.triangles, state.now
    d = pk.View([n], pk.double)
    nx, ny, nz = (pk.View([m], pk.double) for _ in range(3))
    x, y, z = now

    def measure():
        pk.parallel_for(m, normals, nx=nx, ny=ny, nz=nz, x=x, y=y, z=z, corner=state.corner)
        a = pk.parallel_reduce(m, area, nx=nx, ny=ny, nz=nz)
        v = pk.parallel_reduce(m, volume, nx=nx, ny=ny, nz=nz, x=x, y=y, z=z, corner=state.corner)
        return float(a), float(v)

    for view, start in zip(now, state.first):
        pk.parallel_for(n, copy, out=view, x=start)
    before, wanted = measure()
    state.areas, state.volumes = [before], [wanted]
    for _ in range(MOST):
        for factor in (SHRINK, SWELL):
            for view in now:
                pk.parallel_for(n, laplacian, d=d, x=view, row=state.row, neighbour=state.neighbour)
                pk.parallel_for(n, step, x=view, d=d, factor=factor)
        after, held = measure()
        factor = (wanted / held) ** (1.0 / 3.0)
        for view in now:
            centre = float(pk.parallel_reduce(n, total, x=view)) / n
            pk.parallel_for(n, scale, x=view, centre=centre, factor=factor)
        state.areas.append(after)
        state.volumes.append(held)
        if before - after < ENOUGH * after:
            break
        before = after


def outputs(state: State) -> dict:
    values = {name: np.array(v.data) for name, v in zip("xyz", state.now)}
    return {**values, "areas": np.array(state.areas), "volumes": np.array(state.volumes)}


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    corner = np.array(fresh.corner.data)
    around = np.array(fresh.neighbour.data).reshape(-1, 6)
    p = np.stack([v.data for v in fresh.first], axis=1)

    def measure(p):
        a, b, c = (p[corner[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        return 0.5 * np.sum(np.linalg.norm(normal, axis=1)), np.sum(normal * a) / 6.0

    areas, volumes = ([v] for v in measure(p))
    for _ in range(MOST):
        for factor in (SHRINK, SWELL):
            p = p + factor * (p[around].mean(axis=1) - p)
        a, v = measure(p)
        centre = p.mean(axis=0)
        p = centre + (volumes[0] / v) ** (1.0 / 3.0) * (p - centre)
        areas.append(a)
        volumes.append(v)
        if areas[-2] - a < ENOUGH * a:
            break
    out = outputs(state)
    np.testing.assert_allclose(out["areas"], areas, rtol=1e-10)
    np.testing.assert_allclose(out["volumes"], volumes, rtol=1e-10)
    for k, name in enumerate("xyz"):
        np.testing.assert_allclose(out[name], p[:, k], rtol=1e-10, atol=1e-11, err_msg=name)


if __name__ == "__main__":
    main(globals())
