"""Electrostatics on a mesh of tetrahedra: conjugate gradients without a matrix.

Gather to elements, gradients, fluxes, scatter to nodes through lists of corners.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 7, "default": 22, "large": 48}
STEPS = 6


@pk.workunit
def zero(i: int, v: pk.View1D[pk.double]):
    v[i] = 0.0


@pk.workunit
def copy(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    y[i] = x[i]


@pk.workunit
def gather(e: int, local: pk.View2D[pk.double], u: pk.View1D[pk.double], tets: pk.View2D[pk.int32]):
    for a in range(4):
        local[e][a] = u[tets[e][a]]


@pk.workunit
def gradient(
    e: int, grad: pk.View2D[pk.double], local: pk.View2D[pk.double], shape: pk.View3D[pk.double]
):
    for d in range(3):
        total: float = 0.0
        for a in range(4):
            total += shape[e][a][d] * local[e][a]
        grad[e][d] = total


@pk.workunit
def displace(
    e: int,
    flux: pk.View2D[pk.double],
    grad: pk.View2D[pk.double],
    eps: pk.View1D[pk.double],
    volume: pk.View1D[pk.double],
):
    for d in range(3):
        flux[e][d] = eps[e] * volume[e] * grad[e][d]


@pk.workunit
def divergence(
    e: int, res: pk.View2D[pk.double], flux: pk.View2D[pk.double], shape: pk.View3D[pk.double]
):
    for a in range(4):
        total: float = 0.0
        for d in range(3):
            total += shape[e][a][d] * flux[e][d]
        res[e][a] = total


@pk.workunit
def assemble(
    i: int,
    y: pk.View1D[pk.double],
    res: pk.View2D[pk.double],
    first: pk.View1D[pk.int32],
    corners: pk.View1D[pk.int32],
):
    total: float = 0.0
    for k in range(first[i], first[i + 1]):
        c: int = corners[k]
        total += res[c // 4][c % 4]
    y[i] = total


@pk.workunit
def hold(i: int, y: pk.View1D[pk.double], fixed: pk.View1D[pk.uint8]):
    if fixed[i] == 1:
        y[i] = 0.0


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double]):
    acc += x[i] * y[i]


@pk.workunit
def axpy(i: int, y: pk.View1D[pk.double], x: pk.View1D[pk.double], a: float):
    y[i] += a * x[i]


@pk.workunit
def precondition(
    i: int, z: pk.View1D[pk.double], r: pk.View1D[pk.double], diag: pk.View1D[pk.double]
):
    z[i] = r[i] / diag[i]


@pk.workunit
def direct(i: int, p: pk.View1D[pk.double], z: pk.View1D[pk.double], beta: float):
    p[i] = z[i] + beta * p[i]


@pk.workunit
def field_energy(
    e: int,
    acc: pk.Acc[pk.double],
    grad: pk.View2D[pk.double],
    eps: pk.View1D[pk.double],
    volume: pk.View1D[pk.double],
):
    acc += (
        0.5
        * eps[e]
        * volume[e]
        * (grad[e][0] * grad[e][0] + grad[e][1] * grad[e][1] + grad[e][2] * grad[e][2])
    )


@dataclass
class State:
    size: int
    tets: pk.View
    shape: pk.View
    volume: pk.View
    eps: pk.View
    first: pk.View
    corners: pk.View
    fixed: pk.View
    diag: pk.View
    rhs: pk.View
    x: pk.View
    r: pk.View
    z: pk.View
    p: pk.View
    q: pk.View
    residual: float = 0.0
    energy: float = 0.0


def problem(m):
    rng = np.random.default_rng(4)
    ijk = np.indices((m, m, m)).reshape(3, -1).T
    nodes = ijk / (m - 1.0)
    inside = ((ijk > 0) & (ijk < m - 1)).all(axis=1)
    nodes = nodes + inside[:, None] * rng.uniform(-0.12, 0.12, nodes.shape) / (m - 1)
    base = np.indices((m - 1,) * 3).reshape(3, -1).T
    tets = []
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        corner = base.copy()
        path = [corner]
        for d in order:
            corner = corner + np.eye(3, dtype=int)[d]
            path.append(corner)
        tets.append(np.stack([(p @ [m * m, m, 1]) for p in path], axis=1))
    tets = np.stack(tets, axis=1).reshape(-1, 4).astype(np.int32)
    edges = nodes[tets[:, 1:]] - nodes[tets[:, :1]]
    volume = abs(np.linalg.det(edges)) / 6
    inv = np.linalg.inv(edges)  # columns are gradients of corners 1 to 3
    shape = np.concatenate([-inv.sum(axis=2)[:, None], inv.transpose(0, 2, 1)], axis=1)
    eps = 1.0 + 4.0 * (nodes[tets].mean(axis=1)[:, 0] > 0.5)
    flat = tets.ravel()
    corners = np.argsort(flat, kind="stable").astype(np.int32)
    first = np.r_[0, np.cumsum(np.bincount(flat, minlength=m**3))].astype(np.int32)
    fixed = (~inside).astype(np.uint8)
    terms = (eps * volume)[:, None] * (shape**2).sum(axis=2)
    diag = np.bincount(flat, terms.ravel(), m**3)
    charge = np.exp(-40 * ((nodes - [0.4, 0.5, 0.6]) ** 2).sum(axis=1))
    rhs = np.bincount(flat, np.repeat(volume / 4, 4), m**3) * charge * inside
    return tets, np.ascontiguousarray(shape), volume, eps, first, corners, fixed, diag, rhs


def setup(m):
    return State(m, *map(view, problem(m)), *(pk.View([m**3], pk.double) for _ in range(5)))


def apply(s, y, u):
    """y = A u; returns the gradients of u."""
    e, n = len(s.volume), s.size**3
    local, res = pk.View([e, 4], pk.double), pk.View([e, 4], pk.double)
    grad, flux = pk.View([e, 3], pk.double), pk.View([e, 3], pk.double)
    pk.parallel_for(e, gather, local=local, u=u, tets=s.tets)
    pk.parallel_for(e, gradient, grad=grad, local=local, shape=s.shape)
    pk.parallel_for(e, displace, flux=flux, grad=grad, eps=s.eps, volume=s.volume)
    pk.parallel_for(e, divergence, res=res, flux=flux, shape=s.shape)
    pk.parallel_for(n, assemble, y=y, res=res, first=s.first, corners=s.corners)
    pk.parallel_for(n, hold, y=y, fixed=s.fixed)
    return grad


def run(s):
    n = s.size**3
    pk.parallel_for(n, zero, v=s.x)
    pk.parallel_for(n, copy, y=s.r, x=s.rhs)
    pk.parallel_for(n, precondition, z=s.z, r=s.r, diag=s.diag)
    pk.parallel_for(n, copy, y=s.p, x=s.z)
    rz = pk.parallel_reduce(n, dot, x=s.r, y=s.z)
    for _ in range(STEPS):
        apply(s, s.q, s.p)
        alpha = rz / pk.parallel_reduce(n, dot, x=s.p, y=s.q)
        pk.parallel_for(n, axpy, y=s.x, x=s.p, a=alpha)
        pk.parallel_for(n, axpy, y=s.r, x=s.q, a=-alpha)
        pk.parallel_for(n, precondition, z=s.z, r=s.r, diag=s.diag)
        new = pk.parallel_reduce(n, dot, x=s.r, y=s.z)
        pk.parallel_for(n, direct, p=s.p, z=s.z, beta=new / rz)
        rz = new
    grad = apply(s, s.q, s.x)
    s.energy = float(
        pk.parallel_reduce(len(s.volume), field_energy, grad=grad, eps=s.eps, volume=s.volume)
    )
    s.residual = float(rz)


def outputs(s):
    names = ("x", "r", "p", "q")
    return {a: np.array(getattr(s, a).data) for a in names} | {
        "residual": s.residual,
        "energy": s.energy,
    }


def check(s):
    tets, shape, volume, eps, _first, _corners, fixed, diag, rhs = problem(s.size)
    flat = tets.ravel()

    def matvec(u):
        grad = np.einsum("ead,ea->ed", shape, u[tets])
        res = np.einsum("ead,ed->ea", shape, (eps * volume)[:, None] * grad)
        return np.bincount(flat, res.ravel(), len(u)) * (fixed == 0), grad

    x, r = np.zeros_like(rhs), rhs.copy()
    p = z = r / diag
    rz = r @ z
    for _ in range(STEPS):
        q, _ = matvec(p)
        alpha = rz / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        z = r / diag
        p, rz = z + (r @ z) / rz * p, r @ z
    q, grad = matvec(x)
    np.testing.assert_allclose(s.x.data, x, rtol=0, atol=1e-11 * abs(x).max())
    np.testing.assert_allclose(s.q.data, q, rtol=0, atol=1e-11 * abs(q).max())
    np.testing.assert_allclose(s.residual, rz, rtol=1e-8)
    np.testing.assert_allclose(s.energy, 0.5 * (eps * volume * (grad**2).sum(1)).sum(), rtol=1e-10)


if __name__ == "__main__":
    main(globals())
