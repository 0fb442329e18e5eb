"""Gradient boosting of stumps on binned features: integer histograms by atomics, gains, new scores."""

from dataclasses import dataclass, field
from math import exp, log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_500, "default": 50_000, "large": 1_000_000}
FEATURES, BINS, ROUNDS, RATE, UNIT = 6, 32, 3, 0.4, 65536.0


@pk.workunit
def zero(i: int, x: pk.View1D[pk.double]):
    x[i] = 0.0


@pk.workunit
def probability(i: int, p: pk.View1D[pk.double], score: pk.View1D[pk.double]):
    p[i] = 1.0 / (1.0 + exp(-score[i]))


@pk.workunit
def gradient(i: int, g: pk.View1D[pk.int32], p: pk.View1D[pk.double], label: pk.View1D[pk.uint8]):
    g[i] = int(UNIT * (label[i] - p[i]))


@pk.workunit
def curvature(i: int, h: pk.View1D[pk.int32], p: pk.View1D[pk.double]):
    h[i] = int(UNIT * p[i] * (1.0 - p[i])) + 1


@pk.workunit
def clear(f: int, b: int, hist: pk.View2D[pk.int64]):
    hist[f][b] = 0


@pk.workunit
def tally(
    i: int, hist: pk.View2D[pk.int64], feature: pk.View2D[pk.uint8], value: pk.View1D[pk.int32]
):
    for f in range(FEATURES):
        pk.atomic_add(hist, [f, feature[f][i]], value[i])


@pk.workunit
def cumulate(f: int, hist: pk.View2D[pk.int64]):
    for b in range(1, BINS):
        hist[f][b] += hist[f][b - 1]


@pk.workunit
def gain(f: int, b: int, out: pk.View2D[pk.double], g: pk.View2D[pk.int64], h: pk.View2D[pk.int64]):
    left: pk.double = g[f][b] / UNIT
    right: pk.double = (g[f][BINS - 1] - g[f][b]) / UNIT
    left_h: pk.double = h[f][b] / UNIT + 1.0
    right_h: pk.double = (h[f][BINS - 1] - h[f][b]) / UNIT + 1.0
    out[f][b] = left * left / left_h + right * right / right_h


@pk.workunit
def side(i: int, leaf: pk.View1D[pk.uint8], feature: pk.View1D[pk.uint8], threshold: int):
    if feature[i] <= threshold:
        leaf[i] = 0
    else:
        leaf[i] = 1


@pk.workunit
def raise_score(
    i: int, score: pk.View1D[pk.double], leaf: pk.View1D[pk.uint8], low: float, high: float
):
    if leaf[i] == 0:
        score[i] += low
    else:
        score[i] += high


@pk.workunit
def log_loss(
    i: int, acc: pk.Acc[pk.double], score: pk.View1D[pk.double], label: pk.View1D[pk.uint8]
):
    s: pk.double = score[i]
    if label[i] == 1:
        s = -s
    if s > 0.0:
        acc += s + log(1.0 + exp(-s))
    else:
        acc += log(1.0 + exp(s))


@pk.workunit
def mistakes(
    i: int, acc: pk.Acc[pk.int64], score: pk.View1D[pk.double], label: pk.View1D[pk.uint8]
):
    if (score[i] > 0.0) != (label[i] == 1):
        acc += 1


@dataclass
class State:
    n: int
    feature: pk.View
    label: pk.View
    score: pk.View
    stumps: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    wrong: int = 0


def setup(n: int) -> State:
    rng = np.random.default_rng(212)
    feature, label = pk.View([FEATURES, n], pk.uint8), pk.View([n], pk.uint8)
    x = rng.standard_normal((FEATURES, n))
    y = 1.5 * x[0] - x[1] * (x[2] > 0) + 0.5 * np.sign(x[3] - 0.5) + rng.logistic(size=n)
    feature.data[:] = np.clip((x + 3) / 6 * BINS, 0, BINS - 1).astype(np.uint8)
    label.data[:] = y > 0
    return State(n, feature, label, pk.View([n], pk.double))


