"""Electrostatic particle-in-cell, 1-D: the two-stream instability.

Charge is deposited in fixed point (int64, atomics commute), the field is a prefix sum of it.
"""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 4_000, "default": 300_000, "large": 8_000_000}
STEPS, LENGTH, DT, ONE = 3, 12.0, 0.05, 1 << 20


def cells(n):
    return 128 if n < 10_000 else 2048


@pk.workunit
def locate(i: int, cell: pk.View1D[pk.int32], x: pk.View1D[pk.double], per_dx: float):
    cell[i] = x[i] * per_dx


@pk.workunit
def fraction(
    i: int,
    frac: pk.View1D[pk.double],
    cell: pk.View1D[pk.int32],
    x: pk.View1D[pk.double],
    per_dx: float,
):
    frac[i] = x[i] * per_dx - cell[i]


@pk.workunit
def clear(k: int, rho: pk.View1D[pk.int64]):
    rho[k] = 0


@pk.workunit
def deposit(
    i: int,
    rho: pk.View1D[pk.int64],
    cell: pk.View1D[pk.int32],
    frac: pk.View1D[pk.double],
    one: int,
    m: int,
):
    right: int = frac[i] * one
    c: int = cell[i]
    pk.atomic_add(rho, [c], one - right)
    pk.atomic_add(rho, [c + 1 if c + 1 < m else 0], right)


@pk.workunit
def charge(k: int, q: pk.View1D[pk.double], rho: pk.View1D[pk.int64], scale: float):
    """Electrons are negative, ions an even background."""
    q[k] = 1.0 - scale * rho[k]


@pk.workunit
def integrate(
    k: int,
    acc: pk.Acc[pk.double],
    last: bool,
    e: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    dx: float,
):
    acc += q[k] * dx
    if last:
        e[k] = acc


@pk.workunit
def total(k: int, acc: pk.Acc[pk.double], e: pk.View1D[pk.double]):
    acc += e[k]


@pk.workunit
def centre(k: int, e: pk.View1D[pk.double], mean: float):
    e[k] -= mean


@pk.workunit
def interpolate(
    i: int,
    f: pk.View1D[pk.double],
    e: pk.View1D[pk.double],
    cell: pk.View1D[pk.int32],
    frac: pk.View1D[pk.double],
    m: int,
):
    c: int = cell[i]
    right: int = c + 1 if c + 1 < m else 0
    f[i] = (1.0 - frac[i]) * e[c] + frac[i] * e[right]


@pk.workunit
def kick(i: int, v: pk.View1D[pk.double], f: pk.View1D[pk.double], dt: float):
    v[i] -= dt * f[i]


@pk.workunit
def drift(i: int, x: pk.View1D[pk.double], v: pk.View1D[pk.double], dt: float):
    x[i] += dt * v[i]


@pk.workunit
def wrap(i: int, x: pk.View1D[pk.double], length: float):
    if x[i] < 0.0:
        x[i] += length
    if x[i] >= length:
        x[i] -= length


@pk.workunit
def kinetic(i: int, acc: pk.Acc[pk.double], v: pk.View1D[pk.double]):
    acc += 0.5 * v[i] * v[i]


@pk.workunit
def field_energy(k: int, acc: pk.Acc[pk.double], e: pk.View1D[pk.double], dx: float):
    acc += 0.5 * e[k] * e[k] * dx


@dataclass
class State:
    size: int
    x: pk.View
    v: pk.View
    e: pk.View
    kinetic: float = 0.0
    field: float = 0.0


def beams(n):
    rng = np.random.default_rng(4)
    x = rng.uniform(0, LENGTH, n)
    v = (
        np.where(np.arange(n) % 2, 1.0, -1.0)
        + 0.05 * rng.standard_normal(n)
        + 0.02 * np.sin(2 * np.pi * x / LENGTH)
    )
    return x, v


def setup(n):
    x, v, e = pk.View([n], pk.double), pk.View([n], pk.double), pk.View([cells(n)], pk.double)
    x.data[:], v.data[:] = beams(n)
    return State(n, x, v, e)


def step(s):
    n, m = s.size, cells(s.size)
    dx = LENGTH / m
    cell, frac, f = pk.View([n], pk.int32), pk.View([n], pk.double), pk.View([n], pk.double)
    rho, q = pk.View([m], pk.int64), pk.View([m], pk.double)
    pk.parallel_for(n, locate, cell=cell, x=s.x, per_dx=1 / dx)
    pk.parallel_for(n, fraction, frac=frac, cell=cell, x=s.x, per_dx=1 / dx)
    pk.parallel_for(m, clear, rho=rho)
    pk.parallel_for(n, deposit, rho=rho, cell=cell, frac=frac, one=ONE, m=m)
    pk.parallel_for(m, charge, q=q, rho=rho, scale=m / (n * float(ONE)))
    pk.parallel_scan(m, integrate, e=s.e, q=q, dx=dx)
    mean = pk.parallel_reduce(m, total, e=s.e)
    pk.parallel_for(m, centre, e=s.e, mean=mean / m)
    pk.parallel_for(n, interpolate, f=f, e=s.e, cell=cell, frac=frac, m=m)
    pk.parallel_for(n, kick, v=s.v, f=f, dt=DT)
    pk.parallel_for(n, drift, x=s.x, v=s.v, dt=DT)
    pk.parallel_for(n, wrap, x=s.x, length=LENGTH)


def run(s):
    for _ in range(STEPS):
        step(s)
        kin = pk.parallel_reduce(s.size, kinetic, v=s.v)
        fld = pk.parallel_reduce(cells(s.size), field_energy, e=s.e, dx=LENGTH / cells(s.size))
    s.kinetic, s.field = float(kin) * LENGTH / s.size, float(fld)


def outputs(s):
    return {
        "x": np.array(s.x.data),
        "v": np.array(s.v.data),
        "e": np.array(s.e.data),
        "kinetic": s.kinetic,
        "field": s.field,
    }


def check(s):
    n, m = s.size, cells(s.size)
    dx = LENGTH / m
    x, v = beams(n)
    for _ in range(STEPS):
        cell = (x * (1 / dx)).astype(np.int32)
        frac = x * (1 / dx) - cell
        right = (frac * ONE).astype(np.int64)
        rho = np.zeros(m, np.int64)
        np.add.at(rho, cell, ONE - right)
        np.add.at(rho, (cell + 1) % m, right)
        e = np.cumsum((1 - m / (n * float(ONE)) * rho) * dx)
        e -= e.mean()
        v = v - DT * ((1 - frac) * e[cell] + frac * e[(cell + 1) % m])
        x = x + DT * v
        x = np.where(x < 0, x + LENGTH, x)
        x = np.where(x >= LENGTH, x - LENGTH, x)
    for got, want in ((s.x.data, x), (s.v.data, v), (s.e.data, e)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(s.kinetic, 0.5 * np.sum(v * v) * LENGTH / n, rtol=1e-9)
    np.testing.assert_allclose(s.field, 0.5 * np.sum(e * e) * dx, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
