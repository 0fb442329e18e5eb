"""Mandelbrot: steps until points escape, then a smooth colour and the picture's mean.

Source: B. Mandelbrot (1980). Points take between one and LIMIT steps.
"""

from math import log

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 600, "large": 1_500}
LIMIT = 100


@pk.workunit
def place(i, j, re, im, step):
    re[i][j] = -2.2 + step * j
    im[i][j] = -1.5 + step * i


@pk.workunit
def escape(i, j, steps, size2, re, im, limit):
    x: float = 0.0
    y: float = 0.0
    k: int = 0
    while k < limit and x * x + y * y < 16.0:
        new: float = x * x - y * y + re[i][j]
        y = 2.0 * x * y + im[i][j]
        x = new
        k += 1
    steps[i][j] = k
    size2[i][j] = x * x + y * y


@pk.workunit
def colour(i, j, c, steps, size2, limit):
    c[i][j] = 0.0
    if steps[i][j] < limit:
        c[i][j] = (steps[i][j] + 1.0 - log(0.5 * log(size2[i][j])) / 0.6931471805599453) / limit


@pk.workunit
def total(i, j, acc, c):
    acc += c[i][j]


def setup(size):
    return {"n": size, "c": pk.View([size, size], pk.double), "mean": 0.0}


def run(state):
    n, c = state["n"], state["c"]
    every = pk.MDRangePolicy([0, 0], [n, n])
    re, im, size2 = (pk.View([n, n], pk.double) for _ in range(3))
    steps = pk.View([n, n], pk.int32)
    pk.parallel_for(every, place, re=re, im=im, step=3.0 / n)
    pk.parallel_for(every, escape, steps=steps, size2=size2, re=re, im=im, limit=LIMIT)
    pk.parallel_for(every, colour, c=c, steps=steps, size2=size2, limit=LIMIT)
    state["mean"] = float(pk.parallel_reduce(every, total, c=c)) / n**2


def outputs(state):
    return {"c": np.array(state["c"].data), "mean": state["mean"]}


def check(state, size, runs):
    assert 0.0 < state["mean"] < 1.0, "mean"
