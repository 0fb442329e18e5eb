"""Bright spots of a microscope's picture: opening by growing squares, top hat, Otsu's threshold.

Bytes throughout: minima and maxima along rows and columns with clamped borders, a histogram by
atomics, a threshold that the host finds, a mask and counts for each radius.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 48, "default": 320, "large": 3_600}
RADII = (1, 2, 4)


@pk.workunit
def erode_row(i: int, j: int, out: pk.View2D[pk.uint8], x: pk.View2D[pk.uint8], r: int, n: int):
    least: int = 255
    for k in range(-r, r + 1):
        least = min(least, x[i][min(max(j + k, 0), n - 1)])
    out[i][j] = least


@pk.workunit
def erode_column(i: int, j: int, out: pk.View2D[pk.uint8], x: pk.View2D[pk.uint8], r: int, n: int):
    least: int = 255
    for k in range(-r, r + 1):
        least = min(least, x[min(max(i + k, 0), n - 1)][j])
    out[i][j] = least


@pk.workunit
def dilate_row(i: int, j: int, out: pk.View2D[pk.uint8], x: pk.View2D[pk.uint8], r: int, n: int):
    most: int = 0
    for k in range(-r, r + 1):
        most = max(most, x[i][min(max(j + k, 0), n - 1)])
    out[i][j] = most


@pk.workunit
def dilate_column(i: int, j: int, out: pk.View2D[pk.uint8], x: pk.View2D[pk.uint8], r: int, n: int):
    most: int = 0
    for k in range(-r, r + 1):
        most = max(most, x[min(max(i + k, 0), n - 1)][j])
    out[i][j] = most


@pk.workunit
def top_hat(
    i: int, j: int, hat: pk.View2D[pk.uint8], x: pk.View2D[pk.uint8], opened: pk.View2D[pk.uint8]
):
    hat[i][j] = x[i][j] - opened[i][j]


@pk.workunit
def brighten(i: int, j: int, hat: pk.View2D[pk.uint8], gain: int):
    hat[i][j] = min(255, hat[i][j] * gain // 16)


@pk.workunit
def clear(b: int, histogram: pk.View1D[pk.int32]):
    histogram[b] = 0


@pk.workunit
def tally(i: int, j: int, histogram: pk.View1D[pk.int32], hat: pk.View2D[pk.uint8]):
    pk.atomic_add(histogram, [hat[i][j]], 1)


@pk.workunit
def mark(i: int, j: int, mask: pk.View2D[pk.uint8], hat: pk.View2D[pk.uint8], level: int):
    if hat[i][j] > level:
        mask[i][j] = 1
    else:
        mask[i][j] = 0


@pk.workunit
def area(i: int, j: int, acc: pk.Acc[pk.int64], mask: pk.View2D[pk.uint8]):
    acc += mask[i][j]


@pk.workunit
def light(i: int, j: int, acc: pk.Acc[pk.int64], mask: pk.View2D[pk.uint8], x: pk.View2D[pk.uint8]):
    acc += mask[i][j] * x[i][j]


@dataclass
class State:
    n: int
    picture: pk.View
    mask: pk.View
    table: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1403)
    picture, mask = pk.View([n, n], pk.uint8), pk.View([n, n], pk.uint8)
    slow = 60.0 + 40.0 * np.sin(np.arange(n) / 17.0)[:, None] * np.cos(np.arange(n) / 23.0)
    spots = 90.0 * (rng.random((n, n), np.float32) < 0.01)
    spots += np.roll(spots, 1, 0) + np.roll(spots, 1, 1)
    picture.data[:] = np.clip(slow + spots + rng.integers(0, 12, (n, n)), 0, 255)
    return State(n, picture, mask)


def otsu(histogram) -> int:
    h = np.asarray(histogram, np.float64)
    w, m = np.cumsum(h), np.cumsum(h * np.arange(256))
    rest = np.maximum(w[-1] - w, 1e-9)
    return int(np.argmax((m[-1] * w / w[-1] - m) ** 2 / (np.maximum(w, 1e-9) * rest)))


def run(s: State) -> None:
    n, x = s.n, s.picture
    plane = pk.MDRangePolicy([0, 0], [n, n])
    a, b, hat = (pk.View([n, n], pk.uint8) for _ in range(3))
    histogram = pk.View([256], pk.int32)
    s.table = []
    for r in RADII:
        pk.parallel_for(plane, erode_row, out=a, x=x, r=r, n=n)
        pk.parallel_for(plane, erode_column, out=b, x=a, r=r, n=n)
        pk.parallel_for(plane, dilate_row, out=a, x=b, r=r, n=n)
        pk.parallel_for(plane, dilate_column, out=b, x=a, r=r, n=n)
        pk.parallel_for(plane, top_hat, hat=hat, x=x, opened=b)
        pk.parallel_for(plane, brighten, hat=hat, gain=16 + 4 * r)
        pk.parallel_for(256, clear, histogram=histogram)
        pk.parallel_for(plane, tally, histogram=histogram, hat=hat)
        level = otsu(histogram.data)
        pk.parallel_for(plane, mark, mask=s.mask, hat=hat, level=level)
        found = int(pk.parallel_reduce(plane, area, mask=s.mask))
        s.table.append([level, found, int(pk.parallel_reduce(plane, light, mask=s.mask, x=x))])


def outputs(s: State) -> dict:
    return {"mask": np.array(s.mask.data), "table": np.array(s.table)}


def check(s: State, n: int) -> None:
    x = np.array(setup(n).picture.data).astype(int)
    for r, row in zip(RADII, s.table):
        y = x
        for pick in (np.min, np.max):
            for axis in (1, 0):
                index = np.clip(np.arange(n)[:, None] + np.arange(-r, r + 1), 0, n - 1)
                y = pick(np.take(y, index, axis), axis=axis + 1)
        hat = np.minimum(255, (x - y) * (16 + 4 * r) // 16)
        level = otsu(np.bincount(hat.ravel(), minlength=256))
        mask = hat > level
        assert row == [level, mask.sum(), x[mask].sum()]
    np.testing.assert_array_equal(s.mask.data, mask)


if __name__ == "__main__":
    main(globals())
