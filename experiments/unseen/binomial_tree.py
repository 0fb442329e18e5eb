"""Binomial tree: American puts of many strikes, by level of the tree from the leaves to the root.

Source: J. Cox, S. Ross and M. Rubinstein (1979). Arrays are [node][option]; a level makes a map for
the value of holding and one for that of exercise, over one node less than the level before.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 100, "default": 20_000, "large": 80_000}
LEVELS = 24
UP, DISCOUNT, CHANCE = 1.03, 0.9995, 0.5


@pk.workunit
def leaf(k, o, value, strike, spot, up, levels):
    price: float = spot * up ** (2 * k - levels)
    value[k][o] = 0.0
    if strike[o] > price:
        value[k][o] = strike[o] - price


@pk.workunit
def hold(k, o, new, value, chance, discount):
    new[k][o] = discount * (chance * value[k + 1][o] + (1.0 - chance) * value[k][o])


@pk.workunit
def exercise(k, o, new, strike, price):
    if strike[o] - price[k] > new[k][o]:
        new[k][o] = strike[o] - price[k]


@pk.workunit
def prices(k, price, spot, up, level):
    price[k] = spot * up ** (2 * k - level)


def setup(size):
    strike = pk.View([size], pk.double)
    strike.data[:] = np.linspace(60.0, 140.0, size)
    return {"n": size, "strike": strike, "result": None}


def run(state):
    n, strike = state["n"], state["strike"]
    value, new = (pk.View([LEVELS + 1, n], pk.double) for _ in range(2))
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [LEVELS + 1, n]), leaf, value=value, strike=strike, spot=100.0,
        up=UP, levels=LEVELS,
    )  # fmt: skip
    for level in range(LEVELS - 1, -1, -1):
        nodes = pk.MDRangePolicy([0, 0], [level + 1, n])
        price = pk.View([level + 1], pk.double)
        pk.parallel_for(level + 1, prices, price=price, spot=100.0, up=UP, level=level)
        pk.parallel_for(nodes, hold, new=new, value=value, chance=CHANCE, discount=DISCOUNT)
        pk.parallel_for(nodes, exercise, new=new, strike=strike, price=price)
        value, new = new, value
    state["result"] = value


def outputs(state):
    return {"value": np.array(state["result"].data)[0]}


def check(state, size, runs):
    value = np.array(state["result"].data)[0]
    assert (np.diff(value) >= -1e-9).all(), "a put is worth more at a higher strike"
