"""Semi-global stereo matching: census bits, Hamming costs, path costs in four directions, check."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 40, "default": 400, "large": 960}  # width; the height is 3/4 of it
DISPARITIES, P1 = 24, 3


@pk.function
def bits(v: int) -> int:
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return (v * 0x01010101) >> 24


@pk.workunit
def census(y, x, out, image, h, w):
    """A bit for each of 5 x 5 neighbours that is darker; clamped at the borders."""
    v = 0
    for a in range(-2, 3):
        for b in range(-2, 3):
            v = 2 * v
            if image[max(0, min(h - 1, y + a))][max(0, min(w - 1, x + b))] < image[y][x]:
                v += 1
    out[y][x] = v


@pk.workunit
def hamming(y, x, cost, left, right, count):
    for d in range(count):
        cost[y][x][d] = bits(left[y][x] ^ right[y][max(x - d, 0)])


@pk.workunit
def clear(y, x, total, count):
    for d in range(count):
        total[y][x][d] = 0


@pk.workunit
def along_row(y, path, cost, w, count, p1, p2, backward):
    """Path costs from one end of a row to the other."""
    step = -1 if backward == 1 else 1
    x = w - 1 if backward == 1 else 0
    for d in range(count):
        path[y][x][d] = cost[y][x][d]
    for k in range(1, w):
        x += step
        least = path[y][x - step][0] + 0
        for d in range(1, count):
            least = min(least, path[y][x - step][d] + 0)
        for d in range(count):
            best = min(path[y][x - step][d] + 0, least + p2)
            if d > 0:
                best = min(best, path[y][x - step][d - 1] + p1)
            if d < count - 1:
                best = min(best, path[y][x - step][d + 1] + p1)
            path[y][x][d] = cost[y][x][d] + best - least


@pk.workunit
def next_row(x, path, cost, y, before, count, p1, p2):
    """Path costs of row y from those of the row before."""
    least = path[before][x][0] + 0
    for d in range(1, count):
        least = min(least, path[before][x][d] + 0)
    for d in range(count):
        best = min(path[before][x][d] + 0, least + p2)
        if d > 0:
            best = min(best, path[before][x][d - 1] + p1)
        if d < count - 1:
            best = min(best, path[before][x][d + 1] + p1)
        path[y][x][d] = cost[y][x][d] + best - least


@pk.workunit
def first_row(x, path, cost, y, count):
    for d in range(count):
        path[y][x][d] = cost[y][x][d]


@pk.workunit
def accumulate(y, x, total, path, count):
    for d in range(count):
        total[y][x][d] += path[y][x][d]


@pk.workunit
def winner(y, x, disparity, total, count):
    """The least cost's disparity, refined by a parabola."""
    best = 0
    for d in range(1, count):
        if total[y][x][d] < total[y][x][best]:
            best = d
    value: float = best
    if best > 0 and best < count - 1:
        before: float = total[y][x][best - 1] - total[y][x][best]
        after: float = total[y][x][best + 1] - total[y][x][best]
        value += 0.5 * (before - after) / max(before + after, 1.0)
    disparity[y][x] = value


@pk.workunit
def winner_right(y, x, disparity, total, w, count):
    best = 0
    least = total[y][x][0] + 0
    for d in range(1, count):
        if x + d < w:
            if total[y][x + d][d] < least:
                least = total[y][x + d][d] + 0
                best = d
    disparity[y][x] = best


@pk.workunit
def consistent(y, x, valid, left, right):
    d = int(left[y][x] + 0.5)
    valid[y][x] = 0
    if x - d >= 0:
        if abs(left[y][x] - right[y][x - d]) <= 1.25:
            valid[y][x] = 1


@pk.workunit
def cross_median(y, x, out, a, h, w):
    """Median of a pixel and its four neighbours."""
    u = a[max(y - 1, 0)][x]
    d = a[min(y + 1, h - 1)][x]
    l = a[y][max(x - 1, 0)]
    r = a[y][min(x + 1, w - 1)]
    f = max(min(u, d), min(l, r))
    g = min(max(u, d), max(l, r))
    e = a[y][x]
    out[y][x] = max(min(f, g), min(max(f, g), e))


