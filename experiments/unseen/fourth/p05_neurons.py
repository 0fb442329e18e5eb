"""Hindmarsh-Rose neurons by Bogacki-Shampine, one step length for all, steered by the error."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 1000, "default": 600_000, "large": 2_000_000}
TRIES = 6


@pk.workunit
def fast(i, k, x, y, z, current):
    k[i] = y[i] - x[i] * x[i] * x[i] + 3.0 * x[i] * x[i] - z[i] + current[i]


@pk.workunit
def recovery(i, k, x, y):
    k[i] = 1.0 - 5.0 * x[i] * x[i] - y[i]


@pk.workunit
def slow(i, k, x, z):
    k[i] = 0.006 * (4.0 * (x[i] + 1.6) - z[i])


@pk.workunit
def stage(i, out, x, k, a):
    out[i] = x[i] + a * k[i]


@pk.workunit
def combine(i, out, x, k1, k2, k3, h):
    out[i] = x[i] + h * (2.0 * k1[i] + 3.0 * k2[i] + 4.0 * k3[i]) / 9.0


@pk.workunit
def error(i, e, k1, k2, k3, k4, h):
    e[i] = h * (-5.0 / 72.0 * k1[i] + k2[i] / 12.0 + k3[i] / 9.0 - k4[i] / 8.0)


@pk.workunit
def scaled(i, acc, e, x, new):
    t = e[i] / (1e-5 + 1e-4 * max(abs(x[i]), abs(new[i])))
    acc += t * t


@dataclass
class State:
    size: int
    now: list
    new: list
    current: pk.View
    h: float = 0.02
    accepted: int = 0


def setup(n):
    now, new = ([pk.View([n], pk.double) for _ in range(3)] for _ in range(2))
    for k, v in enumerate(now):
        v.data[:] = 2.0 * rnd(n, 20 + k) - 1.0
    current = pk.View([n], pk.double)
    current.data[:] = 1.0 + 2.5 * rnd(n, 23)
    return State(n, now, new, current)


def slopes(s, k, at):
    x, y, z = at
    pk.parallel_for(s.size, fast, k=k[0], x=x, y=y, z=z, current=s.current)
    pk.parallel_for(s.size, recovery, k=k[1], x=x, y=y)
    pk.parallel_for(s.size, slow, k=k[2], x=x, z=z)


def run(s):
    n = s.size
    k1, k2, k3, k4, mid, err = ([pk.View([n], pk.double) for _ in range(3)] for _ in range(6))
    for _ in range(TRIES):
        h = s.h
        slopes(s, k1, s.now)
        for c in range(3):
            pk.parallel_for(n, stage, out=mid[c], x=s.now[c], k=k1[c], a=0.5 * h)
        slopes(s, k2, mid)
        for c in range(3):
            pk.parallel_for(n, stage, out=mid[c], x=s.now[c], k=k2[c], a=0.75 * h)
        slopes(s, k3, mid)
        for c in range(3):
            pk.parallel_for(n, combine, out=s.new[c], x=s.now[c], k1=k1[c], k2=k2[c], k3=k3[c], h=h)
        slopes(s, k4, s.new)
        norms = []
        for c in range(3):
            pk.parallel_for(n, error, e=err[c], k1=k1[c], k2=k2[c], k3=k3[c], k4=k4[c], h=h)
            norms.append(pk.parallel_reduce(n, scaled, e=err[c], x=s.now[c], new=s.new[c]))
        norm = (sum(float(v) for v in norms) / (3 * n)) ** 0.5
        if norm <= 1.0:
            s.now, s.new = s.new, s.now
            s.accepted += 1
        s.h = h * min(2.0, max(0.3, 0.9 / (norm + 1e-12) ** (1.0 / 3.0)))


def outputs(s):
    return {
        **{n: np.array(v.data) for n, v in zip("xyz", s.now)},
        "h": s.h,
        "accepted": float(s.accepted),
    }


def check(s, size, runs):
    assert s.accepted > 0 and np.isfinite(s.h)


if __name__ == "__main__":
    main(globals())
