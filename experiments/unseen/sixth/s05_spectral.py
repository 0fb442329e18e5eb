"""Heat by spectral elements of degree 4: gather, derivatives, metric, assembly."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 12, "default": 100, "large": 320}
P, STEPS, DT = 5, 2, 2e-3


@pk.workunit
def gather(e, ul, u, ids):
    for a in range(5):
        for b in range(5):
            ul[e][a][b] = u[ids[e][a][b]]


@pk.workunit
def along_rows(e, ur, ul, dm):
    for a in range(5):
        for b in range(5):
            s: float = 0.0
            for k in range(5):
                s += dm[a][k] * ul[e][k][b]
            ur[e][a][b] = s


@pk.workunit
def along_columns(e, us, ul, dm):
    for a in range(5):
        for b in range(5):
            s: float = 0.0
            for k in range(5):
                s += dm[b][k] * ul[e][a][k]
            us[e][a][b] = s


@pk.workunit
def metric(e, ur, us, g11, g12, g22):
    """Physical fluxes from the derivatives, in place."""
    for a in range(5):
        for b in range(5):
            r: float = ur[e][a][b]
            s: float = us[e][a][b]
            ur[e][a][b] = g11[e][a][b] * r + g12[e][a][b] * s
            us[e][a][b] = g12[e][a][b] * r + g22[e][a][b] * s


@pk.workunit
def weak_divergence(e, rl, wr, ws, dm):
    for a in range(5):
        for b in range(5):
            s: float = 0.0
            for k in range(5):
                s += dm[k][a] * wr[e][k][b] + dm[k][b] * ws[e][a][k]
            rl[e][a][b] = s


@pk.workunit
def assemble(i, r, rl, place):
    """Sum the (up to four) elements' shares of node i."""
    s: float = 0.0
    for k in range(4):
        q: int = place[i][k]
        if q >= 0:
            s += rl[q]
    r[i] = s


@pk.workunit
def invert_mass(i, r, mass):
    r[i] /= mass[i]


@pk.workunit
def advance(i, u, r, dt):
    u[i] -= dt * r[i]


@pk.workunit
def heat(i, acc, u, mass):
    acc += mass[i] * u[i]


@pk.workunit
def change(i, acc, r):
    acc += r[i] * r[i]


@dataclass
class State:
    e: int
    n: int
    u: pk.View
    ids: pk.View
    place: pk.View
    dm: pk.View
    g: list
    mass: pk.View
    heat: float = 0.0
    change: float = 0.0


def lagrange():
    """Nodes, weights and the derivative matrix of the Gauss-Lobatto-Legendre rule of 5 points."""
    c = (3.0 / 7.0) ** 0.5
    x = np.array([-1.0, -c, 0.0, c, 1.0])
    w = np.array([0.1, 49.0 / 90.0, 32.0 / 45.0, 49.0 / 90.0, 0.1])
    d = np.zeros((5, 5))
    bary = [1.0 / np.prod([x[i] - x[j] for j in range(5) if j != i]) for i in range(5)]
    for i in range(5):
        for j in range(5):
            if i != j:
                d[i, j] = bary[j] / bary[i] / (x[i] - x[j])
        d[i, i] = -sum(d[i, j] for j in range(5) if j != i)
    return w, d


def setup(size):
    m, side = size * size, 4 * size + 1
    w, d = lagrange()
    ex, ey = np.divmod(np.arange(m), size)
    a = np.arange(5)
    ids = (
        (4 * ex[:, None, None] + a[None, :, None]) * side + 4 * ey[:, None, None] + a[None, None, :]
    )
    flat = ids.ravel()
    order = np.argsort(flat, kind="stable")
    nodes = flat[order]
    first = np.searchsorted(nodes, nodes)
    place = np.full((side * side, 4), -1, np.int32)
    place[nodes, np.arange(len(nodes)) - first] = order
    ww = w[:, None] * w[None, :]
    k = 0.5 + 0.5 * rnd(m * 25, 5).reshape(m, 5, 5)
    g11, g22, g12 = k * ww, 0.8 * k * ww, 0.2 * k * ww
    mass = np.bincount(flat, weights=np.broadcast_to(ww, (m, 5, 5)).ravel(), minlength=side * side)
    u = rnd(side * side, 6)
    return State(
        m,
        side * side,
        view(u),
        view(ids.astype(np.int32), pk.int32),
        view(place, pk.int32),
        view(d),
        [view(g11), view(g12), view(g22)],
        view(mass),
    )


def run(s):
    m, n = s.e, s.n
    ul, ur, us = (pk.View([m, 5, 5], pk.double) for _ in range(3))
    r = pk.View([n], pk.double)
    share = pk.View([m * 25], pk.double)
    rl = share.data.reshape(m, 5, 5)
    g11, g12, g22 = s.g
    for _ in range(STEPS):
        pk.parallel_for(m, gather, ul=ul, u=s.u, ids=s.ids)
        pk.parallel_for(m, along_rows, ur=ur, ul=ul, dm=s.dm)
        pk.parallel_for(m, along_columns, us=us, ul=ul, dm=s.dm)
        pk.parallel_for(m, metric, ur=ur, us=us, g11=g11, g12=g12, g22=g22)
        pk.parallel_for(m, weak_divergence, rl=rl, wr=ur, ws=us, dm=s.dm)
        pk.parallel_for(n, assemble, r=r, rl=share, place=s.place)
        pk.parallel_for(n, invert_mass, r=r, mass=s.mass)
        pk.parallel_for(n, advance, u=s.u, r=r, dt=DT)
        s.heat = pk.parallel_reduce(n, heat, u=s.u, mass=s.mass)
        s.change = pk.parallel_reduce(n, change, r=r)


def outputs(s):
    return {"u": np.array(s.u.data), "heat": float(s.heat), "change": float(s.change)}


if __name__ == "__main__":
    main(globals())
