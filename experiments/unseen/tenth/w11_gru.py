"""Inference of a recurrent network (GRU) on a batch of sequences, in single precision.

For each time the update gate, the reset gate and the candidate are products of the input and of the
hidden state with weights, put through sigmoids and tanh; in the end a dense layer and a softmax
give the classes.
"""

from dataclasses import dataclass
from math import exp, tanh

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 16, "default": 1_000, "large": 40_000}
TIMES, INPUTS, HIDDEN, CLASSES = 10, 16, 32, 10


@pk.workunit
def clear(b: int, j: int, h: pk.View2D[pk.float]):
    h[b][j] = 0.0


@pk.workunit
def from_input(
    b: int,
    j: int,
    a: pk.View2D[pk.float],
    x: pk.View3D[pk.float],
    w: pk.View2D[pk.float],
    bias: pk.View1D[pk.float],
    t: int,
    inputs: int,
):
    s: pk.float = bias[j]
    for k in range(inputs):
        s += x[t][b][k] * w[k][j]
    a[b][j] = s


@pk.workunit
def from_hidden(
    b: int,
    j: int,
    a: pk.View2D[pk.float],
    h: pk.View2D[pk.float],
    u: pk.View2D[pk.float],
    hidden: int,
):
    s: pk.float = a[b][j]
    for k in range(hidden):
        s += h[b][k] * u[k][j]
    a[b][j] = s


@pk.workunit
def sigmoid(b: int, j: int, a: pk.View2D[pk.float]):
    a[b][j] = 1 / (1 + exp(-a[b][j]))


@pk.workunit
def tangent(b: int, j: int, a: pk.View2D[pk.float]):
    a[b][j] = tanh(a[b][j])


@pk.workunit
def gated(b: int, j: int, rh: pk.View2D[pk.float], r: pk.View2D[pk.float], h: pk.View2D[pk.float]):
    rh[b][j] = r[b][j] * h[b][j]


@pk.workunit
def blend(b: int, j: int, h: pk.View2D[pk.float], z: pk.View2D[pk.float], c: pk.View2D[pk.float]):
    h[b][j] = (1 - z[b][j]) * h[b][j] + z[b][j] * c[b][j]


@pk.workunit
def dense(
    b: int,
    c: int,
    y: pk.View2D[pk.float],
    h: pk.View2D[pk.float],
    w: pk.View2D[pk.float],
    hidden: int,
):
    s: pk.float = 0.0
    for k in range(hidden):
        s += h[b][k] * w[k][c]
    y[b][c] = s


@pk.workunit
def softmax(b: int, y: pk.View2D[pk.float], classes: int):
    top: pk.float = y[b][0]
    for c in range(1, classes):
        if y[b][c] > top:
            top = y[b][c]
    s: pk.float = 0.0
    for c in range(classes):
        y[b][c] = exp(y[b][c] - top)
        s += y[b][c]
    for c in range(classes):
        y[b][c] = y[b][c] / s


@pk.workunit
def confidence(b: int, acc: pk.Acc[pk.double], y: pk.View2D[pk.float], classes: int):
    top: pk.float = y[b][0]
    for c in range(1, classes):
        if y[b][c] > top:
            top = y[b][c]
    acc += top


@dataclass
class State:
    """Sequences, weights for input and hidden state, the hidden state, the classes' probabilities."""

    n: int
    x: pk.View
    w: list
    u: list
    bias: list
    out: pk.View
    h: pk.View
    y: pk.View
    sure: float = 0.0


def view_of(values) -> pk.View:
    view = pk.View(list(values.shape), pk.float)
    view.data[:] = values
    return view


def setup(n: int) -> State:
    rng = np.random.default_rng(111)
    x = view_of(rng.normal(0.0, 1.0, (TIMES, n, INPUTS)))
    w = [view_of(rng.normal(0.0, 0.4, (INPUTS, HIDDEN))) for _ in range(3)]
    u = [view_of(rng.normal(0.0, 0.25, (HIDDEN, HIDDEN))) for _ in range(3)]
    bias = [view_of(rng.normal(0.0, 0.1, HIDDEN)) for _ in range(3)]
    out = view_of(rng.normal(0.0, 0.5, (HIDDEN, CLASSES)))
    h, y = pk.View([n, HIDDEN], pk.float), pk.View([n, CLASSES], pk.float)
    return State(n, x, w, u, bias, out, h, y)


def run(state: State) -> None:
    n, x, h, y = state.n, state.x, state.h, state.y
    units = pk.MDRangePolicy([0, 0], [n, HIDDEN])
    z, r, c, rh = (pk.View([n, HIDDEN], pk.float) for _ in range(4))

    def layer(a, which, t, hidden):
        pk.parallel_for(
            units,
            from_input,
            a=a,
            x=x,
            w=state.w[which],
            bias=state.bias[which],
            t=t,
            inputs=INPUTS,
        )
        pk.parallel_for(units, from_hidden, a=a, h=hidden, u=state.u[which], hidden=HIDDEN)

    pk.parallel_for(units, clear, h=h)
    for t in range(TIMES):
        layer(z, 0, t, h)
        pk.parallel_for(units, sigmoid, a=z)
        layer(r, 1, t, h)
        pk.parallel_for(units, sigmoid, a=r)
        pk.parallel_for(units, gated, rh=rh, r=r, h=h)
        layer(c, 2, t, rh)
        pk.parallel_for(units, tangent, a=c)
        pk.parallel_for(units, blend, h=h, z=z, c=c)
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [n, CLASSES]), dense, y=y, h=h, w=state.out, hidden=HIDDEN
    )
    pk.parallel_for(n, softmax, y=y, classes=CLASSES)
    state.sure = float(pk.parallel_reduce(n, confidence, y=y, classes=CLASSES)) / n


def outputs(state: State) -> dict:
    return {"h": np.array(state.h.data), "y": np.array(state.y.data), "sure": state.sure}


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    x, out = (np.array(v.data, dtype=float) for v in (fresh.x, fresh.out))
    w, u, bias = (
        [np.array(v.data, dtype=float) for v in g] for g in (fresh.w, fresh.u, fresh.bias)
    )
    h = np.zeros((n, HIDDEN))
    for t in range(TIMES):
        z = 1 / (1 + np.exp(-(bias[0] + x[t] @ w[0] + h @ u[0])))
        r = 1 / (1 + np.exp(-(bias[1] + x[t] @ w[1] + h @ u[1])))
        c = np.tanh(bias[2] + x[t] @ w[2] + (r * h) @ u[2])
        h = (1 - z) * h + z * c
    y = np.exp(h @ out)
    y /= y.sum(1, keepdims=True)
    result = outputs(state)
    np.testing.assert_allclose(result["h"], h, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(result["y"], y, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(result["sure"], y.max(1).mean(), rtol=1e-5)


if __name__ == "__main__":
    main(globals())
