"""Total-variation denoising of a volume by Chambolle and Pock's primal-dual iteration."""

from dataclasses import dataclass
from math import sqrt
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 14, "default": 90, "large": 160}
ITERATIONS, SIGMA, TAU, RADIUS = 4, 0.25, 0.25, 0.15


@pk.workunit
def begin(i, j, k, u, bar, px, py, pz, f):
    u[i][j][k] = f[i][j][k]
    bar[i][j][k] = f[i][j][k]
    px[i][j][k] = 0.0
    py[i][j][k] = 0.0
    pz[i][j][k] = 0.0


@pk.workunit
def ascend_x(i, j, k, p, bar, sigma, n):
    if i < n - 1:
        p[i][j][k] += sigma * (bar[i + 1][j][k] - bar[i][j][k])


@pk.workunit
def ascend_y(i, j, k, p, bar, sigma, n):
    if j < n - 1:
        p[i][j][k] += sigma * (bar[i][j + 1][k] - bar[i][j][k])


@pk.workunit
def ascend_z(i, j, k, p, bar, sigma, n):
    if k < n - 1:
        p[i][j][k] += sigma * (bar[i][j][k + 1] - bar[i][j][k])


@pk.workunit
def length(i, j, k, m, px, py, pz, radius):
    v: float = (
        sqrt(px[i][j][k] * px[i][j][k] + py[i][j][k] * py[i][j][k] + pz[i][j][k] * pz[i][j][k])
        / radius
    )
    m[i][j][k] = max(1.0, v)


@pk.workunit
def project(i, j, k, px, py, pz, m):
    px[i][j][k] /= m[i][j][k]
    py[i][j][k] /= m[i][j][k]
    pz[i][j][k] /= m[i][j][k]


@pk.workunit
def divergence(i, j, k, d, px, py, pz):
    v: float = px[i][j][k] + py[i][j][k] + pz[i][j][k]
    if i > 0:
        v -= px[i - 1][j][k]
    if j > 0:
        v -= py[i][j - 1][k]
    if k > 0:
        v -= pz[i][j][k - 1]
    d[i][j][k] = v


@pk.workunit
def keep(i, j, k, old, u):
    old[i][j][k] = u[i][j][k]


@pk.workunit
def descend(i, j, k, u, d, f, tau):
    u[i][j][k] = (u[i][j][k] + tau * (d[i][j][k] + f[i][j][k])) / (1.0 + tau)


@pk.workunit
def extrapolate(i, j, k, bar, u, old):
    bar[i][j][k] = 2.0 * u[i][j][k] - old[i][j][k]


@pk.workunit
def misfit(i, j, k, acc, u, f):
    acc += 0.5 * (u[i][j][k] - f[i][j][k]) * (u[i][j][k] - f[i][j][k])


@pk.workunit
def dual(i, j, k, acc, d, f):
    acc += d[i][j][k] * (f[i][j][k] + 0.5 * d[i][j][k])


@dataclass
class State:
    n: int
    f: pk.View
    u: pk.View
    misfit: float = 0.0
    dual: float = 0.0


def setup(n):
    x = np.arange(n) / n - 0.5
    r = x[:, None, None] ** 2 + x[:, None] ** 2 + x**2
    f = np.where(r < 0.1, 1.0, 0.0) + 0.4 * rnd(n**3, 2).reshape(n, n, n)
    return State(n, view(f), pk.View([n, n, n], pk.double))


def run(s):
    n, f, u = s.n, s.f, s.u
    box = pk.MDRangePolicy([0, 0, 0], [n, n, n])
    bar, px, py, pz, m, d, old = (pk.View([n, n, n], pk.double) for _ in range(7))
    pk.parallel_for(box, begin, u=u, bar=bar, px=px, py=py, pz=pz, f=f)
    for _ in range(ITERATIONS):
        pk.parallel_for(box, ascend_x, p=px, bar=bar, sigma=SIGMA, n=n)
        pk.parallel_for(box, ascend_y, p=py, bar=bar, sigma=SIGMA, n=n)
        pk.parallel_for(box, ascend_z, p=pz, bar=bar, sigma=SIGMA, n=n)
        pk.parallel_for(box, length, m=m, px=px, py=py, pz=pz, radius=RADIUS)
        pk.parallel_for(box, project, px=px, py=py, pz=pz, m=m)
        pk.parallel_for(box, divergence, d=d, px=px, py=py, pz=pz)
        pk.parallel_for(box, keep, old=old, u=u)
        pk.parallel_for(box, descend, u=u, d=d, f=f, tau=TAU)
        pk.parallel_for(box, extrapolate, bar=bar, u=u, old=old)
    s.misfit = pk.parallel_reduce(box, misfit, u=u, f=f)
    s.dual = pk.parallel_reduce(box, dual, d=d, f=f)


def outputs(s):
    return {"u": np.array(s.u.data), "misfit": float(s.misfit), "dual": float(s.dual)}


if __name__ == "__main__":
    main(globals())
