"""The potential of a capacitor with a dielectric by red-black over-relaxation, then field and charge."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 900, "default": 40_000, "large": 1_000_000}
OMEGA, SWEEPS, TOLERANCE = 1.7, 10, 1e-9


@pk.workunit
def start(i: int, j: int, phi: pk.View2D[pk.double], volts: pk.View2D[pk.double]):
    phi[i][j] = volts[i][j]


@pk.workunit
def relax(
    i: int,
    j: int,
    phi: pk.View2D[pk.double],
    eps: pk.View2D[pk.double],
    free: pk.View2D[pk.uint8],
    colour: int,
):
    if (i + j) % 2 == colour and free[i][j] == 1:
        n: pk.double = 0.5 * (eps[i][j] + eps[i - 1][j])
        s: pk.double = 0.5 * (eps[i][j] + eps[i + 1][j])
        w: pk.double = 0.5 * (eps[i][j] + eps[i][j - 1])
        e: pk.double = 0.5 * (eps[i][j] + eps[i][j + 1])
        around: pk.double = (
            n * phi[i - 1][j] + s * phi[i + 1][j] + w * phi[i][j - 1] + e * phi[i][j + 1]
        )
        phi[i][j] += OMEGA * (around / (n + s + w + e) - phi[i][j])


@pk.workunit
def flux(
    i: int,
    j: int,
    dx: pk.View2D[pk.double],
    dy: pk.View2D[pk.double],
    phi: pk.View2D[pk.double],
    eps: pk.View2D[pk.double],
):
    """The displacement through the lower and the right side of a cell."""
    dx[i][j] = -0.5 * (eps[i][j] + eps[i + 1][j]) * (phi[i + 1][j] - phi[i][j])
    dy[i][j] = -0.5 * (eps[i][j] + eps[i][j + 1]) * (phi[i][j + 1] - phi[i][j])


@pk.workunit
def divergence(
    i: int, j: int, out: pk.View2D[pk.double], dx: pk.View2D[pk.double], dy: pk.View2D[pk.double]
):
    out[i][j] = dx[i][j] - dx[i - 1][j] + dy[i][j] - dy[i][j - 1]


@pk.workunit
def square_free(
    i: int, j: int, acc: pk.Acc[pk.double], r: pk.View2D[pk.double], free: pk.View2D[pk.uint8]
):
    if free[i][j] == 1:
        acc += r[i][j] * r[i][j]


@pk.workunit
def plate_charge(
    i: int, j: int, acc: pk.Acc[pk.double], r: pk.View2D[pk.double], volts: pk.View2D[pk.double]
):
    if volts[i][j] > 0.0:
        acc += r[i][j]


@pk.workunit
def field_energy(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    dx: pk.View2D[pk.double],
    dy: pk.View2D[pk.double],
    eps: pk.View2D[pk.double],
):
    acc += 0.5 * (dx[i][j] * dx[i][j] + dy[i][j] * dy[i][j]) / eps[i][j]


@dataclass
class State:
    m: int
    volts: pk.View
    eps: pk.View
    free: pk.View
    phi: pk.View
    div: pk.View
    residual: float = 0.0
    charge: float = 0.0
    energy: float = 0.0
    sweeps: int = 0


def setup(n: int) -> State:
    m = int(n**0.5)
    volts, eps, phi, div = (pk.View([m, m], pk.double) for _ in range(4))
    free = pk.View([m, m], pk.uint8)
    i, j = np.meshgrid(np.arange(m) / m, np.arange(m) / m, indexing="ij")
    plate = (j > 0.25) & (j < 0.75)
    upper, lower = plate & (abs(i - 0.35) < 0.03), plate & (abs(i - 0.65) < 0.03)
    volts.data[:] = 1.0 * upper - 1.0 * lower
    eps.data[:] = np.where(plate & (abs(i - 0.5) < 0.1), 4.0, 1.0)
    free.data[:] = ~(upper | lower)
    return State(m, volts, eps, free, phi, div)


def run(s: State) -> None:
    m, phi, eps = s.m, s.phi, s.eps
    inside = pk.MDRangePolicy([1, 1], [m - 1, m - 1])
    faces = pk.MDRangePolicy([0, 0], [m - 1, m - 1])
    dx, dy = pk.View([m, m], pk.double), pk.View([m, m], pk.double)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [m, m]), start, phi=phi, volts=s.volts)
    for sweep in range(SWEEPS):
        pk.parallel_for(inside, relax, phi=phi, eps=eps, free=s.free, colour=0)
        pk.parallel_for(inside, relax, phi=phi, eps=eps, free=s.free, colour=1)
        s.sweeps = sweep + 1
        if sweep % 5 == 4:
            pk.parallel_for(faces, flux, dx=dx, dy=dy, phi=phi, eps=eps)
            pk.parallel_for(inside, divergence, out=s.div, dx=dx, dy=dy)
            s.residual = float(pk.parallel_reduce(inside, square_free, r=s.div, free=s.free)) / (
                m * m
            )
            if s.residual < TOLERANCE:
                break
    s.charge = float(pk.parallel_reduce(inside, plate_charge, r=s.div, volts=s.volts))
    s.energy = float(pk.parallel_reduce(faces, field_energy, dx=dx, dy=dy, eps=eps))


def outputs(s: State) -> dict:
    numbers = np.array([s.residual, s.charge, s.energy, s.sweeps])
    return {"phi": np.array(s.phi.data), "div": np.array(s.div.data), "numbers": numbers}


def check(s: State, n: int) -> None:
    eps, free, phi = np.array(s.eps.data), np.array(s.free.data), np.array(s.volts.data)
    colour = np.add.outer(np.arange(s.m), np.arange(s.m)) % 2
    c = (slice(1, -1), slice(1, -1))
    near = [(slice(0, -2), slice(1, -1)), (slice(2, None), slice(1, -1))]
    near += [(b, a) for a, b in near]
    half = [0.5 * (eps[c] + eps[q]) for q in near]
    for _ in range(s.sweeps):
        for k in (0, 1):
            around = sum(h * phi[q] for h, q in zip(half, near)) / sum(half)
            here = (colour[c] == k) & (free[c] == 1)
            phi[c] += np.where(here, OMEGA * (around - phi[c]), 0)
    np.testing.assert_allclose(s.phi.data, phi, atol=1e-13)
    assert s.charge > 0 and s.energy > 0


if __name__ == "__main__":
    main(globals())
