# ruff: noqa: B905
"""The likelihood of a tree of twelve species: pruning over DNA sites with four rates of evolution.

Partial likelihoods are (sites, rates, bases); gaps, rescaling of small ones, posterior rates and bases.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 80, "default": 8_000, "large": 200_000}
TIPS, RATES, BASES, GAP = 12, 4, 4, 4
# The children of nodes 12, 13, ...; nodes below 12 are species. The last is the root.
TREE = (
    (0, 1),
    (2, 3),
    (12, 13),
    (4, 5),
    (15, 6),
    (7, 8),
    (17, 9),
    (16, 18),
    (14, 19),
    (10, 11),
    (20, 21),
)
SMALL, LARGER = 1.0 / 1024.0, 1024.0


@pk.workunit
def from_species(i: int, c: int, a: int, out, p, tips, species: int):
    base: int = tips[species][i]
    if base == GAP:
        out[i][c][a] = 1.0
    else:
        out[i][c][a] = p[c][a][base]


@pk.workunit
def from_node(i: int, c: int, a: int, out, p, below):
    total: pk.double = 0.0
    for b in range(BASES):
        total += p[c][a][b] * below[i][c][b]
    out[i][c][a] = total


@pk.workunit
def combine(i: int, c: int, a: int, out, left, right):
    out[i][c][a] = left[i][c][a] * right[i][c][a]


@pk.workunit
def no_scaling(i: int, scalings: pk.View1D[pk.int32]):
    scalings[i] = 0


@pk.workunit
def rescale(i: int, partial, scalings):
    highest: pk.double = 0.0
    for c in range(RATES):
        for a in range(BASES):
            highest = max(highest, partial[i][c][a])
    if highest < SMALL:
        for c in range(RATES):
            for a in range(BASES):
                partial[i][c][a] *= LARGER
        scalings[i] += 1


@pk.workunit
def by_rate(i: int, c: int, out, partial, frequency):
    total: pk.double = 0.0
    for a in range(BASES):
        total += frequency[a] * partial[i][c][a]
    out[i][c] = total / RATES


@pk.workunit
def site(i: int, out, likelihood):
    total: pk.double = 0.0
    for c in range(RATES):
        total += likelihood[i][c]
    out[i] = total


@pk.workunit
def to_log(i: int, out, likelihood, scalings, unit: float):
    out[i] = log(likelihood[i]) - scalings[i] * unit


@pk.workunit
def mean_rate(i: int, out, likelihood, whole, rate):
    total: pk.double = 0.0
    for c in range(RATES):
        total += rate[c] * likelihood[i][c]
    out[i] = total / whole[i]


@pk.workunit
def ancestor(i: int, out, partial, frequency):
    """The likeliest base at the root."""
    best: pk.double = 0.0
    base: int = 0
    for a in range(BASES):
        share: pk.double = 0.0
        for c in range(RATES):
            share += partial[i][c][a]
        share *= frequency[a]
        if share > best:
            best = share
            base = a
    out[i] = base


@pk.workunit
def weighted(i: int, acc: pk.Acc[pk.double], logs, count):
    acc += count[i] * logs[i]


@pk.workunit
def number(
    i: int, acc: pk.Acc[pk.int64], base: pk.View1D[pk.uint8], count: pk.View1D[pk.int32], a: int
):
    if base[i] == a:
        acc += count[i]


@dataclass
class State:
    n: int
    tips: pk.View
    count: pk.View
    matrix: list
    frequency: pk.View
    rate: pk.View
    logs: pk.View
    rates: pk.View
    base: pk.View
    scalings: pk.View
    sums: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(17)
    pi = np.array([0.3, 0.2, 0.22, 0.28])
    exchange = np.array([[0, 1, 4, 1], [1, 0, 1, 4], [4, 1, 0, 1], [1, 4, 1, 0]], float)
    q = exchange * pi
    q -= np.diag(q.sum(axis=1))
    q /= -(pi * np.diag(q)).sum()
    values, vectors = np.linalg.eig(q)
    speeds = np.array([0.14, 0.48, 1.0, 2.38])
    branches = TIPS + len(TREE) - 1
    matrix, length = [], rng.uniform(0.05, 0.3, branches)
    for branch in range(branches):
        view = pk.View([RATES, BASES, BASES], pk.double)
        for c in range(RATES):
            grown = (
                vectors
                @ np.diag(np.exp(values * length[branch] * speeds[c]))
                @ np.linalg.inv(vectors)
            )
            view.data[c] = np.real(grown)
        matrix.append(view)
    states, which = (
        {len(TREE) + TIPS - 1: rng.choice(BASES, size=n, p=pi)},
        rng.integers(0, RATES, n),
    )
    for node in range(len(TREE) + TIPS - 1, TIPS - 1, -1):
        for child in TREE[node - TIPS]:
            chance = np.cumsum(np.array(matrix[child].data)[which, states[node]], axis=1)
            states[child] = np.minimum((rng.random(n)[:, None] > chance).sum(axis=1), BASES - 1)
    tips, count = pk.View([TIPS, n], pk.uint8), pk.View([n], pk.int32)
    tips.data[:] = np.where(
        rng.random((TIPS, n)) < 0.04, GAP, np.stack([states[t] for t in range(TIPS)])
    )
    count.data[:] = 1 + rng.poisson(1.5, n)
    frequency, rate = pk.View([BASES], pk.double), pk.View([RATES], pk.double)
    frequency.data[:], rate.data[:] = pi, speeds
    logs, rates = pk.View([n], pk.double), pk.View([n], pk.double)
    base, scalings = pk.View([n], pk.uint8), pk.View([n], pk.int32)
    sums = pk.View([1 + BASES], pk.double)
    return State(n, tips, count, matrix, frequency, rate, logs, rates, base, scalings, sums)


def run(s: State) -> None:
    n = s.n
    everything = pk.MDRangePolicy([0, 0, 0], [n, RATES, BASES])

    def array():
        return pk.View([n, RATES, BASES], pk.double)

    pk.parallel_for(n, no_scaling, scalings=s.scalings)
    partial = {}
    for node, children in enumerate(TREE, start=TIPS):
        parts = []
        for child in children:
            part = array()
            if child < TIPS:
                pk.parallel_for(
                    everything,
                    from_species,
                    out=part,
                    p=s.matrix[child],
                    tips=s.tips,
                    species=child,
                )
            else:
                pk.parallel_for(
                    everything, from_node, out=part, p=s.matrix[child], below=partial[child]
                )
            parts.append(part)
        partial[node] = array()
        pk.parallel_for(everything, combine, out=partial[node], left=parts[0], right=parts[1])
        if max(children) >= TIPS:
            pk.parallel_for(n, rescale, partial=partial[node], scalings=s.scalings)
    root = partial[TIPS + len(TREE) - 1]
    likelihood, whole = pk.View([n, RATES], pk.double), pk.View([n], pk.double)
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [n, RATES]),
        by_rate,
        out=likelihood,
        partial=root,
        frequency=s.frequency,
    )
    pk.parallel_for(n, site, out=whole, likelihood=likelihood)
    pk.parallel_for(n, to_log, out=s.logs, likelihood=whole, scalings=s.scalings, unit=log(LARGER))
    pk.parallel_for(n, mean_rate, out=s.rates, likelihood=likelihood, whole=whole, rate=s.rate)
    pk.parallel_for(n, ancestor, out=s.base, partial=root, frequency=s.frequency)
    s.sums[0] = float(pk.parallel_reduce(n, weighted, logs=s.logs, count=s.count))
    for a in range(BASES):
        s.sums[1 + a] = int(pk.parallel_reduce(n, number, base=s.base, count=s.count, a=a))


def outputs(s: State) -> dict:
    views = {
        "logs": s.logs,
        "rates": s.rates,
        "base": s.base,
        "scalings": s.scalings,
        "sums": s.sums,
    }
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    tips, count = np.array(s.tips.data), np.array(s.count.data)
    pi, rate = np.array(s.frequency.data), np.array(s.rate.data)
    partial = {
        t: np.where(tips[t] == GAP, 1.0, np.arange(BASES)[:, None] == tips[t]).T
        for t in range(TIPS)
    }
    partial = {t: np.repeat(f[:, None, :], RATES, axis=1) for t, f in partial.items()}
    for node, children in enumerate(TREE, start=TIPS):
        parts = [
            np.einsum("cab,icb->ica", s.matrix[child].data, partial[child]) for child in children
        ]
        partial[node] = parts[0] * parts[1]
    root = partial[TIPS + len(TREE) - 1]
    likelihood = root @ pi / RATES
    logs = np.log(likelihood.sum(axis=1))
    np.testing.assert_allclose(s.logs.data, logs, rtol=1e-10)
    np.testing.assert_allclose(s.rates.data, likelihood @ rate / likelihood.sum(axis=1), rtol=1e-10)
    base = (root.sum(axis=1) * pi).argmax(axis=1)
    np.testing.assert_array_equal(s.base.data, base)
    expected = [(count * logs).sum(), *np.bincount(base, weights=count, minlength=BASES)]
    np.testing.assert_allclose(s.sums.data, expected, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
