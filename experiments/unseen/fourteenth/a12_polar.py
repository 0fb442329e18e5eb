"""Rotations of many deformed elements by Higham's polar iteration on 3 x 3 matrices, then stresses.

Cofactors, determinants and averages of a batch, until the largest batch's change is small.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 120, "default": 5_000, "large": 450_000}
MU, LAMBDA, TOLERANCE, MOST = 1.0, 2.5, 1e-20, 12


@pk.workunit
def begin(e: int, r: pk.View3D[pk.double], f: pk.View3D[pk.double]):
    for i in range(3):
        for j in range(3):
            r[e][i][j] = f[e][i][j]


@pk.workunit
def cofactor(e: int, c: pk.View3D[pk.double], r: pk.View3D[pk.double]):
    for i in range(3):
        for j in range(3):
            a: int = (i + 1) % 3
            b: int = (i + 2) % 3
            k: int = (j + 1) % 3
            l: int = (j + 2) % 3
            c[e][i][j] = r[e][a][k] * r[e][b][l] - r[e][a][l] * r[e][b][k]


@pk.workunit
def determinant(e: int, d: pk.View1D[pk.double], r: pk.View3D[pk.double], c: pk.View3D[pk.double]):
    d[e] = r[e][0][0] * c[e][0][0] + r[e][0][1] * c[e][0][1] + r[e][0][2] * c[e][0][2]


@pk.workunit
def invert(e: int, c: pk.View3D[pk.double], d: pk.View1D[pk.double]):
    for i in range(3):
        for j in range(3):
            c[e][i][j] /= d[e]


@pk.workunit
def distance(e: int, m: pk.View1D[pk.double], r: pk.View3D[pk.double], c: pk.View3D[pk.double]):
    s: float = 0.0
    for i in range(3):
        for j in range(3):
            s += (r[e][i][j] - c[e][i][j]) * (r[e][i][j] - c[e][i][j])
    m[e] = s


@pk.workunit
def average(e: int, r: pk.View3D[pk.double], c: pk.View3D[pk.double]):
    for i in range(3):
        for j in range(3):
            r[e][i][j] = 0.5 * (r[e][i][j] + c[e][i][j])


@pk.workunit
def total(e: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[e]


@pk.workunit
def stretch(e: int, s: pk.View3D[pk.double], r: pk.View3D[pk.double], f: pk.View3D[pk.double]):
    for i in range(3):
        for j in range(3):
            sum: float = 0.0
            for k in range(3):
                sum += r[e][k][i] * f[e][k][j]
            s[e][i][j] = sum


@pk.workunit
def density(e: int, w: pk.View1D[pk.double], s: pk.View3D[pk.double], mu: float, lam: float):
    trace: float = s[e][0][0] + s[e][1][1] + s[e][2][2] - 3.0
    sum: float = 0.0
    for i in range(3):
        for j in range(3):
            u: float = s[e][i][j]
            if i == j:
                u -= 1.0
            sum += u * u
    w[e] = mu * sum + 0.5 * lam * trace * trace


@pk.workunit
def stress(
    e: int,
    p: pk.View3D[pk.double],
    r: pk.View3D[pk.double],
    f: pk.View3D[pk.double],
    s: pk.View3D[pk.double],
    mu: float,
    lam: float,
):
    trace: float = s[e][0][0] + s[e][1][1] + s[e][2][2] - 3.0
    for i in range(3):
        for j in range(3):
            p[e][i][j] = 2.0 * mu * (f[e][i][j] - r[e][i][j]) + lam * trace * r[e][i][j]


@dataclass
class State:
    n: int
    f: pk.View
    r: pk.View
    p: pk.View
    changes: list = field(default_factory=list)
    energy: float = 0.0


def setup(n: int) -> State:
    f, r, p = (pk.View([n, 3, 3], pk.double) for _ in range(3))
    rng = np.random.default_rng(1412)
    q = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
    q *= np.sign(np.linalg.det(q))[:, None, None]
    f.data[:] = q @ (np.eye(3) + 0.15 * rng.uniform(-1.0, 1.0, (n, 3, 3)))
    return State(n, f, r, p)


def run(s: State) -> None:
    n, f, r = s.n, s.f, s.r
    c, u = pk.View([n, 3, 3], pk.double), pk.View([n, 3, 3], pk.double)
    d, m, w = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, begin, r=r, f=f)
    change, s.changes = 1.0, []
    while change > TOLERANCE and len(s.changes) < MOST:
        pk.parallel_for(n, cofactor, c=c, r=r)
        pk.parallel_for(n, determinant, d=d, r=r, c=c)
        pk.parallel_for(n, invert, c=c, d=d)
        pk.parallel_for(n, distance, m=m, r=r, c=c)
        pk.parallel_for(n, average, r=r, c=c)
        change = float(pk.parallel_reduce(n, total, x=m)) / n
        s.changes.append(change)
    pk.parallel_for(n, stretch, s=u, r=r, f=f)
    pk.parallel_for(n, density, w=w, s=u, mu=MU, lam=LAMBDA)
    pk.parallel_for(n, stress, p=s.p, r=r, f=f, s=u, mu=MU, lam=LAMBDA)
    s.energy = float(pk.parallel_reduce(n, total, x=w))


def outputs(s: State) -> dict:
    return {
        "r": np.array(s.r.data),
        "p": np.array(s.p.data),
        "changes": np.array(s.changes),
        "energy": np.array([s.energy]),
    }


def check(s: State, n: int) -> None:
    f = np.array(s.f.data)
    u, sigma, v = np.linalg.svd(f)
    r = u @ v
    np.testing.assert_allclose(s.r.data, r, atol=1e-10)
    trace = sigma.sum(1) - 3.0
    energy = MU * ((sigma - 1.0) ** 2).sum(1) + 0.5 * LAMBDA * trace**2
    np.testing.assert_allclose(s.energy, energy.sum(), rtol=1e-9)
    p = 2.0 * MU * (f - r) + LAMBDA * trace[:, None, None] * r
    np.testing.assert_allclose(s.p.data, p, atol=1e-9)


if __name__ == "__main__":
    main(globals())
