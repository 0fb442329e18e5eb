"""Explicit dynamics of an elastic plate with linear triangles, which lose stiffness where they are torn.

Forces go from the elements to the nodes by inverse lists.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 400, "default": 22_500, "large": 360_000}
LAMBDA, MU, LIMIT, DENSITY, STEPS = 1.0, 0.8, 0.012, 1.0, 4


@pk.workunit
def rest(k: int, ux, uy, vx, vy):
    ux[k] = 0.0
    uy[k] = 0.0
    vx[k] = 0.0
    vy[k] = 0.0


@pk.workunit
def whole(e: int, stiffness):
    stiffness[e] = 1.0


@pk.workunit
def strain(e: int, eps, ux, uy, corner, bx, by):
    xx: pk.double = 0.0
    yy: pk.double = 0.0
    xy: pk.double = 0.0
    for a in range(3):
        k: int = corner[e][a]
        xx += bx[e][a] * ux[k]
        yy += by[e][a] * uy[k]
        xy += by[e][a] * ux[k] + bx[e][a] * uy[k]
    eps[e][0] = xx
    eps[e][1] = yy
    eps[e][2] = xy


@pk.workunit
def stress(e: int, sigma, eps, stiffness):
    trace: pk.double = LAMBDA * (eps[e][0] + eps[e][1])
    sigma[e][0] = stiffness[e] * (trace + 2.0 * MU * eps[e][0])
    sigma[e][1] = stiffness[e] * (trace + 2.0 * MU * eps[e][1])
    sigma[e][2] = stiffness[e] * MU * eps[e][2]


@pk.workunit
def tear(e: int, stiffness, sigma):
    d: pk.double = sigma[e][0] - sigma[e][1]
    if d * d + 3.0 * sigma[e][2] * sigma[e][2] > LIMIT * LIMIT:
        stiffness[e] *= 0.7


@pk.workunit
def corner_forces(e: int, fx, fy, sigma, bx, by, area):
    for a in range(3):
        fx[3 * e + a] = -area[e] * (bx[e][a] * sigma[e][0] + by[e][a] * sigma[e][2])
        fy[3 * e + a] = -area[e] * (bx[e][a] * sigma[e][2] + by[e][a] * sigma[e][1])


@pk.workunit
def assemble(k: int, total, f, first, entry):
    t: pk.double = 0.0
    for q in range(first[k], first[k + 1]):
        t += f[entry[q]]
    total[k] = t


@pk.workunit
def pull(k: int, fy, load, strength: float):
    fy[k] += strength * load[k]


@pk.workunit
def accelerate(k: int, v, f, mass, held, dt: float):
    if held[k] == 1:
        v[k] = 0.0
    else:
        v[k] = 0.999 * v[k] + dt * f[k] / mass[k]


@pk.workunit
def move(k: int, u, v, dt: float):
    u[k] += dt * v[k]


@pk.workunit
def kinetic(k: int, acc: pk.Acc[pk.double], vx, vy, mass):
    acc += 0.5 * mass[k] * (vx[k] * vx[k] + vy[k] * vy[k])


@pk.workunit
def elastic(e: int, acc: pk.Acc[pk.double], eps, sigma, area):
    acc += (
        0.5
        * area[e]
        * (eps[e][0] * sigma[e][0] + eps[e][1] * sigma[e][1] + eps[e][2] * sigma[e][2])
    )


@dataclass
class State:
    nodes: int
    elements: int
    dt: float
    corner: pk.View
    bx: pk.View
    by: pk.View
    area: pk.View
    first: pk.View
    entry: pk.View
    mass: pk.View
    load: pk.View
    held: pk.View
    u: list
    v: list
    stiffness: pk.View
    energies: list


def view(x, dtype):
    v = pk.View(list(x.shape), dtype)
    v.data[:] = x
    return v


def setup(n: int) -> State:
    m = int(n**0.5)
    rng = np.random.default_rng(204)
    x, y = (a.ravel().astype(float) for a in np.meshgrid(np.arange(m), np.arange(m), indexing="ij"))
    x, y = (a + rng.uniform(-0.2, 0.2, m * m) for a in (x, y))
    k = (np.arange(m - 1)[:, None] * m + np.arange(m - 1)).ravel()
    corner = np.stack([k, k + m, k + m + 1, k, k + m + 1, k + 1], 1).reshape(-1, 3)
    cx, cy = x[corner], y[corner]
    nx, ny = np.roll(cy, -1, 1) - np.roll(cy, -2, 1), np.roll(cx, -2, 1) - np.roll(cx, -1, 1)
    area = 0.5 * (cx * nx).sum(1)
    order = np.argsort(corner.ravel(), kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(corner.ravel(), minlength=m * m))])
    mass = DENSITY / 3 * np.bincount(corner.ravel(), np.repeat(area, 3), m * m)
    row = np.arange(m * m) % m
    load = np.where(row == m - 1, 0.5, 0.0) * (1 + np.sin(np.arange(m * m)))
    bx, by = (a / (2 * area)[:, None] for a in (nx, ny))
    views = [view(corner, pk.int32)] + [view(a, pk.double) for a in (bx, by, area)]
    views += [view(first, pk.int32), view(order, pk.int32), view(mass, pk.double)]
    views += [view(load, pk.double), view(row == 0, pk.uint8)]
    u, v = ([pk.View([m * m], pk.double) for _ in range(2)] for _ in range(2))
    e = len(corner)
    return State(m * m, e, 0.2, *views, u, v, pk.View([e], pk.double), [0.0, 0.0])


def run(s: State) -> None:
    n, e, (ux, uy), (vx, vy) = s.nodes, s.elements, s.u, s.v
    eps, sigma = pk.View([e, 3], pk.double), pk.View([e, 3], pk.double)
    parts = [pk.View([3 * e], pk.double) for _ in range(2)]
    fx, fy = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(n, rest, ux=ux, uy=uy, vx=vx, vy=vy)
    pk.parallel_for(e, whole, stiffness=s.stiffness)
    for step in range(STEPS):
        pk.parallel_for(e, strain, eps=eps, ux=ux, uy=uy, corner=s.corner, bx=s.bx, by=s.by)
        pk.parallel_for(e, stress, sigma=sigma, eps=eps, stiffness=s.stiffness)
        pk.parallel_for(e, tear, stiffness=s.stiffness, sigma=sigma)
        shape = {"bx": s.bx, "by": s.by, "area": s.area}
        pk.parallel_for(e, corner_forces, fx=parts[0], fy=parts[1], sigma=sigma, **shape)
        for total, part in ((fx, parts[0]), (fy, parts[1])):
            pk.parallel_for(n, assemble, total=total, f=part, first=s.first, entry=s.entry)
        pk.parallel_for(n, pull, fy=fy, load=s.load, strength=0.1 * (step + 1))
        for u, v, f in ((ux, vx, fx), (uy, vy, fy)):
            pk.parallel_for(n, accelerate, v=v, f=f, mass=s.mass, held=s.held, dt=s.dt)
            pk.parallel_for(n, move, u=u, v=v, dt=s.dt)
    s.energies[0] = float(pk.parallel_reduce(n, kinetic, vx=vx, vy=vy, mass=s.mass))
    s.energies[1] = float(pk.parallel_reduce(e, elastic, eps=eps, sigma=sigma, area=s.area))


def outputs(s: State) -> dict:
    names = {"ux": s.u[0], "uy": s.u[1], "vx": s.v[0], "vy": s.v[1], "stiffness": s.stiffness}
    return {**{k: np.array(v.data) for k, v in names.items()}, "energies": np.array(s.energies)}


def check(s: State, n: int) -> None:
    c, bx, by, area, mass, load, held = (
        np.array(v.data) for v in (s.corner, s.bx, s.by, s.area, s.mass, s.load, s.held)
    )
    ux, uy, vx, vy, stiff = *np.zeros((4, s.nodes)), np.ones(s.elements)
    for step in range(STEPS):
        xx, yy = (bx * ux[c]).sum(1), (by * uy[c]).sum(1)
        xy = (by * ux[c] + bx * uy[c]).sum(1)
        sx, sy = (stiff * (LAMBDA * (xx + yy) + 2 * MU * q) for q in (xx, yy))
        sxy = stiff * MU * xy
        stiff = np.where((sx - sy) ** 2 + 3 * sxy**2 > LIMIT**2, 0.7, 1.0) * stiff
        gx, gy = (
            np.bincount(c.ravel(), (-area[:, None] * (bx * p[:, None] + by * q[:, None])).ravel())
            for p, q in ((sx, sxy), (sxy, sy))
        )
        vx = np.where(held == 1, 0, 0.999 * vx + s.dt * gx / mass)
        vy = np.where(held == 1, 0, 0.999 * vy + s.dt * (gy + 0.1 * (step + 1) * load) / mass)
        ux, uy = ux + s.dt * vx, uy + s.dt * vy
    np.testing.assert_allclose(s.u[1].data, uy, atol=1e-12)
    np.testing.assert_allclose(s.u[0].data, ux, atol=1e-12)
    np.testing.assert_allclose(s.stiffness.data, stiff)
    np.testing.assert_allclose(s.energies[0], 0.5 * (mass * (vx**2 + vy**2)).sum())
    assert stiff.min() < 1


if __name__ == "__main__":
    main(globals())
