# ruff: noqa: B905
"""An American put by least squares: paths from hashed numbers, exercise by regression at each date.

Geometric Brownian motion with one dividend; the sums of the normal equations are read at each date.
"""

from dataclasses import dataclass
from math import cos, exp, log, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 100_000, "large": 1_000_000}
DATES = 6


@pk.function
def scramble(x: pk.uint32) -> pk.uint32:
    h: pk.uint32 = (x ^ (x >> 16)) * 73244475
    h = (h ^ (h >> 16)) * 73244475
    return h ^ (h >> 16)


@pk.workunit
def uniform(i: int, u: pk.View1D[pk.double], seed: pk.uint32):
    """Between 0 and 1, both excluded."""
    key: pk.uint32 = i
    u[i] = (scramble(scramble(key) + seed) + 0.5) / 4294967296.0


@pk.workunit
def gaussian_pair(i: int, a: pk.View1D[pk.double], b: pk.View1D[pk.double]):
    """Two uniform numbers become two normal ones."""
    radius: pk.double = sqrt(-2.0 * log(a[i]))
    angle: pk.double = 6.283185307179586 * b[i]
    a[i] = radius * cos(angle)
    b[i] = radius * sin(angle)


@pk.workunit
def begin(i: int, s: pk.View1D[pk.double], spot: float):
    s[i] = spot


@pk.workunit
def grow(i: int, after, before, z, drift: float, volatility: float):
    after[i] = before[i] * exp(drift + volatility * z[i])


@pk.workunit
def dividend(i: int, s: pk.View1D[pk.double], amount: float):
    if s[i] > amount + amount:
        s[i] -= amount
    else:
        s[i] *= 0.5


@pk.workunit
def put(i: int, pay: pk.View1D[pk.double], s: pk.View1D[pk.double]):
    pay[i] = max(1.0 - s[i], 0.0)


@pk.workunit
def hold_to_the_end(i: int, cash, when, pay, last: int):
    cash[i] = pay[i]
    when[i] = last


@pk.workunit
def discount(i: int, cash: pk.View1D[pk.double], factor: float):
    cash[i] *= factor


@pk.workunit
def power_sum(i: int, acc: pk.Acc[pk.double], s, pay, power: int):
    if pay[i] > 0.0:
        term: pk.double = 1.0
        for _ in range(power):
            term *= s[i]
        acc += term


@pk.workunit
def cash_sum(i: int, acc: pk.Acc[pk.double], cash, s, pay, power: int):
    if pay[i] > 0.0:
        term: pk.double = cash[i]
        for _ in range(power):
            term *= s[i]
        acc += term


@pk.workunit
def exercise(i: int, cash, when, s, pay, date: int, c0: float, c1: float, c2: float):
    if pay[i] > 0.0 and pay[i] > c0 + s[i] * (c1 + s[i] * c2):
        cash[i] = pay[i]
        when[i] = date


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], cash: pk.View1D[pk.double]):
    acc += cash[i]


@pk.workunit
def variation(i: int, acc: pk.Acc[pk.double], cash: pk.View1D[pk.double], mean: float):
    acc += (cash[i] - mean) * (cash[i] - mean)


@pk.workunit
def early(i: int, acc: pk.Acc[pk.int64], when: pk.View1D[pk.uint8], last: int):
    if when[i] < last:
        acc += 1


@dataclass
class State:
    n: int
    seed: int
    spot: float
    rate: float
    volatility: float
    dividend: float
    cash: pk.View
    when: pk.View
    price: pk.View


def setup(n: int) -> State:
    cash, when, price = pk.View([n], pk.double), pk.View([n], pk.uint8), pk.View([3], pk.double)
    return State(n, 1234, 1.02, 0.06, 0.3, 0.03, cash, when, price)


def normal_equations(powers, right):
    matrix = [[powers[row + col] for col in range(3)] for row in range(3)]
    return [float(c) for c in np.linalg.solve(matrix, right)]


