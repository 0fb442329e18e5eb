"""Barrier options in Heston's model by Monte Carlo: paths with a hash for random numbers.

The variance follows a full-truncation Euler scheme; paths that touch the barrier are knocked out.
"""

from dataclasses import dataclass, field
from math import cos, exp, log, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 50_000, "large": 1_000_000}
STEPS, SPOT, STRIKE, BARRIER, RATE = 6, 100.0, 98.0, 78.0, 0.02
KAPPA, THETA, VOL, RHO, V0, DT = 1.5, 0.05, 0.6, -0.7, 0.06, 1 / 12


@pk.function
def scramble(x: pk.uint32) -> pk.uint32:
    h: pk.uint32 = x
    h = (h ^ (h >> 16)) * 2146121005
    h = (h ^ (h >> 15)) * 2221713035
    return h ^ (h >> 16)


@pk.workunit
def begin(i: int, x, v, alive, average):
    x[i] = log(SPOT)
    v[i] = V0
    alive[i] = 1
    average[i] = 0.0


@pk.workunit
def uniforms(i: int, u1, u2, seed: pk.uint32):
    a: pk.uint32 = scramble(i + seed)
    b: pk.uint32 = scramble(a + 2654435769)
    u1[i] = (a + 0.5) / 4294967296.0
    u2[i] = (b + 0.5) / 4294967296.0


@pk.workunit
def normals(i: int, z1, z2, u1, u2):
    r: pk.double = sqrt(-2.0 * log(u1[i]))
    z1[i] = r * cos(6.283185307179586 * u2[i])
    z2[i] = r * sin(6.283185307179586 * u2[i])


@pk.workunit
def correlate(i: int, w, z1, z2):
    w[i] = RHO * z1[i] + sqrt(1.0 - RHO * RHO) * z2[i]


@pk.workunit
def price_step(i: int, x, v, z):
    positive: pk.double = max(v[i], 0.0)
    x[i] += (RATE - 0.5 * positive) * DT + sqrt(positive * DT) * z[i]


@pk.workunit
def variance_step(i: int, v, w):
    positive: pk.double = max(v[i], 0.0)
    v[i] += KAPPA * (THETA - positive) * DT + VOL * sqrt(positive * DT) * w[i]


@pk.workunit
def knock_out(i: int, alive, x, barrier: float):
    if x[i] < barrier:
        alive[i] = 0


@pk.workunit
def add_average(i: int, average, x):
    average[i] += exp(x[i]) / STEPS


@pk.workunit
def call(i: int, pay, level, alive, discount: float):
    pay[i] = 0.0
    if alive[i] == 1:
        pay[i] = discount * max(level[i] - STRIKE, 0.0)


@pk.workunit
def exponential(i: int, y, x):
    y[i] = exp(x[i])


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x):
    acc += x[i]


@pk.workunit
def deviation(i: int, acc: pk.Acc[pk.double], x, mean: float):
    acc += (x[i] - mean) * (x[i] - mean)


@pk.workunit
def survivors(i: int, acc: pk.Acc[pk.int64], alive):
    acc += alive[i]


@dataclass
class State:
    n: int
    x: pk.View
    v: pk.View
    pay: pk.View
    asian: pk.View
    results: list = field(default_factory=list)


def setup(n: int) -> State:
    return State(n, *(pk.View([n], pk.double) for _ in range(4)))


def run(s: State) -> None:
    n, x, v = s.n, s.x, s.v
    alive = pk.View([n], pk.uint8)
    u1, u2, z1, z2, w, level, average = (pk.View([n], pk.double) for _ in range(7))
    pk.parallel_for(n, begin, x=x, v=v, alive=alive, average=average)
    for step in range(STEPS):
        pk.parallel_for(n, uniforms, u1=u1, u2=u2, seed=7919 * (step + 1))
        pk.parallel_for(n, normals, z1=z1, z2=z2, u1=u1, u2=u2)
        pk.parallel_for(n, correlate, w=w, z1=z1, z2=z2)
        pk.parallel_for(n, price_step, x=x, v=v, z=z1)
        pk.parallel_for(n, variance_step, v=v, w=w)
        pk.parallel_for(n, knock_out, alive=alive, x=x, barrier=float(np.log(BARRIER)))
        pk.parallel_for(n, add_average, average=average, x=x)
    pk.parallel_for(n, exponential, y=level, x=x)
    discount = float(np.exp(-RATE * STEPS * DT))
    s.results = []
    for pay, what in ((s.pay, level), (s.asian, average)):
        pk.parallel_for(n, call, pay=pay, level=what, alive=alive, discount=discount)
        mean = pk.parallel_reduce(n, total, x=pay) / n
        spread = pk.parallel_reduce(n, deviation, x=pay, mean=mean) / (n - 1)
        s.results += [mean, spread]
    s.results.append(pk.parallel_reduce(n, survivors, alive=alive))


def outputs(s: State) -> dict:
    results = np.array([float(r) for r in s.results])
    return {"pay": np.array(s.pay.data), "v": np.array(s.v.data), "results": results}


def check(s: State, n: int) -> None:
    def hashed(x):
        x = (x ^ (x >> np.uint32(16))) * np.uint32(2146121005)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(2221713035)
        return x ^ (x >> np.uint32(16))

    x, v, alive, average = np.full(n, np.log(SPOT)), np.full(n, V0), np.ones(n, bool), np.zeros(n)
    for step in range(STEPS):
        a = hashed(np.arange(n, dtype=np.uint32) + np.uint32(7919 * (step + 1)))
        b = hashed(a + np.uint32(2654435769))
        u1, u2 = (a + 0.5) / 2**32, (b + 0.5) / 2**32
        r = np.sqrt(-2 * np.log(u1))
        z1, z2 = r * np.cos(2 * np.pi * u2), r * np.sin(2 * np.pi * u2)
        p = np.maximum(v, 0)
        x = x + (RATE - p / 2) * DT + np.sqrt(p * DT) * z1
        v = (
            v
            + KAPPA * (THETA - p) * DT
            + VOL * np.sqrt(p * DT) * (RHO * z1 + np.sqrt(1 - RHO**2) * z2)
        )
        alive &= x >= np.log(BARRIER)
        average += np.exp(x) / STEPS
    discount = np.exp(-RATE * STEPS * DT)
    for k, level in enumerate((np.exp(x), average)):
        pay = np.where(alive, discount * np.maximum(level - STRIKE, 0), 0)
        np.testing.assert_allclose(float(s.results[2 * k]), pay.mean(), rtol=1e-10)
        np.testing.assert_allclose(float(s.results[2 * k + 1]), pay.var(ddof=1), rtol=1e-10)
    assert int(s.results[4]) == alive.sum()


if __name__ == "__main__":
    main(globals())