def run(s: State) -> None:
    n, score, label = s.n, s.score, s.label
    table = pk.MDRangePolicy([0, 0], [FEATURES, BINS])
    p, leaf = pk.View([n], pk.double), pk.View([n], pk.uint8)
    g, h = pk.View([n], pk.int32), pk.View([n], pk.int32)
    sums_g, sums_h = (pk.View([FEATURES, BINS], pk.int64) for _ in range(2))
    gains = pk.View([FEATURES, BINS], pk.double)
    s.stumps, s.losses = [], []
    pk.parallel_for(n, zero, x=score)
    for _ in range(ROUNDS):
        pk.parallel_for(n, probability, p=p, score=score)
        pk.parallel_for(n, gradient, g=g, p=p, label=label)
        pk.parallel_for(n, curvature, h=h, p=p)
        for hist, value in ((sums_g, g), (sums_h, h)):
            pk.parallel_for(table, clear, hist=hist)
            pk.parallel_for(n, tally, hist=hist, feature=s.feature, value=value)
            pk.parallel_for(FEATURES, cumulate, hist=hist)
        pk.parallel_for(table, gain, out=gains, g=sums_g, h=sums_h)
        f, b = (int(k) for k in divmod(int(np.argmax(gains.data)), BINS))
        left, left_h = float(sums_g.data[f, b]), float(sums_h.data[f, b])
        right, right_h = float(sums_g.data[f, -1]) - left, float(sums_h.data[f, -1]) - left_h
        low, high = RATE * left / (left_h + UNIT), RATE * right / (right_h + UNIT)
        s.stumps += [f, b, low, high]
        pk.parallel_for(n, side, leaf=leaf, feature=s.feature[f, :], threshold=b)
        pk.parallel_for(n, raise_score, score=score, leaf=leaf, low=low, high=high)
        s.losses.append(pk.parallel_reduce(n, log_loss, score=score, label=label) / n)
    s.wrong = pk.parallel_reduce(n, mistakes, score=score, label=label)


def outputs(s: State) -> dict:
    numbers = np.array([float(x) for x in s.stumps + s.losses + [s.wrong]])
    return {"score": np.array(s.score.data), "numbers": numbers}


def check(s: State, n: int) -> None:
    feature, label, score = np.array(s.feature.data), np.array(s.label.data), np.zeros(n)
    for k in range(ROUNDS):
        p = 1 / (1 + np.exp(-score))
        g, h = (UNIT * (label - p)).astype(np.int64), (UNIT * p * (1 - p)).astype(np.int64) + 1
        best = (-1.0,)
        for f in range(FEATURES):
            for b in range(BINS):
                left = feature[f] <= b
                parts = [(g[q].sum(), h[q].sum()) for q in (left, ~left)]
                value = sum((a / UNIT) ** 2 / (c / UNIT + 1) for a, c in parts)
                if value > best[0] * (1 + 1e-12):
                    best = (value, f, b, [RATE * a / (c + UNIT) for a, c in parts])
        assert s.stumps[4 * k : 4 * k + 2] == [best[1], best[2]]
        np.testing.assert_allclose(s.stumps[4 * k + 2 : 4 * k + 4], best[3], rtol=1e-4)
        score += np.where(feature[best[1]] <= best[2], *s.stumps[4 * k + 2 : 4 * k + 4])
        loss = np.log1p(np.exp(np.where(label == 1, -score, score))).mean()
        np.testing.assert_allclose(float(s.losses[k]), loss, rtol=1e-12)
    np.testing.assert_allclose(s.score.data, score, atol=1e-13)
    assert int(s.wrong) == ((score > 0) != (label == 1)).sum() < 0.4 * n


if __name__ == "__main__":
    main(globals())
