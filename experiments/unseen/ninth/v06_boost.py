"""Gradient boosting: trees of depth 3 from histograms of binned features (quantised gradients)."""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 1_000, "default": 40_000, "large": 600_000}
TREES, DEPTH, FEATURES, BINS, RATE, LAMBDA, SCALE = 2, 3, 8, 32, 0.3, 1.0, 1024.0


@pk.function
def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + pk.exp(-x))


@pk.function
def score_of(g: float, h: float) -> float:
    return g * g / (h + 1.0)


@pk.workunit
def zero(i: int, v: pk.View1D[pk.double]):
    v[i] = 0.0


@pk.workunit
def predict(i: int, p: pk.View1D[pk.double], f: pk.View1D[pk.double]):
    p[i] = sigmoid(f[i])


@pk.workunit
def log_loss(i: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.double], label: pk.View1D[pk.uint8]):
    if label[i] == 1:
        acc -= pk.log(p[i])
    else:
        acc -= pk.log(1.0 - p[i])


@pk.workunit
def hits(i: int, acc: pk.Acc[pk.int64], p: pk.View1D[pk.double], label: pk.View1D[pk.uint8]):
    guess: int = 1 if p[i] > 0.5 else 0
    if guess == label[i]:
        acc += 1


@pk.workunit
def gradient(i: int, g: pk.View1D[pk.double], p: pk.View1D[pk.double], label: pk.View1D[pk.uint8]):
    g[i] = p[i] - label[i]


@pk.workunit
def curvature(i: int, h: pk.View1D[pk.double], p: pk.View1D[pk.double]):
    h[i] = p[i] * (1.0 - p[i])


@pk.workunit
def quantise(i: int, q: pk.View1D[pk.int32], v: pk.View1D[pk.double], scale: float):
    q[i] = pk.floor(v[i] * scale + 0.5)


@pk.workunit
def to_root(i: int, node: pk.View1D[pk.int32]):
    node[i] = 0


@pk.workunit
def clear(a: int, f: int, b: int, hist: pk.View3D[pk.int64]):
    hist[a][f][b] = 0


@pk.workunit
def build(
    i: int,
    hist: pk.View3D[pk.int64],
    bins: pk.View2D[pk.uint8],
    q: pk.View1D[pk.int32],
    node: pk.View1D[pk.int32],
    features: int,
):
    for f in range(features):
        pk.atomic_add(hist, [node[i], f, bins[i][f]], q[i])


@pk.workunit
def accumulate(a: int, f: int, total: pk.View3D[pk.int64], hist: pk.View3D[pk.int64], bins: int):
    """Sums up to each bin."""
    total[a][f][0] = hist[a][f][0]
    for b in range(1, bins):
        total[a][f][b] = total[a][f][b - 1] + hist[a][f][b]


@pk.workunit
def gain(
    a: int,
    f: int,
    b: int,
    out: pk.View3D[pk.double],
    tg: pk.View3D[pk.int64],
    th: pk.View3D[pk.int64],
    scale: float,
    bins: int,
):
    gl: float = tg[a][f][b] / scale
    hl: float = th[a][f][b] / scale
    g: float = tg[a][f][bins - 1] / scale
    h: float = th[a][f][bins - 1] / scale
    out[a][f][b] = score_of(gl, hl) + score_of(g - gl, h - hl) - score_of(g, h)


@pk.workunit
def best_split(
    a: int,
    feature: pk.View1D[pk.int32],
    cut: pk.View1D[pk.int32],
    value: pk.View3D[pk.double],
    features: int,
    bins: int,
):
    best: float = 0.0
    feature[a] = 0
    cut[a] = bins - 1
    for f in range(features):
        for b in range(bins - 1):
            if value[a][f][b] > best:
                best = value[a][f][b]
                feature[a] = f
                cut[a] = b


@pk.workunit
def route(
    i: int,
    node: pk.View1D[pk.int32],
    bins: pk.View2D[pk.uint8],
    feature: pk.View1D[pk.int32],
    cut: pk.View1D[pk.int32],
):
    right: int = 0
    if bins[i][feature[node[i]]] > cut[node[i]]:
        right = 1
    node[i] = 2 * node[i] + right


@pk.workunit
def clear_leaf(a: int, v: pk.View1D[pk.int64]):
    v[a] = 0


@pk.workunit
def leaf_sum(i: int, v: pk.View1D[pk.int64], q: pk.View1D[pk.int32], node: pk.View1D[pk.int32]):
    pk.atomic_add(v, [node[i]], q[i])


@pk.workunit
def leaf_value(
    a: int,
    value: pk.View1D[pk.double],
    g: pk.View1D[pk.int64],
    h: pk.View1D[pk.int64],
    scale: float,
    lam: float,
    rate: float,
):
    value[a] = -rate * (g[a] / scale) / (h[a] / scale + lam)


@pk.workunit
def update(i: int, f: pk.View1D[pk.double], value: pk.View1D[pk.double], node: pk.View1D[pk.int32]):
    f[i] += value[node[i]]


@dataclass
class State:
    size: int
    bins: pk.View
    label: pk.View
    f: pk.View
    leaves: pk.View
    loss: list = field(default_factory=list)
    right: list = field(default_factory=list)


