"""A light curve fitted with waves: Householder QR of a tall table, then outliers are dropped and again.

Rows and columns shrink with each reflection; each norm and dot is read on the host.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1000, "default": 60_000, "large": 500_000}
COLUMNS, ROUNDS = 9, 2


@pk.workunit
def take(
    i: int,
    t: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    t0: pk.View1D[pk.double],
    y0: pk.View1D[pk.double],
):
    t[i] = t0[i]
    y[i] = y0[i]


@pk.workunit
def constant(i: int, a: pk.View2D[pk.double]):
    a[0][i] = 1.0


@pk.workunit
def waves(i: int, a: pk.View2D[pk.double], t: pk.View1D[pk.double], k: int, omega: float):
    a[k][i] = pk.cos(omega * t[i])
    a[k + 1][i] = pk.sin(omega * t[i])


@pk.workunit
def copy(i: int, to: pk.View1D[pk.double], source: pk.View1D[pk.double]):
    to[i] = source[i]


@pk.workunit
def square(i: int, acc: pk.Acc[pk.double], a: pk.View2D[pk.double], k: int):
    acc += a[k][i] * a[k][i]


@pk.workunit
def mirror(i: int, v: pk.View1D[pk.double], a: pk.View2D[pk.double], k: int, alpha: float):
    v[i] = a[k][i]
    if i == k:
        v[i] -= alpha


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], v: pk.View1D[pk.double], a: pk.View2D[pk.double], c: int):
    acc += v[i] * a[c][i]


@pk.workunit
def reflect(i: int, v: pk.View1D[pk.double], a: pk.View2D[pk.double], c: int, f: float):
    a[c][i] -= f * v[i]


@pk.workunit
def settle(i: int, a: pk.View2D[pk.double], k: int, alpha: float):
    if i == k:
        a[k][i] = alpha
    else:
        a[k][i] = 0.0


@pk.workunit
def dot_rhs(i: int, acc: pk.Acc[pk.double], v: pk.View1D[pk.double], b: pk.View1D[pk.double]):
    acc += v[i] * b[i]


@pk.workunit
def reflect_rhs(i: int, v: pk.View1D[pk.double], b: pk.View1D[pk.double], f: float):
    b[i] -= f * v[i]


@pk.workunit
def divide(i: int, x: pk.View1D[pk.double], b: pk.View1D[pk.double], a: pk.View2D[pk.double]):
    x[i] = b[i] / a[i][i]


@pk.workunit
def eliminate(
    i: int, x: pk.View1D[pk.double], b: pk.View1D[pk.double], a: pk.View2D[pk.double], k: int
):
    b[i] -= a[k][i] * x[k]


@pk.workunit
def misfit_start(i: int, r: pk.View1D[pk.double], y: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    r[i] = y[i] - x[0]


@pk.workunit
def misfit_wave(
    i: int,
    r: pk.View1D[pk.double],
    t: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    k: int,
    omega: float,
):
    r[i] -= x[k] * pk.cos(omega * t[i]) + x[k + 1] * pk.sin(omega * t[i])


@pk.workunit
def power(i: int, acc: pk.Acc[pk.double], r: pk.View1D[pk.double]):
    acc += r[i] * r[i]


@pk.workunit
def good(
    i: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    r: pk.View1D[pk.double],
    slot: pk.View1D[pk.int32],
    most: float,
):
    if abs(r[i]) <= most:
        if last:
            slot[i] = acc
        acc += 1
    elif last:
        slot[i] = -1


@pk.workunit
def pack(
    i: int,
    slot: pk.View1D[pk.int32],
    t: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    t2: pk.View1D[pk.double],
    y2: pk.View1D[pk.double],
):
    if slot[i] >= 0:
        t2[slot[i]] = t[i]
        y2[slot[i]] = y[i]


@dataclass
class State:
    n: int
    t0: pk.View
    y0: pk.View
    x: pk.View
    r: pk.View
    kept: int = 0
    sigma: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(30)
    t = np.sort(rng.uniform(0.0, 40.0, n))
    y = 3.0 + 0.2 * rng.normal(size=n)
    for k in range(1, COLUMNS // 2 + 1):
        y += (np.sin(0.7 * k * t + k) + 0.3 * np.cos(0.71 * k * t)) / k
    bad = rng.random(n) < 0.05
    y[bad] += rng.choice([-1.0, 1.0], bad.sum()) * rng.uniform(2.0, 6.0, bad.sum())
    t0, y0, r = (pk.View([n], pk.double) for _ in range(3))
    t0[...] = t
    y0[...] = y
    return State(n, t0, y0, pk.View([COLUMNS], pk.double), r)


def run(s: State) -> None:
    n, m, x, r = s.n, s.n, s.x, s.r
    a = pk.View([COLUMNS, n], pk.double)
    t, y, t2, y2, b, v = (pk.View([n], pk.double) for _ in range(6))
    slot = pk.View([n], pk.int32)
    omegas = [0.7 * (k + 1) for k in range(COLUMNS // 2)]
    pk.parallel_for(n, take, t=t, y=y, t0=s.t0, y0=s.y0)
    for _ in range(ROUNDS):
        rows = pk.RangePolicy(0, m)
        pk.parallel_for(rows, constant, a=a)
        for k, omega in enumerate(omegas):
            pk.parallel_for(rows, waves, a=a, t=t, k=2 * k + 1, omega=omega)
        pk.parallel_for(rows, copy, to=b, source=y)
        for k in range(COLUMNS):
            below = pk.RangePolicy(k, m)
            norm2 = float(pk.parallel_reduce(below, square, a=a, k=k))
            head = float(a[k, k])
            alpha = -(norm2**0.5) if head > 0 else norm2**0.5
            scale = 1.0 / (norm2 - alpha * head)
            pk.parallel_for(below, mirror, v=v, a=a, k=k, alpha=alpha)
            pk.parallel_for(below, settle, a=a, k=k, alpha=alpha)
            for c in range(k + 1, COLUMNS):
                f = pk.parallel_reduce(below, dot, v=v, a=a, c=c) * scale
                pk.parallel_for(below, reflect, v=v, a=a, c=c, f=f)
            f = pk.parallel_reduce(below, dot_rhs, v=v, b=b) * scale
            pk.parallel_for(below, reflect_rhs, v=v, b=b, f=f)
        for k in range(COLUMNS - 1, -1, -1):
            pk.parallel_for(pk.RangePolicy(k, k + 1), divide, x=x, b=b, a=a)
            if k > 0:
                pk.parallel_for(pk.RangePolicy(0, k), eliminate, x=x, b=b, a=a, k=k)
        pk.parallel_for(rows, misfit_start, r=r, y=y, x=x)
        for k, omega in enumerate(omegas):
            pk.parallel_for(rows, misfit_wave, r=r, t=t, x=x, k=2 * k + 1, omega=omega)
        s.sigma = (float(pk.parallel_reduce(rows, power, r=r)) / m) ** 0.5
        s.kept = m
        m = int(pk.parallel_scan(rows, good, r=r, slot=slot, most=2.5 * s.sigma))
        pk.parallel_for(rows, pack, slot=slot, t=t, y=y, t2=t2, y2=y2)
        t, t2, y, y2 = t2, t, y2, y


def outputs(s: State) -> dict:
    numbers = np.array([float(s.kept), s.sigma])
    return {"x": s.x, "r": np.array(s.r.data[: s.kept]), "numbers": numbers}


def check(s: State, n: int) -> None:
    t, y = np.array(s.t0.data), np.array(s.y0.data)
    for _ in range(ROUNDS):
        table = [np.ones(t.size)]
        for k in range(1, COLUMNS // 2 + 1):
            table += [np.cos(0.7 * k * t), np.sin(0.7 * k * t)]
        x = np.linalg.lstsq(np.stack(table, 1), y, rcond=None)[0]
        r = y - np.stack(table, 1) @ x
        sigma, kept = np.sqrt((r**2).mean()), t.size
        keep = np.abs(r) <= 2.5 * sigma
        t, y = t[keep], y[keep]
    assert s.kept == kept, (s.kept, kept)
    np.testing.assert_allclose(s.x.data, x, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(s.r.data[:kept], r, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(s.sigma, sigma, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
