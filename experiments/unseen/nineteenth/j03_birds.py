"""Where birds live: a log-Gaussian Cox process on a map, sampled by Metropolis-adjusted Langevin.

Four sums a proposal decide whether it is taken; the step's length follows the acceptance.
"""

import random
from dataclasses import dataclass
from math import cos, exp, log, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 320, "large": 1200}
STEPS = 8
OWN, TIE = 0.3, 0.8


@pk.function
def scramble(x: pk.uint32) -> pk.uint32:
    h: pk.uint32 = (x ^ (x >> 16)) * 73244475
    h = (h ^ (h >> 16)) * 73244475
    return h ^ (h >> 16)


@pk.function
def unit(x: pk.uint32, seed: pk.uint32) -> pk.double:
    return (scramble(scramble(x) + seed) + 0.5) / 4294967296.0


@pk.workunit
def copy(i: int, j: int, to: pk.View2D[pk.double], source: pk.View2D[pk.double]):
    to[i][j] = source[i][j]


@pk.workunit
def noise(i: int, j: int, out: pk.View2D[pk.double], n: int, seed: pk.uint32):
    key: pk.uint32 = i * n + j
    radius: pk.double = sqrt(-2.0 * log(unit(key, seed)))
    out[i][j] = radius * cos(6.283185307179586 * unit(key, seed + 1))


@pk.workunit
def rate(i: int, j: int, lam, x, effort):
    """Birds expected in the cell."""
    lam[i][j] = effort[i][j] * exp(x[i][j])


@pk.workunit
def roughness(i: int, j: int, out, x, n: int):
    """Pull of the neighbours; there are none beyond the edge."""
    up: int = max(i - 1, 0)
    down: int = min(i + 1, n - 1)
    left: int = max(j - 1, 0)
    right: int = min(j + 1, n - 1)
    out[i][j] = 4.0 * x[i][j] - x[up][j] - x[down][j] - x[i][left] - x[i][right]


@pk.workunit
def slope(i: int, j: int, out, lam, seen, x, rough, own: float, tie: float):
    out[i][j] = lam[i][j] - seen[i][j] + own * x[i][j] + tie * rough[i][j]


@pk.workunit
def drift(i: int, j: int, out, x, gradient, h: float):
    out[i][j] = x[i][j] - h * gradient[i][j]


@pk.workunit
def kick(i: int, j: int, x, xi, size: float):
    x[i][j] += size * xi[i][j]


@pk.workunit
def misfit(i: int, j: int, acc: pk.Acc[pk.double], lam, seen, x):
    acc += lam[i][j] - seen[i][j] * x[i][j]


@pk.workunit
def prior(i: int, j: int, acc: pk.Acc[pk.double], x, rough, own: float, tie: float):
    acc += 0.5 * x[i][j] * (own * x[i][j] + tie * rough[i][j])


@pk.workunit
def distance(i: int, j: int, acc: pk.Acc[pk.double], a, b):
    acc += (a[i][j] - b[i][j]) * (a[i][j] - b[i][j])


@pk.workunit
def add(i: int, j: int, total: pk.View2D[pk.double], x: pk.View2D[pk.double]):
    total[i][j] += x[i][j]


@dataclass
class State:
    n: int
    start: pk.View
    seen: pk.View
    effort: pk.View
    mean: pk.View
    draws: list
    history: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0:n, 0:n] / n
    truth = 0.5 + np.sin(7 * x) * np.cos(5 * y)
    start, effort, mean = (pk.View([n, n], pk.double) for _ in range(3))
    seen = pk.View([n, n], pk.int32)
    effort.data[:] = 0.5 + rng.random((n, n))
    seen.data[:] = rng.poisson(np.array(effort.data) * np.exp(truth))
    start.data[:] = truth + 0.1 * rng.standard_normal((n, n))
    dice = random.Random(9)
    draws = [log(dice.random()) for _ in range(STEPS)]
    return State(n, start, seen, effort, mean, draws, pk.View([STEPS, 5], pk.double))


