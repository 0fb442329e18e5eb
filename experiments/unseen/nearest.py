"""Nearest: the three nearest of a few hundred shops for each of many customers, and their mean.

Source: brute-force k nearest neighbours, T. Cover and P. Hart (1967). A workunit treats a customer.
"""

from math import sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 500, "default": 60_000, "large": 240_000}
SHOPS = 256


@pk.workunit
def find(i, first, second, third, x, y, shop_x, shop_y, shops):
    a: float = 1e30
    b: float = 1e30
    c: float = 1e30
    for k in range(shops):
        dx: float = x[i] - shop_x[k]
        dy: float = y[i] - shop_y[k]
        d: float = dx * dx + dy * dy
        if d < a:
            c = b
            b = a
            a = d
        elif d < b:
            c = b
            b = d
        elif d < c:
            c = d
    first[i] = a
    second[i] = b
    third[i] = c


@pk.workunit
def root(i, d):
    d[i] = sqrt(d[i])


@pk.workunit
def mean(i, m, a, b, c):
    m[i] = (a[i] + b[i] + c[i]) / 3.0


@pk.workunit
def total(i, acc, m):
    acc += m[i]


def setup(size):
    rng = np.random.default_rng(35)
    x, y, m = (pk.View([size], pk.double) for _ in range(3))
    shop_x, shop_y = (pk.View([SHOPS], pk.double) for _ in range(2))
    for view in (x, y, shop_x, shop_y):
        view.data[:] = rng.uniform(0.0, 1.0, len(view.data))
    return {"n": size, "x": x, "y": y, "m": m, "shop": (shop_x, shop_y), "mean": 0.0}


def run(state):
    n, (shop_x, shop_y) = state["n"], state["shop"]
    a, b, c = (pk.View([n], pk.double) for _ in range(3))
    pk.parallel_for(
        n, find, first=a, second=b, third=c, x=state["x"], y=state["y"], shop_x=shop_x,
        shop_y=shop_y, shops=SHOPS,
    )  # fmt: skip
    for d in (a, b, c):
        pk.parallel_for(n, root, d=d)
    pk.parallel_for(n, mean, m=state["m"], a=a, b=b, c=c)
    state["mean"] = float(pk.parallel_reduce(n, total, m=state["m"])) / n


def outputs(state):
    return {"m": np.array(state["m"].data), "mean": state["mean"]}


def check(state, size, runs):
    assert 0.0 < state["mean"] < 0.3, "mean"
