"""Rayleigh-Benard convection in 3-D: Boussinesq flow by artificial compressibility.

Five fields on a grid with a halo: plates at fixed temperatures without slip (z), insulated walls
with slip (y), periodic (x). A step makes 15 border launches and 13 in the box.
"""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 16, "default": 64, "large": 150}
STEPS, DT, NU, KAPPA, BETA, BUOYANCY = 2, 1e-3, 0.02, 0.03, 4.0, 8.0


@pk.workunit
def plates(j: int, k: int, f: pk.View3D[pk.double], n: int, sign: float, low: float, high: float):
    f[0][j][k] = 2.0 * low + sign * f[1][j][k]
    f[n + 1][j][k] = 2.0 * high + sign * f[n][j][k]


@pk.workunit
def walls(i: int, k: int, f: pk.View3D[pk.double], n: int, sign: float):
    f[i][0][k] = sign * f[i][1][k]
    f[i][n + 1][k] = sign * f[i][n][k]


@pk.workunit
def wrap(i: int, j: int, f: pk.View3D[pk.double], n: int):
    f[i][j][0] = f[i][j][n]
    f[i][j][n + 1] = f[i][j][1]


@pk.workunit
def divergence(
    i: int,
    j: int,
    k: int,
    d: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    v: pk.View3D[pk.double],
    w: pk.View3D[pk.double],
    g: float,
):
    d[i][j][k] = g * (
        u[i][j][k + 1]
        - u[i][j][k - 1]
        + v[i][j + 1][k]
        - v[i][j - 1][k]
        + w[i + 1][j][k]
        - w[i - 1][j][k]
    )


@pk.workunit
def transport(
    i: int,
    j: int,
    k: int,
    out: pk.View3D[pk.double],
    f: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    v: pk.View3D[pk.double],
    w: pk.View3D[pk.double],
    g: float,
    c: float,
):
    """Advection by central differences, and diffusion."""
    ax: float = u[i][j][k] * (f[i][j][k + 1] - f[i][j][k - 1])
    ay: float = v[i][j][k] * (f[i][j + 1][k] - f[i][j - 1][k])
    az: float = w[i][j][k] * (f[i + 1][j][k] - f[i - 1][j][k])
    lap: float = (
        f[i][j][k + 1]
        + f[i][j][k - 1]
        + f[i][j + 1][k]
        + f[i][j - 1][k]
        + f[i + 1][j][k]
        + f[i - 1][j][k]
        - 6.0 * f[i][j][k]
    )
    out[i][j][k] = c * lap - g * (ax + ay + az)


@pk.workunit
def push_x(i: int, j: int, k: int, out: pk.View3D[pk.double], p: pk.View3D[pk.double], g: float):
    out[i][j][k] -= g * (p[i][j][k + 1] - p[i][j][k - 1])


@pk.workunit
def push_y(i: int, j: int, k: int, out: pk.View3D[pk.double], p: pk.View3D[pk.double], g: float):
    out[i][j][k] -= g * (p[i][j + 1][k] - p[i][j - 1][k])


@pk.workunit
def push_z(
    i: int,
    j: int,
    k: int,
    out: pk.View3D[pk.double],
    p: pk.View3D[pk.double],
    t: pk.View3D[pk.double],
    g: float,
    buoyancy: float,
):
    out[i][j][k] += buoyancy * t[i][j][k] - g * (p[i + 1][j][k] - p[i - 1][j][k])


@pk.workunit
def advance(i: int, j: int, k: int, f: pk.View3D[pk.double], rate: pk.View3D[pk.double], dt: float):
    f[i][j][k] += dt * rate[i][j][k]


@pk.workunit
def kinetic(
    i: int,
    j: int,
    k: int,
    acc: pk.Acc[pk.double],
    u: pk.View3D[pk.double],
    v: pk.View3D[pk.double],
    w: pk.View3D[pk.double],
):
    acc += 0.5 * (u[i][j][k] * u[i][j][k] + v[i][j][k] * v[i][j][k] + w[i][j][k] * w[i][j][k])


@pk.workunit
def heat_flux(
    i: int, j: int, k: int, acc: pk.Acc[pk.double], w: pk.View3D[pk.double], t: pk.View3D[pk.double]
):
    acc += w[i][j][k] * t[i][j][k]


@dataclass
class State:
    size: int
    u: pk.View
    v: pk.View
    w: pk.View
    p: pk.View
    t: pk.View
    energy: float = 0.0
    flux: float = 0.0


def initial(n):
    rng = np.random.default_rng(1)
    fields = [np.zeros((n + 2, n + 2, n + 2)) for _ in range(5)]
    z = (np.arange(n + 2) - 0.5) / n
    fields[4][:] = (0.5 - z)[:, None, None]
    fields[4][1:-1, 1:-1, 1:-1] += 0.05 * rng.standard_normal((n, n, n))
    for f in fields[:3]:
        f[1:-1, 1:-1, 1:-1] = 0.1 * rng.standard_normal((n, n, n))
    return fields


def setup(n):
    views = [pk.View([n + 2, n + 2, n + 2], pk.double) for _ in range(5)]
    for view, f in zip(views, initial(n)):
        view.data[:] = f
    return State(n, *views)


