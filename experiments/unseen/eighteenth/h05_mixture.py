# ruff: noqa: B905
"""Clusters of points in 3-D as a mixture of four Gaussians: expectation maximisation, then labels.

Points in single precision, (n, 3); each sum of the maximisation is a reduction that the host reads.
"""

from dataclasses import dataclass
from math import exp, log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 400, "default": 40_000, "large": 1_000_000}
STEPS, K, D = 2, 4, 3


@pk.workunit
def log_density(i: int, k: int, out, x, mean, variance, share):
    """But for a constant."""
    distance: pk.double = 0.0
    for d in range(D):
        away: pk.double = x[i][d] - mean[k][d]
        distance += away * away / variance[k][d]
    size: pk.double = variance[k][0] * variance[k][1] * variance[k][2]
    out[i][k] = log(share[k]) - 0.5 * (distance + log(size))


@pk.workunit
def largest(i: int, top: pk.View1D[pk.double], logs: pk.View2D[pk.double]):
    best: pk.double = logs[i][0]
    for k in range(1, K):
        if logs[i][k] > best:
            best = logs[i][k]
    top[i] = best


@pk.workunit
def normaliser(
    i: int, out: pk.View1D[pk.double], logs: pk.View2D[pk.double], top: pk.View1D[pk.double]
):
    total: pk.double = 0.0
    for k in range(K):
        total += exp(logs[i][k] - top[i])
    out[i] = top[i] + log(total)


@pk.workunit
def responsibility(i: int, k: int, r, logs, norm):
    r[i][k] = exp(logs[i][k] - norm[i])


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], f: pk.View1D[pk.double]):
    acc += f[i]


@pk.workunit
def weight_of(i: int, acc: pk.Acc[pk.double], r: pk.View2D[pk.double], k: int):
    acc += r[i][k]


@pk.workunit
def moment(i: int, acc: pk.Acc[pk.double], r, x, k: int, d: int):
    acc += r[i][k] * x[i][d]


@pk.workunit
def spread(i: int, acc: pk.Acc[pk.double], r, x, k: int, d: int, centre: float):
    away: pk.double = x[i][d] - centre
    acc += r[i][k] * away * away


@pk.workunit
def label(i: int, out: pk.View1D[pk.uint8], r: pk.View2D[pk.double], least: float):
    """Points that no cluster wants get the number K."""
    best: int = 0
    for k in range(1, K):
        if r[i][k] > r[i][best]:
            best = k
    if r[i][best] < least:
        best = K
    out[i] = best


@pk.workunit
def members(i: int, acc: pk.Acc[pk.int64], labels: pk.View1D[pk.uint8], k: int):
    if labels[i] == k:
        acc += 1


@dataclass
class State:
    n: int
    x: pk.View
    mean0: pk.View
    mean: pk.View
    variance: pk.View
    share: pk.View
    labels: pk.View
    counts: pk.View
    likelihood: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(15)
    centres = np.array([[0, 0, 0], [3, 0.5, -1], [-1, 2.5, 2], [1, -3, 1.5]])
    which = rng.choice(K, size=n, p=[0.4, 0.3, 0.2, 0.1])
    x, mean0, mean, variance = (
        pk.View([n, D], pk.float),
        *(pk.View([K, D], pk.double) for _ in range(3)),
    )
    x.data[:] = centres[which] + rng.normal(size=(n, D)) * (0.7 + 0.2 * which[:, None])
    mean0.data[:] = centres + 0.5 * rng.normal(size=(K, D))
    labels, counts = pk.View([n], pk.uint8), pk.View([K + 1], pk.int32)
    return State(
        n,
        x,
        mean0,
        mean,
        variance,
        pk.View([K], pk.double),
        labels,
        counts,
        pk.View([STEPS], pk.double),
    )


def run(s: State) -> None:
    n, x, mean, variance, share = s.n, s.x, s.mean, s.variance, s.share
    pairs = pk.MDRangePolicy([0, 0], [n, K])
    for k in range(K):
        share[k] = 1.0 / K
        for d in range(D):
            mean[k, d] = s.mean0[k, d]
            variance[k, d] = 1.0
    r = pk.View([n, K], pk.double)
    for step in range(STEPS):
        logs, top, norm = (
            pk.View([n, K], pk.double),
            pk.View([n], pk.double),
            pk.View([n], pk.double),
        )
        pk.parallel_for(
            pairs, log_density, out=logs, x=x, mean=mean, variance=variance, share=share
        )
        pk.parallel_for(n, largest, top=top, logs=logs)
        pk.parallel_for(n, normaliser, out=norm, logs=logs, top=top)
        pk.parallel_for(pairs, responsibility, r=r, logs=logs, norm=norm)
        s.likelihood[step] = float(pk.parallel_reduce(n, total, f=norm)) / n
        for k in range(K):
            weight = float(pk.parallel_reduce(n, weight_of, r=r, k=k))
            share[k] = weight / n
            sums = [pk.parallel_reduce(n, moment, r=r, x=x, k=k, d=d) for d in range(D)]
            centre = [float(total) / weight for total in sums]
            sums = [
                pk.parallel_reduce(n, spread, r=r, x=x, k=k, d=d, centre=centre[d])
                for d in range(D)
            ]
            for d in range(D):
                mean[k, d] = centre[d]
                variance[k, d] = float(sums[d]) / weight + 1e-6
    pk.parallel_for(n, label, out=s.labels, r=r, least=0.6)
    for k in range(K + 1):
        s.counts[k] = int(pk.parallel_reduce(n, members, labels=s.labels, k=k))


def outputs(s: State) -> dict:
    views = {
        "mean": s.mean,
        "variance": s.variance,
        "share": s.share,
        "labels": s.labels,
        "counts": s.counts,
        "likelihood": s.likelihood,
    }
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    x, mean = np.array(s.x.data).astype(float), np.array(s.mean0.data)
    variance, share = np.ones((K, D)), np.full(K, 1 / K)
    for step in range(STEPS):
        away = (x[:, None] - mean) ** 2 / variance
        logs = np.log(share) - 0.5 * (away.sum(axis=2) + np.log(variance).sum(axis=1))
        top = logs.max(axis=1)
        norm = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        r = np.exp(logs - norm[:, None])
        np.testing.assert_allclose(s.likelihood.data[step], norm.mean(), rtol=1e-10)
        weight = r.sum(axis=0)
        share, mean = weight / n, r.T @ x / weight[:, None]
        away = (x[:, None] - mean) ** 2
        variance = (r[:, :, None] * away).sum(axis=0) / weight[:, None] + 1e-6
    labels = np.where(r.max(axis=1) < 0.6, K, r.argmax(axis=1))
    for view, expected in ((s.mean, mean), (s.variance, variance), (s.share, share)):
        np.testing.assert_allclose(view.data, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(s.labels.data, labels)
    np.testing.assert_array_equal(s.counts.data, np.bincount(labels, minlength=K + 1))


if __name__ == "__main__":
    main(globals())
