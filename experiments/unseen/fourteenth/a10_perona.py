"""A noisy volume smoothed along its edges only: Perona and Malik's diffusion in three dimensions.

Clamped gradients, their mean (which sets the contrast of the next step), fluxes on faces, an update.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 12, "default": 32, "large": 144}


@pk.workunit
def copy(i: int, j: int, k: int, out: pk.View3D[pk.double], x: pk.View3D[pk.double]):
    out[i][j][k] = x[i][j][k]


@pk.workunit
def clear(i: int, j: int, k: int, out: pk.View3D[pk.double]):
    out[i][j][k] = 0.0


@pk.workunit
def gradient(i: int, j: int, k: int, g: pk.View3D[pk.double], u: pk.View3D[pk.double], n: int):
    dx: float = u[min(i + 1, n - 1)][j][k] - u[max(i - 1, 0)][j][k]
    dy: float = u[i][min(j + 1, n - 1)][k] - u[i][max(j - 1, 0)][k]
    dz: float = u[i][j][min(k + 1, n - 1)] - u[i][j][max(k - 1, 0)]
    g[i][j][k] = 0.25 * (dx * dx + dy * dy + dz * dz)


@pk.workunit
def total(i: int, j: int, k: int, acc: pk.Acc[pk.double], x: pk.View3D[pk.double]):
    acc += x[i][j][k]


@pk.workunit
def conduct(
    i: int, j: int, k: int, c: pk.View3D[pk.double], g: pk.View3D[pk.double], contrast: float
):
    c[i][j][k] = 1.0 / (1.0 + g[i][j][k] / contrast)


@pk.workunit
def flux_x(
    i: int,
    j: int,
    k: int,
    f: pk.View3D[pk.double],
    c: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
):
    f[i][j][k] = 0.5 * (c[i][j][k] + c[i - 1][j][k]) * (u[i][j][k] - u[i - 1][j][k])


@pk.workunit
def flux_y(
    i: int,
    j: int,
    k: int,
    f: pk.View3D[pk.double],
    c: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
):
    f[i][j][k] = 0.5 * (c[i][j][k] + c[i][j - 1][k]) * (u[i][j][k] - u[i][j - 1][k])


@pk.workunit
def flux_z(
    i: int,
    j: int,
    k: int,
    f: pk.View3D[pk.double],
    c: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
):
    f[i][j][k] = 0.5 * (c[i][j][k] + c[i][j][k - 1]) * (u[i][j][k] - u[i][j][k - 1])


@pk.workunit
def update(
    i: int,
    j: int,
    k: int,
    u: pk.View3D[pk.double],
    fx: pk.View3D[pk.double],
    fy: pk.View3D[pk.double],
    fz: pk.View3D[pk.double],
    dt: float,
):
    """Faces 0 and n let nothing through."""
    d: float = fx[i + 1][j][k] - fx[i][j][k] + fy[i][j + 1][k] - fy[i][j][k]
    u[i][j][k] += dt * (d + fz[i][j][k + 1] - fz[i][j][k])


@dataclass
class State:
    n: int
    steps: int
    noisy: pk.View
    u: pk.View
    contrasts: list = field(default_factory=list)
    mass: float = 0.0


def setup(n: int) -> State:
    noisy, u = pk.View([n, n, n], pk.double), pk.View([n, n, n], pk.double)
    x = (np.arange(n) + 0.5) / n - 0.5
    ball = (x[:, None, None] ** 2 + x[:, None] ** 2 + x**2 < 0.1) * 2.0
    noisy.data[:] = ball + np.random.default_rng(1410).normal(0.0, 0.2, (n, n, n))
    return State(n, 10 if n < 100 else 4, noisy, u)


def run(s: State) -> None:
    n, u = s.n, s.u
    box = pk.MDRangePolicy([0, 0, 0], [n, n, n])
    g, c = pk.View([n, n, n], pk.double), pk.View([n, n, n], pk.double)
    fx, fy = pk.View([n + 1, n, n], pk.double), pk.View([n, n + 1, n], pk.double)
    fz = pk.View([n, n, n + 1], pk.double)
    pk.parallel_for(box, copy, out=u, x=s.noisy)
    for f, top in ((fx, [n + 1, n, n]), (fy, [n, n + 1, n]), (fz, [n, n, n + 1])):
        pk.parallel_for(pk.MDRangePolicy([0, 0, 0], top), clear, out=f)
    s.contrasts = []
    for _ in range(s.steps):
        pk.parallel_for(box, gradient, g=g, u=u, n=n)
        contrast = 1.5 * float(pk.parallel_reduce(box, total, x=g)) / n**3
        pk.parallel_for(box, conduct, c=c, g=g, contrast=contrast)
        pk.parallel_for(pk.MDRangePolicy([1, 0, 0], [n, n, n]), flux_x, f=fx, c=c, u=u)
        pk.parallel_for(pk.MDRangePolicy([0, 1, 0], [n, n, n]), flux_y, f=fy, c=c, u=u)
        pk.parallel_for(pk.MDRangePolicy([0, 0, 1], [n, n, n]), flux_z, f=fz, c=c, u=u)
        pk.parallel_for(box, update, u=u, fx=fx, fy=fy, fz=fz, dt=0.14)
        s.contrasts.append(contrast)
    s.mass = float(pk.parallel_reduce(box, total, x=u))


def outputs(s: State) -> dict:
    return {
        "u": np.array(s.u.data),
        "contrasts": np.array(s.contrasts),
        "mass": np.array([s.mass]),
    }


def check(s: State, n: int) -> None:
    u = np.array(setup(n).noisy.data)
    for contrast in s.contrasts:
        p = np.pad(u, 1, "edge")
        ranges = slice(1, -1), slice(2, None), slice(None, -2)
        m, r, l = ranges
        g = 0.25 * (
            (p[r, m, m] - p[l, m, m]) ** 2
            + (p[m, r, m] - p[m, l, m]) ** 2
            + (p[m, m, r] - p[m, m, l]) ** 2
        )
        np.testing.assert_allclose(contrast, 1.5 * g.mean(), rtol=1e-9)
        c, change = 1.0 / (1.0 + g / contrast), 0.0
        for axis in range(3):
            a, b = np.moveaxis(c, axis, 0), np.moveaxis(u, axis, 0)
            flux = np.pad(0.5 * (a[1:] + a[:-1]) * np.diff(b, axis=0), ((1, 1), (0, 0), (0, 0)))
            change = change + np.moveaxis(np.diff(flux, axis=0), 0, axis)
        u = u + 0.14 * change
    np.testing.assert_allclose(s.u.data, u, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(s.mass, u.sum(), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