def run(s: State) -> None:
    n, cash, when = s.n, s.cash, s.when
    dt = 1.0 / DATES
    drift, volatility = (s.rate - 0.5 * s.volatility**2) * dt, s.volatility * sqrt(dt)
    factor = exp(-s.rate * dt)
    prices = [pk.View([n], pk.double) for _ in range(DATES + 1)]
    pk.parallel_for(n, begin, s=prices[0], spot=s.spot)
    for date in range(0, DATES, 2):
        a, b = pk.View([n], pk.double), pk.View([n], pk.double)
        pk.parallel_for(n, uniform, u=a, seed=s.seed + date)
        pk.parallel_for(n, uniform, u=b, seed=s.seed + date + 1)
        pk.parallel_for(n, gaussian_pair, a=a, b=b)
        for k, z in ((date, a), (date + 1, b)):
            pk.parallel_for(
                n,
                grow,
                after=prices[k + 1],
                before=prices[k],
                z=z,
                drift=drift,
                volatility=volatility,
            )
            if k + 1 == DATES // 2:
                pk.parallel_for(n, dividend, s=prices[k + 1], amount=s.dividend)
    pay = pk.View([n], pk.double)
    pk.parallel_for(n, put, pay=pay, s=prices[DATES])
    pk.parallel_for(n, hold_to_the_end, cash=cash, when=when, pay=pay, last=DATES)
    for date in range(DATES - 1, 0, -1):
        price, pay = prices[date], pk.View([n], pk.double)
        pk.parallel_for(n, discount, cash=cash, factor=factor)
        pk.parallel_for(n, put, pay=pay, s=price)
        powers = [pk.parallel_reduce(n, power_sum, s=price, pay=pay, power=p) for p in range(5)]
        right = [
            pk.parallel_reduce(n, cash_sum, cash=cash, s=price, pay=pay, power=p) for p in range(3)
        ]
        c0, c1, c2 = normal_equations([float(p) for p in powers], [float(r) for r in right])
        pk.parallel_for(
            n, exercise, cash=cash, when=when, s=price, pay=pay, date=date, c0=c0, c1=c1, c2=c2
        )
    pk.parallel_for(n, discount, cash=cash, factor=factor)
    mean = float(pk.parallel_reduce(n, total, cash=cash)) / n
    s.price[0] = mean
    s.price[1] = sqrt(float(pk.parallel_reduce(n, variation, cash=cash, mean=mean)) / (n - 1) / n)
    s.price[2] = int(pk.parallel_reduce(n, early, when=when, last=DATES)) / n


def outputs(s: State) -> dict:
    views = {"cash": s.cash, "when": s.when, "price": s.price}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    def hashed(x):
        for _ in range(2):
            x = ((x ^ (x >> 16)) * 73244475) & 0xFFFFFFFF
        return x ^ (x >> 16)

    def uniform(seed):
        return (hashed((hashed(np.arange(n, dtype=np.uint64)) + seed) & 0xFFFFFFFF) + 0.5) / 2.0**32

    dt, prices = 1 / DATES, [np.full(n, s.spot)]
    for date in range(DATES):
        pair = s.seed + date // 2 * 2
        wave = np.cos if date % 2 == 0 else np.sin
        z = np.sqrt(-2 * np.log(uniform(pair))) * wave(2 * np.pi * uniform(pair + 1))
        after = prices[-1] * np.exp(
            (s.rate - 0.5 * s.volatility**2) * dt + s.volatility * np.sqrt(dt) * z
        )
        if date + 1 == DATES // 2:
            after = np.where(after > 2 * s.dividend, after - s.dividend, after * 0.5)
        prices.append(after)
    factor = np.exp(-s.rate * dt)
    cash, when = np.maximum(1 - prices[-1], 0), np.full(n, DATES)
    for date in range(DATES - 1, 0, -1):
        cash = cash * factor
        x, pay = prices[date], np.maximum(1 - prices[date], 0)
        money = pay > 0
        basis = np.stack([x[money] ** p for p in range(3)], axis=1)
        c = np.linalg.lstsq(basis, cash[money], rcond=None)[0]
        now = money & (pay > c[0] + x * (c[1] + x * c[2]))
        cash, when = np.where(now, pay, cash), np.where(now, date, when)
    cash = cash * factor
    np.testing.assert_allclose(s.cash.data, cash, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(s.when.data, when)
    expected = [cash.mean(), cash.std(ddof=1) / np.sqrt(n), (when < DATES).mean()]
    np.testing.assert_allclose(s.price.data, expected, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
