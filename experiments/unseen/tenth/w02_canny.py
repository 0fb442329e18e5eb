"""Canny's edge detector on an 8-bit image: all in integers.

The image is smoothed, its gradient found by Sobel's masks, thinned to ridges along the gradient's
direction and classed by two thresholds; weak edges are kept where they are connected to strong ones,
which is found by growing these until nothing changes.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 600, "large": 3_500}
LOW, HIGH, ROUNDS = 40, 110, 12


@pk.workunit
def blur_rows(i: int, j: int, out: pk.View2D[pk.int32], image: pk.View2D[pk.uint8]) -> None:
    out[i][j] = (
        image[i][j - 2]
        + 4 * image[i][j - 1]
        + 6 * image[i][j]
        + 4 * image[i][j + 1]
        + image[i][j + 2]
    )


@pk.workunit
def blur_columns(i: int, j: int, out: pk.View2D[pk.int32], rows: pk.View2D[pk.int32]) -> None:
    out[i][j] = (
        rows[i - 2][j] + 4 * rows[i - 1][j] + 6 * rows[i][j] + 4 * rows[i + 1][j] + rows[i + 2][j]
    ) >> 8


@pk.workunit
def sobel_x(i: int, j: int, gx: pk.View2D[pk.int32], s: pk.View2D[pk.int32]) -> None:
    gx[i][j] = (
        s[i - 1][j + 1]
        + 2 * s[i][j + 1]
        + s[i + 1][j + 1]
        - s[i - 1][j - 1]
        - 2 * s[i][j - 1]
        - s[i + 1][j - 1]
    )


@pk.workunit
def sobel_y(i: int, j: int, gy: pk.View2D[pk.int32], s: pk.View2D[pk.int32]) -> None:
    gy[i][j] = (
        s[i + 1][j - 1]
        + 2 * s[i + 1][j]
        + s[i + 1][j + 1]
        - s[i - 1][j - 1]
        - 2 * s[i - 1][j]
        - s[i - 1][j + 1]
    )


@pk.workunit
def strength(
    i: int, j: int, g: pk.View2D[pk.int32], gx: pk.View2D[pk.int32], gy: pk.View2D[pk.int32]
) -> None:
    g[i][j] = abs(gx[i][j]) + abs(gy[i][j])


@pk.workunit
def direction(
    i: int, j: int, d: pk.View2D[pk.uint8], gx: pk.View2D[pk.int32], gy: pk.View2D[pk.int32]
) -> None:
    """0: along the row, 1: along the column, 2 and 3: the diagonals."""
    ax: int = abs(gx[i][j])
    ay: int = abs(gy[i][j])
    if 5 * ay < 2 * ax:
        d[i][j] = 0
    elif 5 * ax < 2 * ay:
        d[i][j] = 1
    elif gx[i][j] * gy[i][j] > 0:
        d[i][j] = 2
    else:
        d[i][j] = 3


@pk.workunit
def thin(
    i: int, j: int, ridge: pk.View2D[pk.int32], g: pk.View2D[pk.int32], d: pk.View2D[pk.uint8]
) -> None:
    """Keep what is greatest along the gradient."""
    one: int = 0
    other: int = 0
    if d[i][j] == 0:
        one = g[i][j - 1]
        other = g[i][j + 1]
    elif d[i][j] == 1:
        one = g[i - 1][j]
        other = g[i + 1][j]
    elif d[i][j] == 2:
        one = g[i - 1][j - 1]
        other = g[i + 1][j + 1]
    else:
        one = g[i - 1][j + 1]
        other = g[i + 1][j - 1]
    if g[i][j] >= one and g[i][j] > other:
        ridge[i][j] = g[i][j]
    else:
        ridge[i][j] = 0


@pk.workunit
def classify(
    i: int, j: int, edge: pk.View2D[pk.uint8], ridge: pk.View2D[pk.int32], low: int, high: int
) -> None:
    """2: a strong edge, 1: a weak one, 0: none."""
    if ridge[i][j] >= high:
        edge[i][j] = 2
    elif ridge[i][j] >= low:
        edge[i][j] = 1
    else:
        edge[i][j] = 0


@pk.workunit
def grow(i: int, j: int, after: pk.View2D[pk.uint8], edge: pk.View2D[pk.uint8]) -> None:
    """A weak edge beside a strong one becomes strong."""
    value: int = edge[i][j]
    if value == 1:
        if (
            edge[i - 1][j - 1] == 2
            or edge[i - 1][j] == 2
            or edge[i - 1][j + 1] == 2
            or edge[i][j - 1] == 2
            or edge[i][j + 1] == 2
            or edge[i + 1][j - 1] == 2
            or edge[i + 1][j] == 2
            or edge[i + 1][j + 1] == 2
        ):
            value = 2
    after[i][j] = value


@pk.workunit
def changes(
    i: int, j: int, acc: pk.Acc[pk.int64], after: pk.View2D[pk.uint8], before: pk.View2D[pk.uint8]
) -> None:
    if after[i][j] != before[i][j]:
        acc += 1


@pk.workunit
def paint(i: int, j: int, out: pk.View2D[pk.uint8], edge: pk.View2D[pk.uint8]) -> None:
    if edge[i][j] == 2:
        out[i][j] = 255
    else:
        out[i][j] = 0


@pk.workunit
def painted(i: int, j: int, acc: pk.Acc[pk.int64], out: pk.View2D[pk.uint8]) -> None:
    if out[i][j] == 255:
        acc += 1


@dataclass
class State:
    """The image, its edges, the number of these and of the rounds it took."""

    n: int
    image: pk.View
    out: pk.View
    pixels: int = 0
    rounds: int = 0


def setup(n: int) -> State:
    """Discs of random grey on a slope, under noise."""
    rng = np.random.default_rng(102)
    y, x = np.mgrid[0:n, 0:n].astype(np.float32) / n
    grey = 60 + 60 * x + 20 * np.sin(20 * y)
    for _ in range(12):
        cx, cy, r = rng.uniform(0, 1, 2).tolist() + [rng.uniform(0.05, 0.2)]
        grey[(x - cx) ** 2 + (y - cy) ** 2 < r * r] += rng.uniform(-50, 60)
    grey += rng.normal(0, 12, (n, n)).astype(np.float32)
    image, out = (pk.View([n, n], pk.uint8) for _ in range(2))
    image.data[:] = np.clip(grey, 0, 255).astype(np.uint8)
    return State(n, image, out)


def inside(n: int, rim: int) -> pk.MDRangePolicy:
    return pk.MDRangePolicy([rim, rim], [n - rim, n - rim])


def run(state: State) -> None:
    n = state.n
    rows, smooth, gx, gy, g, ridge = (pk.View([n, n], pk.int32) for _ in range(6))
    d, edge, after = (pk.View([n, n], pk.uint8) for _ in range(3))
    pk.parallel_for(pk.MDRangePolicy([0, 2], [n, n - 2]), blur_rows, out=rows, image=state.image)
    pk.parallel_for(inside(n, 2), blur_columns, out=smooth, rows=rows)
    pk.parallel_for(inside(n, 3), sobel_x, gx=gx, s=smooth)
    pk.parallel_for(inside(n, 3), sobel_y, gy=gy, s=smooth)
    pk.parallel_for(inside(n, 3), strength, g=g, gx=gx, gy=gy)
    pk.parallel_for(inside(n, 3), direction, d=d, gx=gx, gy=gy)
    pk.parallel_for(inside(n, 4), thin, ridge=ridge, g=g, d=d)
    pk.parallel_for(inside(n, 4), classify, edge=edge, ridge=ridge, low=LOW, high=HIGH)
    state.rounds = 0
    while state.rounds < ROUNDS:
        pk.parallel_for(inside(n, 4), grow, after=after, edge=edge)
        changed = pk.parallel_reduce(inside(n, 4), changes, after=after, before=edge)
        edge, after = after, edge
        state.rounds += 1
        if changed == 0:
            break
    pk.parallel_for(inside(n, 0), paint, out=state.out, edge=edge)
    state.pixels = pk.parallel_reduce(inside(n, 0), painted, out=state.out)


def outputs(state: State) -> dict:
    return {
        "out": np.array(state.out.data),
        "pixels": float(state.pixels),
        "rounds": float(state.rounds),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    image = np.array(setup(n).image.data).astype(int)

    def at(a, di, dj):
        return np.roll(a, (-di, -dj), (0, 1))

    def keep(a, rim):
        out = np.zeros_like(a)
        out[rim : n - rim, rim : n - rim] = a[rim : n - rim, rim : n - rim]
        return out

    weights = (1, 4, 6, 4, 1)
    rows = sum(w * at(image, 0, k - 2) for k, w in enumerate(weights))
    s = sum(w * at(rows, k - 2, 0) for k, w in enumerate(weights)) >> 8
    gx = sum(w * (at(s, k, 1) - at(s, k, -1)) for k, w in ((-1, 1), (0, 2), (1, 1)))
    gy = sum(w * (at(s, 1, k) - at(s, -1, k)) for k, w in ((-1, 1), (0, 2), (1, 1)))
    gx, gy = keep(gx, 3), keep(gy, 3)
    ax, ay = np.abs(gx), np.abs(gy)
    g = ax + ay
    d = np.where(5 * ay < 2 * ax, 0, np.where(5 * ax < 2 * ay, 1, np.where(gx * gy > 0, 2, 3)))
    steps = np.array([(0, 1), (1, 0), (1, 1), (1, -1)])
    ridge = np.zeros_like(g)
    for k, (di, dj) in enumerate(steps):
        one, other = at(g, -di, -dj), at(g, di, dj)
        if k == 3:
            one, other = at(g, -1, 1), at(g, 1, -1)
        ridge += np.where((d == k) & (g >= one) & (g > other), g, 0)
    ridge = keep(ridge, 4)
    edge = np.where(ridge >= HIGH, 2, np.where(ridge >= LOW, 1, 0))
    rounds = 0
    while rounds < ROUNDS:
        near = sum(at(edge == 2, di, dj).astype(int) for di in (-1, 0, 1) for dj in (-1, 0, 1))
        after = np.where((edge == 1) & (near > 0), 2, edge)
        rounds += 1
        same = (after == edge).all()
        edge = after
        if same:
            break
    out = outputs(state)
    np.testing.assert_array_equal(out["out"], np.where(edge == 2, 255, 0))
    assert out["rounds"] == rounds and out["pixels"] == np.count_nonzero(edge == 2) > 0


if __name__ == "__main__":
    main(globals())
