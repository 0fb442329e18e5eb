"""Screened Poisson blending of an image's gradients: multigrid cycles until the residual is small."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 64, "default": 1920, "large": 2560}
LEVELS, OMEGA, SCREEN, GOAL, MOST = 5, 0.8, 0.002, 0.02, 4


@pk.workunit
def target(i, j, f, a, b, n, screen):
    """Divergence of the stronger of two images' gradients, each clamped, and the screening term."""
    u = max(i - 1, 0)
    d = min(i + 1, n - 1)
    l = max(j - 1, 0)
    r = min(j + 1, n - 1)
    la = a[u][j] + a[d][j] + a[i][l] + a[i][r] - 4.0 * a[i][j]
    lb = b[u][j] + b[d][j] + b[i][l] + b[i][r] - 4.0 * b[i][j]
    if abs(la) < abs(lb):
        la = lb
    f[i][j] = 0.5 * screen * (a[i][j] + b[i][j]) - la


@pk.workunit
def zero(i, j, v):
    v[i][j] = 0.0


@pk.workunit
def relax(i, j, new, v, f, n, c, screen, omega):
    u = max(i - 1, 0)
    d = min(i + 1, n - 1)
    l = max(j - 1, 0)
    r = min(j + 1, n - 1)
    lap = c * (v[u][j] + v[d][j] + v[i][l] + v[i][r] - 4.0 * v[i][j])
    new[i][j] = v[i][j] + omega / (screen + 4.0 * c) * (f[i][j] - screen * v[i][j] + lap)


@pk.workunit
def residual(i, j, res, v, f, n, c, screen):
    u = max(i - 1, 0)
    d = min(i + 1, n - 1)
    l = max(j - 1, 0)
    r = min(j + 1, n - 1)
    lap = c * (v[u][j] + v[d][j] + v[i][l] + v[i][r] - 4.0 * v[i][j])
    res[i][j] = f[i][j] - screen * v[i][j] + lap


@pk.workunit
def restrict(i, j, coarse, fine):
    p = 2 * i
    q = 2 * j
    coarse[i][j] = 0.25 * (fine[p][q] + fine[p][q + 1] + fine[p + 1][q] + fine[p + 1][q + 1])


@pk.workunit
def correct(i, j, v, coarse):
    v[i][j] += coarse[i // 2][j // 2]


@pk.workunit
def norm(i, j, acc, res):
    acc += res[i][j] * res[i][j]


@dataclass
class State:
    n: int
    a: pk.View
    b: pk.View
    v: list
    w: list
    f: list
    r: list
    cycles: int = 0
    norm: float = 0.0


def setup(n):
    a, b = pk.View([n, n], pk.double), pk.View([n, n], pk.double)
    i, j = np.indices((n, n))
    a.data[:] = rnd(n * n, 110).reshape(n, n) + 1.0 * (i // 16 % 2)
    b.data[:] = rnd(n * n, 111).reshape(n, n) + 1.0 * (j // 32 % 2)
    levels = [[pk.View([n >> k, n >> k], pk.double) for k in range(LEVELS)] for _ in range(4)]
    return State(n, a, b, *levels)


def smooth(s, k, times):
    n = s.n >> k
    cells, c = pk.MDRangePolicy([0, 0], [n, n]), 0.25**k
    for _ in range(times):
        pk.parallel_for(
            cells, relax, new=s.w[k], v=s.v[k], f=s.f[k], n=n, c=c, screen=SCREEN, omega=OMEGA
        )
        s.v[k], s.w[k] = s.w[k], s.v[k]


def cycle(s):
    for k in range(LEVELS - 1):
        n = s.n >> k
        smooth(s, k, 2)
        pk.parallel_for(
            pk.MDRangePolicy([0, 0], [n, n]),
            residual,
            res=s.r[k],
            v=s.v[k],
            f=s.f[k],
            n=n,
            c=0.25**k,
            screen=SCREEN,
        )
        half = pk.MDRangePolicy([0, 0], [n // 2, n // 2])
        pk.parallel_for(half, restrict, coarse=s.f[k + 1], fine=s.r[k])
        pk.parallel_for(half, zero, v=s.v[k + 1])
    smooth(s, LEVELS - 1, 12)
    for k in reversed(range(LEVELS - 1)):
        n = s.n >> k
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), correct, v=s.v[k], coarse=s.v[k + 1])
        smooth(s, k, 2)


def run(s):
    n = s.n
    cells = pk.MDRangePolicy([0, 0], [n, n])
    pk.parallel_for(cells, target, f=s.f[0], a=s.a, b=s.b, n=n, screen=SCREEN)
    pk.parallel_for(cells, zero, v=s.v[0])
    first = float(pk.parallel_reduce(cells, norm, res=s.f[0]))
    s.cycles = 0
    while s.cycles < MOST:
        cycle(s)
        pk.parallel_for(cells, residual, res=s.r[0], v=s.v[0], f=s.f[0], n=n, c=1.0, screen=SCREEN)
        s.norm = float(pk.parallel_reduce(cells, norm, res=s.r[0]))
        s.cycles += 1
        if s.norm < GOAL**2 * first:
            break


def outputs(s):
    return {"v": np.array(s.v[0].data), "cycles": float(s.cycles), "norm": s.norm}


def check(s, size, runs):
    assert 1 <= s.cycles <= MOST


if __name__ == "__main__":
    main(globals())
