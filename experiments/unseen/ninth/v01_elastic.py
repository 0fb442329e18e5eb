"""Elastic waves (P and SV) in a plane: velocity and stress on a staggered grid.

A layered medium, a buried explosion, absorbing margins and a line of receivers.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 32, "default": 300, "large": 1100}
STEPS, DT, H, MARGIN = 4, 0.05, 1.0, 8


@pk.workunit
def forward_x(i: int, j: int, d: pk.View2D[pk.double], f: pk.View2D[pk.double], h: float):
    d[i][j] = (f[i + 1][j] - f[i][j]) / h


@pk.workunit
def backward_x(i: int, j: int, d: pk.View2D[pk.double], f: pk.View2D[pk.double], h: float):
    d[i][j] = (f[i][j] - f[i - 1][j]) / h


@pk.workunit
def forward_y(i: int, j: int, d: pk.View2D[pk.double], f: pk.View2D[pk.double], h: float):
    d[i][j] = (f[i][j + 1] - f[i][j]) / h


@pk.workunit
def backward_y(i: int, j: int, d: pk.View2D[pk.double], f: pk.View2D[pk.double], h: float):
    d[i][j] = (f[i][j] - f[i][j - 1]) / h


@pk.workunit
def accelerate(
    i: int,
    j: int,
    v: pk.View2D[pk.double],
    a: pk.View2D[pk.double],
    b: pk.View2D[pk.double],
    rho: pk.View2D[pk.double],
    dt: float,
):
    v[i][j] += dt * (a[i][j] + b[i][j]) / rho[i][j]


@pk.workunit
def normal_stress(
    i: int,
    j: int,
    t: pk.View2D[pk.double],
    along: pk.View2D[pk.double],
    across: pk.View2D[pk.double],
    lam: pk.View2D[pk.double],
    mu: pk.View2D[pk.double],
    dt: float,
):
    t[i][j] += dt * ((lam[i][j] + 2.0 * mu[i][j]) * along[i][j] + lam[i][j] * across[i][j])


@pk.workunit
def shear_stress(
    i: int,
    j: int,
    t: pk.View2D[pk.double],
    a: pk.View2D[pk.double],
    b: pk.View2D[pk.double],
    mu: pk.View2D[pk.double],
    dt: float,
):
    t[i][j] += dt * mu[i][j] * (a[i][j] + b[i][j])


@pk.workunit
def sponge(i: int, j: int, f: pk.View2D[pk.double], g: pk.View1D[pk.double]):
    f[i][j] *= g[i] * g[j]


@pk.workunit
def explode(
    k: int,
    txx: pk.View2D[pk.double],
    tyy: pk.View2D[pk.double],
    places: pk.View2D[pk.int32],
    push: float,
):
    a: int = places[k][0]
    b: int = places[k][1]
    txx[a][b] += push
    tyy[a][b] += push


@pk.workunit
def receive(j: int, record: pk.View2D[pk.double], v: pk.View2D[pk.double], k: int, depth: int):
    record[k][j] = v[depth][j]


@pk.workunit
def kinetic(
    i: int,
    j: int,
    acc: pk.Acc[pk.double],
    rho: pk.View2D[pk.double],
    vx: pk.View2D[pk.double],
    vy: pk.View2D[pk.double],
):
    acc += 0.5 * rho[i][j] * (vx[i][j] * vx[i][j] + vy[i][j] * vy[i][j])


@dataclass
class State:
    size: int
    vx: pk.View
    vy: pk.View
    txx: pk.View
    tyy: pk.View
    txy: pk.View
    rho: pk.View
    lam: pk.View
    mu: pk.View
    g: pk.View
    places: pk.View
    record: pk.View
    energy: list = field(default_factory=list)


def problem(n):
    rng = np.random.default_rng(1)
    fields = [0.01 * rng.normal(size=(n, n)) for _ in range(5)]
    depth = np.arange(n)[:, None] / n + np.zeros((n, n))
    rho = 1.0 + 0.5 * (depth > 0.4) + 0.1 * rng.random((n, n))
    lam = 2.0 + 3.0 * (depth > 0.4)
    mu = 1.0 + 2.0 * (depth > 0.6)
    e = np.minimum(np.arange(n), np.arange(n)[::-1])
    g = np.where(e < MARGIN, np.exp(-((0.05 * (MARGIN - e)) ** 2)), 0.999)
    places = np.array([[n // 3, n // 2], [n // 2, n // 3], [n // 2, n // 2]], dtype=np.int32)
    return fields, rho, lam, mu, g, places


def ricker(k):
    a = (np.pi * 0.4 * (k * DT - 0.1)) ** 2
    return float((1 - 2 * a) * np.exp(-a))


def setup(n):
    fields, rho, lam, mu, g, places = problem(n)
    return State(
        n,
        *map(view, fields),
        view(rho),
        view(lam),
        view(mu),
        view(g),
        view(places),
        pk.View([STEPS, n], pk.double),
    )


def step(s, k):
    n = s.size
    inner = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    a, b, c, d = (pk.View([n, n], pk.double) for _ in range(4))
    pk.parallel_for(inner, forward_x, d=a, f=s.txx, h=H)
    pk.parallel_for(inner, backward_y, d=b, f=s.txy, h=H)
    pk.parallel_for(inner, accelerate, v=s.vx, a=a, b=b, rho=s.rho, dt=DT)
    pk.parallel_for(inner, backward_x, d=c, f=s.txy, h=H)
    pk.parallel_for(inner, forward_y, d=d, f=s.tyy, h=H)
    pk.parallel_for(inner, accelerate, v=s.vy, a=c, b=d, rho=s.rho, dt=DT)

    exx, eyy, exy, eyx = (pk.View([n, n], pk.double) for _ in range(4))
    pk.parallel_for(inner, backward_x, d=exx, f=s.vx, h=H)
    pk.parallel_for(inner, backward_y, d=eyy, f=s.vy, h=H)
    pk.parallel_for(inner, forward_y, d=exy, f=s.vx, h=H)
    pk.parallel_for(inner, forward_x, d=eyx, f=s.vy, h=H)
    pk.parallel_for(inner, normal_stress, t=s.txx, along=exx, across=eyy, lam=s.lam, mu=s.mu, dt=DT)
    pk.parallel_for(inner, normal_stress, t=s.tyy, along=eyy, across=exx, lam=s.lam, mu=s.mu, dt=DT)
    pk.parallel_for(inner, shear_stress, t=s.txy, a=exy, b=eyx, mu=s.mu, dt=DT)

    pk.parallel_for(3, explode, txx=s.txx, tyy=s.tyy, places=s.places, push=ricker(k))
    everywhere = pk.MDRangePolicy([0, 0], [n, n])
    for f in (s.vx, s.vy, s.txx, s.tyy, s.txy):
        pk.parallel_for(everywhere, sponge, f=f, g=s.g)
    pk.parallel_for(n, receive, record=s.record, v=s.vy, k=k, depth=2)
    return pk.parallel_reduce(everywhere, kinetic, rho=s.rho, vx=s.vx, vy=s.vy)


def run(s):
    s.energy = [step(s, k) for k in range(STEPS)]
    s.energy = [float(e) for e in s.energy]


def outputs(s):
    names = ("vx", "vy", "txx", "tyy", "txy", "record")
    return {a: np.array(getattr(s, a).data) for a in names} | {"energy": np.array(s.energy)}


def check(s):
    (vx, vy, txx, tyy, txy), rho, lam, mu, g, places = problem(s.size)
    m = slice(1, -1)
    inner, up, down = (m, m), slice(2, None), slice(None, -2)

    def fx(f):
        return (f[up, m] - f[inner]) / H

    def bx(f):
        return (f[inner] - f[down, m]) / H

    def fy(f):
        return (f[m, up] - f[inner]) / H

    def by(f):
        return (f[inner] - f[m, down]) / H

    for k in range(STEPS):
        vx[inner] += DT * (fx(txx) + by(txy)) / rho[inner]
        vy[inner] += DT * (bx(txy) + fy(tyy)) / rho[inner]
        exx, eyy, shear = bx(vx), by(vy), fy(vx) + fx(vy)
        lame, u = lam[inner], mu[inner]
        txx[inner] += DT * ((lame + 2 * u) * exx + lame * eyy)
        tyy[inner] += DT * ((lame + 2 * u) * eyy + lame * exx)
        txy[inner] += DT * u * shear
        txx[places[:, 0], places[:, 1]] += ricker(k)
        tyy[places[:, 0], places[:, 1]] += ricker(k)
        for f in (vx, vy, txx, tyy, txy):
            f *= g[:, None] * g
        np.testing.assert_allclose(s.record.data[k], vy[2], rtol=0, atol=1e-12)
        np.testing.assert_allclose(s.energy[k], 0.5 * (rho * (vx**2 + vy**2)).sum(), rtol=1e-9)
    for name, f in zip(("vx", "vy", "txx", "tyy", "txy"), (vx, vy, txx, tyy, txy), strict=False):
        np.testing.assert_allclose(getattr(s, name).data, f, rtol=0, atol=1e-12)


if __name__ == "__main__":
    main(globals())
