# ruff: noqa: E501
"""What the guarantees of variable annuities cost: a scenario of fund and interest for each policy.

Deaths pay the highest anniversary value, lapses depend on the value of the guarantee; the mean loss,
its 95th percentile by counting, and the mean beyond it.
"""

from dataclasses import dataclass
from math import cos, exp, log, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 100_000, "large": 2_000_000}
YEARS, BINS, LEVEL = 6, 1024, 0.95
R0, KAPPA, THETA, SIGMA = 0.02, 0.15, 0.03, 0.008
VOLATILITY, RHO, FEE, CHARGE, ROLL_UP = 0.18, -0.25, 0.012, 0.04, 1.01


@pk.workunit
def begin(i: int, state, fund, guarantee, alive, rate, discount, loss, seed, premium):
    state[i] = seed[i]
    fund[i] = premium[i]
    guarantee[i] = premium[i]
    alive[i] = 1.0
    rate[i] = R0
    discount[i] = 1.0
    loss[i] = 0.0


@pk.workunit
def draw(i: int, state, uniform):
    x: pk.uint32 = state[i]
    x = x ^ (x << 13)
    x = x ^ (x >> 17)
    x = x ^ (x << 5)
    state[i] = x
    uniform[i] = (x + 0.5) * 2.3283064365386963e-10


@pk.workunit
def normals(i: int, za, zb, ua, ub):
    radius: pk.double = sqrt(-2.0 * log(ua[i]))
    angle: pk.double = 6.283185307179586 * ub[i]
    za[i] = radius * cos(angle)
    zb[i] = radius * sin(angle)


@pk.workunit
def invest(i: int, fund, rate, za, zb):
    z: pk.double = RHO * za[i] + sqrt(1.0 - RHO * RHO) * zb[i]
    fund[i] *= exp(rate[i] - FEE - 0.5 * VOLATILITY * VOLATILITY + VOLATILITY * z)


@pk.workunit
def interest(i: int, discount, rate, za):
    discount[i] *= exp(-rate[i])
    rate[i] += KAPPA * (THETA - rate[i]) + SIGMA * za[i]


@pk.workunit
def ratchet(i: int, guarantee, fund):
    guarantee[i] = max(guarantee[i] * ROLL_UP, fund[i])


@pk.workunit
def exits(i: int, deaths, lapses, alive, age, fund, guarantee, year: int):
    q: pk.double = 0.00003 * exp(0.095 * (age[i] + year))
    deaths[i] = alive[i] * min(q, 1.0)
    moneyness: pk.double = fund[i] / guarantee[i]
    share: pk.double = 0.06 * moneyness * moneyness
    if moneyness < 0.5:
        share = 0.005
    lapses[i] = (alive[i] - deaths[i]) * share


@pk.workunit
def costs(i: int, loss, discount, alive, deaths, lapses, fund, guarantee):
    paid: pk.double = deaths[i] * max(guarantee[i] - fund[i], 0.0)
    earned: pk.double = fund[i] * (FEE * alive[i] + CHARGE * lapses[i])
    loss[i] += discount[i] * (paid - earned)


@pk.workunit
def decrement(i: int, alive, deaths, lapses):
    alive[i] -= deaths[i] + lapses[i]


@pk.workunit
def maturity(i: int, loss, discount, alive, fund, guarantee):
    loss[i] += discount[i] * alive[i] * max(guarantee[i] - fund[i], 0.0)


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], loss):
    acc += loss[i]


@pk.workunit
def squares(i: int, acc: pk.Acc[pk.double], loss, mean):
    acc += (loss[i] - mean) * (loss[i] - mean)


@pk.workunit
def count(i: int, counts, loss, low: float, scale: float):
    b: int = int((loss[i] - low) * scale)
    if b > BINS - 1:
        b = BINS - 1
    pk.atomic_add(counts, [b], 1)


@pk.workunit
def cumulate(b: int, acc: pk.Acc[pk.int64], last: bool, cumulative, counts):
    acc += counts[b]
    if last:
        cumulative[b] = acc


@pk.workunit
def excess(i: int, acc: pk.Acc[pk.double], loss, threshold: float):
    acc += max(loss[i] - threshold, 0.0)


@dataclass
class State:
    n: int
    seed: pk.View
    premium: pk.View
    age: pk.View
    loss: pk.View
    alive: pk.View
    mean: float = 0.0
    deviation: float = 0.0
    threshold: float = 0.0
    tail: float = 0.0


def setup(n: int) -> State:
    random = np.random.default_rng(7)
    seed = pk.View([n], pk.uint32)
    premium, age, loss, alive = (pk.View([n], pk.double) for _ in range(4))
    seed.data[:] = random.integers(1, 2**32, n, dtype=np.uint32)
    premium.data[:] = random.uniform(10.0, 100.0, n)
    age.data[:] = np.floor(random.uniform(45.0, 75.0, n))
    return State(n, seed, premium, age, loss, alive)


