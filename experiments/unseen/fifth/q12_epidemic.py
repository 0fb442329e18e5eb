"""An epidemic: contacts, air between places, within-host dynamics, tallies a region, interventions."""

from dataclasses import dataclass
from math import exp

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 2500, "default": 300_000, "large": 2_000_000}
DAYS, CONTACTS, REGIONS = 5, 6, 64


@pk.workunit
def assign(i, out, a):
    out[i] = a[i]


@pk.workunit
def clear(i, a):
    a[i] = 0


@pk.workunit
def shed(i, tally, virus, cell):
    """In thousandths, so that sums do not depend on their order."""
    if virus[i] > 0.05:
        pk.atomic_add(tally, [cell[i]], int(1000.0 * virus[i]))


@pk.workunit
def breeze(g, out, air, side, keep, spread):
    y = g // side
    x = g % side
    left = g - 1 if x > 0 else g + side - 1
    right = g + 1 if x < side - 1 else g - side + 1
    up = g - side if y > 0 else g + side * (side - 1)
    down = g + side if y < side - 1 else g - side * (side - 1)
    out[g] = keep * (
        air[g] + spread * (air[left] + air[right] + air[up] + air[down] - 4.0 * air[g])
    )


@pk.workunit
def emit(g, air, tally):
    air[g] += 0.001 * tally[g]


@pk.workunit
def touch(i, pressure, virus, contact, count):
    v = 0.0
    for k in range(count):
        j = contact[i][k]
        if virus[j] > 0.05:
            v += virus[j]
    pressure[i] = v


@pk.workunit
def breathe(i, pressure, air, cell):
    pressure[i] += 0.1 * air[cell[i]]


@pk.workunit
def uniform(i, u, seed):
    s = seed[i]
    s ^= s << 13
    s ^= s >> 7
    s ^= s << 17
    seed[i] = s
    u[i] = (s >> 12) * 2.220446049250313e-16


@pk.workunit
def infect(i, virus, pressure, shield, u, beta):
    if virus[i] < 0.05:
        if u[i] < 1.0 - exp(-beta * pressure[i] * (1.0 - shield[i])):
            virus[i] = 0.1


@pk.workunit
def growth(i, k, virus, shield):
    k[i] = virus[i] * (1.2 * (1.0 - virus[i]) - 2.5 * shield[i])


@pk.workunit
def response(i, k, virus, shield):
    k[i] = 0.8 * virus[i] * (1.0 - shield[i]) - 0.01 * shield[i]


@pk.workunit
def stage(i, out, a, k, h):
    out[i] = a[i] + h * k[i]


@pk.workunit
def recover(i, virus):
    if virus[i] < 0.01:
        virus[i] = 0.0


@pk.workunit
def ill(i, acc: pk.Acc[pk.int64], virus):
    if virus[i] > 0.05:
        acc += 1


@pk.workunit
def immunity(i, acc, shield):
    acc += shield[i]


@pk.workunit
def by_region(i, cases, virus, region):
    if virus[i] > 0.05:
        pk.atomic_increment(cases, [region[i]])


@pk.workunit
def vaccinate(i, shield, region, worst):
    if region[i] == worst:
        shield[i] = max(shield[i], 0.5)


@dataclass
class State:
    n: int
    side: int
    contact: pk.View
    cell: pk.View
    region: pk.View
    start: pk.View
    seeds: pk.View
    virus: pk.View
    shield: pk.View
    air: pk.View
    story: list


