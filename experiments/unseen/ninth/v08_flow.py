"""Optical flow of Lucas and Kanade between two grey pictures, refined by warping; float32."""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 32, "default": 180, "large": 1_000}
ROUNDS, RADIUS, RIDGE = 2, 2, 0.5


@pk.workunit
def to_float(i: int, j: int, f: pk.View2D[pk.float], image: pk.View2D[pk.uint8]):
    f[i][j] = image[i][j] / 16.0


@pk.workunit
def zero(i: int, j: int, f: pk.View2D[pk.float]):
    f[i][j] = 0.0


@pk.workunit
def smooth_rows(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    a: int = max(j - 1, 0)
    b: int = min(j + 1, n - 1)
    out[i][j] = 0.25 * f[i][a] + 0.5 * f[i][j] + 0.25 * f[i][b]


@pk.workunit
def smooth_columns(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    a: int = max(i - 1, 0)
    b: int = min(i + 1, n - 1)
    out[i][j] = 0.25 * f[a][j] + 0.5 * f[i][j] + 0.25 * f[b][j]


@pk.workunit
def slope_x(i: int, j: int, d: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    d[i][j] = 0.5 * (f[i][min(j + 1, n - 1)] - f[i][max(j - 1, 0)])


@pk.workunit
def slope_y(i: int, j: int, d: pk.View2D[pk.float], f: pk.View2D[pk.float], n: int):
    d[i][j] = 0.5 * (f[min(i + 1, n - 1)][j] - f[max(i - 1, 0)][j])


@pk.workunit
def subtract(
    i: int, j: int, d: pk.View2D[pk.float], a: pk.View2D[pk.float], b: pk.View2D[pk.float]
):
    d[i][j] = a[i][j] - b[i][j]


@pk.workunit
def multiply(
    i: int, j: int, p: pk.View2D[pk.float], a: pk.View2D[pk.float], b: pk.View2D[pk.float]
):
    p[i][j] = a[i][j] * b[i][j]


@pk.workunit
def box_rows(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], r: int, n: int):
    total: float = 0.0
    for k in range(max(0, j - r), min(n, j + r + 1)):
        total += f[i][k]
    out[i][j] = total


@pk.workunit
def box_columns(i: int, j: int, out: pk.View2D[pk.float], f: pk.View2D[pk.float], r: int, n: int):
    total: float = 0.0
    for k in range(max(0, i - r), min(n, i + r + 1)):
        total += f[k][j]
    out[i][j] = total


@pk.workunit
def determinant(
    i: int,
    j: int,
    det: pk.View2D[pk.float],
    xx: pk.View2D[pk.float],
    xy: pk.View2D[pk.float],
    yy: pk.View2D[pk.float],
    ridge: float,
):
    det[i][j] = (xx[i][j] + ridge) * (yy[i][j] + ridge) - xy[i][j] * xy[i][j]


@pk.workunit
def solve(
    i: int,
    j: int,
    flow: pk.View2D[pk.float],
    det: pk.View2D[pk.float],
    own: pk.View2D[pk.float],
    xy: pk.View2D[pk.float],
    mine: pk.View2D[pk.float],
    other: pk.View2D[pk.float],
    ridge: float,
):
    """One component; own is the other component's diagonal entry."""
    flow[i][j] -= ((own[i][j] + ridge) * mine[i][j] - xy[i][j] * other[i][j]) / det[i][j]


@pk.workunit
def clamp(i: int, j: int, f: pk.View2D[pk.float], most: float):
    f[i][j] = min(max(f[i][j], -most), most)


@pk.workunit
def warp(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    f: pk.View2D[pk.float],
    u: pk.View2D[pk.float],
    v: pk.View2D[pk.float],
    n: int,
):
    y: float = min(max(i + v[i][j], 0.0), n - 1.001)
    x: float = min(max(j + u[i][j], 0.0), n - 1.001)
    a: int = y
    b: int = x
    fy: float = y - a
    fx: float = x - b
    top: float = (1.0 - fx) * f[a][b] + fx * f[a][b + 1]
    bottom: float = (1.0 - fx) * f[a + 1][b] + fx * f[a + 1][b + 1]
    out[i][j] = (1.0 - fy) * top + fy * bottom


@pk.workunit
def square_sum(i: int, j: int, acc: pk.Acc[pk.double], d: pk.View2D[pk.float]):
    acc += d[i][j] * d[i][j]


@dataclass
class State:
    size: int
    first: pk.View
    second: pk.View
    u: pk.View
    v: pk.View
    errors: list = field(default_factory=list)


def problem(n):
    y, x = np.mgrid[:n, :n].astype(float)

    def picture(x, y):
        return (
            128
            + 40 * np.sin(0.31 * x + 0.1 * y)
            + 35 * np.cos(0.23 * y - 0.12 * x)
            + 30 * np.sin(0.05 * x * np.cos(0.02 * y))
        )

    rng = np.random.default_rng(8)
    shift = 0.8 * np.sin(2 * np.pi * y / n), 0.6 * np.cos(2 * np.pi * x / n)
    a = picture(x, y)
    b = picture(x - shift[0], y - shift[1]) + rng.normal(0, 1, (n, n))
    return np.clip(a, 0, 255).astype(np.uint8), np.clip(b, 0, 255).astype(np.uint8)


def setup(n):
    return State(n, *map(view, problem(n)), pk.View([n, n], pk.float), pk.View([n, n], pk.float))


def temporaries(n, count):
    return [pk.View([n, n], pk.float) for _ in range(count)]


def prepare(s, image):
    n, full = s.size, pk.MDRangePolicy([0, 0], [s.size, s.size])
    raw, half, out = temporaries(n, 3)
    pk.parallel_for(full, to_float, f=raw, image=image)
    pk.parallel_for(full, smooth_rows, out=half, f=raw, n=n)
    pk.parallel_for(full, smooth_columns, out=out, f=half, n=n)
    return out


def windowed(s, a, b):
    n, full = s.size, pk.MDRangePolicy([0, 0], [s.size, s.size])
    product, half, out = temporaries(n, 3)
    pk.parallel_for(full, multiply, p=product, a=a, b=b)
    pk.parallel_for(full, box_rows, out=half, f=product, r=RADIUS, n=n)
    pk.parallel_for(full, box_columns, out=out, f=half, r=RADIUS, n=n)
    return out


def run(s):
    n, full = s.size, pk.MDRangePolicy([0, 0], [s.size, s.size])
    a, b = prepare(s, s.first), prepare(s, s.second)
    dx, dy = temporaries(n, 2)
    pk.parallel_for(full, zero, f=s.u)
    pk.parallel_for(full, zero, f=s.v)
    pk.parallel_for(full, slope_x, d=dx, f=a, n=n)
    pk.parallel_for(full, slope_y, d=dy, f=a, n=n)
    xx, xy, yy = windowed(s, dx, dx), windowed(s, dx, dy), windowed(s, dy, dy)
    errors = []
    for _ in range(ROUNDS):
        moved, dt, det = temporaries(n, 3)
        pk.parallel_for(full, warp, out=moved, f=b, u=s.u, v=s.v, n=n)
        pk.parallel_for(full, subtract, d=dt, a=moved, b=a)
        errors.append(pk.parallel_reduce(full, square_sum, d=dt))
        xt, yt = windowed(s, dx, dt), windowed(s, dy, dt)
        pk.parallel_for(full, determinant, det=det, xx=xx, xy=xy, yy=yy, ridge=RIDGE)
        pk.parallel_for(
            full, solve, flow=s.u, det=det, own=yy, xy=xy, mine=xt, other=yt, ridge=RIDGE
        )
        pk.parallel_for(
            full, solve, flow=s.v, det=det, own=xx, xy=xy, mine=yt, other=xt, ridge=RIDGE
        )
        pk.parallel_for(full, clamp, f=s.u, most=4.0)
        pk.parallel_for(full, clamp, f=s.v, most=4.0)
    s.errors = [float(e) for e in errors]


def outputs(s):
    return {"u": np.array(s.u.data), "v": np.array(s.v.data), "errors": np.array(s.errors)}


def check(s):
    n = s.size

    def window(p):
        for axis in (0, 1):
            pad = [(0, 0), (0, 0)]
            pad[axis] = (RADIUS, RADIUS)
            q = np.pad(p, pad)
            p = sum(np.take(q, np.arange(n) + k, axis) for k in range(2 * RADIUS + 1))
        return p

    def prepare(f):
        f = f / 16.0
        for axis in (1, 0):
            pad = [(0, 0), (0, 0)]
            pad[axis] = (1, 1)
            q = np.pad(f, pad, mode="edge")
            f = sum(w * np.take(q, np.arange(n) + k, axis) for k, w in enumerate((0.25, 0.5, 0.25)))
        return f

    a, b = map(prepare, problem(n))
    edge = np.pad(a, 1, mode="edge")
    dx, dy = (edge[1:-1, 2:] - edge[1:-1, :-2]) / 2, (edge[2:, 1:-1] - edge[:-2, 1:-1]) / 2
    xx, xy, yy = window(dx * dx), window(dx * dy), window(dy * dy)
    u, v = np.zeros((n, n)), np.zeros((n, n))
    i, j = np.mgrid[:n, :n]
    for k in range(ROUNDS):
        y, x = np.clip(i + v, 0, n - 1.001), np.clip(j + u, 0, n - 1.001)
        p, q = y.astype(int), x.astype(int)
        fy, fx = y - p, x - q
        moved = (1 - fy) * ((1 - fx) * b[p, q] + fx * b[p, q + 1])
        moved += fy * ((1 - fx) * b[p + 1, q] + fx * b[p + 1, q + 1])
        dt = moved - a
        np.testing.assert_allclose(s.errors[k], (dt**2).sum(), rtol=1e-3)
        xt, yt = window(dx * dt), window(dy * dt)
        det = (xx + RIDGE) * (yy + RIDGE) - xy * xy
        u = np.clip(u - ((yy + RIDGE) * xt - xy * yt) / det, -4, 4)
        v = np.clip(v - ((xx + RIDGE) * yt - xy * xt) / det, -4, 4)
    np.testing.assert_allclose(s.u.data, u, rtol=0, atol=5e-3)
    np.testing.assert_allclose(s.v.data, v, rtol=0, atol=5e-3)
    assert s.errors[1] < 0.7 * s.errors[0]


if __name__ == "__main__":
    main(globals())
