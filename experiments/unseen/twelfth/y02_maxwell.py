"""Maxwell's equations by Yee's scheme in a box with absorbing layers, in single precision.

A pulse beside a dielectric ball radiates; near the walls both fields are damped by profiles along
the three axes, in front of perfect conductors. A step moves the magnetic field, then the electric
one, feeds the source and sums both energies.
"""

from dataclasses import dataclass, field
from math import exp

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 14, "default": 80, "large": 170}
COURANT, WIDTH = 0.5, 5


@pk.workunit
def restore(i: int, j: int, k: int, x: pk.View3D[pk.float], x0: pk.View3D[pk.float]):
    x[i][j][k] = x0[i][j][k]


@pk.workunit
def h_along_x(
    i: int,
    j: int,
    k: int,
    h: pk.View3D[pk.float],
    ey: pk.View3D[pk.float],
    ez: pk.View3D[pk.float],
    c: pk.View1D[pk.float],
):
    h[i][j][k] += c[0] * (ey[i][j][k + 1] - ey[i][j][k] - ez[i][j + 1][k] + ez[i][j][k])


@pk.workunit
def h_along_y(
    i: int,
    j: int,
    k: int,
    h: pk.View3D[pk.float],
    ez: pk.View3D[pk.float],
    ex: pk.View3D[pk.float],
    c: pk.View1D[pk.float],
):
    h[i][j][k] += c[0] * (ez[i + 1][j][k] - ez[i][j][k] - ex[i][j][k + 1] + ex[i][j][k])


@pk.workunit
def h_along_z(
    i: int,
    j: int,
    k: int,
    h: pk.View3D[pk.float],
    ex: pk.View3D[pk.float],
    ey: pk.View3D[pk.float],
    c: pk.View1D[pk.float],
):
    h[i][j][k] += c[0] * (ex[i][j + 1][k] - ex[i][j][k] - ey[i + 1][j][k] + ey[i][j][k])


@pk.workunit
def damp(i: int, j: int, k: int, x: pk.View3D[pk.float], p: pk.View1D[pk.float]):
    x[i][j][k] *= p[i] * p[j] * p[k]


@pk.workunit
def e_along_x(
    i: int,
    j: int,
    k: int,
    e: pk.View3D[pk.float],
    hz: pk.View3D[pk.float],
    hy: pk.View3D[pk.float],
    inverse: pk.View3D[pk.float],
):
    e[i][j][k] += inverse[i][j][k] * (hz[i][j][k] - hz[i][j - 1][k] - hy[i][j][k] + hy[i][j][k - 1])


@pk.workunit
def e_along_y(
    i: int,
    j: int,
    k: int,
    e: pk.View3D[pk.float],
    hx: pk.View3D[pk.float],
    hz: pk.View3D[pk.float],
    inverse: pk.View3D[pk.float],
):
    e[i][j][k] += inverse[i][j][k] * (hx[i][j][k] - hx[i][j][k - 1] - hz[i][j][k] + hz[i - 1][j][k])


@pk.workunit
def e_along_z(
    i: int,
    j: int,
    k: int,
    e: pk.View3D[pk.float],
    hy: pk.View3D[pk.float],
    hx: pk.View3D[pk.float],
    inverse: pk.View3D[pk.float],
):
    e[i][j][k] += inverse[i][j][k] * (hy[i][j][k] - hy[i - 1][j][k] - hx[i][j][k] + hx[i][j - 1][k])


@pk.workunit
def source(k: int, ez: pk.View3D[pk.float], place: int, first: int, amplitude: float):
    """A short wire along z."""
    ez[place][place][first + k] += amplitude


@pk.workunit
def energy(
    i: int,
    j: int,
    k: int,
    acc: pk.Acc[pk.double],
    x: pk.View3D[pk.float],
    y: pk.View3D[pk.float],
    z: pk.View3D[pk.float],
):
    acc += x[i][j][k] * x[i][j][k] + y[i][j][k] * y[i][j][k] + z[i][j][k] * z[i][j][k]


@dataclass
class State:
    """Fields, electric and magnetic; material, profile and first noise; energies after each step."""

    n: int
    steps: int
    e: list
    h: list
    inverse: pk.View
    profile: pk.View
    courant: pk.View
    noise: pk.View
    electric: list = field(default_factory=list)
    magnetic: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(122)
    e, h = ([pk.View([n, n, n], pk.float) for _ in range(3)] for _ in range(2))
    inverse, profile = pk.View([n, n, n], pk.float), pk.View([n], pk.float)
    courant, noise = pk.View([1], pk.float), pk.View([n, n, n], pk.float)
    noise.data[1:-1, 1:-1, 1:-1] = 0.01 * rng.standard_normal((n - 2, n - 2, n - 2))
    z, y, x = (np.mgrid[0:n, 0:n, 0:n] - 0.6 * n) / n
    ball = x * x + y * y + z * z < 0.04
    inverse.data[:] = COURANT / (1.0 + 1.5 * ball + 0.05 * rng.random((n, n, n)))
    near = np.maximum(WIDTH - np.minimum(np.arange(n), np.arange(n)[::-1]), 0) / WIDTH
    profile.data[:] = np.exp(-0.3 * near**3)
    courant.data[:] = COURANT
    steps = 30 if n <= 20 else 12 if n <= 100 else 4
    return State(n, steps, e, h, inverse, profile, courant, noise)


