"""Attention in heads: scores Q K^T, a softmax in parts, weighted values; maps over boxes.

Source: A. Vaswani et al., "Attention Is All You Need" (2017).
"""

from math import exp

import numpy as np
import pykokkos as pk

SIZES = {"small": 16, "default": 128, "large": 256}
HEADS, WIDTH = 16, 32


@pk.workunit
def scores(h, i, j, s, q, k, d: int, scale):
    total: float = 0.0
    for c in range(d):
        total += q[h][i][c] * k[h][j][c]
    s[h][i][j] = total * scale


@pk.workunit
def weights(h, i, s, t: int):
    top: float = s[h][i][0]
    for j in range(t):
        top = max(top, s[h][i][j])
    total: float = 0.0
    for j in range(t):
        s[h][i][j] = exp(s[h][i][j] - top)
        total += s[h][i][j]
    for j in range(t):
        s[h][i][j] = s[h][i][j] / total


@pk.workunit
def values(h, i, c, y, s, v, t: int):
    total: float = 0.0
    for j in range(t):
        total += s[h][i][j] * v[h][j][c]
    y[h][i][c] = total


def setup(size):
    rng = np.random.default_rng(52)
    state = {"t": size}
    for name in "qkvy":
        state[name] = pk.View([HEADS, size, WIDTH], pk.double)
        state[name].data[:] = rng.standard_normal((HEADS, size, WIDTH))
    return state


def run(state):
    t = state["t"]
    s = pk.View([HEADS, t, t], pk.double)
    box = pk.MDRangePolicy([0, 0, 0], [HEADS, t, t])
    pk.parallel_for(box, scores, s=s, q=state["q"], k=state["k"], d=WIDTH, scale=WIDTH**-0.5)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [HEADS, t]), weights, s=s, t=t)
    out = pk.MDRangePolicy([0, 0, 0], [HEADS, t, WIDTH])
    pk.parallel_for(out, values, y=state["y"], s=s, v=state["v"], t=t)


def outputs(state):
    return {"y": np.array(state["y"].data)}


def check(state, size, runs):
    q, k, v = (np.array(state[name].data) for name in "qkv")
    s = q @ k.transpose(0, 2, 1) * WIDTH**-0.5
    e = np.exp(s - s.max(axis=2, keepdims=True))
    expected = e / e.sum(axis=2, keepdims=True) @ v
    np.testing.assert_allclose(np.array(state["y"].data), expected, rtol=1e-9, atol=1e-12)