@pk.workunit
def count_valid(y, x, acc: pk.Acc[pk.int64], valid):
    acc += valid[y][x]


@pk.workunit
def valid_sum(y, x, acc, a, valid):
    acc += a[y][x] * valid[y][x]


@dataclass
class State:
    h: int
    w: int
    left: pk.View
    right: pk.View
    disparity: pk.View
    valid: pk.View
    p2: int = 30
    mean: float = 0.0


def images(w):
    h = 3 * w // 4
    y, x = np.mgrid[0:h, 0:w]
    right = (255 * rnd(h * w, 16)).reshape(h, w)
    right = (right + np.roll(right, 1, 0) + np.roll(right, 1, 1)) / 3
    shift = 4 + (x // 37 + y // 29) % 14
    left = right[y, np.maximum(x - shift, 0)] + 6 * (rnd(h * w, 17).reshape(h, w) - 0.5)
    return np.clip(left, 0, 255).astype(np.uint8), right.astype(np.uint8)


def setup(w):
    h = 3 * w // 4
    left, right, valid = (pk.View([h, w], pk.uint8) for _ in range(3))
    left.data[:], right.data[:] = images(w)
    return State(h, w, left, right, pk.View([h, w], pk.double), valid)


def run(s):
    h, w, count = s.h, s.w, DISPARITIES
    both = pk.MDRangePolicy([0, 0], [h, w])
    bl, br = pk.View([h, w], pk.int32), pk.View([h, w], pk.int32)
    cost, path, total = (
        pk.View([h, w, count], pk.uint8),
        pk.View([h, w, count], pk.int16),
        pk.View([h, w, count], pk.int16),
    )
    raw, other = pk.View([h, w], pk.double), pk.View([h, w], pk.double)
    pk.parallel_for(both, census, out=bl, image=s.left, h=h, w=w)
    pk.parallel_for(both, census, out=br, image=s.right, h=h, w=w)
    pk.parallel_for(both, hamming, cost=cost, left=bl, right=br, count=count)
    pk.parallel_for(both, clear, total=total, count=count)
    for backward in (0, 1):
        pk.parallel_for(
            h, along_row, path=path, cost=cost, w=w, count=count, p1=P1, p2=s.p2, backward=backward
        )
        pk.parallel_for(both, accumulate, total=total, path=path, count=count)
    for rows in (range(h), range(h - 1, -1, -1)):
        pk.parallel_for(w, first_row, path=path, cost=cost, y=rows[0], count=count)
        for before, y in zip(rows, rows[1:]):
            pk.parallel_for(
                w, next_row, path=path, cost=cost, y=y, before=before, count=count, p1=P1, p2=s.p2
            )
        pk.parallel_for(both, accumulate, total=total, path=path, count=count)
    pk.parallel_for(both, winner, disparity=raw, total=total, count=count)
    pk.parallel_for(both, winner_right, disparity=other, total=total, w=w, count=count)
    pk.parallel_for(both, consistent, valid=s.valid, left=raw, right=other)
    pk.parallel_for(both, cross_median, out=s.disparity, a=raw, h=h, w=w)
    number = int(pk.parallel_reduce(both, count_valid, valid=s.valid))
    s.mean = float(pk.parallel_reduce(both, valid_sum, a=s.disparity, valid=s.valid)) / max(
        number, 1
    )
    s.p2 = 30 if number > 0.6 * h * w else 40


def outputs(s):
    return {
        "disparity": np.array(s.disparity.data),
        "valid": np.array(s.valid.data),
        "mean": s.mean,
        "p2": float(s.p2),
    }


def check(s, size, runs):
    assert np.asarray(s.valid.data).mean() > 0.3


if __name__ == "__main__":
    main(globals())
