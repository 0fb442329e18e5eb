# ruff: noqa: E501
"""A molecule in salt water: the nonlinear Poisson-Boltzmann equation in a box, by damped Newton-Jacobi.

Atoms make a map of the dielectric constant (harmonic means on the faces), the region ions can reach
and a spread charge. Then sweeps, with the residual read every few, until it is small; at the end the
energy and the net charge of the ions.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main
from peers.z01_numpy import solve

SIZES = {"small": 14, "default": 40, "large": 96}
ATOMS, INSIDE, WATER, SALT, OMEGA, TOLERANCE, EVERY = 12, 4.0, 78.5, 0.9, 0.85, 1e-6, 6
LENGTH, STERN, BLUR, CLAMP = 24.0, 1.4, 1.1, 12.0


@pk.workunit
def paint_molecule(
    i: int,
    j: int,
    k: int,
    eps: pk.View3D[pk.double],
    ions: pk.View3D[pk.double],
    rho: pk.View3D[pk.double],
    atoms: pk.View2D[pk.double],
    count: int,
    h: float,
    inside: float,
    water: float,
    salt: float,
    stern: float,
    blur: float,
):
    """An atom is x, y, z, radius, charge."""
    e: float = water
    s: float = salt
    q: float = 0.0
    for a in range(count):
        dx: float = i * h - atoms[a][0]
        dy: float = j * h - atoms[a][1]
        dz: float = k * h - atoms[a][2]
        r2: float = dx * dx + dy * dy + dz * dz
        radius: float = atoms[a][3]
        if r2 < radius * radius:
            e = inside
        if r2 < (radius + stern) * (radius + stern):
            s = 0.0
        q += atoms[a][4] * pk.exp(-r2 / (blur * blur))
    eps[i][j][k] = e
    ions[i][j][k] = s
    rho[i][j][k] = q


@pk.workunit
def face_x(i: int, j: int, k: int, f: pk.View3D[pk.double], eps: pk.View3D[pk.double]):
    f[i][j][k] = 2.0 * eps[i][j][k] * eps[i + 1][j][k] / (eps[i][j][k] + eps[i + 1][j][k])


@pk.workunit
def face_y(i: int, j: int, k: int, f: pk.View3D[pk.double], eps: pk.View3D[pk.double]):
    f[i][j][k] = 2.0 * eps[i][j][k] * eps[i][j + 1][k] / (eps[i][j][k] + eps[i][j + 1][k])


@pk.workunit
def face_z(i: int, j: int, k: int, f: pk.View3D[pk.double], eps: pk.View3D[pk.double]):
    f[i][j][k] = 2.0 * eps[i][j][k] * eps[i][j][k + 1] / (eps[i][j][k] + eps[i][j][k + 1])


@pk.workunit
def zero(i: int, j: int, k: int, x: pk.View3D[pk.double]):
    x[i][j][k] = 0.0


@pk.workunit
def sum_faces(
    i: int,
    j: int,
    k: int,
    total: pk.View3D[pk.double],
    fx: pk.View3D[pk.double],
    fy: pk.View3D[pk.double],
    fz: pk.View3D[pk.double],
):
    across: float = fx[i][j][k] + fx[i - 1][j][k]
    along: float = fy[i][j][k] + fy[i][j - 1][k]
    total[i][j][k] = across + along + fz[i][j][k] + fz[i][j][k - 1]


@pk.workunit
def flux(
    i: int,
    j: int,
    k: int,
    out: pk.View3D[pk.double],
    phi: pk.View3D[pk.double],
    fx: pk.View3D[pk.double],
    fy: pk.View3D[pk.double],
    fz: pk.View3D[pk.double],
):
    p: float = phi[i][j][k]
    s: float = fx[i][j][k] * (phi[i + 1][j][k] - p) + fx[i - 1][j][k] * (phi[i - 1][j][k] - p)
    s += fy[i][j][k] * (phi[i][j + 1][k] - p) + fy[i][j - 1][k] * (phi[i][j - 1][k] - p)
    out[i][j][k] = (
        s + fz[i][j][k] * (phi[i][j][k + 1] - p) + fz[i][j][k - 1] * (phi[i][j][k - 1] - p)
    )


@pk.workunit
def bounded(
    i: int, j: int, k: int, u: pk.View3D[pk.double], phi: pk.View3D[pk.double], clamp: float
):
    u[i][j][k] = max(-clamp, min(clamp, phi[i][j][k]))


@pk.workunit
def mobile_charge(
    i: int,
    j: int,
    k: int,
    m: pk.View3D[pk.double],
    dm: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    ions: pk.View3D[pk.double],
):
    if ions[i][j][k] > 0.0:
        up: float = pk.exp(u[i][j][k])
        m[i][j][k] = 0.5 * ions[i][j][k] * (up - 1.0 / up)
        dm[i][j][k] = 0.5 * ions[i][j][k] * (up + 1.0 / up)
    else:
        m[i][j][k] = 0.0
        dm[i][j][k] = 0.0


@pk.workunit
def residual(
    i: int,
    j: int,
    k: int,
    r: pk.View3D[pk.double],
    div: pk.View3D[pk.double],
    rho: pk.View3D[pk.double],
    m: pk.View3D[pk.double],
    h2: float,
):
    r[i][j][k] = div[i][j][k] + h2 * (rho[i][j][k] - m[i][j][k])


@pk.workunit
def correct(
    i: int,
    j: int,
    k: int,
    phi: pk.View3D[pk.double],
    r: pk.View3D[pk.double],
    total: pk.View3D[pk.double],
    dm: pk.View3D[pk.double],
    omega: float,
    h2: float,
):
    phi[i][j][k] += omega * r[i][j][k] / (total[i][j][k] + h2 * dm[i][j][k])


@pk.workunit
def square(i: int, j: int, k: int, acc: pk.Acc[pk.double], r: pk.View3D[pk.double]):
    acc += r[i][j][k] * r[i][j][k]


@pk.workunit
def product(
    i: int,
    j: int,
    k: int,
    acc: pk.Acc[pk.double],
    x: pk.View3D[pk.double],
    y: pk.View3D[pk.double],
):
    acc += x[i][j][k] * y[i][j][k]


@pk.workunit
def whole(i: int, j: int, k: int, acc: pk.Acc[pk.double], x: pk.View3D[pk.double]):
    acc += x[i][j][k]


@dataclass
class State:
    """Atoms; the potential; residuals, energy and the ions' charge."""

    n: int
    most: int
    atoms: pk.View
    phi: pk.View
    residuals: list = field(default_factory=list)
    energy: float = 0.0
    charge: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(1301)
    atoms, phi = pk.View([ATOMS, 5], pk.double), pk.View([n, n, n], pk.double)
    atoms.data[:, :3] = 0.5 * LENGTH + rng.normal(0.0, 2.2, (ATOMS, 3))
    atoms.data[:, 3] = rng.uniform(1.5, 2.4, ATOMS)
    atoms.data[:, 4] = 20.0 * rng.choice([-1.0, 1.0, 1.0], ATOMS) * rng.uniform(0.5, 1.0, ATOMS)
    return State(n, 150 if n <= 20 else 66 if n <= 60 else 18, atoms, phi)