def run(s: State) -> None:
    n, loss, alive, age = s.n, s.loss, s.alive, s.age
    state = pk.View([n], pk.uint32)
    ua, ub, za, zb, fund, guarantee = (pk.View([n], pk.double) for _ in range(6))
    rate, discount, deaths, lapses = (pk.View([n], pk.double) for _ in range(4))
    pk.parallel_for(
        n, begin, state=state, fund=fund, guarantee=guarantee, alive=alive, rate=rate,
        discount=discount, loss=loss, seed=s.seed, premium=s.premium,
    )  # fmt: skip
    policy = {"fund": fund, "guarantee": guarantee}
    for year in range(YEARS):
        pk.parallel_for(n, draw, state=state, uniform=ua)
        pk.parallel_for(n, draw, state=state, uniform=ub)
        pk.parallel_for(n, normals, za=za, zb=zb, ua=ua, ub=ub)
        pk.parallel_for(n, invest, fund=fund, rate=rate, za=za, zb=zb)
        pk.parallel_for(n, interest, discount=discount, rate=rate, za=za)
        pk.parallel_for(n, ratchet, **policy)
        leaving = {"deaths": deaths, "lapses": lapses, "alive": alive}
        pk.parallel_for(n, exits, age=age, year=year, **leaving, **policy)
        pk.parallel_for(n, costs, loss=loss, discount=discount, **leaving, **policy)
        pk.parallel_for(n, decrement, **leaving)
    pk.parallel_for(n, maturity, loss=loss, discount=discount, alive=alive, **policy)
    mean = pk.parallel_reduce(n, total, loss=loss) / n
    variance = pk.parallel_reduce(n, squares, loss=loss, mean=mean) / n
    s.mean, s.deviation = float(mean), sqrt(float(variance))

    counts, cumulative = pk.View([BINS], pk.int64), pk.View([BINS], pk.int64)
    low, high = float(loss.data.min()), float(loss.data.max())
    pk.parallel_for(n, count, counts=counts, loss=loss, low=low, scale=BINS / (high - low))
    pk.parallel_scan(BINS, cumulate, cumulative=cumulative, counts=counts)
    b = int(np.searchsorted(cumulative.data, LEVEL * n))
    s.threshold = low + b * (high - low) / BINS
    over = pk.parallel_reduce(n, excess, loss=loss, threshold=s.threshold)
    s.tail = s.threshold + float(over) / (n * (1.0 - LEVEL))


def outputs(s: State) -> dict:
    figures = np.array([s.mean, s.deviation, s.threshold, s.tail])
    return {"loss": np.array(s.loss.data), "alive": np.array(s.alive.data), "figures": figures}


def check(s: State, n: int) -> None:
    x, fund, age = (np.array(v.data) for v in (s.seed, s.premium, s.age))
    best, alive, rate, discount = fund.copy(), np.ones(n), np.full(n, R0), np.ones(n)
    loss = np.zeros(n)
    for year in range(YEARS):
        u = []
        for _ in range(2):
            x = x ^ (x << np.uint32(13))
            x = x ^ (x >> np.uint32(17))
            x = x ^ (x << np.uint32(5))
            u.append((x + 0.5) * 2.0**-32)
        radius, angle = np.sqrt(-2 * np.log(u[0])), 2 * np.pi * u[1]
        za, zb = radius * np.cos(angle), radius * np.sin(angle)
        z = RHO * za + np.sqrt(1 - RHO**2) * zb
        fund = fund * np.exp(rate - FEE - 0.5 * VOLATILITY**2 + VOLATILITY * z)
        discount = discount * np.exp(-rate)
        rate = rate + KAPPA * (THETA - rate) + SIGMA * za
        best = np.maximum(best * ROLL_UP, fund)
        deaths = alive * np.minimum(0.00003 * np.exp(0.095 * (age + year)), 1)
        money = fund / best
        lapses = (alive - deaths) * np.where(money < 0.5, 0.005, 0.06 * money**2)
        paid = deaths * np.maximum(best - fund, 0)
        loss += discount * (paid - fund * (FEE * alive + CHARGE * lapses))
        alive = alive - deaths - lapses
    loss += discount * alive * np.maximum(best - fund, 0)
    np.testing.assert_allclose(s.alive.data, alive, rtol=1e-10)
    np.testing.assert_allclose(s.loss.data, loss, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([s.mean, s.deviation], [loss.mean(), loss.std()], rtol=1e-9)
    assert abs(s.threshold - np.quantile(loss, LEVEL)) < 2 * np.ptp(loss) / BINS
    over = np.maximum(loss - s.threshold, 0).mean() / (1 - LEVEL)
    np.testing.assert_allclose(s.tail, s.threshold + over, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
