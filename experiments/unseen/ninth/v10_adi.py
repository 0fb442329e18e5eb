"""Diffusion through a plate of varying conductivity, alternating directions, with a reaction.

Each half step is explicit along one axis and solves tridiagonal systems along the other.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 30, "default": 250, "large": 900}
STEPS, DT, RATE = 2, 0.4, 0.3


@pk.workunit
def logistic(i: int, j: int, q: pk.View2D[pk.double], u: pk.View2D[pk.double], rate: float):
    q[i][j] = rate * u[i][j] * (1.0 - u[i][j])


@pk.workunit
def flux_x(
    i: int, j: int, f: pk.View2D[pk.double], u: pk.View2D[pk.double], kx: pk.View2D[pk.double]
):
    """Through the face between i - 1 and i."""
    f[i][j] = kx[i][j] * (u[i][j] - u[i - 1][j])


@pk.workunit
def flux_y(
    i: int, j: int, f: pk.View2D[pk.double], u: pk.View2D[pk.double], ky: pk.View2D[pk.double]
):
    f[i][j] = ky[i][j] * (u[i][j] - u[i][j - 1])


@pk.workunit
def explicit_x(
    i: int,
    j: int,
    r: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    f: pk.View2D[pk.double],
    q: pk.View2D[pk.double],
    dt: float,
):
    r[i][j] = u[i][j] + 0.5 * dt * (f[i + 1][j] - f[i][j] + q[i][j])


@pk.workunit
def explicit_y(
    i: int,
    j: int,
    r: pk.View2D[pk.double],
    u: pk.View2D[pk.double],
    f: pk.View2D[pk.double],
    q: pk.View2D[pk.double],
    dt: float,
):
    r[i][j] = u[i][j] + 0.5 * dt * (f[i][j + 1] - f[i][j] + q[i][j])


@pk.workunit
def coefficients(
    i: int,
    j: int,
    low: pk.View2D[pk.double],
    high: pk.View2D[pk.double],
    mid: pk.View2D[pk.double],
    ka: pk.View2D[pk.double],
    di: int,
    dj: int,
    dt: float,
):
    low[i][j] = -0.5 * dt * ka[i][j]
    high[i][j] = -0.5 * dt * ka[i + di][j + dj]
    mid[i][j] = 1.0 - low[i][j] - high[i][j]


@pk.workunit
def forward_rows(
    i: int,
    r: pk.View2D[pk.double],
    c: pk.View2D[pk.double],
    low: pk.View2D[pk.double],
    mid: pk.View2D[pk.double],
    high: pk.View2D[pk.double],
    n: int,
):
    c[i][0] = high[i][0] / mid[i][0]
    r[i][0] = r[i][0] / mid[i][0]
    for j in range(1, n):
        pivot: float = mid[i][j] - low[i][j] * c[i][j - 1]
        c[i][j] = high[i][j] / pivot
        r[i][j] = (r[i][j] - low[i][j] * r[i][j - 1]) / pivot


@pk.workunit
def backward_rows(
    i: int, u: pk.View2D[pk.double], r: pk.View2D[pk.double], c: pk.View2D[pk.double], n: int
):
    u[i][n - 1] = r[i][n - 1]
    for k in range(1, n):
        u[i][n - 1 - k] = r[i][n - 1 - k] - c[i][n - 1 - k] * u[i][n - k]


@pk.workunit
def forward_columns(
    j: int,
    r: pk.View2D[pk.double],
    c: pk.View2D[pk.double],
    low: pk.View2D[pk.double],
    mid: pk.View2D[pk.double],
    high: pk.View2D[pk.double],
    n: int,
):
    c[0][j] = high[0][j] / mid[0][j]
    r[0][j] = r[0][j] / mid[0][j]
    for i in range(1, n):
        pivot: float = mid[i][j] - low[i][j] * c[i - 1][j]
        c[i][j] = high[i][j] / pivot
        r[i][j] = (r[i][j] - low[i][j] * r[i - 1][j]) / pivot


@pk.workunit
def backward_columns(
    j: int, u: pk.View2D[pk.double], r: pk.View2D[pk.double], c: pk.View2D[pk.double], n: int
):
    u[n - 1][j] = r[n - 1][j]
    for k in range(1, n):
        u[n - 1 - k][j] = r[n - 1 - k][j] - c[n - 1 - k][j] * u[n - k][j]


@pk.workunit
def change(
    i: int, j: int, acc: pk.Acc[pk.double], u: pk.View2D[pk.double], old: pk.View2D[pk.double]
):
    acc += (u[i][j] - old[i][j]) * (u[i][j] - old[i][j])


@pk.workunit
def copy(i: int, j: int, b: pk.View2D[pk.double], a: pk.View2D[pk.double]):
    b[i][j] = a[i][j]


@pk.workunit
def row_mean(i: int, mean: pk.View1D[pk.double], u: pk.View2D[pk.double], n: int):
    total: float = 0.0
    for j in range(n):
        total += u[i][j]
    mean[i] = total / n


@dataclass
class State:
    size: int
    u: pk.View
    kx: pk.View
    ky: pk.View
    mean: pk.View
    change: list = field(default_factory=list)


def problem(n):
    rng = np.random.default_rng(10)
    u = rng.uniform(0, 1, (n, n))
    k = np.exp(rng.normal(0, 0.5, (n, n)))
    kx, ky = np.zeros((n + 1, n)), np.zeros((n, n + 1))
    kx[1:n] = 2 / (1 / k[1:] + 1 / k[:-1])
    ky[:, 1:n] = 2 / (1 / k[:, 1:] + 1 / k[:, :-1])
    return u, kx, ky


def setup(n):
    return State(n, *map(view, problem(n)), pk.View([n], pk.double))


def step(s):
    n = s.size
    full = pk.MDRangePolicy([0, 0], [n, n])
    q, r, half, old = (pk.View([n, n], pk.double) for _ in range(4))
    c, low, mid, high = (pk.View([n, n], pk.double) for _ in range(4))
    fx, fy = pk.View([n + 1, n], pk.double), pk.View([n, n + 1], pk.double)
    coef = {"low": low, "mid": mid, "high": high}
    pk.parallel_for(full, copy, b=old, a=s.u)
    # along x explicitly, along y by systems
    pk.parallel_for(full, logistic, q=q, u=s.u, rate=RATE)
    pk.parallel_for(pk.MDRangePolicy([1, 0], [n, n]), flux_x, f=fx, u=s.u, kx=s.kx)
    pk.parallel_for(full, explicit_x, r=r, u=s.u, f=fx, q=q, dt=DT)
    pk.parallel_for(full, coefficients, ka=s.ky, di=0, dj=1, dt=DT, **coef)
    pk.parallel_for(n, forward_rows, r=r, c=c, n=n, **coef)
    pk.parallel_for(n, backward_rows, u=half, r=r, c=c, n=n)
    # and the other way
    pk.parallel_for(full, logistic, q=q, u=half, rate=RATE)
    pk.parallel_for(pk.MDRangePolicy([0, 1], [n, n]), flux_y, f=fy, u=half, ky=s.ky)
    pk.parallel_for(full, explicit_y, r=r, u=half, f=fy, q=q, dt=DT)
    pk.parallel_for(full, coefficients, ka=s.kx, di=1, dj=0, dt=DT, **coef)
    pk.parallel_for(n, forward_columns, r=r, c=c, n=n, **coef)
    pk.parallel_for(n, backward_columns, u=s.u, r=r, c=c, n=n)
    pk.parallel_for(n, row_mean, mean=s.mean, u=s.u, n=n)
    return pk.parallel_reduce(full, change, u=s.u, old=old)


def run(s):
    s.change = []
    for _ in range(STEPS):
        s.change.append(float(step(s)))


def outputs(s):
    return {
        "u": np.array(s.u.data),
        "mean": np.array(s.mean.data),
        "change": np.array(s.change),
    }


def check(s):
    n = s.size
    u, kx, ky = problem(n)

    def solve(k, r):
        """(I - dt/2 d k d) x = r along axis 0"""
        low, high = -0.5 * DT * k[:-1], -0.5 * DT * k[1:]
        mid = 1 - low - high
        c, d = np.zeros_like(r), np.zeros_like(r)
        for i in range(n):
            pivot = mid[i] - (low[i] * c[i - 1] if i else 0)
            c[i], d[i] = high[i] / pivot, (r[i] - (low[i] * d[i - 1] if i else 0)) / pivot
        for i in range(n - 2, -1, -1):
            d[i] -= c[i] * d[i + 1]
        return d

    def explicit(k, u):
        f = np.zeros_like(k)
        f[1:-1] = k[1:-1] * np.diff(u, axis=0)
        return u + 0.5 * DT * (np.diff(f, axis=0) + RATE * u * (1 - u))

    for k in range(STEPS):
        old = u
        half = solve(ky.T, explicit(kx, u).T).T
        u = solve(kx, explicit(ky.T, half.T).T)
        np.testing.assert_allclose(s.change[k], ((u - old) ** 2).sum(), rtol=1e-9)
    np.testing.assert_allclose(s.u.data, u, rtol=0, atol=1e-11)
    np.testing.assert_allclose(s.mean.data, u.mean(axis=1), rtol=0, atol=1e-11)


if __name__ == "__main__":
    main(globals())
