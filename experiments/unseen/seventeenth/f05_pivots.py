"""A field estimated from chosen sites: pivoted Cholesky of a covariance, whose chosen set grows.

Sites whose variance is explained leave the list of candidates, packed by a scan every few steps.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1000, "default": 80_000, "large": 1_000_000}
MOST, EVERY, BLOCK = 18, 3, 256
ENOUGH, DONE = 0.15, 0.02


@pk.workunit
def start(
    i: int,
    rest: pk.View1D[pk.double],
    guess: pk.View1D[pk.double],
    cand: pk.View1D[pk.int32],
    noise: float,
):
    rest[i] = 1.0 + noise
    guess[i] = 0.0
    cand[i] = i


@pk.workunit
def highest(
    b: int,
    cand: pk.View1D[pk.int32],
    rest: pk.View1D[pk.double],
    most: pk.View1D[pk.double],
    site: pk.View1D[pk.int32],
    m: int,
    block: int,
):
    end: pk.int32 = min((b + 1) * block, m)
    value: pk.double = -1.0
    at: pk.int32 = 0
    for a in range(b * block, end):
        if rest[cand[a]] > value:
            value = rest[cand[a]]
            at = cand[a]
    most[b] = value
    site[b] = at


@pk.workunit
def distance(
    a: int,
    cand: pk.View1D[pk.int32],
    place: pk.View2D[pk.double],
    r2: pk.View1D[pk.double],
    pivot: int,
):
    i: pk.int32 = cand[a]
    total: pk.double = 0.0
    for k in range(3):
        d: pk.double = place[i][k] - place[pivot][k]
        total += d * d
    r2[a] = total


@pk.workunit
def covary(a: int, r2: pk.View1D[pk.double], c: pk.View1D[pk.double], size: float):
    r: pk.double = pk.sqrt(3.0 * r2[a]) / size
    c[a] = (1.0 + r) * pk.exp(-r)


@pk.workunit
def nugget(a: int, cand: pk.View1D[pk.int32], c: pk.View1D[pk.double], pivot: int, noise: float):
    if cand[a] == pivot:
        c[a] += noise


@pk.workunit
def deflate(
    a: int,
    cand: pk.View1D[pk.int32],
    low: pk.View2D[pk.double],
    c: pk.View1D[pk.double],
    pivot: int,
    k: int,
):
    total: pk.double = c[a]
    for j in range(k):
        total -= low[j][cand[a]] * low[j][pivot]
    c[a] = total


@pk.workunit
def store(
    a: int,
    cand: pk.View1D[pk.int32],
    low: pk.View2D[pk.double],
    c: pk.View1D[pk.double],
    k: int,
    root: float,
):
    low[k][cand[a]] = c[a] / root


@pk.workunit
def weigh(
    q: int,
    low: pk.View2D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    pivot: int,
    k: int,
):
    total: pk.double = y[pivot]
    for j in range(k):
        total -= low[j][pivot] * z[j]
    z[k] = total / low[k][pivot]


@pk.workunit
def explain(
    a: int, cand: pk.View1D[pk.int32], low: pk.View2D[pk.double], rest: pk.View1D[pk.double], k: int
):
    rest[cand[a]] -= low[k][cand[a]] * low[k][cand[a]]


@pk.workunit
def estimate(
    a: int,
    cand: pk.View1D[pk.int32],
    low: pk.View2D[pk.double],
    z: pk.View1D[pk.double],
    guess: pk.View1D[pk.double],
    k: int,
):
    guess[cand[a]] += low[k][cand[a]] * z[k]


@pk.workunit
def trace(a: int, acc: pk.Acc[pk.double], cand: pk.View1D[pk.int32], rest: pk.View1D[pk.double]):
    acc += rest[cand[a]]


@pk.workunit
def still(
    a: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    cand: pk.View1D[pk.int32],
    cand2: pk.View1D[pk.int32],
    rest: pk.View1D[pk.double],
    least: float,
):
    if rest[cand[a]] > least:
        if last:
            cand2[acc] = cand[a]
        acc += 1


@pk.workunit
def error(i: int, acc: pk.Acc[pk.double], y: pk.View1D[pk.double], guess: pk.View1D[pk.double]):
    acc += (y[i] - guess[i]) * (y[i] - guess[i])


@dataclass
class State:
    n: int
    size: float
    noise: float
    place: pk.View
    y: pk.View
    guess: pk.View
    rest: pk.View
    misfit: float = 0.0
    left: int = 0
    chosen: tuple = ()


def setup(n: int) -> State:
    rng = np.random.default_rng(44)
    centres = rng.uniform(0.0, 4.0, (9, 3))
    x = centres[rng.integers(0, 9, n)] + 0.35 * rng.normal(size=(n, 3))
    place = pk.View([n, 3], pk.double)
    place[...] = x
    y, guess, rest = (pk.View([n], pk.double) for _ in range(3))
    y[...] = np.sin(x[:, 0]) * np.cos(0.8 * x[:, 1]) + 0.3 * x[:, 2] + 0.05 * rng.normal(size=n)
    return State(n, 5.0, 0.001, place, y, guess, rest)


def run(s: State) -> None:
    n, m, rest, guess = s.n, s.n, s.rest, s.guess
    cand, cand2 = pk.View([n], pk.int32), pk.View([n], pk.int32)
    c, r2, z = pk.View([n], pk.double), pk.View([n], pk.double), pk.View([MOST], pk.double)
    low = pk.View([MOST, n], pk.double)
    blocks = -(-n // BLOCK)
    most, site = pk.View([blocks], pk.double), pk.View([blocks], pk.int32)
    chosen = []
    pk.parallel_for(n, start, rest=rest, guess=guess, cand=cand, noise=s.noise)
    for k in range(MOST):
        these, used = pk.RangePolicy(0, m), -(-m // BLOCK)
        pk.parallel_for(used, highest, cand=cand, rest=rest, most=most, site=site, m=m, block=BLOCK)
        first = int(np.argmax(most.data[:used]))
        pivot, root = int(site[first]), float(most[first]) ** 0.5
        chosen.append(pivot)
        pk.parallel_for(these, distance, cand=cand, place=s.place, r2=r2, pivot=pivot)
        pk.parallel_for(these, covary, r2=r2, c=c, size=s.size)
        pk.parallel_for(these, nugget, cand=cand, c=c, pivot=pivot, noise=s.noise)
        pk.parallel_for(these, deflate, cand=cand, low=low, c=c, pivot=pivot, k=k)
        pk.parallel_for(these, store, cand=cand, low=low, c=c, k=k, root=root)
        pk.parallel_for(1, weigh, low=low, y=s.y, z=z, pivot=pivot, k=k)
        pk.parallel_for(these, explain, cand=cand, low=low, rest=rest, k=k)
        pk.parallel_for(these, estimate, cand=cand, low=low, z=z, guess=guess, k=k)
        if float(pk.parallel_reduce(these, trace, cand=cand, rest=rest)) < DONE * n:
            break
        if k % EVERY == EVERY - 1:
            m = int(pk.parallel_scan(these, still, cand=cand, cand2=cand2, rest=rest, least=ENOUGH))
            cand, cand2 = cand2, cand
            if m == 0:
                break
    s.misfit = float(pk.parallel_reduce(n, error, y=s.y, guess=guess)) / n
    s.left, s.chosen = m, tuple(chosen)


def outputs(s: State) -> dict:
    numbers = np.array([s.misfit, float(s.left)])
    return {
        "guess": s.guess,
        "rest": s.rest,
        "chosen": np.array(s.chosen, float),
        "numbers": numbers,
    }


def check(s: State, n: int) -> None:
    x, y = np.array(s.place.data), np.array(s.y.data)
    rest, guess, on = np.full(n, 1.0 + s.noise), np.zeros(n), np.ones(n, bool)
    rows, z, chosen = [], [], []
    for k in range(MOST):
        pivot = int(np.argmax(np.where(on, rest, -1.0)))
        chosen.append(pivot)
        r = np.sqrt(3.0 * ((x - x[pivot]) ** 2).sum(1)) / s.size
        c = (1.0 + r) * np.exp(-r)
        c[pivot] += s.noise
        for row in rows:
            c = c - row * row[pivot]
        row = np.where(on, c / np.sqrt(rest[pivot]), 0.0)
        z.append((y[pivot] - sum(w * q[pivot] for w, q in zip(z, rows))) / row[pivot])
        rows.append(row)
        rest = rest - row**2
        guess = guess + row * z[-1]
        if rest[on].sum() < DONE * n:
            break
        if k % EVERY == EVERY - 1:
            on = on & (rest > ENOUGH)
            if not on.any():
                break
    assert s.chosen == tuple(chosen), (s.chosen, chosen)
    assert s.left == on.sum(), (s.left, on.sum())
    np.testing.assert_allclose(s.rest.data, rest, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(s.guess.data, guess, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(s.misfit, ((y - guess) ** 2).mean(), rtol=1e-9)


if __name__ == "__main__":
    main(globals())
