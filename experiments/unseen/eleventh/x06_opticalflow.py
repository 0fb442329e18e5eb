"""Optical flow between two frames by Horn and Schunck, in single precision.

Both frames are smoothed by rows and columns and differentiated; then the flow is the mean of its
neighbours, corrected by how far the brightness does not follow, again and again until it rests.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 48, "default": 400, "large": 1_200}
ALPHA2, MOST, TOLERANCE = 0.004, 30, 1e-3


@pk.workunit
def smooth_rows(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    out[i][j] = 0.25 * (x[i][left] + 2.0 * x[i][j] + x[i][right])


@pk.workunit
def smooth_columns(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    out[i][j] = 0.25 * (x[up][j] + 2.0 * x[i][j] + x[down][j])


@pk.workunit
def derivative_x(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    a: pk.View2D[pk.float],
    b: pk.View2D[pk.float],
    n: int,
):
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    out[i][j] = 0.25 * (a[i][right] - a[i][left] + b[i][right] - b[i][left])


@pk.workunit
def derivative_y(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    a: pk.View2D[pk.float],
    b: pk.View2D[pk.float],
    n: int,
):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    out[i][j] = 0.25 * (a[down][j] - a[up][j] + b[down][j] - b[up][j])


@pk.workunit
def derivative_t(
    i: int, j: int, out: pk.View2D[pk.float], a: pk.View2D[pk.float], b: pk.View2D[pk.float]
):
    out[i][j] = b[i][j] - a[i][j]


@pk.workunit
def scale(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    gx: pk.View2D[pk.float],
    gy: pk.View2D[pk.float],
    alpha2: float,
):
    out[i][j] = 1.0 / (alpha2 + gx[i][j] * gx[i][j] + gy[i][j] * gy[i][j])


@pk.workunit
def clear(i: int, j: int, x: pk.View2D[pk.float]):
    x[i][j] = 0.0


@pk.workunit
def around(i: int, j: int, out: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    out[i][j] = 0.25 * (x[up][j] + x[down][j] + x[i][left] + x[i][right])


@pk.workunit
def misfit(
    i: int,
    j: int,
    r: pk.View2D[pk.float],
    gx: pk.View2D[pk.float],
    gy: pk.View2D[pk.float],
    gt: pk.View2D[pk.float],
    um: pk.View2D[pk.float],
    vm: pk.View2D[pk.float],
    s: pk.View2D[pk.float],
):
    r[i][j] = (gx[i][j] * um[i][j] + gy[i][j] * vm[i][j] + gt[i][j]) * s[i][j]


@pk.workunit
def correct(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    mean: pk.View2D[pk.float],
    g: pk.View2D[pk.float],
    r: pk.View2D[pk.float],
):
    out[i][j] = mean[i][j] - g[i][j] * r[i][j]


@pk.workunit
def change(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.float], y: pk.View2D[pk.float]):
    acc += (x[i][j] - y[i][j]) * (x[i][j] - y[i][j])


@dataclass
class State:
    """The frames, the flow in both directions, and how it changed in each round."""

    n: int
    one: pk.View
    two: pk.View
    u: pk.View
    v: pk.View
    changes: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(116)
    one, two, u, v = (pk.View([n, n], pk.float) for _ in range(4))
    y, x = np.mgrid[0:n, 0:n].astype(np.float64)

    def scene(y, x):
        return 0.5 + 0.25 * np.sin(0.3 * x + 0.1 * y) + 0.25 * np.cos(0.25 * y - 0.07 * x)

    turn = 0.8 * np.sin(y / n * 3.0), 0.6 * np.cos(x / n * 2.0)
    one.data[:] = scene(y, x) + rng.normal(0.0, 0.01, (n, n))
    two.data[:] = scene(y - turn[1], x - turn[0]) + rng.normal(0.0, 0.01, (n, n))
    return State(n, one, two, u, v)


def run(state: State) -> None:
    n = state.n
    everywhere = pk.MDRangePolicy([0, 0], [n, n])
    rows, a, b, gx, gy, gt, s = (pk.View([n, n], pk.float) for _ in range(7))
    u, v, u2, v2, um, vm, r = (pk.View([n, n], pk.float) for _ in range(7))
    for out, frame in ((a, state.one), (b, state.two)):
        pk.parallel_for(everywhere, smooth_rows, out=rows, x=frame, n=n)
        pk.parallel_for(everywhere, smooth_columns, out=out, x=rows, n=n)
    pk.parallel_for(everywhere, derivative_x, out=gx, a=a, b=b, n=n)
    pk.parallel_for(everywhere, derivative_y, out=gy, a=a, b=b, n=n)
    pk.parallel_for(everywhere, derivative_t, out=gt, a=a, b=b)
    pk.parallel_for(everywhere, scale, out=s, gx=gx, gy=gy, alpha2=ALPHA2)
    pk.parallel_for(everywhere, clear, x=u)
    pk.parallel_for(everywhere, clear, x=v)
    state.changes = []
    for _ in range(MOST):
        pk.parallel_for(everywhere, around, out=um, x=u, n=n)
        pk.parallel_for(everywhere, around, out=vm, x=v, n=n)
        pk.parallel_for(everywhere, misfit, r=r, gx=gx, gy=gy, gt=gt, um=um, vm=vm, s=s)
        pk.parallel_for(everywhere, correct, out=u2, mean=um, g=gx, r=r)
        pk.parallel_for(everywhere, correct, out=v2, mean=vm, g=gy, r=r)
        du = float(pk.parallel_reduce(everywhere, change, x=u2, y=u))
        dv = float(pk.parallel_reduce(everywhere, change, x=v2, y=v))
        u, u2 = u2, u
        v, v2 = v2, v
        state.changes.append((du + dv) / (n * n))
        if state.changes[-1] < TOLERANCE * state.changes[0]:
            break
    state.u, state.v = u, v


def outputs(state: State) -> dict:
    return {
        "u": np.array(state.u.data),
        "v": np.array(state.v.data),
        "changes": np.array(state.changes),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)

    def smooth(x):
        p = np.pad(x, ((0, 0), (1, 1)), "edge")
        x = 0.25 * (p[:, :-2] + 2.0 * x + p[:, 2:])
        p = np.pad(x, ((1, 1), (0, 0)), "edge")
        return 0.25 * (p[:-2] + 2.0 * x + p[2:])

    a, b = (smooth(np.array(x.data, dtype=np.float64)) for x in (fresh.one, fresh.two))
    p = np.pad(a + b, 1, "edge")
    gx, gy = 0.25 * (p[1:-1, 2:] - p[1:-1, :-2]), 0.25 * (p[2:, 1:-1] - p[:-2, 1:-1])
    u, v, changes = np.zeros((n, n)), np.zeros((n, n)), []
    for _ in range(MOST):
        means = []
        for x in (u, v):
            p = np.pad(x, 1, "edge")
            means.append(0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]))
        r = (gx * means[0] + gy * means[1] + b - a) / (ALPHA2 + gx * gx + gy * gy)
        next = means[0] - gx * r, means[1] - gy * r
        changes.append(np.mean((next[0] - u) ** 2 + (next[1] - v) ** 2))
        u, v = next
        if changes[-1] < TOLERANCE * changes[0]:
            break
    out = outputs(state)
    np.testing.assert_allclose(out["u"], u, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out["v"], v, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out["changes"], changes, rtol=1e-3)


if __name__ == "__main__":
    main(globals())
