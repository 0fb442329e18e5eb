"""Discontinuous Galerkin elements for the Euler equations of gas in a tube (a row of shocks).

Four nodes an element, Rusanov fluxes, a limiter, SSP Runge-Kutta of order 3, periodic.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 120, "default": 6_000, "large": 80_000}
STEPS, NODES, GAMMA, CFL = 1, 4, 1.4, 0.05


@pk.workunit
def primitive(
    e: int,
    vel: pk.View2D[pk.double],
    pr: pk.View2D[pk.double],
    u: pk.View3D[pk.double],
    gamma: float,
):
    for a in range(4):
        vel[e][a] = u[e][1][a] / u[e][0][a]
        pr[e][a] = (gamma - 1.0) * (u[e][2][a] - 0.5 * u[e][1][a] * vel[e][a])


@pk.workunit
def physical_flux(
    e: int,
    f: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    vel: pk.View2D[pk.double],
    pr: pk.View2D[pk.double],
):
    for a in range(4):
        f[e][0][a] = u[e][1][a]
        f[e][1][a] = u[e][1][a] * vel[e][a] + pr[e][a]
        f[e][2][a] = (u[e][2][a] + pr[e][a]) * vel[e][a]


@pk.workunit
def sound(
    e: int,
    c: pk.View2D[pk.double],
    u: pk.View3D[pk.double],
    vel: pk.View2D[pk.double],
    pr: pk.View2D[pk.double],
    gamma: float,
):
    """The fastest wave at both ends."""
    c[e][0] = abs(vel[e][0]) + pk.sqrt(gamma * pr[e][0] / u[e][0][0])
    c[e][1] = abs(vel[e][3]) + pk.sqrt(gamma * pr[e][3] / u[e][0][3])


@pk.workunit
def face_flux(
    e: int,
    g: pk.View2D[pk.double],
    f: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    c: pk.View2D[pk.double],
    n: int,
):
    """At the left end of element e."""
    w: int = e - 1
    if w < 0:
        w = n - 1
    speed: float = max(c[w][1], c[e][0])
    for q in range(3):
        g[e][q] = 0.5 * (f[w][q][3] + f[e][q][0]) - 0.5 * speed * (u[e][q][0] - u[w][q][3])


@pk.workunit
def volume(
    team: pk.TeamMember, rhs: pk.View3D[pk.double], f: pk.View3D[pk.double], d: pk.View2D[pk.double]
):
    """The stiffness matrix times the flux, by a team an element."""
    e: int = team.league_rank()
    local: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), 3, 4)

    def fetch(k: int):
        local[k // 4][k % 4] = f[e][k // 4][k % 4]

    pk.parallel_for(pk.TeamThreadRange(team, 12), fetch)
    team.team_barrier()

    def product(k: int):
        total: float = 0.0
        for b in range(4):
            total += d[k % 4][b] * local[k // 4][b]
        rhs[e][k // 4][k % 4] = total

    pk.parallel_for(pk.TeamThreadRange(team, 12), product)


@pk.workunit
def lift(
    e: int,
    rhs: pk.View3D[pk.double],
    g: pk.View2D[pk.double],
    left: pk.View1D[pk.double],
    right: pk.View1D[pk.double],
    n: int,
):
    w: int = e + 1
    if w == n:
        w = 0
    for q in range(3):
        for a in range(4):
            rhs[e][q][a] += left[a] * g[e][q] - right[a] * g[w][q]


@pk.workunit
def combine(
    e: int,
    out: pk.View3D[pk.double],
    old: pk.View3D[pk.double],
    u: pk.View3D[pk.double],
    rhs: pk.View3D[pk.double],
    a: float,
    b: float,
    dt: float,
):
    for q in range(3):
        for k in range(4):
            out[e][q][k] = a * old[e][q][k] + b * (u[e][q][k] + dt * rhs[e][q][k])


@pk.workunit
def average(e: int, mean: pk.View2D[pk.double], u: pk.View3D[pk.double], w: pk.View1D[pk.double]):
    for q in range(3):
        total: float = 0.0
        for a in range(4):
            total += w[a] * u[e][q][a]
        mean[e][q] = total


@pk.function
def minmod(a: float, b: float) -> float:
    r: float = 0.0
    if a * b > 0.0:
        r = a if abs(a) < abs(b) else b
    return r


@pk.workunit
def limit(
    e: int, u: pk.View3D[pk.double], mean: pk.View2D[pk.double], x: pk.View1D[pk.double], n: int
):
    """Where an end overshoots: a straight line of the least slope."""
    w: int = e - 1
    if w < 0:
        w = n - 1
    z: int = e + 1
    if z == n:
        z = 0
    for q in range(3):
        back: float = mean[e][q] - mean[w][q]
        ahead: float = mean[z][q] - mean[e][q]
        low: float = minmod(mean[e][q] - u[e][q][0], minmod(back, ahead))
        high: float = minmod(u[e][q][3] - mean[e][q], minmod(back, ahead))
        if abs(low - mean[e][q] + u[e][q][0]) + abs(high - u[e][q][3] + mean[e][q]) > 1e-3:
            slope: float = minmod(back, ahead)
            for a in range(4):
                u[e][q][a] = mean[e][q] + 0.5 * x[a] * slope


@pk.workunit
def total_of(e: int, acc: pk.Acc[pk.double], mean: pk.View2D[pk.double], q: int):
    acc += mean[e][q]


@dataclass
class State:
    size: int
    u: pk.View
    d: pk.View
    left: pk.View
    right: pk.View
    w: pk.View
    x: pk.View
    dt: float
    mass: float = 0.0
    energy: float = 0.0


def reference():
    """Gauss-Lobatto nodes and weights, D' with mass inverted, and both lifts."""
    x = np.array([-1, -np.sqrt(0.2), np.sqrt(0.2), 1])
    w = np.array([1, 5, 5, 1]) / 6
    d = np.array(
        [
            [
                np.prod([x[a] - x[k] for k in range(4) if k not in (b, a)]) if a != b else 0
                for b in range(4)
            ]
            for a in range(4)
        ]
    )
    bottom = np.array([np.prod([x[b] - x[k] for k in range(4) if k != b]) for b in range(4)])
    d = d / bottom
    np.fill_diagonal(d, -d.sum(axis=1))
    return x, w / 2, (d.T * w) / w[:, None]


