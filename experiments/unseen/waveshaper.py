"""Waveshaper: an audio effect on a long recording: gain, soft clipping, a tone control, a dry mix.

Source: U. Zölzer, "DAFX: Digital Audio Effects" (2002), ch. 5. One run makes 4 maps over samples.
"""

from math import tanh

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 8_000_000, "large": 32_000_000}


@pk.workunit
def drive(i, y, x, gain, bias):
    y[i] = gain * x[i] + bias


@pk.workunit
def clip(i, y):
    y[i] = tanh(y[i])


@pk.workunit
def tone(i, z, y, k):
    z[i] = (1.0 - k) * y[i] + k * y[i - 1]


@pk.workunit
def mix(i, out, z, x, wet):
    out[i] = wet * z[i] + (1.0 - wet) * x[i]


def setup(size):
    x, out = (pk.View([size], pk.double) for _ in range(2))
    x.data[:] = np.sin(0.05 * np.arange(size)) + 0.3 * np.sin(0.31 * np.arange(size))
    return {"n": size, "x": x, "out": out}


def run(state):
    n = state["n"]
    y, z = (pk.View([n], pk.double) for _ in range(2))
    pk.parallel_for(n, drive, y=y, x=state["x"], gain=3.0, bias=0.1)
    pk.parallel_for(n, clip, y=y)
    pk.parallel_for(pk.RangePolicy(1, n), tone, z=z, y=y, k=0.3)
    pk.parallel_for(pk.RangePolicy(1, n), mix, out=state["out"], z=z, x=state["x"], wet=0.8)


def outputs(state):
    return {"out": np.array(state["out"].data)}


def check(state, size, runs):
    assert np.abs(np.array(state["out"].data)).max() < 1.5, "loud"
