"""Dendritic solidification (Kobayashi 1993): a phase field and a temperature on a periodic plane."""

from dataclasses import dataclass
from math import atan, sqrt
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 48, "default": 900, "large": 1800}
STEPS, DT, H, EPS, DELTA, TAU, LATENT = 3, 1e-4, 0.03, 0.01, 0.04, 3e-4, 1.6


@pk.workunit
def gradient(i, j, gx, gy, p, n, h):
    gx[i][j] = (p[(i + 1) % n][j] - p[(i + n - 1) % n][j]) / (2.0 * h)
    gy[i][j] = (p[i][(j + 1) % n] - p[i][(j + n - 1) % n]) / (2.0 * h)


@pk.workunit
def anisotropy(i, j, e, de, gx, gy, eps, delta):
    """The interface's width and its derivative by the angle, four-fold."""
    c: float = gx[i][j] * gx[i][j]
    s: float = gy[i][j] * gy[i][j]
    r: float = (c + s) * (c + s)
    cos4: float = 1.0
    sin4: float = 0.0
    if r > 1e-12:
        cos4 = 1.0 - 8.0 * c * s / r
        sin4 = 4.0 * gx[i][j] * gy[i][j] * (c - s) / r
    e[i][j] = eps * (1.0 + delta * cos4)
    de[i][j] = -4.0 * eps * delta * sin4


@pk.workunit
def skew(i, j, fx, fy, e, de, gx, gy):
    fx[i][j] = e[i][j] * de[i][j] * gy[i][j]
    fy[i][j] = e[i][j] * de[i][j] * gx[i][j]


@pk.workunit
def diffuse(i, j, rate, p, e, n, h):
    """Divergence of e^2 grad p, e^2 of a face from the mean of two cells."""
    ip = (i + 1) % n
    im = (i + n - 1) % n
    jp = (j + 1) % n
    jm = (j + n - 1) % n
    c: float = e[i][j] * e[i][j]
    a: float = (c + e[ip][j] * e[ip][j]) * (p[ip][j] - p[i][j]) + (c + e[im][j] * e[im][j]) * (
        p[im][j] - p[i][j]
    )
    b: float = (c + e[i][jp] * e[i][jp]) * (p[i][jp] - p[i][j]) + (c + e[i][jm] * e[i][jm]) * (
        p[i][jm] - p[i][j]
    )
    rate[i][j] = 0.5 * (a + b) / (h * h)


@pk.workunit
def turn(i, j, rate, fx, fy, n, h):
    rate[i][j] += (
        fy[i][(j + 1) % n] - fy[i][(j + n - 1) % n] - fx[(i + 1) % n][j] + fx[(i + n - 1) % n][j]
    ) / (2.0 * h)


@pk.workunit
def react(i, j, rate, p, t, tau):
    m: float = 0.9 / 3.14159265358979 * atan(10.0 * (1.0 - t[i][j]))
    q: float = p[i][j]
    rate[i][j] = (rate[i][j] + q * (1.0 - q) * (q - 0.5 + m)) / tau


@pk.workunit
def conduct(i, j, lap, t, n, h):
    lap[i][j] = (
        t[(i + 1) % n][j]
        + t[(i + n - 1) % n][j]
        + t[i][(j + 1) % n]
        + t[i][(j + n - 1) % n]
        - 4.0 * t[i][j]
    ) / (h * h)


@pk.workunit
def grow(i, j, p, rate, dt):
    p[i][j] += dt * rate[i][j]


@pk.workunit
def warm(i, j, t, lap, rate, dt, latent):
    t[i][j] += dt * (lap[i][j] + latent * rate[i][j])


@pk.workunit
def solid(i, j, acc, p):
    acc += p[i][j]


@dataclass
class State:
    n: int
    p: pk.View
    t: pk.View
    solid: float = 0.0


def setup(n):
    x = np.arange(n) - n / 2.0
    r = x[:, None] * x[:, None] + x * x
    p = np.where(r < n * n / 100.0, 0.9, 0.1 * rnd(n * n, 1).reshape(n, n))
    return State(n, view(p), view(0.2 * p))


def run(s):
    n, p, t = s.n, s.p, s.t
    cells = pk.MDRangePolicy([0, 0], [n, n])
    gx, gy, e, de, fx, fy, rate, lap = (pk.View([n, n], pk.double) for _ in range(8))
    for _ in range(STEPS):
        pk.parallel_for(cells, gradient, gx=gx, gy=gy, p=p, n=n, h=H)
        pk.parallel_for(cells, anisotropy, e=e, de=de, gx=gx, gy=gy, eps=EPS, delta=DELTA)
        pk.parallel_for(cells, skew, fx=fx, fy=fy, e=e, de=de, gx=gx, gy=gy)
        pk.parallel_for(cells, diffuse, rate=rate, p=p, e=e, n=n, h=H)
        pk.parallel_for(cells, turn, rate=rate, fx=fx, fy=fy, n=n, h=H)
        pk.parallel_for(cells, react, rate=rate, p=p, t=t, tau=TAU)
        pk.parallel_for(cells, conduct, lap=lap, t=t, n=n, h=H)
        pk.parallel_for(cells, grow, p=p, rate=rate, dt=DT)
        pk.parallel_for(cells, warm, t=t, lap=lap, rate=rate, dt=DT, latent=LATENT)
    s.solid = pk.parallel_reduce(cells, solid, p=p)


def outputs(s):
    return {"p": np.array(s.p.data), "t": np.array(s.t.data), "solid": float(s.solid)}


if __name__ == "__main__":
    main(globals())