def run(s: State) -> None:
    n = s.n
    cells = pk.MDRangePolicy([0, 0], [n, n])
    x, proposal, gradient, new_gradient, forth, back, lam, rough, xi = (
        pk.View([n, n], pk.double) for _ in range(9)
    )

    def energy(x, gradient):
        pk.parallel_for(cells, rate, lam=lam, x=x, effort=s.effort)
        pk.parallel_for(cells, roughness, out=rough, x=x, n=n)
        pk.parallel_for(
            cells, slope, out=gradient, lam=lam, seen=s.seen, x=x, rough=rough, own=OWN, tie=TIE
        )
        data = pk.parallel_reduce(cells, misfit, lam=lam, seen=s.seen, x=x)
        return data + pk.parallel_reduce(cells, prior, x=x, rough=rough, own=OWN, tie=TIE)

    pk.parallel_for(cells, copy, to=x, source=s.start)
    s.mean.data[:] = 0.0
    size = 1.1 / sqrt(n)
    current = energy(x, gradient)
    for step in range(STEPS):
        h = 0.5 * size * size
        pk.parallel_for(cells, noise, out=xi, n=n, seed=2 * step + 77)
        pk.parallel_for(cells, drift, out=forth, x=x, gradient=gradient, h=h)
        pk.parallel_for(cells, copy, to=proposal, source=forth)
        pk.parallel_for(cells, kick, x=proposal, xi=xi, size=size)
        tried = energy(proposal, new_gradient)
        pk.parallel_for(cells, drift, out=back, x=proposal, gradient=new_gradient, h=h)
        there = pk.parallel_reduce(cells, distance, a=proposal, b=forth)
        here = pk.parallel_reduce(cells, distance, a=x, b=back)
        odds = float(current - tried + (there - here) / (4.0 * h))
        taken = s.draws[step] < odds
        s.history[step, 0], s.history[step, 1] = float(tried), odds
        s.history[step, 2], s.history[step, 3] = float(there), float(here)
        s.history[step, 4] = float(taken)
        if taken:
            x, proposal = proposal, x
            gradient, new_gradient = new_gradient, gradient
            current = tried
        size *= exp(0.3 * (min(1.0, exp(min(odds, 0.0))) - 0.574))
        pk.parallel_for(cells, add, total=s.mean, x=x)


def outputs(s: State) -> dict:
    views = {"mean": s.mean, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    seen, effort, x = (np.array(v.data) for v in (s.seen, s.effort, s.start))
    key = np.arange(n * n, dtype=np.uint64).reshape(n, n)

    def hashed(v):
        for _ in range(2):
            v = ((v ^ (v >> 16)) * 73244475) & 0xFFFFFFFF
        return v ^ (v >> 16)

    def unit(seed):
        return (hashed((hashed(key) + seed) & 0xFFFFFFFF) + 0.5) / 2.0**32

    def energy(x):
        dx, dy = np.diff(x, axis=1), np.diff(x, axis=0)
        lam = effort * np.exp(x)
        u = (lam - seen * x).sum() + 0.5 * OWN * (x * x).sum()
        u += 0.5 * TIE * ((dx * dx).sum() + (dy * dy).sum())
        g = lam - seen + OWN * x
        g[:, :-1] -= TIE * dx
        g[:, 1:] += TIE * dx
        g[:-1] -= TIE * dy
        g[1:] += TIE * dy
        return u, g

    size, total = 1.1 / np.sqrt(n), np.zeros((n, n))
    u, g = energy(x)
    for step in range(STEPS):
        h, seed = size**2 / 2, 2 * step + 77
        xi = np.sqrt(-2 * np.log(unit(seed))) * np.cos(2 * np.pi * unit(seed + 1))
        y = x - h * g + size * xi
        v, gy = energy(y)
        there, here = (size * size * xi * xi).sum(), ((x - y + h * gy) ** 2).sum()
        odds = u - v + (there - here) / (4 * h)
        taken = s.draws[step] < odds
        row = s.history.data[step]
        np.testing.assert_allclose(row, [v, odds, there, here, taken], rtol=1e-7, atol=1e-7)
        if taken:
            x, g, u = y, gy, v
        size *= np.exp(0.3 * (min(1, np.exp(min(odds, 0))) - 0.574))
        total += x
    np.testing.assert_allclose(s.mean.data, total, rtol=1e-9, atol=1e-9)
    rates = np.array(s.history.data)[:, 4]
    assert 0 < rates.sum() < STEPS, rates


if __name__ == "__main__":
    main(globals())
