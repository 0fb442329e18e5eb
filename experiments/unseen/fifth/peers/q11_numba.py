"""Numba peer of q11: analysis, compression with synthesis; a loop a level each."""

from functools import partial
from math import sqrt

import numpy as np
from common import rnd, run_numba, total
from nb import inl, jit, rjit
from numba import prange

LEVELS, TAPS = 5, 12


@jit
def decimate(low, x, taps):
    n = len(x)
    m = len(low)
    for i in prange(m):
        v = 0.0
        if 3 <= i < m - 4:
            for k in range(12):
                v += taps[k] * x[2 * i + k - 5]
        else:
            for k in range(12):
                v += taps[k] * x[max(0, min(n - 1, 2 * i + k - 5))]
        low[i] = v


@inl
def inter(low, i, m):
    j = i // 2
    if 2 <= j < m - 2:
        if i % 2 == 0:
            return 0.0625 * (9.0 * (low[j - 1] + low[j]) - low[j - 2] - low[j + 1])
        return 0.0625 * (9.0 * (low[j] + low[j + 1]) - low[j - 1] - low[j + 2])
    if i % 2 == 0:
        return 0.0625 * (
            9.0 * (low[max(j - 1, 0)] + low[j]) - low[max(j - 2, 0)] - low[min(j + 1, m - 1)]
        )
    return 0.0625 * (
        9.0 * (low[j] + low[min(j + 1, m - 1)]) - low[max(j - 1, 0)] - low[min(j + 2, m - 1)]
    )


@rjit
def detail(band, x, low):
    e = 0.0
    m = len(low)
    for j in prange(m):
        for i in range(2 * j, 2 * j + 2):
            d = x[i] - inter(low, i, m)
            band[i] = d
            e += d * d
    if len(x) % 2:
        i = len(x) - 1
        d = x[i] - inter(low, i, m)
        band[i] = d
        e += d * d
    return e


@inl
def comp(band, i, n, level):
    v = 0.0
    if 4 <= i < n - 4:
        for k in range(-4, 5):
            v += abs(band[i + k])
    else:
        for k in range(-4, 5):
            v += abs(band[max(0, min(n - 1, i + k))])
    r = v / 9 / level
    return band[i] * (1.0 / sqrt(1.0 + 0.5 * r * r))


@jit
def synth(out, low, band, level):
    m = len(low)
    n = len(band)
    for i in prange(n):
        out[i] = inter(low, i, m) + comp(band, i, n, level)


@jit
def last(y, low, band, level, scale):
    m = len(low)
    n = len(band)
    c = 0
    for i in prange(n):
        v = (inter(low, i, m) + comp(band, i, n, level)) * scale
        w = np.int16(max(-32767.0, min(32767.0, v)))
        y[i] = w
        c += w == 32767 or w == -32767
    return c


def sound(n):
    t = np.arange(n)
    return (
        0.4 * np.sin(t * 0.013) * (1 + np.sin(t * 0.0007))
        + 0.2 * np.sin(t * 0.31)
        + 0.3 * (rnd(n, 21) - 0.5)
    )


def setup(n):
    t = np.sinc((np.arange(TAPS) - 5.5) / 2) * np.hanning(TAPS + 2)[1:-1]
    return {
        "x": sound(n),
        "t": t / t.sum(),
        "y": np.empty(n, np.int16),
        "scale": 30000.0,
        "lows": [np.empty(n >> k) for k in range(1, LEVELS + 1)],
        "bands": [np.empty(n >> k) for k in range(LEVELS)],
        "outs": [np.empty(n >> k) for k in range(LEVELS)],
    }


def step(s):
    x, n = s["x"], len(s["x"])
    s["e"] = []
    for low, band in zip(s["lows"], s["bands"]):
        decimate(low, x, s["t"])
        s["e"].append(detail(band, x, low))
        x = low
    whole = x
    for k in reversed(range(LEVELS)):
        level = sqrt(s["e"][k] / (n >> k)) + 0.000001
        if k:
            synth(s["outs"][k], whole, s["bands"][k], level)
            whole = s["outs"][k]
        else:
            s["clip"] = float(last(s["y"], whole, s["bands"][0], level, s["scale"]))
    s["scale"] *= 0.98 if s["clip"] > 0.001 * n else 1.01


def checksum(s):
    return total({"y": s["y"], "s": s["scale"], "c": s["clip"], "e": s["e"]})


run_numba = partial(run_numba, setup, step, checksum)