def people(n):
    side = max(int((n / 8) ** 0.5), 8)
    i = np.arange(n)
    away = (
        (rnd(n * CONTACTS, 22) - 0.5)
        * np.where(np.arange(n * CONTACTS) % CONTACTS == 5, 20_000, 60)
    ).astype(np.int64)
    contact = (np.repeat(i, CONTACTS) + away) % n
    cell = (i * side * side // n + (rnd(n, 23) * side * 4).astype(np.int64)) % (side * side)
    start = np.where(rnd(n, 24) < 0.02, 0.3, 0.0)
    seeds = (rnd(n, 25) * 2.0**53).astype(np.uint64) + np.uint64(1)
    return (
        side,
        contact.reshape(n, CONTACTS).astype(np.int32),
        cell.astype(np.int32),
        (i * REGIONS // n).astype(np.int32),
        start,
        seeds,
    )


def setup(n):
    side, *rest = people(n)
    views = []
    for a, t in zip(rest, (pk.int32, pk.int32, pk.int32, pk.double, pk.uint64)):
        views.append(pk.View(list(a.shape), t))
        views[-1].data[:] = a
    return State(
        n,
        side,
        *views,
        pk.View([n], pk.double),
        pk.View([n], pk.double),
        pk.View([side * side], pk.double),
        [],
    )


def run(s):
    n, cells = s.n, s.side * s.side
    virus, shield, air = s.virus, s.shield, s.air
    pressure, u, kv, ks, mv, ms = (pk.View([n], pk.double) for _ in range(6))
    seed, spare = pk.View([n], pk.uint64), pk.View([cells], pk.double)
    tally, cases = pk.View([cells], pk.int64), pk.View([REGIONS], pk.int32)
    pk.parallel_for(n, assign, out=virus, a=s.start)
    pk.parallel_for(n, assign, out=seed, a=s.seeds)
    pk.parallel_for(n, clear, a=shield)
    pk.parallel_for(cells, clear, a=air)
    beta, s.story = 0.3, []
    for _ in range(DAYS):
        pk.parallel_for(cells, clear, a=tally)
        pk.parallel_for(n, shed, tally=tally, virus=virus, cell=s.cell)
        pk.parallel_for(cells, breeze, out=spare, air=air, side=s.side, keep=0.6, spread=0.15)
        pk.parallel_for(cells, emit, air=spare, tally=tally)
        air, spare = spare, air
        pk.parallel_for(n, touch, pressure=pressure, virus=virus, contact=s.contact, count=CONTACTS)
        pk.parallel_for(n, breathe, pressure=pressure, air=air, cell=s.cell)
        pk.parallel_for(n, uniform, u=u, seed=seed)
        pk.parallel_for(n, infect, virus=virus, pressure=pressure, shield=shield, u=u, beta=beta)
        pk.parallel_for(n, growth, k=kv, virus=virus, shield=shield)
        pk.parallel_for(n, response, k=ks, virus=virus, shield=shield)
        pk.parallel_for(n, stage, out=mv, a=virus, k=kv, h=0.5)
        pk.parallel_for(n, stage, out=ms, a=shield, k=ks, h=0.5)
        pk.parallel_for(n, growth, k=kv, virus=mv, shield=ms)
        pk.parallel_for(n, response, k=ks, virus=mv, shield=ms)
        pk.parallel_for(n, stage, out=virus, a=virus, k=kv, h=1.0)
        pk.parallel_for(n, stage, out=shield, a=shield, k=ks, h=1.0)
        pk.parallel_for(n, recover, virus=virus)
        pk.parallel_for(REGIONS, clear, a=cases)
        pk.parallel_for(n, by_region, cases=cases, virus=virus, region=s.region)
        sick = pk.parallel_reduce(n, ill, virus=virus)
        immune = pk.parallel_reduce(n, immunity, shield=shield)
        worst = int(np.argmax(cases.data))
        pk.parallel_for(n, vaccinate, shield=shield, region=s.region, worst=worst)
        share = int(sick) / n
        beta = 0.15 if share > 0.2 else 0.3
        s.story += [share, float(immune) / n, float(worst)]
    s.now = air


def outputs(s):
    return {
        "virus": np.array(s.virus.data),
        "shield": np.array(s.shield.data),
        "air": np.array(s.now.data),
        "story": np.array(s.story),
    }


def check(s, size, runs):
    assert 0.0 < s.story[-3] < 1.0


if __name__ == "__main__":
    main(globals())
