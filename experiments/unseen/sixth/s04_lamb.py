"""LAMB: gradients of a diagonal quadratic, clipped by the global norm, a trust ratio per layer."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 1_000, "default": 100_000, "large": 700_000}
STEPS = 2
LR, B1, B2, EPS, DECAY, CLIP = 1e-3, 0.9, 0.999, 1e-6, 0.01, 50.0


def layer_sizes(size):
    return [size, 2 * size, size // 4, 4 * size, size // 64, size]


@pk.workunit
def gradient(i, g, h, w, t):
    g[i] = h[i] * (w[i] - t[i])


@pk.workunit
def loss_sum(i, acc, g, w, t):
    acc += 0.5 * g[i] * (w[i] - t[i])


@pk.workunit
def squares(i, acc, x):
    acc += x[i] * x[i]


@pk.workunit
def clip(i, g, norm2, limit):
    if norm2 > limit * limit:
        g[i] *= limit / sqrt(norm2)


@pk.workunit
def first_moment(i, m, g, b):
    m[i] = b * m[i] + (1.0 - b) * g[i]


@pk.workunit
def second_moment(i, v, g, b):
    v[i] = b * v[i] + (1.0 - b) * g[i] * g[i]


@pk.workunit
def direction(i, r, m, v, c1, c2, eps):
    r[i] = (m[i] / c1) / (sqrt(v[i] / c2) + eps)


@pk.workunit
def weight_decay(i, r, w, decay):
    r[i] += decay * w[i]


@pk.workunit
def descend(i, w, r, rate):
    w[i] -= rate * r[i]


@dataclass
class Layer:
    n: int
    w: pk.View
    t: pk.View
    h: pk.View
    m: pk.View
    v: pk.View


@dataclass
class State:
    layers: list
    step: int = 0
    loss: float = 0.0
    norm2: float = 0.0


def setup(size):
    layers = []
    for k, n in enumerate(layer_sizes(size)):
        w, t, h = (rnd(n, 3 * k + j + 1) for j in range(3))
        layers.append(
            Layer(n, view(w), view(2.0 * t), view(h + 0.1), view(np.zeros(n)), view(np.zeros(n)))
        )
    return State(layers)


def train_step(s):
    s.step += 1
    c1, c2 = 1.0 - B1**s.step, 1.0 - B2**s.step
    grads, loss, norm2 = [], 0.0, 0.0
    for k in s.layers:
        g = pk.View([k.n], pk.double)
        pk.parallel_for(k.n, gradient, g=g, h=k.h, w=k.w, t=k.t)
        loss += pk.parallel_reduce(k.n, loss_sum, g=g, w=k.w, t=k.t)
        norm2 += pk.parallel_reduce(k.n, squares, x=g)
        grads.append(g)
    for k, g in zip(s.layers, grads, strict=True):
        r = pk.View([k.n], pk.double)
        pk.parallel_for(k.n, clip, g=g, norm2=norm2, limit=CLIP)
        pk.parallel_for(k.n, first_moment, m=k.m, g=g, b=B1)
        pk.parallel_for(k.n, second_moment, v=k.v, g=g, b=B2)
        pk.parallel_for(k.n, direction, r=r, m=k.m, v=k.v, c1=c1, c2=c2, eps=EPS)
        pk.parallel_for(k.n, weight_decay, r=r, w=k.w, decay=DECAY)
        w2 = pk.parallel_reduce(k.n, squares, x=k.w)
        r2 = pk.parallel_reduce(k.n, squares, x=r)
        pk.parallel_for(k.n, descend, w=k.w, r=r, rate=LR * (w2 / r2) ** 0.5)
    s.loss, s.norm2 = loss, norm2


def run(s):
    for _ in range(STEPS):
        train_step(s)


def outputs(s):
    out = {"loss": float(s.loss), "norm2": float(s.norm2)}
    for i, k in enumerate(s.layers):
        out[f"w{i}"], out[f"m{i}"], out[f"v{i}"] = (np.array(a.data) for a in (k.w, k.m, k.v))
    return out


if __name__ == "__main__":
    main(globals())
