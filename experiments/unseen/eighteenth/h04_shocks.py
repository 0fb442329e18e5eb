# ruff: noqa: B905
"""A gas in a periodic tube by the discontinuous Galerkin method: four nodes an element, one SSP-RK3 step.

Local Lax-Friedrichs fluxes, strong form, minmod limiter; the time step from a norm of the wave speeds.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 256, "default": 25_000, "large": 1_000_000}
NODES = 4
GAMMA = 1.4
STAGES = ((0.0, 1.0), (0.75, 0.25), (1.0 / 3.0, 2.0 / 3.0))


@pk.workunit
def copy(e: int, k: int, to: pk.View2D[pk.double], source: pk.View2D[pk.double]):
    to[e][k] = source[e][k]


@pk.workunit
def pressure(e: int, k: int, p, rho, mom, ene):
    p[e][k] = (GAMMA - 1.0) * (ene[e][k] - 0.5 * mom[e][k] * mom[e][k] / rho[e][k])


@pk.workunit
def momentum_flux(e: int, k: int, f, rho, mom, p):
    f[e][k] = mom[e][k] * mom[e][k] / rho[e][k] + p[e][k]


@pk.workunit
def energy_flux(e: int, k: int, f, rho, mom, ene, p):
    f[e][k] = (ene[e][k] + p[e][k]) * mom[e][k] / rho[e][k]


@pk.workunit
def wave_speed(e: int, k: int, c, rho, mom, p):
    c[e][k] = abs(mom[e][k] / rho[e][k]) + sqrt(GAMMA * p[e][k] / rho[e][k])


@pk.workunit
def eighth_powers(e: int, k: int, acc: pk.Acc[pk.double], c):
    square: pk.double = c[e][k] * c[e][k]
    fourth: pk.double = square * square
    acc += fourth * fourth


@pk.workunit
def face_speed(e: int, a, c, n: int):
    """Face e is between the elements e - 1 and e."""
    a[e] = max(c[(e + n - 1) % n][NODES - 1], c[e][0])


@pk.workunit
def face_flux(e: int, face, f, q, a, n: int):
    before: int = (e + n - 1) % n
    mean: pk.double = 0.5 * (f[before][NODES - 1] + f[e][0])
    face[e] = mean - 0.5 * a[e] * (q[e][0] - q[before][NODES - 1])


@pk.workunit
def residual(e: int, k: int, r, f, face, d, weight, scale: float, n: int):
    slope: pk.double = 0.0
    for j in range(NODES):
        slope += d[k][j] * f[e][j]
    if k == 0:
        slope += (f[e][0] - face[e]) / weight[0]
    elif k == NODES - 1:
        slope -= (f[e][k] - face[(e + 1) % n]) / weight[k]
    r[e][k] = -scale * slope


@pk.workunit
def advance(e: int, k: int, q, first, r, old: float, new: float, dt: float):
    q[e][k] = old * first[e][k] + new * (q[e][k] + dt * r[e][k])


@pk.workunit
def average(e: int, mean, q, weight):
    total: pk.double = 0.0
    for k in range(NODES):
        total += weight[k] * q[e][k]
    mean[e] = 0.5 * total


@pk.function
def minmod(a: float, b: float, c: float) -> float:
    if a > 0.0 and b > 0.0 and c > 0.0:
        return min(a, b, c)
    if a < 0.0 and b < 0.0 and c < 0.0:
        return max(a, b, c)
    return 0.0


@pk.workunit
def limit(e: int, q, mean, node, n: int):
    """Where an end of the element leaves its neighbours' means, it becomes linear."""
    middle: pk.double = mean[e]
    before: pk.double = middle - mean[(e + n - 1) % n]
    after: pk.double = mean[(e + 1) % n] - middle
    left: pk.double = middle - q[e][0]
    right: pk.double = q[e][NODES - 1] - middle
    wrong: pk.double = abs(minmod(left, before, after) - left) + abs(
        minmod(right, before, after) - right
    )
    if wrong > 0.001:
        slope: pk.double = minmod(0.5 * (q[e][NODES - 1] - q[e][0]), before, after)
        for k in range(NODES):
            q[e][k] = middle + slope * node[k]


@pk.workunit
def total(e: int, acc: pk.Acc[pk.double], mean: pk.View1D[pk.double]):
    acc += mean[e]


@dataclass
class State:
    n: int
    dx: float
    d: pk.View
    weight: pk.View
    node: pk.View
    rho0: pk.View
    mom0: pk.View
    ene0: pk.View
    rho: pk.View
    mom: pk.View
    ene: pk.View
    sums: pk.View


