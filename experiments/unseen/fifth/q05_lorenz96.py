"""An ensemble of Lorenz-96 models by classical Runge-Kutta, inflated to keep its spread."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 60, "default": 16_000, "large": 100_000}  # members
SITES, STEPS, BLOCKS = 40, 3, 64


@pk.workunit
def tendency(i, k, x, sites, forcing):
    site = i % sites
    base = i - site
    ahead = i + 1 if site < sites - 1 else base
    back = i - 1 if site > 0 else base + sites - 1
    back2 = i - 2 if site > 1 else base + sites - 2 + site
    k[i] = (x[ahead] - x[back2]) * x[back] - x[i] + forcing


@pk.workunit
def stage(i, out, x, k, h):
    out[i] = x[i] + h * k[i]


@pk.workunit
def start_sum(i, total, k):
    total[i] = k[i]


@pk.workunit
def add_scaled(i, total, k, factor):
    total[i] += factor * k[i]


@pk.workunit
def finish(i, x, total, h):
    x[i] += h * total[i]


@pk.workunit
def partial_sum(j, part, x, sites, members, blocks):
    """Site j % sites of block j // sites of the members."""
    site = j % sites
    block = j // sites
    v = 0.0
    for m in range(members * block // blocks, members * (block + 1) // blocks):
        v += x[m * sites + site]
    part[j] = v


@pk.workunit
def site_mean(j, mean, part, sites, members, blocks):
    v = 0.0
    for b in range(blocks):
        v += part[b * sites + j]
    mean[j] = v / members


@pk.workunit
def deviation(i, d, x, mean, sites):
    d[i] = x[i] - mean[i % sites]


@pk.workunit
def square(i, acc, d):
    acc += d[i] * d[i]


@pk.workunit
def inflate(i, x, d, factor):
    x[i] += factor * d[i]


@dataclass
class State:
    members: int
    x: pk.View
    mean: pk.View
    spread: float = 0.0


def setup(members):
    x = pk.View([members * SITES], pk.double)
    x.data[:] = 8.0 * np.sin(np.arange(members * SITES) % SITES) + rnd(members * SITES, 9)
    return State(members, x, pk.View([SITES], pk.double))


def run(s):
    members, x = s.members, s.x
    n = members * SITES
    k, mid, total, d = (pk.View([n], pk.double) for _ in range(4))
    part = pk.View([BLOCKS * SITES], pk.double)
    h = 0.01
    for _ in range(STEPS):
        pk.parallel_for(n, tendency, k=k, x=x, sites=SITES, forcing=8.0)
        pk.parallel_for(n, start_sum, total=total, k=k)
        for a, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
            pk.parallel_for(n, stage, out=mid, x=x, k=k, h=a * h)
            pk.parallel_for(n, tendency, k=k, x=mid, sites=SITES, forcing=8.0)
            pk.parallel_for(n, add_scaled, total=total, k=k, factor=weight)
        pk.parallel_for(n, finish, x=x, total=total, h=h / 6.0)
        pk.parallel_for(
            BLOCKS * SITES, partial_sum, part=part, x=x, sites=SITES, members=members, blocks=BLOCKS
        )
        pk.parallel_for(
            SITES, site_mean, mean=s.mean, part=part, sites=SITES, members=members, blocks=BLOCKS
        )
        pk.parallel_for(n, deviation, d=d, x=x, mean=s.mean, sites=SITES)
        s.spread = (float(pk.parallel_reduce(n, square, d=d)) / n) ** 0.5
        if s.spread < 0.3:
            pk.parallel_for(n, inflate, x=x, d=d, factor=0.05 * (0.3 - s.spread) / s.spread)


def outputs(s):
    return {"x": np.array(s.x.data), "mean": np.array(s.mean.data), "spread": s.spread}


def check(s, size, runs):
    assert 0.0 < s.spread < 20.0


if __name__ == "__main__":
    main(globals())
