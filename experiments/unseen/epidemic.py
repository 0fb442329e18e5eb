"""Epidemic: people who are susceptible, ill or immune, met at random, vaccinated by age.

Source: an agent-based SIR model, W. Kermack and A. McKendrick (1927). A day makes 2 random maps,
4 masked updates and 3 counts.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 3_000_000, "large": 12_000_000}
DAYS = 3


@pk.workunit
def draw(i, u, seed):
    seed[i] = seed[i] * 1664525 + 1013904223
    u[i] = seed[i] / 4294967296.0


@pk.workunit
def infect(i, status, days, u, chance):
    if status[i] == 0 and u[i] < chance:
        status[i] = 1
        days[i] = 0


@pk.workunit
def grow_older(i, days, status):
    if status[i] == 1:
        days[i] += 1


@pk.workunit
def recover(i, status, days, u, least):
    if status[i] == 1 and days[i] > least and u[i] < 0.5:
        status[i] = 2


@pk.workunit
def vaccinate(i, status, age, u, from_age):
    if status[i] == 0 and age[i] > from_age and u[i] > 0.99:
        status[i] = 2


@pk.workunit
def count(i, acc, status, wanted):
    if status[i] == wanted:
        acc += 1.0


def setup(size):
    rng = np.random.default_rng(38)
    status, days, age = (pk.View([size], pk.int32) for _ in range(3))
    seed = pk.View([size], pk.uint32)
    status.data[:] = rng.random(size) < 0.01
    age.data[:] = rng.integers(0, 90, size)
    seed.data[:] = rng.integers(0, 2**32, size, dtype=np.uint32)
    return {"n": size, "status": status, "days": days, "age": age, "seed": seed, "counts": []}


def run(state):
    n, status, days = state["n"], state["status"], state["days"]
    u, w = (pk.View([n], pk.double) for _ in range(2))
    ill = float(pk.parallel_reduce(n, count, status=status, wanted=1))
    for _ in range(DAYS):
        pk.parallel_for(n, draw, u=u, seed=state["seed"])
        pk.parallel_for(n, draw, u=w, seed=state["seed"])
        pk.parallel_for(n, infect, status=status, days=days, u=u, chance=0.8 * ill / n)
        pk.parallel_for(n, grow_older, days=days, status=status)
        pk.parallel_for(n, recover, status=status, days=days, u=w, least=2)
        pk.parallel_for(n, vaccinate, status=status, age=state["age"], u=w, from_age=65)
        counts = [pk.parallel_reduce(n, count, status=status, wanted=k) for k in range(3)]
        state["counts"].append([float(c) for c in counts])
        ill = state["counts"][-1][1]


def outputs(state):
    return {"counts": np.array(state["counts"]), "status": np.array(state["status"].data)}


def check(state, size, runs):
    assert sum(state["counts"][-1]) == size, "people"