def borders(s):
    n = s.size
    face = pk.MDRangePolicy([1, 1], [n + 1, n + 1])
    sides = pk.MDRangePolicy([0, 1], [n + 2, n + 1])
    ends = pk.MDRangePolicy([0, 0], [n + 2, n + 2])
    for f, plate, wall, low, high in (
        (s.u, -1.0, 1.0, 0.0, 0.0),
        (s.v, -1.0, -1.0, 0.0, 0.0),
        (s.w, -1.0, 1.0, 0.0, 0.0),
        (s.p, 1.0, 1.0, 0.0, 0.0),
        (s.t, -1.0, 1.0, 0.5, -0.5),
    ):
        pk.parallel_for(face, plates, f=f, n=n, sign=plate, low=low, high=high)
        pk.parallel_for(sides, walls, f=f, n=n, sign=wall)
        pk.parallel_for(ends, wrap, f=f, n=n)


def step(s):
    n = s.size
    g, h2 = 0.5 * n, float(n * n)
    box = pk.MDRangePolicy([1, 1, 1], [n + 1, n + 1, n + 1])
    shape = [n + 2, n + 2, n + 2]
    div, du, dv, dw, dtemp = (pk.View(shape, pk.double) for _ in range(5))
    borders(s)
    pk.parallel_for(box, divergence, d=div, u=s.u, v=s.v, w=s.w, g=g)
    for out, f, c in ((du, s.u, NU), (dv, s.v, NU), (dw, s.w, NU), (dtemp, s.t, KAPPA)):
        pk.parallel_for(box, transport, out=out, f=f, u=s.u, v=s.v, w=s.w, g=g, c=c * h2 / 100.0)
    pk.parallel_for(box, push_x, out=du, p=s.p, g=g)
    pk.parallel_for(box, push_y, out=dv, p=s.p, g=g)
    pk.parallel_for(box, push_z, out=dw, p=s.p, t=s.t, g=g, buoyancy=BUOYANCY)
    for f, rate in ((s.u, du), (s.v, dv), (s.w, dw), (s.t, dtemp)):
        pk.parallel_for(box, advance, f=f, rate=rate, dt=DT)
    pk.parallel_for(box, advance, f=s.p, rate=div, dt=-BETA * DT)


def run(s):
    n = s.size
    for _ in range(STEPS):
        step(s)
    box = pk.MDRangePolicy([1, 1, 1], [n + 1, n + 1, n + 1])
    energy = pk.parallel_reduce(box, kinetic, u=s.u, v=s.v, w=s.w)
    flux = pk.parallel_reduce(box, heat_flux, w=s.w, t=s.t)
    s.energy, s.flux = float(energy) / n**3, float(flux) / n**3


def outputs(s):
    inner = (slice(1, -1),) * 3
    return {
        **{k: np.array(getattr(s, k).data)[inner] for k in "uvwpt"},
        "energy": s.energy,
        "flux": s.flux,
    }


def check(s):
    n = s.size
    u, v, w, p, t = f = initial(n)
    g, h2 = 0.5 * n, float(n * n)
    I = (slice(1, -1),) * 3

    def d(a, axis):
        lo, hi = [slice(1, -1)] * 3, [slice(1, -1)] * 3
        lo[axis], hi[axis] = slice(0, -2), slice(2, None)
        return a[tuple(hi)] - a[tuple(lo)]

    def lap(a):
        return (
            a[1:-1, 1:-1, 2:]
            + a[1:-1, 1:-1, :-2]
            + a[1:-1, 2:, 1:-1]
            + a[1:-1, :-2, 1:-1]
            + a[2:, 1:-1, 1:-1]
            + a[:-2, 1:-1, 1:-1]
            - 6 * a[I]
        )

    for _ in range(STEPS):
        for a, plate, wall, low, high in (
            (u, -1, 1, 0, 0),
            (v, -1, -1, 0, 0),
            (w, -1, 1, 0, 0),
            (p, 1, 1, 0, 0),
            (t, -1, 1, 0.5, -0.5),
        ):
            a[0, 1:-1, 1:-1] = 2 * low + plate * a[1, 1:-1, 1:-1]
            a[-1, 1:-1, 1:-1] = 2 * high + plate * a[-2, 1:-1, 1:-1]
            a[:, 0, 1:-1], a[:, -1, 1:-1] = wall * a[:, 1, 1:-1], wall * a[:, -2, 1:-1]
            a[:, :, 0], a[:, :, -1] = a[:, :, -2], a[:, :, 1]
        div = g * (d(u, 2) + d(v, 1) + d(w, 0))
        rates = [
            c * h2 / 100 * lap(a) - g * (u[I] * d(a, 2) + v[I] * d(a, 1) + w[I] * d(a, 0))
            for a, c in ((u, NU), (v, NU), (w, NU), (t, KAPPA))
        ]
        rates[0] -= g * d(p, 2)
        rates[1] -= g * d(p, 1)
        rates[2] += BUOYANCY * t[I] - g * d(p, 0)
        for a, r in zip((u, v, w, t), rates):
            a[I] += DT * r
        p[I] -= BETA * DT * div
    out = outputs(s)
    for k, a in zip("uvwpt", f):
        np.testing.assert_allclose(out[k], a[I], rtol=0, atol=1e-12, err_msg=k)
    np.testing.assert_allclose(
        s.energy, 0.5 * np.mean(u[I] ** 2 + v[I] ** 2 + w[I] ** 2), rtol=1e-9
    )
    np.testing.assert_allclose(s.flux, np.mean(w[I] * t[I]), rtol=1e-7, atol=1e-12)


if __name__ == "__main__":
    main(globals())
