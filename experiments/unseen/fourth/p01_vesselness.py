"""Bright vessels in an image (Frangi's measure) at three scales, borders clamped.

A trous blurs, the Hessian by differences, its eigenvalues, and a measure that is normalised by the
image's own mean strength, which is never read.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main
from in01 import SCALES, picture

SIZES = {"small": 56, "default": 2000, "large": 2400}


@pk.workunit
def blur_x(i, j, out, a, s, n):
    l2 = max(j - 2 * s, 0)
    l1 = max(j - s, 0)
    r1 = min(j + s, n - 1)
    r2 = min(j + 2 * s, n - 1)
    out[i][j] = (a[i][l2] + 4.0 * a[i][l1] + 6.0 * a[i][j] + 4.0 * a[i][r1] + a[i][r2]) / 16.0


@pk.workunit
def blur_y(i, j, out, a, s, n):
    l2 = max(i - 2 * s, 0)
    l1 = max(i - s, 0)
    r1 = min(i + s, n - 1)
    r2 = min(i + 2 * s, n - 1)
    out[i][j] = (a[l2][j] + 4.0 * a[l1][j] + 6.0 * a[i][j] + 4.0 * a[r1][j] + a[r2][j]) / 16.0


@pk.workunit
def second_x(i, j, out, g, n):
    out[i][j] = g[i][max(j - 1, 0)] - 2.0 * g[i][j] + g[i][min(j + 1, n - 1)]


@pk.workunit
def second_y(i, j, out, g, n):
    out[i][j] = g[max(i - 1, 0)][j] - 2.0 * g[i][j] + g[min(i + 1, n - 1)][j]


@pk.workunit
def mixed(i, j, out, g, n):
    u = max(i - 1, 0)
    d = min(i + 1, n - 1)
    l = max(j - 1, 0)
    r = min(j + 1, n - 1)
    out[i][j] = 0.25 * (g[d][r] - g[d][l] - g[u][r] + g[u][l])


@pk.workunit
def eigen(i, j, small, big, xx, yy, xy):
    mean = 0.5 * (xx[i][j] + yy[i][j])
    half = 0.5 * (xx[i][j] - yy[i][j])
    root = pk.sqrt(half * half + xy[i][j] * xy[i][j])
    p = mean + root
    q = mean - root
    if abs(p) > abs(q):
        small[i][j] = q
        big[i][j] = p
    else:
        small[i][j] = p
        big[i][j] = q


@pk.workunit
def strength(i, j, acc, small, big):
    acc += small[i][j] * small[i][j] + big[i][j] * big[i][j]


@pk.workunit
def measure(i, j, v, small, big, total, cells):
    a = small[i][j]
    b = big[i][j]
    v[i][j] = 0.0
    if b < 0.0:
        ratio = a / b
        s2 = (a * a + b * b) * cells / total
        v[i][j] = pk.exp(-2.0 * ratio * ratio) * (1.0 - pk.exp(-0.5 * s2))


@pk.workunit
def clear(i, j, best):
    best[i][j] = 0.0


@pk.workunit
def keep(i, j, best, v):
    best[i][j] = max(best[i][j], v[i][j])


@pk.workunit
def covered(i, j, acc, best):
    if best[i][j] > 0.3:
        acc += 1.0


@dataclass
class State:
    size: int
    image: pk.View
    best: pk.View
    area: float = 0.0


def setup(size):
    image = pk.View([size, size], pk.double)
    image.data[:] = picture(size)
    return State(size, image, pk.View([size, size], pk.double))


def run(state):
    n = state.size
    grid = pk.MDRangePolicy([0, 0], [n, n])
    t, g, xx, yy, xy, small, big, v = (pk.View([n, n], pk.double) for _ in range(8))
    pk.parallel_for(grid, clear, best=state.best)
    source = state.image
    for s in SCALES:
        pk.parallel_for(grid, blur_x, out=t, a=source, s=s, n=n)
        pk.parallel_for(grid, blur_y, out=g, a=t, s=s, n=n)
        pk.parallel_for(grid, second_x, out=xx, g=g, n=n)
        pk.parallel_for(grid, second_y, out=yy, g=g, n=n)
        pk.parallel_for(grid, mixed, out=xy, g=g, n=n)
        pk.parallel_for(grid, eigen, small=small, big=big, xx=xx, yy=yy, xy=xy)
        total = pk.parallel_reduce(grid, strength, small=small, big=big)
        pk.parallel_for(grid, measure, v=v, small=small, big=big, total=total, cells=float(n * n))
        pk.parallel_for(grid, keep, best=state.best, v=v)
    state.area = pk.parallel_reduce(grid, covered, best=state.best)


def outputs(state):
    return {"best": np.array(state.best.data), "area": float(state.area)}


def check(state, size, runs):
    assert 0.0 < float(state.area) < size * size


if __name__ == "__main__":
    main(globals())
