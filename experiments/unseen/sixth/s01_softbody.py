"""A soft body on a floor: velocity Verlet, [n][3] Views, springs to 18 neighbours by lists."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 12, "default": 48, "large": 110}
STEPS, DT, STIFF, DRAG, GRAVITY, FLOOR = 2, 0.02, 50.0, 0.1, 0.05, 200.0
SHELL = [
    (a, b, c)
    for a in (-1, 0, 1)
    for b in (-1, 0, 1)
    for c in (-1, 0, 1)
    if 1 <= a * a + b * b + c * c <= 2
]


@pk.workunit
def half_kick(i, v, f, h):
    for d in range(3):
        v[i][d] += h * f[i][d]


@pk.workunit
def drift(i, x, v, dt):
    for d in range(3):
        x[i][d] += dt * v[i][d]


@pk.workunit
def clear(i, f):
    for d in range(3):
        f[i][d] = 0.0


@pk.workunit
def springs(i, f, pot, x, nbr, rest, count, stiff):
    """Hooke's forces of all the neighbours, and half their energy."""
    fx: float = 0.0
    fy: float = 0.0
    fz: float = 0.0
    e: float = 0.0
    for k in range(count):
        j: int = nbr[i][k]
        if j >= 0:
            dx: float = x[j][0] - x[i][0]
            dy: float = x[j][1] - x[i][1]
            dz: float = x[j][2] - x[i][2]
            r: float = sqrt(dx * dx + dy * dy + dz * dz)
            s: float = r - rest[k]
            p: float = stiff * s / r
            fx += p * dx
            fy += p * dy
            fz += p * dz
            e += 0.25 * stiff * s * s
    f[i][0] += fx
    f[i][1] += fy
    f[i][2] += fz
    pot[i] = e


@pk.workunit
def gravity(i, f, g):
    f[i][2] -= g


@pk.workunit
def drag(i, f, v, c):
    for d in range(3):
        f[i][d] -= c * v[i][d]


@pk.workunit
def contact(i, f, x, k):
    if x[i][2] < 0.0:
        f[i][2] -= k * x[i][2]


@pk.workunit
def kinetic(i, acc, v):
    acc += 0.5 * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2])


@pk.workunit
def total_of(i, acc, e):
    acc += e[i]


@pk.workunit
def height(i, acc, x):
    acc += x[i][2]


@dataclass
class State:
    n: int
    x: pk.View
    v: pk.View
    f: pk.View
    pot: pk.View
    nbr: pk.View
    rest: pk.View
    kin: float = 0.0
    spring: float = 0.0
    com: float = 0.0


def setup(size):
    n = size**3
    g = np.stack(np.indices((size,) * 3), -1).reshape(-1, 3)
    x = g + 0.1 * (rnd(3 * n, 1).reshape(n, 3) - 0.5)
    nbr = np.empty((n, len(SHELL)), np.int32)
    for k, s in enumerate(SHELL):
        h = g + np.array(s)
        ok = ((h >= 0) & (h < size)).all(1)
        nbr[:, k] = np.where(ok, (h[:, 0] * size + h[:, 1]) * size + h[:, 2], -1)
    rest = np.array([sqrt(a * a + b * b + c * c) for a, b, c in SHELL])
    return State(
        n,
        view(x),
        view(np.zeros((n, 3))),
        view(np.zeros((n, 3))),
        view(np.zeros(n)),
        view(nbr, pk.int32),
        view(rest),
    )


def run(s):
    n = s.n
    for _ in range(STEPS):
        pk.parallel_for(n, half_kick, v=s.v, f=s.f, h=0.5 * DT)
        pk.parallel_for(n, drift, x=s.x, v=s.v, dt=DT)
        pk.parallel_for(n, clear, f=s.f)
        pk.parallel_for(
            n,
            springs,
            f=s.f,
            pot=s.pot,
            x=s.x,
            nbr=s.nbr,
            rest=s.rest,
            count=len(SHELL),
            stiff=STIFF,
        )
        pk.parallel_for(n, gravity, f=s.f, g=GRAVITY)
        pk.parallel_for(n, drag, f=s.f, v=s.v, c=DRAG)
        pk.parallel_for(n, contact, f=s.f, x=s.x, k=FLOOR)
        pk.parallel_for(n, half_kick, v=s.v, f=s.f, h=0.5 * DT)
        s.kin = pk.parallel_reduce(n, kinetic, v=s.v)
        s.spring = pk.parallel_reduce(n, total_of, e=s.pot)
        s.com = pk.parallel_reduce(n, height, x=s.x)


def outputs(s):
    return {
        "x": np.array(s.x.data),
        "v": np.array(s.v.data),
        "f": np.array(s.f.data),
        "pot": np.array(s.pot.data),
        "kin": float(s.kin),
        "spring": float(s.spring),
        "com": float(s.com),
    }


if __name__ == "__main__":
    main(globals())
