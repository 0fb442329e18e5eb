"""Group statistics: count, sum and sum of squares of sales in each of eight regions.

The GROUP BY of a database with few groups, as one reduction a group and figure: 24 sums of one
column and its keys, after a map that turns prices and quantities into sales.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 4_000_000, "large": 16_000_000}
REGIONS = 8


@pk.workunit
def sale(i, s, price, quantity):
    s[i] = price[i] * quantity[i]


@pk.workunit
def count(i, acc, region, wanted):
    if region[i] == wanted:
        acc += 1.0


@pk.workunit
def amount(i, acc, region, s, wanted):
    if region[i] == wanted:
        acc += s[i]


@pk.workunit
def square(i, acc, region, s, wanted):
    if region[i] == wanted:
        acc += s[i] * s[i]


def setup(size):
    rng = np.random.default_rng(3)
    price, quantity = pk.View([size], pk.double), pk.View([size], pk.int32)
    region = pk.View([size], pk.int32)
    price.data[:] = rng.lognormal(2.0, 0.5, size)
    quantity.data[:] = rng.integers(1, 20, size)
    region.data[:] = rng.integers(0, REGIONS, size)
    return {"n": size, "price": price, "quantity": quantity, "region": region, "table": None}


def run(state):
    n, region = state["n"], state["region"]
    s = pk.View([n], pk.double)
    pk.parallel_for(n, sale, s=s, price=state["price"], quantity=state["quantity"])
    found = []
    for wanted in range(REGIONS):
        found.append(pk.parallel_reduce(n, count, region=region, wanted=wanted))
        found.append(pk.parallel_reduce(n, amount, region=region, s=s, wanted=wanted))
        found.append(pk.parallel_reduce(n, square, region=region, s=s, wanted=wanted))
    state["table"] = np.array([float(value) for value in found]).reshape(REGIONS, 3)


def outputs(state):
    return {"table": state["table"]}


def check(state, size, runs):
    assert state["table"][:, 0].sum() == size, "count"
