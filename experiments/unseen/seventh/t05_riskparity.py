"""Risk parity of many assets under a three-factor model: preconditioned Barzilai-Borwein descent."""

from dataclasses import dataclass
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 4000, "default": 300_000, "large": 3_000_000}
LIMIT, TOLERANCE = 30, 1e-9


@pk.workunit
def start(i, w):
    w[i] = 1.0


@pk.workunit
def exposure(i, acc, b, w):
    acc += b[i] * w[i]


@pk.workunit
def marginal(i, m, b1, b2, b3, d, w, f1, f2, f3):
    m[i] = b1[i] * f1 + b2[i] * f2 + b3[i] * f3 + d[i] * w[i]


@pk.workunit
def gradient(i, g, m, w):
    g[i] = m[i] - 1.0 / w[i]


@pk.workunit
def curvature(i, c, w, d):
    c[i] = d[i] + 1.0 / (w[i] * w[i])


@pk.workunit
def precondition(i, z, g, c):
    z[i] = g[i] / c[i]


@pk.workunit
def dot(i, acc, x, y):
    acc += x[i] * y[i]


@pk.workunit
def stretch(i, acc, w, old, c):
    acc += (w[i] - old[i]) * (w[i] - old[i]) * c[i]


@pk.workunit
def secant(i, acc, w, old, g, gold):
    acc += (w[i] - old[i]) * (g[i] - gold[i])


@pk.workunit
def remember(i, old, x):
    old[i] = x[i]


@pk.workunit
def step(i, w, z, eta):
    v: float = w[i] - eta * z[i]
    w[i] = max(v, 0.2 * w[i])


@pk.workunit
def contribution(i, share, w, m):
    share[i] = w[i] * m[i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def normalise(i, w, sum_):
    w[i] /= sum_


@dataclass
class State:
    n: int
    b: list
    d: pk.View
    w: pk.View
    share: pk.View
    iterations: int = 0
    risk: float = 0.0


def setup(n):
    b = [view((rnd(n, 5 + k) * 1.5 - 0.3 * k) / np.sqrt(n)) for k in range(3)]
    return State(n, b, view(0.5 + rnd(n, 9)), pk.View([n], pk.double), pk.View([n], pk.double))


def run(s):
    n, (b1, b2, b3), d, w = s.n, s.b, s.d, s.w
    m, g, c, z, old, gold = (pk.View([n], pk.double) for _ in range(6))
    pk.parallel_for(n, start, w=w)
    eta = 0.5
    for k in range(LIMIT):
        f1 = pk.parallel_reduce(n, exposure, b=b1, w=w)
        f2 = pk.parallel_reduce(n, exposure, b=b2, w=w)
        f3 = pk.parallel_reduce(n, exposure, b=b3, w=w)
        pk.parallel_for(n, marginal, m=m, b1=b1, b2=b2, b3=b3, d=d, w=w, f1=f1, f2=f2, f3=f3)
        pk.parallel_for(n, gradient, g=g, m=m, w=w)
        pk.parallel_for(n, curvature, c=c, w=w, d=d)
        pk.parallel_for(n, precondition, z=z, g=g, c=c)
        norm = pk.parallel_reduce(n, dot, x=g, y=z)
        if k > 0:
            ss = pk.parallel_reduce(n, stretch, w=w, old=old, c=c)
            sy = pk.parallel_reduce(n, secant, w=w, old=old, g=g, gold=gold)
        if float(norm) / n < TOLERANCE:
            break
        if k > 0:
            eta = float(ss) / float(sy)
        pk.parallel_for(n, remember, old=old, x=w)
        pk.parallel_for(n, remember, old=gold, x=g)
        pk.parallel_for(n, step, w=w, z=z, eta=eta)
    s.iterations = k
    pk.parallel_for(n, contribution, share=s.share, w=w, m=m)
    s.risk = pk.parallel_reduce(n, total, x=s.share) / n
    pk.parallel_for(n, normalise, w=w, sum_=pk.parallel_reduce(n, total, x=w) / n)


def outputs(s):
    return {
        "w": np.array(s.w.data),
        "share": np.array(s.share.data),
        "iterations": s.iterations,
        "risk": float(s.risk),
    }


if __name__ == "__main__":
    main(globals())
