"""A closed curve that shortens: points are spread evenly by a prefix scan of lengths, then smoothed.

Each round: lengths of the sides, their scan, a binary search for every new point, curvature flow, the
area, and a scale by the host that keeps it.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 800, "default": 20_000, "large": 1_500_000}
FLOW = 0.4


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = x[i]


@pk.workunit
def side(i: int, d: pk.View1D[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double], n: int):
    k: int = i + 1
    if k == n:
        k = 0
    dx: float = x[k] - x[i]
    dy: float = y[k] - y[i]
    d[i] = pk.sqrt(dx * dx + dy * dy)


@pk.workunit
def before(
    i: int, acc: pk.Acc[pk.double], last: bool, s: pk.View1D[pk.double], d: pk.View1D[pk.double]
):
    if last:
        s[i] = acc
    acc += d[i]


@pk.workunit
def locate(i: int, k: pk.View1D[pk.int32], s: pk.View1D[pk.double], n: int, gap: float):
    """The last point that is not behind."""
    low: int = 0
    high: int = n
    while high - low > 1:
        middle: int = (low + high) // 2
        if s[middle] <= i * gap:
            low = middle
        else:
            high = middle
    k[i] = low


@pk.workunit
def weight(
    i: int,
    w: pk.View1D[pk.double],
    k: pk.View1D[pk.int32],
    s: pk.View1D[pk.double],
    d: pk.View1D[pk.double],
    gap: float,
):
    w[i] = (i * gap - s[k[i]]) / d[k[i]]


@pk.workunit
def between(
    i: int,
    out: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    k: pk.View1D[pk.int32],
    w: pk.View1D[pk.double],
    n: int,
):
    next: int = k[i] + 1 if k[i] < n - 1 else 0
    out[i] = (1.0 - w[i]) * x[k[i]] + w[i] * x[next]


@pk.workunit
def smooth(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double], n: int, rate: float):
    left: int = i - 1 if i > 0 else n - 1
    right: int = i + 1 if i < n - 1 else 0
    out[i] = x[i] + rate * (x[left] - 2.0 * x[i] + x[right])


@pk.workunit
def shoelace(
    i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], y: pk.View1D[pk.double], n: int
):
    k: int = i + 1 if i < n - 1 else 0
    acc += 0.5 * (x[i] * y[k] - x[k] * y[i])


@pk.workunit
def scale(i: int, x: pk.View1D[pk.double], factor: float):
    x[i] *= factor


@dataclass
class State:
    n: int
    rounds: int
    x0: pk.View
    y0: pk.View
    x: pk.View
    y: pk.View
    lengths: list = field(default_factory=list)
    areas: list = field(default_factory=list)


def setup(n: int) -> State:
    x0, y0, x, y = (pk.View([n], pk.double) for _ in range(4))
    t = 2.0 * np.pi * np.arange(n) / n
    t = t + 0.1 * np.sin(3.0 * t)
    r = 1.0 + 0.3 * np.cos(5.0 * t) + 0.05 * np.sin(31.0 * t)
    x0.data[:], y0.data[:] = r * np.cos(t), r * np.sin(t)
    return State(n, 12 if n < 1_000_000 else 4, x0, y0, x, y)


def run(s: State) -> None:
    n, x, y = s.n, s.x, s.y
    d, at, w, u, v = (pk.View([n], pk.double) for _ in range(5))
    k = pk.View([n], pk.int32)
    pk.parallel_for(n, copy, out=x, x=s.x0)
    pk.parallel_for(n, copy, out=y, x=s.y0)
    first = float(pk.parallel_reduce(n, shoelace, x=x, y=y, n=n))
    s.lengths, s.areas = [], []
    for _ in range(s.rounds):
        pk.parallel_for(n, side, d=d, x=x, y=y, n=n)
        length = float(pk.parallel_scan(n, before, s=at, d=d))
        gap = length / n
        pk.parallel_for(n, locate, k=k, s=at, n=n, gap=gap)
        pk.parallel_for(n, weight, w=w, k=k, s=at, d=d, gap=gap)
        pk.parallel_for(n, between, out=u, x=x, k=k, w=w, n=n)
        pk.parallel_for(n, between, out=v, x=y, k=k, w=w, n=n)
        pk.parallel_for(n, smooth, out=x, x=u, n=n, rate=FLOW)
        pk.parallel_for(n, smooth, out=y, x=v, n=n, rate=FLOW)
        area = float(pk.parallel_reduce(n, shoelace, x=x, y=y, n=n))
        pk.parallel_for(n, scale, x=x, factor=sqrt(first / area))
        pk.parallel_for(n, scale, x=y, factor=sqrt(first / area))
        s.lengths.append(length)
        s.areas.append(area)


def outputs(s: State) -> dict:
    return {
        "x": np.array(s.x.data),
        "y": np.array(s.y.data),
        "lengths": np.array(s.lengths),
        "areas": np.array(s.areas),
    }


def check(s: State, n: int) -> None:
    fresh = setup(n)
    z = np.array(fresh.x0.data) + 1j * np.array(fresh.y0.data)
    first = 0.5 * (z.conj() * np.roll(z, -1)).imag.sum()
    for length, area in zip(s.lengths, s.areas):
        d = np.abs(np.roll(z, -1) - z)
        at = np.append(0.0, np.cumsum(d))
        np.testing.assert_allclose(length, at[-1], rtol=1e-9)
        z = np.interp(np.arange(n) * at[-1] / n, at, np.append(z, z[0]))
        z = z + FLOW * (np.roll(z, 1) - 2 * z + np.roll(z, -1))
        own = 0.5 * (z.conj() * np.roll(z, -1)).imag.sum()
        np.testing.assert_allclose(area, own, rtol=1e-9)
        z *= np.sqrt(first / own)
    np.testing.assert_allclose(np.array(s.x.data) + 1j * np.array(s.y.data), z, atol=1e-9)


if __name__ == "__main__":
    main(globals())