def problem(n):
    x, w, d = reference()
    h = 1.0 / n
    place = (np.arange(n)[:, None] + 0.5 + 0.5 * x) * h
    rho = 1.0 + 0.5 * ((place * 8) % 1.0 > 0.5) + 0.1 * np.sin(40 * np.pi * place)
    vel = 0.5 * np.cos(6 * np.pi * place)
    pr = 1.0 + 0.8 * ((place * 5) % 1.0 > 0.5)
    u = np.stack([rho, rho * vel, pr / (GAMMA - 1) + 0.5 * rho * vel**2], axis=1)
    end = 2 / h / (2 * w)
    left, right = np.array([end[0], 0, 0, 0]), np.array([0, 0, 0, end[3]])
    return u, d * 2 / h, left, right, w, x, CFL * h / 2.5


def setup(n):
    *arrays, dt = problem(n)
    return State(n, *map(view, arrays), dt)


def stage(s, out, u, a, b):
    n = s.size
    vel, pr, c = pk.View([n, 4], pk.double), pk.View([n, 4], pk.double), pk.View([n, 2], pk.double)
    f, rhs, g = (
        pk.View([n, 3, 4], pk.double),
        pk.View([n, 3, 4], pk.double),
        pk.View([n, 3], pk.double),
    )
    mean = pk.View([n, 3], pk.double)
    pk.parallel_for(n, primitive, vel=vel, pr=pr, u=u, gamma=GAMMA)
    pk.parallel_for(n, physical_flux, f=f, u=u, vel=vel, pr=pr)
    pk.parallel_for(n, sound, c=c, u=u, vel=vel, pr=pr, gamma=GAMMA)
    pk.parallel_for(n, face_flux, g=g, f=f, u=u, c=c, n=n)
    policy = pk.TeamPolicy(n, pk.AUTO)
    policy.set_scratch_size(0, pk.PerTeam(pk.ScratchView2D[float].shmem_size(3, 4)))
    pk.parallel_for(policy, volume, rhs=rhs, f=f, d=s.d)
    pk.parallel_for(n, lift, rhs=rhs, g=g, left=s.left, right=s.right, n=n)
    pk.parallel_for(n, combine, out=out, old=s.u, u=u, rhs=rhs, a=a, b=b, dt=s.dt)
    pk.parallel_for(n, average, mean=mean, u=out, w=s.w)
    pk.parallel_for(n, limit, u=out, mean=mean, x=s.x, n=n)
    return mean


def run(s):
    n = s.size
    for _ in range(STEPS):
        one, two = pk.View([n, 3, 4], pk.double), pk.View([n, 3, 4], pk.double)
        stage(s, one, s.u, 0.0, 1.0)
        stage(s, two, one, 0.75, 0.25)
        mean = stage(s, s.u, two, 1.0 / 3.0, 2.0 / 3.0)
        mass = pk.parallel_reduce(n, total_of, mean=mean, q=0)
        energy = pk.parallel_reduce(n, total_of, mean=mean, q=2)
    s.mass, s.energy = float(mass) / n, float(energy) / n


def outputs(s):
    return {"u": np.array(s.u.data), "mass": s.mass, "energy": s.energy}


def check(s):
    u, d, left, right, w, x, dt = problem(s.size)

    def mm(a, b):
        return np.where(a * b > 0, np.where(abs(a) < abs(b), a, b), 0.0)

    def advance(old, u, a, b):
        vel = u[:, 1] / u[:, 0]
        pr = (GAMMA - 1) * (u[:, 2] - 0.5 * u[:, 1] * vel)
        f = np.stack([u[:, 1], u[:, 1] * vel + pr, (u[:, 2] + pr) * vel], axis=1)
        c = abs(vel) + np.sqrt(GAMMA * pr / u[:, 0])
        fw, uw, cw = (np.roll(v[..., 3], 1, axis=0) for v in (f, u, c))
        g = 0.5 * (fw + f[..., 0]) - 0.5 * np.maximum(cw, c[:, 0])[:, None] * (u[..., 0] - uw)
        rhs = f @ d.T + g[..., None] * left - np.roll(g, -1, axis=0)[..., None] * right
        out = a * old + b * (u + dt * rhs)
        mean = out @ w
        slope = mm(mean - np.roll(mean, 1, axis=0), np.roll(mean, -1, axis=0) - mean)
        low, high = mean - out[..., 0], out[..., 3] - mean
        bad = abs(mm(low, slope) - low) + abs(mm(high, slope) - high) > 1e-3
        return np.where(bad[..., None], (mean[..., None] + 0.5 * x * slope[..., None]), out), mean

    for _ in range(STEPS):
        one, _ = advance(u, u, 0.0, 1.0)
        two, _ = advance(u, one, 0.75, 0.25)
        u, mean = advance(u, two, 1 / 3, 2 / 3)
    wrong = abs(s.u.data - u) > 1e-9
    assert wrong.mean() < 1e-4, wrong.mean()  # a limiter may decide otherwise on a tie
    np.testing.assert_allclose([s.mass, s.energy], mean[:, [0, 2]].mean(axis=0), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
