"""LAMB training steps of six tensors: clipping by the global norm, trust ratios by layer."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 500, "default": 1_500_000, "large": 2_200_000}
PARTS = ((1, 1), (1, 4), (1, 1), (1, 2), (1, 8), (1, 1))
STEPS = 2
RATE, BETA1, BETA2, EPS, DECAY, CLIP = 0.01, 0.9, 0.99, 1e-6, 0.01, 50.0


@pk.workunit
def gradient(i, g, w, target):
    d = w[i] - target[i]
    g[i] = d + 0.1 * d * d * d


@pk.workunit
def squares(i, acc, v):
    acc += v[i] * v[i]


@pk.workunit
def scale(i, v, factor):
    v[i] *= factor


@pk.workunit
def moment(i, m, g, beta):
    m[i] = beta * m[i] + (1.0 - beta) * g[i]


@pk.workunit
def second(i, v, g, beta):
    v[i] = beta * v[i] + (1.0 - beta) * g[i] * g[i]


@pk.workunit
def direction(i, u, m, v, c1, c2, eps):
    u[i] = m[i] / c1 / (pk.sqrt(v[i] / c2) + eps)


@pk.workunit
def decay(i, u, w, rate):
    u[i] += rate * w[i]


@pk.workunit
def apply(i, w, u, rate, w2, u2):
    """The trust ratio |w| / |u| scales the step."""
    w[i] -= rate * pk.sqrt(w2) / pk.sqrt(u2 + 1e-30) * u[i]


@dataclass
class State:
    sizes: list
    w: list
    target: list
    m: list
    v: list
    step: int = 0
    norm: float = 0.0
    loss: float = 0.0


def setup(size):
    sizes = [max(1, size * a // b) for a, b in PARTS]
    w, t, m, v = ([pk.View([n], pk.double) for n in sizes] for _ in range(4))
    for k, n in enumerate(sizes):
        w[k].data[:] = 2.0 * rnd(n, 30 + k) - 1.0
        t[k].data[:] = 2.0 * rnd(n, 40 + k) - 1.0
    return State(sizes, w, t, m, v)


def run(s):
    layers = range(len(s.sizes))
    g, u = ([pk.View([n], pk.double) for n in s.sizes] for _ in range(2))
    for _ in range(STEPS):
        s.step += 1
        norms = []
        for k in layers:
            pk.parallel_for(s.sizes[k], gradient, g=g[k], w=s.w[k], target=s.target[k])
            norms.append(pk.parallel_reduce(s.sizes[k], squares, v=g[k]))
        s.norm = sum(float(v) for v in norms) ** 0.5
        factor = min(1.0, CLIP / s.norm)
        c1, c2 = 1.0 - BETA1**s.step, 1.0 - BETA2**s.step
        for k in layers:
            n, w = s.sizes[k], s.w[k]
            pk.parallel_for(n, scale, v=g[k], factor=factor)
            pk.parallel_for(n, moment, m=s.m[k], g=g[k], beta=BETA1)
            pk.parallel_for(n, second, v=s.v[k], g=g[k], beta=BETA2)
            pk.parallel_for(n, direction, u=u[k], m=s.m[k], v=s.v[k], c1=c1, c2=c2, eps=EPS)
            pk.parallel_for(n, decay, u=u[k], w=w, rate=DECAY)
            w2 = pk.parallel_reduce(n, squares, v=w)
            u2 = pk.parallel_reduce(n, squares, v=u[k])
            pk.parallel_for(n, apply, w=w, u=u[k], rate=RATE, w2=w2, u2=u2)


def outputs(s):
    return {**{f"w{k}": np.array(v.data) for k, v in enumerate(s.w)}, "norm": s.norm}


def check(s, size, runs):
    assert np.isfinite(s.norm)


if __name__ == "__main__":
    main(globals())
