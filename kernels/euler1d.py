"""Euler 1-D: gas dynamics in a shock tube by Rusanov's finite volumes.

Source: E. Toro, "Riemann Solvers and Numerical Methods for Fluid Dynamics", ch. 10 (Rusanov's
flux); the tube is Sod's (1978) with waves laid over it, its two end cells are fixed.

One run makes STEPS steps of 14 launches: velocity, pressure, speed of sound and fastest wave,
3 fluxes in cells, 3 at faces (face i lies left of cell i), 3 updates, and 1 reduction. Unfused, a
step moves 45 doubles (360 bytes) a cell, most of them to 10 temporaries; the least is 3 in, 3 out.
"""

import argparse
from dataclasses import dataclass
from math import fabs, sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 3_000_000, "large": 12_000_000, "gpu": 40_000_000}
STEPS = 3
GAMMA, COURANT, FASTEST = 1.4, 0.4, 4.0


@pk.workunit
def velocity(
    i: int, u: pk.View1D[pk.double], rho: pk.View1D[pk.double], mom: pk.View1D[pk.double]
) -> None:
    u[i] = mom[i] / rho[i]


@pk.workunit
def pressure(
    i: int,
    p: pk.View1D[pk.double],
    mom: pk.View1D[pk.double],
    energy: pk.View1D[pk.double],
    u: pk.View1D[pk.double],
    gamma: float,
) -> None:
    p[i] = (gamma - 1.0) * (energy[i] - 0.5 * mom[i] * u[i])


@pk.workunit
def sound(
    i: int,
    c: pk.View1D[pk.double],
    rho: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
    gamma: float,
) -> None:
    c[i] = sqrt(gamma * p[i] / rho[i])


@pk.workunit
def wave_speed(
    i: int, s: pk.View1D[pk.double], u: pk.View1D[pk.double], c: pk.View1D[pk.double]
) -> None:
    s[i] = fabs(u[i]) + c[i]


@pk.workunit
def mass_flux(i: int, f: pk.View1D[pk.double], mom: pk.View1D[pk.double]) -> None:
    f[i] = mom[i]


@pk.workunit
def momentum_flux(
    i: int,
    f: pk.View1D[pk.double],
    mom: pk.View1D[pk.double],
    u: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
) -> None:
    f[i] = mom[i] * u[i] + p[i]


@pk.workunit
def energy_flux(
    i: int,
    f: pk.View1D[pk.double],
    energy: pk.View1D[pk.double],
    u: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
) -> None:
    f[i] = u[i] * (energy[i] + p[i])


@pk.workunit
def face_flux(
    i: int,
    face: pk.View1D[pk.double],
    f: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    s: pk.View1D[pk.double],
) -> None:
    """Rusanov's flux between cells i - 1 and i."""
    fastest: float = s[i - 1]
    if s[i] > fastest:
        fastest = s[i]
    face[i] = 0.5 * (f[i - 1] + f[i]) - 0.5 * fastest * (q[i] - q[i - 1])


@pk.workunit
def update(i: int, q: pk.View1D[pk.double], face: pk.View1D[pk.double], ratio: float) -> None:
    q[i] -= ratio * (face[i + 1] - face[i])


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], q: pk.View1D[pk.double]) -> None:
    acc += q[i]


@dataclass
class State:
    """Density, momentum and energy of every cell, and the mass of all."""

    size: int
    fields: list[pk.View]
    mass: float = 0.0


def initial(size: int) -> np.ndarray:
    """Return density, momentum and energy, a row each."""
    x = np.arange(size) / size
    left = x < 0.5
    rho = np.where(left, 1.0, 0.125) * (1.0 + 0.1 * np.sin(40 * np.pi * x))
    u = 0.2 * np.cos(60 * np.pi * x)
    return np.stack([rho, rho * u, np.where(left, 1.0, 0.1) / (GAMMA - 1) + 0.5 * rho * u**2])


def setup(size: int) -> State:
    """Make a tube."""
    fields = [pk.View([size], pk.double) for _ in range(3)]
    for view, row in zip(fields, initial(size), strict=True):
        view.data[:] = row
    return State(size, fields)


def cell_fluxes(state: State) -> tuple[list[pk.View], pk.View]:
    """Return the three fluxes and the fastest wave of every cell."""
    n, (rho, mom, energy) = state.size, state.fields
    u, p, c, s, mass, momentum, heat = (pk.View([n], pk.double) for _ in range(7))
    pk.parallel_for("velocity", n, velocity, u=u, rho=rho, mom=mom)
    pk.parallel_for("pressure", n, pressure, p=p, mom=mom, energy=energy, u=u, gamma=GAMMA)
    pk.parallel_for("sound", n, sound, c=c, rho=rho, p=p, gamma=GAMMA)
    pk.parallel_for("wave_speed", n, wave_speed, s=s, u=u, c=c)
    pk.parallel_for("mass_flux", n, mass_flux, f=mass, mom=mom)
    pk.parallel_for("momentum_flux", n, momentum_flux, f=momentum, mom=mom, u=u, p=p)
    pk.parallel_for("energy_flux", n, energy_flux, f=heat, energy=energy, u=u, p=p)
    return [mass, momentum, heat], s


def step(state: State) -> None:
    """Advance one step of COURANT * dx / FASTEST."""
    n, inner = state.size, pk.RangePolicy(1, state.size - 1)
    faces = [pk.View([n], pk.double) for _ in state.fields]
    fluxes, s = cell_fluxes(state)
    for face, f, q in zip(faces, fluxes, state.fields, strict=True):
        pk.parallel_for("face_flux", pk.RangePolicy(1, n), face_flux, face=face, f=f, q=q, s=s)
    for q, face in zip(state.fields, faces, strict=True):
        pk.parallel_for("update", inner, update, q=q, face=face, ratio=COURANT / FASTEST)
    state.mass = pk.parallel_reduce("total", n, total, q=state.fields[0])


def run(state: State) -> None:
    """Advance STEPS steps."""
    for _ in range(STEPS):
        step(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the fields, a row each, and the mass."""
    return {"fields": np.array([q.data for q in state.fields]), "mass": float(state.mass)}


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Rusanov's method on the stacked fields."""
    q = initial(size)
    for _ in range(runs * STEPS):
        rho, mom, energy = q
        u = mom / rho
        p = (GAMMA - 1) * (energy - 0.5 * rho * u**2)
        s = np.abs(u) + np.sqrt(GAMMA * p / rho)
        f = np.stack([mom, mom * u + p, (energy + p) * u])
        fastest = np.maximum(s[1:], s[:-1])
        face = 0.5 * (f[:, 1:] + f[:, :-1] - fastest * (q[:, 1:] - q[:, :-1]))
        q[:, 1:-1] -= COURANT / FASTEST * (face[:, 1:] - face[:, :-1])
    return {"fields": q, "mass": float(np.sum(q[0])) if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """The scheme is monotone: a step adds some eps of numbers up to 3, and amplifies none."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 2e-14 * (1 + runs * STEPS)
    np.testing.assert_allclose(
        actual["fields"], expected["fields"], rtol=0, atol=atol, err_msg="fields"
    )
    np.testing.assert_allclose(actual["mass"], expected["mass"], rtol=1e-9, err_msg="mass")


def main() -> None:
    """Run and check from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--space", default=None, help="an execution space, such as OpenMP")
    args = parser.parse_args()
    if args.space:
        pk.set_default_space(pk.ExecutionSpace(args.space))
    state = setup(args.size)
    start = perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"euler1d: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