def run(state: State) -> None:
    n, phi = state.n, state.phi
    h = LENGTH / (n - 1)
    box = pk.MDRangePolicy([0, 0, 0], [n, n, n])
    inner = pk.MDRangePolicy([1, 1, 1], [n - 1, n - 1, n - 1])
    eps, ions, rho, fx, fy, fz = (pk.View([n, n, n], pk.double) for _ in range(6))
    total, u, m, dm, div, r = (pk.View([n, n, n], pk.double) for _ in range(6))
    pk.parallel_for(
        box,
        paint_molecule,
        eps=eps,
        ions=ions,
        rho=rho,
        atoms=state.atoms,
        count=ATOMS,
        h=h,
        inside=INSIDE,
        water=WATER,
        salt=SALT,
        stern=STERN,
        blur=BLUR,
    )
    pk.parallel_for(pk.MDRangePolicy([0, 0, 0], [n - 1, n, n]), face_x, f=fx, eps=eps)
    pk.parallel_for(pk.MDRangePolicy([0, 0, 0], [n, n - 1, n]), face_y, f=fy, eps=eps)
    pk.parallel_for(pk.MDRangePolicy([0, 0, 0], [n, n, n - 1]), face_z, f=fz, eps=eps)
    pk.parallel_for(inner, sum_faces, total=total, fx=fx, fy=fy, fz=fz)
    pk.parallel_for(box, zero, x=phi)
    state.residuals = []
    for iteration in range(state.most):
        pk.parallel_for(inner, flux, out=div, phi=phi, fx=fx, fy=fy, fz=fz)
        pk.parallel_for(inner, bounded, u=u, phi=phi, clamp=CLAMP)
        pk.parallel_for(inner, mobile_charge, m=m, dm=dm, u=u, ions=ions)
        pk.parallel_for(inner, residual, r=r, div=div, rho=rho, m=m, h2=h * h)
        pk.parallel_for(inner, correct, phi=phi, r=r, total=total, dm=dm, omega=OMEGA, h2=h * h)
        if iteration % EVERY == EVERY - 1:
            norm = sqrt(float(pk.parallel_reduce(inner, square, r=r)))
            state.residuals.append(norm)
            if norm < TOLERANCE * state.residuals[0]:
                break
    state.energy = 0.5 * h**3 * float(pk.parallel_reduce(inner, product, x=rho, y=phi))
    state.charge = h**3 * float(pk.parallel_reduce(inner, whole, x=m))


def outputs(state: State) -> dict:
    return {
        "phi": np.array(state.phi.data),
        "residuals": np.array(state.residuals),
        "energy": np.array([state.energy]),
        "charge": np.array([state.charge]),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    expected = solve(n, fresh.most, np.array(fresh.atoms.data))
    for name, value in outputs(state).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    main(globals())
