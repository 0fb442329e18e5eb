"""Groundwater along a river by implicit steps: tridiagonal systems solved by cyclic reduction.

Ranges shrink by half and strides double, level by level, and back; rain changes with each step.
"""

from dataclasses import dataclass, field
from math import sin

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1 << 9, "default": 1 << 14, "large": 1 << 20}


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = x[i]


@pk.workunit
def lower(i: int, a: pk.View1D[pk.double], k: pk.View1D[pk.double], dt: float):
    a[i] = -dt * 0.5 * (k[i] + k[i - 1])


@pk.workunit
def upper(i: int, c: pk.View1D[pk.double], k: pk.View1D[pk.double], dt: float):
    c[i] = -dt * 0.5 * (k[i] + k[i + 1])


@pk.workunit
def middle(
    i: int, b: pk.View1D[pk.double], a: pk.View1D[pk.double], c: pk.View1D[pk.double], leak: float
):
    b[i] = 1.0 + leak - a[i] - c[i]


@pk.workunit
def right_side(
    i: int,
    d: pk.View1D[pk.double],
    h: pk.View1D[pk.double],
    soil: pk.View1D[pk.double],
    rain: float,
):
    d[i] = h[i] + rain * soil[i]


@pk.workunit
def wall(
    e: int,
    a: pk.View1D[pk.double],
    b: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    d: pk.View1D[pk.double],
    n: int,
):
    """Rows 0 and n: the head is zero there."""
    a[e * n] = 0.0
    b[e * n] = 1.0
    c[e * n] = 0.0
    d[e * n] = 0.0


@pk.workunit
def factors(
    t: int,
    p: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    a: pk.View1D[pk.double],
    b: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    s: int,
):
    i: int = (t + 1) * 2 * s
    p[i] = -a[i] / b[i - s]
    q[i] = -c[i] / b[i + s]


@pk.workunit
def reduce_middle(
    t: int,
    b: pk.View1D[pk.double],
    a: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    s: int,
):
    i: int = (t + 1) * 2 * s
    b[i] += p[i] * c[i - s] + q[i] * a[i + s]


@pk.workunit
def reduce_right(
    t: int,
    d: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    s: int,
):
    i: int = (t + 1) * 2 * s
    d[i] += p[i] * d[i - s] + q[i] * d[i + s]


@pk.workunit
def reduce_sides(
    t: int,
    a: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    p: pk.View1D[pk.double],
    q: pk.View1D[pk.double],
    s: int,
):
    i: int = (t + 1) * 2 * s
    a[i] = p[i] * a[i - s]
    c[i] = q[i] * c[i + s]


@pk.workunit
def substitute(
    t: int,
    h: pk.View1D[pk.double],
    a: pk.View1D[pk.double],
    b: pk.View1D[pk.double],
    c: pk.View1D[pk.double],
    d: pk.View1D[pk.double],
    s: int,
):
    i: int = (2 * t + 1) * s
    h[i] = (d[i] - a[i] * h[i - s] - c[i] * h[i + s]) / b[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@dataclass
class State:
    n: int
    steps: int
    k: pk.View
    soil: pk.View
    first: pk.View
    h: pk.View
    gauges: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1411)
    k, soil, first, h = (pk.View([n + 1], pk.double) for _ in range(4))
    k.data[:] = np.exp(rng.normal(1.0, 0.7, n + 1))
    soil.data[:] = rng.uniform(0.2, 1.0, n + 1)
    first.data[1:-1] = rng.uniform(0.0, 1.0, n - 1)
    return State(n, 6, k, soil, first, h)


def run(s: State) -> None:
    n, h = s.n, s.h
    a, b, c, d, p, q = (pk.View([n + 1], pk.double) for _ in range(6))
    inner = pk.RangePolicy(1, n)
    pk.parallel_for(n + 1, copy, out=h, x=s.first)
    s.gauges = []
    for step in range(s.steps):
        dt = 0.5 + 0.25 * step
        pk.parallel_for(inner, lower, a=a, k=s.k, dt=dt)
        pk.parallel_for(inner, upper, c=c, k=s.k, dt=dt)
        pk.parallel_for(inner, middle, b=b, a=a, c=c, leak=0.02 * dt)
        pk.parallel_for(inner, right_side, d=d, h=h, soil=s.soil, rain=dt * (1 + sin(step)))
        pk.parallel_for(2, wall, a=a, b=b, c=c, d=d, n=n)
        stride = 1
        while 2 * stride < n:
            rows = n // (2 * stride) - 1
            pk.parallel_for(rows, factors, p=p, q=q, a=a, b=b, c=c, s=stride)
            pk.parallel_for(rows, reduce_middle, b=b, a=a, c=c, p=p, q=q, s=stride)
            pk.parallel_for(rows, reduce_right, d=d, p=p, q=q, s=stride)
            pk.parallel_for(rows, reduce_sides, a=a, c=c, p=p, q=q, s=stride)
            stride *= 2
        while stride > 0:
            pk.parallel_for(n // (2 * stride), substitute, h=h, a=a, b=b, c=c, d=d, s=stride)
            stride //= 2
        gauge = h[:: n // 64]
        s.gauges.append(float(pk.parallel_reduce(len(gauge.data), total, x=gauge)))
    s.gauges.append(float(pk.parallel_reduce(n + 1, total, x=h)))


def outputs(s: State) -> dict:
    return {"h": np.array(s.h.data), "gauges": np.array(s.gauges)}


def check(s: State, n: int) -> None:
    h, k = np.array(s.first.data), np.array(s.k.data)
    if n > 2_000:
        assert np.isfinite(np.array(s.h.data)).all()
        return
    for step in range(s.steps):
        dt = 0.5 + 0.25 * step
        side = -dt * 0.5 * (k[1:] + k[:-1])
        m = np.diag(1.0 + 0.02 * dt - np.append(0.0, side) - np.append(side, 0.0))
        m += np.diag(side, 1) + np.diag(side, -1)
        d = h + dt * (1 + sin(step)) * np.array(s.soil.data)
        h[1:-1] = np.linalg.solve(m[1:-1, 1:-1], d[1:-1])
        np.testing.assert_allclose(s.gauges[step], h[:: n // 64].sum(), rtol=1e-9)
    np.testing.assert_allclose(s.h.data, h, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
