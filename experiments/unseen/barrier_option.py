"""Barrier option: Monte Carlo paths of a price that pays only if it never falls below a barrier.

Source: P. Glasserman, "Monte Carlo Methods in Financial Engineering" (2003), ch. 6, with the
Brownian bridge between dates, whose exponential matters only to paths that are still alive.
A date makes 5 maps; the payoff's two sums follow.
"""

from math import cos, exp, log, sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 1_000_000, "large": 4_000_000}
DATES, RATE, VOLATILITY, DT = 4, 0.03, 0.3, 0.25
SPOT, STRIKE, BARRIER = 100.0, 105.0, 85.0


@pk.workunit
def start(i, x, alive, spot):
    x[i] = spot
    alive[i] = 1.0


@pk.workunit
def shuffle(i, u, seed):
    seed[i] = seed[i] * 1664525 + 1013904223
    u[i] = (seed[i] + 0.5) / 4294967296.0


@pk.workunit
def normal(i, z, u, w):
    z[i] = sqrt(-2.0 * log(u[i])) * cos(6.283185307179586 * w[i])


@pk.workunit
def step(i, new, x, z, drift, deviation):
    new[i] = x[i] + drift + deviation * z[i]


@pk.workunit
def bridge(i, alive, new, x, barrier, variance):
    if new[i] <= barrier:
        alive[i] = 0.0
    elif alive[i] > 0.0:
        alive[i] *= 1.0 - exp(-2.0 * (x[i] - barrier) * (new[i] - barrier) / variance)


@pk.workunit
def accept(i, x, new):
    x[i] = new[i]


@pk.workunit
def payoff(i, p, x, alive, strike, discount):
    p[i] = 0.0
    if alive[i] > 0.0:
        p[i] = discount * alive[i] * fmax_zero(exp(x[i]) - strike)


@pk.function
def fmax_zero(a: float) -> float:
    if a > 0.0:
        return a
    return 0.0


@pk.workunit
def total(i, acc, p):
    acc += p[i]


@pk.workunit
def square(i, acc, p):
    acc += p[i] * p[i]


def setup(size):
    rng = np.random.default_rng(27)
    seed = pk.View([size], pk.uint32)
    seed.data[:] = rng.integers(0, 2**32, size, dtype=np.uint32)
    return {"n": size, "seed": seed, "value": (0.0, 0.0)}


def run(state):
    n, seed = state["n"], state["seed"]
    x, new, alive, u, w, z, p = (pk.View([n], pk.double) for _ in range(7))
    drift, variance = (RATE - 0.5 * VOLATILITY**2) * DT, VOLATILITY**2 * DT
    pk.parallel_for(n, start, x=x, alive=alive, spot=np.log(SPOT))
    for _ in range(DATES):
        pk.parallel_for(n, shuffle, u=u, seed=seed)
        pk.parallel_for(n, shuffle, u=w, seed=seed)
        pk.parallel_for(n, normal, z=z, u=u, w=w)
        pk.parallel_for(n, step, new=new, x=x, z=z, drift=drift, deviation=variance**0.5)
        pk.parallel_for(
            n, bridge, alive=alive, new=new, x=x, barrier=np.log(BARRIER), variance=variance
        )
        pk.parallel_for(n, accept, x=x, new=new)
    discount = np.exp(-RATE * DT * DATES)
    pk.parallel_for(n, payoff, p=p, x=x, alive=alive, strike=STRIKE, discount=discount)
    first, second = pk.parallel_reduce(n, total, p=p), pk.parallel_reduce(n, square, p=p)
    state["value"] = (float(first) / n, float(second) / n)


def outputs(state):
    return {"value": np.array(state["value"])}


def check(state, size, runs):
    assert 0.0 < state["value"][0] < SPOT, "value"
