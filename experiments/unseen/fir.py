"""FIR: a receiver: mix to a lower frequency, filter with 32 taps, take every fourth sample, power.

Source: R. Lyons, "Understanding Digital Signal Processing" (2011), ch. 5 and 10.
"""

from math import cos, sin, sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 4_000_000, "large": 16_000_000}
TAPS, STEP = 32, 4


@pk.workunit
def mix(i, re, im, x, frequency):
    phase: float = frequency * (i % 1000)
    re[i] = x[i] * cos(phase)
    im[i] = -x[i] * sin(phase)


@pk.workunit
def filtered(i, y, x, taps, count, step):
    total: float = 0.0
    for k in range(count):
        total += taps[k] * x[step * i + k]
    y[i] = total


@pk.workunit
def magnitude(i, m, re, im):
    m[i] = sqrt(re[i] * re[i] + im[i] * im[i])


@pk.workunit
def power(i, acc, m):
    acc += m[i] * m[i]


def setup(size):
    rng = np.random.default_rng(34)
    x, m = pk.View([size], pk.double), pk.View([(size - TAPS) // STEP], pk.double)
    taps = pk.View([TAPS], pk.double)
    x.data[:] = rng.normal(0.0, 1.0, size)
    taps.data[:] = np.hamming(TAPS) / np.hamming(TAPS).sum()
    return {"n": size, "x": x, "m": m, "taps": taps, "power": 0.0}


def run(state):
    n, m, taps = state["n"], state["m"], state["taps"]
    few = (n - TAPS) // STEP
    re, im = (pk.View([n], pk.double) for _ in range(2))
    low_re, low_im = (pk.View([few], pk.double) for _ in range(2))
    pk.parallel_for(n, mix, re=re, im=im, x=state["x"], frequency=0.6283185307179586)
    for y, x in ((low_re, re), (low_im, im)):
        pk.parallel_for(few, filtered, y=y, x=x, taps=taps, count=TAPS, step=STEP)
    pk.parallel_for(few, magnitude, m=m, re=low_re, im=low_im)
    state["power"] = float(pk.parallel_reduce(few, power, m=m))


def outputs(state):
    return {"m": np.array(state["m"].data), "power": state["power"]}


def check(state, size, runs):
    assert state["power"] > 0.0, "power"