def pulse(step: int) -> float:
    return exp(-((step - 3.0) ** 2) / 4.0)


def run(state: State) -> None:
    n, (ex, ey, ez), (hx, hy, hz) = state.n, state.e, state.h
    c, p, inverse = state.courant, state.profile, state.inverse
    everywhere = pk.MDRangePolicy([0, 0, 0], [n, n, n])
    for x in (ex, ey, ez, hx, hy, hz):
        pk.parallel_for(everywhere, restore, x=x, x0=state.noise)
    state.electric, state.magnetic = [], []
    for step in range(state.steps):
        pk.parallel_for(
            pk.MDRangePolicy([1, 0, 0], [n - 1, n - 1, n - 1]), h_along_x, h=hx, ey=ey, ez=ez, c=c
        )
        pk.parallel_for(
            pk.MDRangePolicy([0, 1, 0], [n - 1, n - 1, n - 1]), h_along_y, h=hy, ez=ez, ex=ex, c=c
        )
        pk.parallel_for(
            pk.MDRangePolicy([0, 0, 1], [n - 1, n - 1, n - 1]), h_along_z, h=hz, ex=ex, ey=ey, c=c
        )
        for x in (hx, hy, hz):
            pk.parallel_for(everywhere, damp, x=x, p=p)
        pk.parallel_for(
            pk.MDRangePolicy([0, 1, 1], [n - 1, n - 1, n - 1]),
            e_along_x,
            e=ex,
            hz=hz,
            hy=hy,
            inverse=inverse,
        )
        pk.parallel_for(
            pk.MDRangePolicy([1, 0, 1], [n - 1, n - 1, n - 1]),
            e_along_y,
            e=ey,
            hx=hx,
            hz=hz,
            inverse=inverse,
        )
        pk.parallel_for(
            pk.MDRangePolicy([1, 1, 0], [n - 1, n - 1, n - 1]),
            e_along_z,
            e=ez,
            hy=hy,
            hx=hx,
            inverse=inverse,
        )
        for x in (ex, ey, ez):
            pk.parallel_for(everywhere, damp, x=x, p=p)
        pk.parallel_for(3, source, ez=ez, place=n // 3, first=n // 2 - 1, amplitude=pulse(step))
        state.electric.append(pk.parallel_reduce(everywhere, energy, x=ex, y=ey, z=ez))
        state.magnetic.append(pk.parallel_reduce(everywhere, energy, x=hx, y=hy, z=hz))


def outputs(state: State) -> dict:
    return {
        "e": np.array([x.data for x in state.e]),
        "h": np.array([x.data for x in state.h]),
        "electric": np.array([float(x) for x in state.electric]),
        "magnetic": np.array([float(x) for x in state.magnetic]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    inverse, p = (np.array(x.data, dtype=np.float64) for x in (fresh.inverse, fresh.profile))
    p = p[:, None, None] * p[:, None] * p
    noise = np.array(fresh.noise.data, dtype=np.float64)
    e, h = np.stack([noise] * 3), np.stack([noise] * 3)
    electric, magnetic = [], []
    for step in range(fresh.steps):
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            curl = np.roll(e[b], -1, c) - e[b] - np.roll(e[c], -1, b) + e[c]
            inside = [slice(0, n - 1)] * 3
            inside[a] = slice(1, n - 1)
            h[a][tuple(inside)] += COURANT * curl[tuple(inside)]
        h *= p
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            curl = h[c] - np.roll(h[c], 1, b) - h[b] + np.roll(h[b], 1, c)
            inside = [slice(1, n - 1)] * 3
            inside[a] = slice(0, n - 1)
            e[a][tuple(inside)] += (inverse * curl)[tuple(inside)]
        e *= p
        e[2, n // 3, n // 3, n // 2 - 1 : n // 2 + 2] += pulse(step)
        electric.append(np.sum(e * e))
        magnetic.append(np.sum(h * h))
    out = outputs(state)
    np.testing.assert_allclose(out["e"], e, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out["h"], h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out["electric"], electric, rtol=1e-5)
    np.testing.assert_allclose(out["magnetic"], magnetic, rtol=1e-5)


if __name__ == "__main__":
    main(globals())
