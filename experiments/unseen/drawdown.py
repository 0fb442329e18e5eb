"""Drawdown: a trading record: returns, wealth over time, and what was lost since a moving mean.

One run makes 2 maps (positions to returns, returns to growth), a scan of them, 2 maps behind it
(wealth, difference to the wealth a month before) and 2 reductions.
"""

from math import exp, log

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 4_000_000, "large": 16_000_000}
MONTH = 21


@pk.workunit
def returns(i, r, price, position):
    r[i] = position[i] * (price[i + 1] - price[i]) / price[i]


@pk.workunit
def growth(i, g, r, fee):
    g[i] = log(1.0 + r[i]) - fee


@pk.workunit
def cumulate(i, acc, last_pass, upto, g):
    acc += g[i]
    if last_pass:
        upto[i] = acc


@pk.workunit
def wealth(i, w, upto):
    w[i] = exp(upto[i])


@pk.workunit
def fall(i, d, upto, month):
    d[i] = upto[i] - upto[i - month]


@pk.workunit
def total(i, acc, d):
    acc += d[i]


@pk.workunit
def square(i, acc, d):
    acc += d[i] * d[i]


def setup(size):
    rng = np.random.default_rng(22)
    price, position = pk.View([size + 1], pk.double), pk.View([size], pk.double)
    price.data[:] = 100.0 + rng.normal(0.0, 1.0, size + 1)
    position.data[:] = rng.choice([-0.01, 0.0, 0.01], size)
    w, d = (pk.View([size], pk.double) for _ in range(2))
    return {"n": size, "price": price, "position": position, "w": w, "d": d, "moments": (0, 0)}


def run(state):
    n, d = state["n"], state["d"]
    r, g, upto = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(n, returns, r=r, price=state["price"], position=state["position"])
    pk.parallel_for(n, growth, g=g, r=r, fee=1e-6)
    pk.parallel_scan(n, cumulate, upto=upto, g=g)
    pk.parallel_for(n, wealth, w=state["w"], upto=upto)
    late = pk.RangePolicy(MONTH, n)
    pk.parallel_for(late, fall, d=d, upto=upto, month=MONTH)
    first, second = pk.parallel_reduce(late, total, d=d), pk.parallel_reduce(late, square, d=d)
    state["moments"] = (float(first), float(second))


def outputs(state):
    return {"w": np.array(state["w"].data), "d": np.array(state["d"].data)}


def check(state, size, runs):
    assert np.array(state["w"].data).min() > 0.0, "wealth"
