"""Label spreading (Zhou et al. 2003) on a weighted graph in CSR, until the scores hardly change."""

from dataclasses import dataclass
from math import sqrt
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 800, "default": 60_000, "large": 500_000}
CLASSES, ALPHA, TOLERANCE, LIMIT = 4, 0.8, 1e-4, 30


@pk.workunit
def degree(i, isd, start, weight):
    v: float = 0.0
    for e in range(start[i], start[i + 1]):
        v += weight[e]
    isd[i] = 1.0 / sqrt(v)


@pk.workunit
def seed(i, y, f, label, classes):
    for c in range(classes):
        y[i][c] = 0.0
    if label[i] >= 0:
        y[i][label[i]] = 1.0
    for c in range(classes):
        f[i][c] = y[i][c]


@pk.workunit
def scale(i, h, f, isd, classes):
    for c in range(classes):
        h[i][c] = isd[i] * f[i][c]


@pk.workunit
def gather(i, q, h, start, neighbour, weight, classes):
    for c in range(classes):
        q[i][c] = 0.0
    for e in range(start[i], start[i + 1]):
        for c in range(classes):
            q[i][c] += weight[e] * h[neighbour[e]][c]


@pk.workunit
def mix(i, f, q, y, alpha, classes):
    for c in range(classes):
        f[i][c] = alpha * q[i][c] + (1.0 - alpha) * y[i][c]


@pk.workunit
def change(i, acc, f, g, classes):
    for c in range(classes):
        acc += abs(f[i][c] - g[i][c])


@pk.workunit
def decide(i, label, sure, f, classes):
    best: int = 0
    sum_: float = 0.0
    for c in range(classes):
        sum_ += f[i][c]
        if f[i][c] > f[i][best]:
            best = c
    label[i] = best
    sure[i] = f[i][best] / max(sum_, 1e-30)


@pk.workunit
def weak(i, acc, sure):
    if sure[i] < 0.5:
        acc += 1.0


@dataclass
class State:
    n: int
    start: pk.View
    neighbour: pk.View
    weight: pk.View
    given: pk.View
    label: pk.View
    sure: pk.View
    f: pk.View
    iterations: int = 0
    weak: float = 0.0


def setup(n):
    count = 4 + (rnd(n, 11) * 9).astype(np.int32)
    start = np.zeros(n + 1, np.int32)
    start[1:] = np.cumsum(count)
    m = int(start[-1])
    row = np.repeat(np.arange(n), count)
    r = rnd(m, 12)
    near = (row + 1 + (r * 40).astype(np.int64)) % n
    far = (rnd(m, 13) * n).astype(np.int64)
    neighbour = np.where(rnd(m, 14) < 0.8, near, far).astype(np.int32)
    weight = 0.1 + rnd(m, 15)
    given = np.where(rnd(n, 16) < 0.05, (np.arange(n) * CLASSES // n), -1).astype(np.int32)
    return State(
        n,
        view(start, pk.int32),
        view(neighbour, pk.int32),
        view(weight),
        view(given, pk.int32),
        pk.View([n], pk.int32),
        pk.View([n], pk.double),
        pk.View([n, CLASSES], pk.double),
    )


def run(s):
    n, k = s.n, CLASSES
    isd = pk.View([n], pk.double)
    y, f, g, h, q = (pk.View([n, k], pk.double) for _ in range(5))
    pk.parallel_for(n, degree, isd=isd, start=s.start, weight=s.weight)
    pk.parallel_for(n, seed, y=y, f=f, label=s.given, classes=k)
    for it in range(LIMIT):
        pk.parallel_for(n, scale, h=h, f=f, isd=isd, classes=k)
        pk.parallel_for(
            n, gather, q=q, h=h, start=s.start, neighbour=s.neighbour, weight=s.weight, classes=k
        )
        pk.parallel_for(n, scale, h=q, f=q, isd=isd, classes=k)
        pk.parallel_for(n, mix, f=g, q=q, y=y, alpha=ALPHA, classes=k)
        f, g = g, f
        if float(pk.parallel_reduce(n, change, f=f, g=g, classes=k)) < TOLERANCE * n:
            break
    pk.parallel_for(n, decide, label=s.label, sure=s.sure, f=f, classes=k)
    s.weak = pk.parallel_reduce(n, weak, sure=s.sure)
    s.f, s.iterations = f, it


def outputs(s):
    return {
        "f": np.array(s.f.data),
        "label": np.array(s.label.data),
        "sure": np.array(s.sure.data),
        "iterations": s.iterations,
        "weak": float(s.weak),
    }


if __name__ == "__main__":
    main(globals())
