"""Rows of a language model's head in float32: residual, RMS norm, rotary, gate, soft cap, softmax, loss."""

from dataclasses import dataclass
from math import exp, log, sqrt, tanh
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 64, "default": 20_000, "large": 250_000}
WIDTH, PERIOD, CAP = 64, 128, 5.0


@pk.workunit
def add(i, h, x, r, width):
    for j in range(width):
        h[i][j] = x[i][j] + r[i][j]


@pk.workunit
def mean_square(i, ms, h, width):
    v: float = 0.0
    for j in range(width):
        v += h[i][j] * h[i][j]
    ms[i] = v / width


@pk.workunit
def rescale(i, z, h, ms, weight, width):
    for j in range(width):
        z[i][j] = h[i][j] / sqrt(ms[i] + 1e-6) * weight[j]


@pk.workunit
def rotary(i, q, z, cs, sn, width, period):
    half = width // 2
    t = i % period
    for j in range(half):
        q[i][j] = z[i][j] * cs[t][j] - z[i][j + half] * sn[t][j]
        q[i][j + half] = z[i][j] * sn[t][j] + z[i][j + half] * cs[t][j]


@pk.workunit
def gate(i, a, q, h, width):
    """SwiGLU's product, without its matrices."""
    for j in range(width):
        a[i][j] = h[i][j] * q[i][j] / (1.0 + exp(-q[i][j]))


@pk.workunit
def cap(i, a, limit, width):
    for j in range(width):
        a[i][j] = limit * tanh(a[i][j] / limit)


@pk.workunit
def top(i, m, a, width):
    v: pk.float = a[i][0]
    for j in range(1, width):
        v = max(v, a[i][j])
    m[i] = v


@pk.workunit
def exponential(i, p, a, m, width):
    for j in range(width):
        p[i][j] = exp(a[i][j] - m[i])


@pk.workunit
def row_sum(i, t, p, width):
    v: float = 0.0
    for j in range(width):
        v += p[i][j]
    t[i] = v


@pk.workunit
def divide(i, p, t, width):
    for j in range(width):
        p[i][j] /= t[i]


@pk.workunit
def loss(i, acc, p, label):
    acc += -log(p[i][label[i]] + 1e-9)


@pk.workunit
def spread(i, acc, p, width):
    v: float = 0.0
    for j in range(width):
        v += p[i][j] * p[i][j]
    acc += v


@pk.workunit
def backward(i, dz, p, label, scale, width):
    for j in range(width):
        dz[i][j] = p[i][j] * scale
    dz[i][label[i]] -= scale


@dataclass
class State:
    n: int
    x: pk.View
    r: pk.View
    weight: pk.View
    cs: pk.View
    sn: pk.View
    label: pk.View
    h: pk.View
    dz: pk.View
    loss: float = 0.0
    spread: float = 0.0


def setup(n):
    def f(shape, seed, a, b):
        return view(
            (a + b * rnd(int(np.prod(shape)), seed).reshape(shape)).astype(np.float32), pk.float
        )

    label = (rnd(n, 41) * WIDTH).astype(np.int32)
    return State(
        n,
        f((n, WIDTH), 42, -1.0, 2.0),
        f((n, WIDTH), 43, -2.0, 4.0),
        f((WIDTH,), 44, 0.5, 1.0),
        f((PERIOD, WIDTH // 2), 45, 0.0, 1.0),
        f((PERIOD, WIDTH // 2), 46, 0.0, 1.0),
        view(label, pk.int32),
        pk.View([n, WIDTH], pk.float),
        pk.View([n, WIDTH], pk.float),
    )


def run(s):
    n, w, h = s.n, WIDTH, s.h
    z, q, a, p = (pk.View([n, w], pk.float) for _ in range(4))
    ms, m, t = (pk.View([n], pk.float) for _ in range(3))
    pk.parallel_for(n, add, h=h, x=s.x, r=s.r, width=w)
    pk.parallel_for(n, mean_square, ms=ms, h=h, width=w)
    pk.parallel_for(n, rescale, z=z, h=h, ms=ms, weight=s.weight, width=w)
    pk.parallel_for(n, rotary, q=q, z=z, cs=s.cs, sn=s.sn, width=w, period=PERIOD)
    pk.parallel_for(n, gate, a=a, q=q, h=h, width=w)
    pk.parallel_for(n, cap, a=a, limit=CAP, width=w)
    pk.parallel_for(n, top, m=m, a=a, width=w)
    pk.parallel_for(n, exponential, p=p, a=a, m=m, width=w)
    pk.parallel_for(n, row_sum, t=t, p=p, width=w)
    pk.parallel_for(n, divide, p=p, t=t, width=w)
    s.loss = pk.parallel_reduce(n, loss, p=p, label=s.label) / n
    s.spread = pk.parallel_reduce(n, spread, p=p, width=w) / n
    pk.parallel_for(n, backward, dz=s.dz, p=p, label=s.label, scale=1.0 / n, width=w)


def outputs(s):
    return {
        "h": np.array(s.h.data),
        "dz": np.array(s.dz.data) * s.n,
        "loss": float(s.loss),
        "spread": float(s.spread),
    }


if __name__ == "__main__":
    main(globals())