def problem(n):
    rng = np.random.default_rng(6)
    bins = rng.integers(0, BINS, (n, FEATURES)).astype(np.uint8)
    x = bins / BINS
    z = (
        6 * (x[:, 0] > 0.6) * x[:, 1]
        - 3 * (x[:, 2] < 0.3)
        + 2 * x[:, 3]
        - 1.5
        + rng.normal(0, 0.5, n)
    )
    return bins, (z > 0).astype(np.uint8)


def setup(n):
    bins, label = problem(n)
    return State(
        n, view(bins), view(label), pk.View([n], pk.double), pk.View([2**DEPTH], pk.double)
    )


def grow(s):
    """One tree: adds its leaves' values to the predictions."""
    n = s.size
    p, g, h = (pk.View([n], pk.double) for _ in range(3))
    gq, hq, node = (pk.View([n], pk.int32) for _ in range(3))
    pk.parallel_for(n, predict, p=p, f=s.f)
    loss = pk.parallel_reduce(n, log_loss, p=p, label=s.label)
    right = pk.parallel_reduce(n, hits, p=p, label=s.label)
    pk.parallel_for(n, gradient, g=g, p=p, label=s.label)
    pk.parallel_for(n, curvature, h=h, p=p)
    pk.parallel_for(n, quantise, q=gq, v=g, scale=SCALE)
    pk.parallel_for(n, quantise, q=hq, v=h, scale=SCALE)
    pk.parallel_for(n, to_root, node=node)
    for depth in range(DEPTH):
        k = 2**depth
        hg, hh, tg, th = (pk.View([k, FEATURES, BINS], pk.int64) for _ in range(4))
        value = pk.View([k, FEATURES, BINS], pk.double)
        feature, cut = pk.View([k], pk.int32), pk.View([k], pk.int32)
        every = pk.MDRangePolicy([0, 0, 0], [k, FEATURES, BINS])
        rows = pk.MDRangePolicy([0, 0], [k, FEATURES])
        for hist, q, total in ((hg, gq, tg), (hh, hq, th)):
            pk.parallel_for(every, clear, hist=hist)
            pk.parallel_for(n, build, hist=hist, bins=s.bins, q=q, node=node, features=FEATURES)
            pk.parallel_for(rows, accumulate, total=total, hist=hist, bins=BINS)
        pk.parallel_for(every, gain, out=value, tg=tg, th=th, scale=SCALE, bins=BINS)
        pk.parallel_for(
            k, best_split, feature=feature, cut=cut, value=value, features=FEATURES, bins=BINS
        )
        pk.parallel_for(n, route, node=node, bins=s.bins, feature=feature, cut=cut)
    k = 2**DEPTH
    lg, lh = pk.View([k], pk.int64), pk.View([k], pk.int64)
    for leaf, q in ((lg, gq), (lh, hq)):
        pk.parallel_for(k, clear_leaf, v=leaf)
        pk.parallel_for(n, leaf_sum, v=leaf, q=q, node=node)
    pk.parallel_for(k, leaf_value, value=s.leaves, g=lg, h=lh, scale=SCALE, lam=LAMBDA, rate=RATE)
    pk.parallel_for(n, update, f=s.f, value=s.leaves, node=node)
    return loss, right


def run(s):
    pk.parallel_for(s.size, zero, v=s.f)
    s.loss, s.right = [], []
    for _ in range(TREES):
        loss, right = grow(s)
        s.loss.append(float(loss) / s.size)
        s.right.append(int(right))


def outputs(s):
    return {
        "f": np.array(s.f.data),
        "leaves": np.array(s.leaves.data),
        "loss": np.array(s.loss),
        "right": np.array(s.right),
    }


def check(s):
    n = s.size
    bins, label = problem(n)
    f = np.zeros(n)
    for t in range(TREES):
        p = 1 / (1 + np.exp(-f))
        loss = -np.where(label == 1, np.log(p), np.log(1 - p)).mean()
        np.testing.assert_allclose(s.loss[t], loss, rtol=1e-9)
        assert s.right[t] == ((p > 0.5) == label).sum()
        g, h = (np.floor(v * SCALE + 0.5).astype(np.int64) for v in (p - label, p * (1 - p)))
        node = np.zeros(n, dtype=np.int64)
        for depth in range(DEPTH):
            split = []
            for a in range(2**depth):
                at = node == a
                best = (0.0, 0, BINS - 1)
                for c in range(FEATURES):
                    gl, hl = (
                        np.cumsum(np.bincount(bins[at, c], v[at], BINS)) / SCALE for v in (g, h)
                    )
                    value = (
                        gl**2 / (hl + 1)
                        + (gl[-1] - gl) ** 2 / (hl[-1] - hl + 1)
                        - gl[-1] ** 2 / (hl[-1] + 1)
                    )
                    b = value[:-1].argmax()
                    if value[b] > best[0] * (1 + 1e-12):
                        best = (value[b], c, b)
                split.append(best[1:])
            split = np.array(split)
            node = 2 * node + (bins[np.arange(n), split[node, 0]] > split[node, 1])
        lg, lh = (np.bincount(node, v, 2**DEPTH) / SCALE for v in (g, h))
        leaves = -RATE * lg / (lh + LAMBDA)
        f += leaves[node]
    np.testing.assert_allclose(s.leaves.data, leaves, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(s.f.data, f, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    main(globals())
