"""Many probes in the restricted three-body problem: Bogacki and Shampine's pair, one step for all."""

from dataclasses import dataclass
from math import sqrt
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 1000, "default": 100_000, "large": 800_000}
ATTEMPTS, MU, TOLERANCE = 6, 0.01215, 1e-6


@pk.workunit
def restart(i, y, y0):
    for c in range(4):
        y[i][c] = y0[i][c]


@pk.workunit
def field(i, k, y, mu):
    """Position and velocity in the rotating frame."""
    px: float = y[i][0]
    py: float = y[i][1]
    a: float = px + mu
    b: float = px - 1.0 + mu
    r1: float = a * a + py * py
    r2: float = b * b + py * py + 1e-3
    w1: float = (1.0 - mu) / (r1 * sqrt(r1))
    w2: float = mu / (r2 * sqrt(r2))
    k[i][0] = y[i][2]
    k[i][1] = y[i][3]
    k[i][2] = 2.0 * y[i][3] + px - w1 * a - w2 * b
    k[i][3] = -2.0 * y[i][2] + py - (w1 + w2) * py


@pk.workunit
def stage(i, t, y, k, h):
    for c in range(4):
        t[i][c] = y[i][c] + h * k[i][c]


@pk.workunit
def combine(i, z, y, k1, k2, k3, h):
    for c in range(4):
        z[i][c] = y[i][c] + h * (2.0 * k1[i][c] + 3.0 * k2[i][c] + 4.0 * k3[i][c]) / 9.0


@pk.workunit
def estimate(i, e, k1, k2, k3, k4, h):
    v: float = 0.0
    for c in range(4):
        d: float = h * (-5.0 * k1[i][c] + 6.0 * k2[i][c] + 8.0 * k3[i][c] - 9.0 * k4[i][c]) / 72.0
        v += d * d
    e[i] = v


@pk.workunit
def total(i, acc, e):
    acc += e[i]


@pk.workunit
def jacobi(i, acc, y, mu):
    a: float = y[i][0] + mu
    b: float = y[i][0] - 1.0 + mu
    r1: float = sqrt(a * a + y[i][1] * y[i][1])
    r2: float = sqrt(b * b + y[i][1] * y[i][1] + 1e-3)
    acc += (
        y[i][0] * y[i][0]
        + y[i][1] * y[i][1]
        + 2.0 * (1.0 - mu) / r1
        + 2.0 * mu / r2
        - y[i][2] * y[i][2]
        - y[i][3] * y[i][3]
    )


@dataclass
class State:
    n: int
    y0: pk.View
    y: pk.View
    h: float = 0.0
    time: float = 0.0
    constant: float = 0.0


def setup(n):
    r = rnd(4 * n, 4).reshape(n, 4)
    y0 = np.empty((n, 4))
    y0[:, 0] = 0.3 + 0.3 * r[:, 0]
    y0[:, 1] = 0.2 + 0.2 * r[:, 1]
    y0[:, 2] = 0.4 * r[:, 2] - 0.2
    y0[:, 3] = 0.5 + 0.4 * r[:, 3]
    return State(n, view(y0), pk.View([n, 4], pk.double))


def run(s):
    n, y = s.n, s.y
    z, t, k1, k2, k3, k4 = (pk.View([n, 4], pk.double) for _ in range(6))
    e = pk.View([n], pk.double)
    h, time = 0.05, 0.0
    pk.parallel_for(n, restart, y=y, y0=s.y0)
    pk.parallel_for(n, field, k=k1, y=y, mu=MU)
    for _ in range(ATTEMPTS):
        pk.parallel_for(n, stage, t=t, y=y, k=k1, h=0.5 * h)
        pk.parallel_for(n, field, k=k2, y=t, mu=MU)
        pk.parallel_for(n, stage, t=t, y=y, k=k2, h=0.75 * h)
        pk.parallel_for(n, field, k=k3, y=t, mu=MU)
        pk.parallel_for(n, combine, z=z, y=y, k1=k1, k2=k2, k3=k3, h=h)
        pk.parallel_for(n, field, k=k4, y=z, mu=MU)
        pk.parallel_for(n, estimate, e=e, k1=k1, k2=k2, k3=k3, k4=k4, h=h)
        error = sqrt(float(pk.parallel_reduce(n, total, e=e)) / n)
        if error <= TOLERANCE:
            time += h
            y, z, k1, k4 = z, y, k4, k1
        h *= min(2.0, max(0.3, 0.9 * (TOLERANCE / error) ** (1.0 / 3.0)))
    s.constant = pk.parallel_reduce(n, jacobi, y=y, mu=MU) / n
    s.y, s.h, s.time = y, h, time


def outputs(s):
    return {"y": np.array(s.y.data), "h": s.h, "time": s.time, "constant": float(s.constant)}


if __name__ == "__main__":
    main(globals())
