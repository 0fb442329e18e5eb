"""Genotype imputation: the forward-backward algorithm of Li and Stephens over a panel of haplotypes.

A target is a mosaic of the panel's K haplotypes. Every site makes a transition, an emission and a
sum over all of them; sites that were not measured get their probability of the other allele.
"""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 4_000, "default": 200_000, "large": 2_000_000}
SITES, SWITCH, ERROR = 16, 0.05, 0.01


@pk.workunit
def begin(k: int, p: pk.View1D[pk.float], value: float):
    p[k] = value


@pk.workunit
def transit(
    k: int,
    q: pk.View1D[pk.float],
    p: pk.View1D[pk.float],
    total: float,
    switch: float,
    share: float,
):
    q[k] = (1.0 - switch) / total * p[k] + share


@pk.workunit
def emission(
    k: int, e: pk.View1D[pk.float], panel: pk.View2D[pk.uint8], site: int, seen: int, error: float
):
    e[k] = 1.0 - error if panel[site][k] == seen else error


@pk.workunit
def weigh(k: int, q: pk.View1D[pk.float], e: pk.View1D[pk.float]):
    q[k] *= e[k]


@pk.workunit
def keep(k: int, rows: pk.View2D[pk.float], site: int, p: pk.View1D[pk.float]):
    rows[site][k] = p[k]


@pk.workunit
def total_of(k: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.float]):
    acc += p[k]


@pk.workunit
def posterior(
    k: int, g: pk.View1D[pk.float], rows: pk.View2D[pk.float], site: int, b: pk.View1D[pk.float]
):
    g[k] = rows[site][k] * b[k]


@pk.workunit
def carriers(
    k: int, acc: pk.Acc[pk.double], g: pk.View1D[pk.float], panel: pk.View2D[pk.uint8], site: int
):
    if panel[site][k] == 1:
        acc += g[k]


@dataclass
class State:
    size: int
    panel: pk.View
    rows: pk.View
    dosage: list
    likelihood: float = 0.0


def target():
    """What was measured: 0, 1, or 2 for nothing."""
    return [0, 1, 2, 1, 1, 2, 0, 2, 0, 1, 2, 0, 2, 1, 0, 0][:SITES]


def haplotypes(n):
    rng = np.random.default_rng(10)
    founders = rng.integers(0, 2, (SITES, 32), dtype=np.uint8)
    panel = founders[:, rng.integers(0, 32, n)]
    return panel ^ (rng.random((SITES, n)) < 0.02)


def setup(n):
    panel = pk.View([SITES, n], pk.uint8)
    panel.data[:] = haplotypes(n)
    return State(n, panel, pk.View([SITES, n], pk.float), [0.0] * SITES)


def run(s):
    n, seen = s.size, target()
    p = pk.View([n], pk.float)
    pk.parallel_for(n, begin, p=p, value=1.0 / n)
    total, totals = 1.0, []
    for site in range(SITES):
        q, e = pk.View([n], pk.float), pk.View([n], pk.float)
        pk.parallel_for(n, transit, q=q, p=p, total=total, switch=SWITCH, share=SWITCH / n)
        if seen[site] < 2:
            pk.parallel_for(
                n, emission, e=e, panel=s.panel, site=site, seen=seen[site], error=ERROR
            )
            pk.parallel_for(n, weigh, q=q, e=e)
        pk.parallel_for(n, keep, rows=s.rows, site=site, p=q)
        total = pk.parallel_reduce(n, total_of, p=q)
        totals.append(total)
        p = q
    b, dosages = pk.View([n], pk.float), []
    pk.parallel_for(n, begin, p=b, value=1.0)
    for site in reversed(range(SITES)):
        g, e, nxt = (pk.View([n], pk.float) for _ in range(3))
        pk.parallel_for(n, posterior, g=g, rows=s.rows, site=site, b=b)
        dosages.append(
            (
                pk.parallel_reduce(n, carriers, g=g, panel=s.panel, site=site),
                pk.parallel_reduce(n, total_of, p=g),
            )
        )
        if seen[site] < 2:
            pk.parallel_for(
                n, emission, e=e, panel=s.panel, site=site, seen=seen[site], error=ERROR
            )
            pk.parallel_for(n, weigh, q=b, e=e)
        mass = pk.parallel_reduce(n, total_of, p=b)
        pk.parallel_for(n, transit, q=nxt, p=b, total=mass / n, switch=SWITCH, share=SWITCH)
        b = nxt
    s.dosage = [float(a) / float(t) for a, t in reversed(dosages)]
    s.likelihood = float(np.sum(np.log([float(t) for t in totals])))


def outputs(s):
    return {"rows": np.array(s.rows.data), "dosage": np.array(s.dosage), "likelihood": s.likelihood}


def check(s):
    n, seen = s.size, target()
    panel = haplotypes(n)
    e = [
        np.ones(n) if seen[t] == 2 else np.where(panel[t] == seen[t], 1 - ERROR, ERROR)
        for t in range(SITES)
    ]
    rows, p, totals = [], np.full(n, 1.0 / n), []
    for t in range(SITES):
        p = ((1 - SWITCH) * p / p.sum() + SWITCH / n) * e[t]
        rows.append(p)
        totals.append(p.sum())
    b, dosage = np.ones(n), [0.0] * SITES
    for t in reversed(range(SITES)):
        g = rows[t] * b
        dosage[t] = g[panel[t] == 1].sum() / g.sum()
        b = b * e[t]
        b = (1 - SWITCH) * b / b.mean() + SWITCH
    np.testing.assert_allclose(s.rows.data, np.stack(rows), rtol=1e-4)
    np.testing.assert_allclose(s.dosage, dosage, rtol=1e-4)
    np.testing.assert_allclose(s.likelihood, np.sum(np.log(totals)), rtol=1e-6)


if __name__ == "__main__":
    main(globals())