def setup(n: int) -> State:
    node, weight, d = (
        pk.View([NODES], pk.double),
        pk.View([NODES], pk.double),
        pk.View([NODES, NODES], pk.double),
    )
    x = np.array([-1, -np.sqrt(0.2), np.sqrt(0.2), 1])
    node.data[:], weight.data[:] = x, [1 / 6, 5 / 6, 5 / 6, 1 / 6]
    powers = np.vander(x, increasing=True)
    slopes = np.zeros((NODES, NODES))
    slopes[:, 1:] = powers[:, :-1] * np.arange(1, NODES)
    d.data[:] = slopes @ np.linalg.inv(powers)
    place = (np.arange(n)[:, None] + 0.5 + 0.5 * x) / n
    waves = max(2, n // 64)
    phase = place * waves
    rho0, mom0, ene0, rho, mom, ene = (pk.View([n, NODES], pk.double) for _ in range(6))
    dense = 1 + 0.3 * np.sin(2 * np.pi * phase) + 0.8 * (np.floor(3 * phase) % 3 == 1)
    u = 0.4 * np.cos(2 * np.pi * phase + 1)
    rho0.data[:] = dense
    mom0.data[:] = dense * u
    ene0.data[:] = (1 + 1.5 * (np.floor(5 * phase) % 4 == 2)) / (GAMMA - 1) + 0.5 * dense * u * u
    return State(
        n, 1.0 / n, d, weight, node, rho0, mom0, ene0, rho, mom, ene, pk.View([4], pk.double)
    )


def run(s: State) -> None:
    n, rho, mom, ene, weight = s.n, s.rho, s.mom, s.ene, s.weight
    dofs = pk.MDRangePolicy([0, 0], [n, NODES])
    fields = ((rho, s.rho0), (mom, s.mom0), (ene, s.ene0))
    for q, first in fields:
        pk.parallel_for(dofs, copy, to=q, source=first)
    p, fm, fe, c, r = (pk.View([n, NODES], pk.double) for _ in range(5))
    a = pk.View([n], pk.double)
    dt = 0.0
    for stage, (old, new) in enumerate(STAGES):
        pk.parallel_for(dofs, pressure, p=p, rho=rho, mom=mom, ene=ene)
        pk.parallel_for(dofs, momentum_flux, f=fm, rho=rho, mom=mom, p=p)
        pk.parallel_for(dofs, energy_flux, f=fe, rho=rho, mom=mom, ene=ene, p=p)
        pk.parallel_for(dofs, wave_speed, c=c, rho=rho, mom=mom, p=p)
        if stage == 0:
            norm = (float(pk.parallel_reduce(dofs, eighth_powers, c=c)) / (n * NODES)) ** 0.125
            dt = 0.1 * s.dx / norm
            s.sums[3] = norm
        pk.parallel_for(n, face_speed, a=a, c=c, n=n)
        faces = []
        for q, f in ((rho, mom), (mom, fm), (ene, fe)):
            face = pk.View([n], pk.double)
            pk.parallel_for(n, face_flux, face=face, f=f, q=q, a=a, n=n)
            faces.append(face)
        changes = []
        for f, face in zip((mom, fm, fe), faces):
            r = pk.View([n, NODES], pk.double)
            pk.parallel_for(
                dofs, residual, r=r, f=f, face=face, d=s.d, weight=weight, scale=2.0 / s.dx, n=n
            )
            changes.append(r)
        means = []
        for (q, first), r in zip(fields, changes):
            mean = pk.View([n], pk.double)
            pk.parallel_for(dofs, advance, q=q, first=first, r=r, old=old, new=new, dt=dt)
            pk.parallel_for(n, average, mean=mean, q=q, weight=weight)
            pk.parallel_for(n, limit, q=q, mean=mean, node=s.node, n=n)
            means.append(mean)
    for index, mean in enumerate(means):
        s.sums[index] = float(pk.parallel_reduce(n, total, mean=mean)) * s.dx


def outputs(s: State) -> dict:
    views = {"rho": s.rho, "mom": s.mom, "ene": s.ene, "sums": s.sums}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    d, w, x = (np.array(v.data) for v in (s.d, s.weight, s.node))
    first = np.stack([np.array(v.data) for v in (s.rho0, s.mom0, s.ene0)])
    q, dt = first.copy(), 0.0

    def minmod(*a):
        a = np.stack(a)
        same = (a > 0).all(axis=0) | (a < 0).all(axis=0)
        return np.where(same, np.sign(a[0]) * np.abs(a).min(axis=0), 0)

    for stage, (old, new) in enumerate(STAGES):
        rho, mom, ene = q
        p = (GAMMA - 1) * (ene - 0.5 * mom * mom / rho)
        f = np.stack([mom, mom * mom / rho + p, (ene + p) * mom / rho])
        c = abs(mom / rho) + np.sqrt(GAMMA * p / rho)
        if stage == 0:
            norm = (c**8).mean() ** 0.125
            dt = 0.1 * s.dx / norm
        a = np.maximum(np.roll(c[:, -1], 1), c[:, 0])
        fl, ql = np.roll(f[:, :, -1], 1, 1), np.roll(q[:, :, -1], 1, 1)
        face = 0.5 * (fl + f[:, :, 0]) - 0.5 * a * (q[:, :, 0] - ql)
        slope = f @ d.T
        slope[:, :, 0] += (f[:, :, 0] - face) / w[0]
        slope[:, :, -1] -= (f[:, :, -1] - np.roll(face, -1, 1)) / w[-1]
        q = old * first + new * (q - dt * 2 / s.dx * slope)
        mean = 0.5 * q @ w
        before, after = mean - np.roll(mean, 1, 1), np.roll(mean, -1, 1) - mean
        left, right = mean - q[:, :, 0], q[:, :, -1] - mean
        wrong = abs(minmod(left, before, after) - left) + abs(minmod(right, before, after) - right)
        line = minmod(0.5 * (q[:, :, -1] - q[:, :, 0]), before, after)
        q = np.where(wrong[:, :, None] > 0.001, mean[:, :, None] + line[:, :, None] * x, q)
    for view, expected in zip((s.rho, s.mom, s.ene), q):
        np.testing.assert_allclose(view.data, expected, rtol=1e-9, atol=1e-10)
    expected = [*(mean.sum(axis=1) * s.dx), norm]
    np.testing.assert_allclose(s.sums.data, expected, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    main(globals())
