"""A mixture of three normal distributions, fitted by expectation and maximisation.

Each step allocates what it needs: densities of the components on a logarithmic scale, the largest,
the logarithm of their sum, and the responsibilities; sums over these give new weights, means and
variances, until the likelihood stays.
"""

from dataclasses import dataclass, field
from math import log, pi

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_500, "default": 60_000, "large": 800_000}
PARTS, MOST, TOLERANCE = 3, 15, 2e-5


@pk.workunit
def log_density(
    i: int,
    out: pk.View2D[pk.double],
    x: pk.View1D[pk.double],
    k: int,
    mean: float,
    precision: float,
    constant: float,
):
    d: float = x[i] - mean
    out[i][k] = constant - 0.5 * precision * d * d


@pk.workunit
def largest(i: int, top: pk.View1D[pk.double], logs: pk.View2D[pk.double], parts: int):
    best: float = logs[i][0]
    for k in range(1, parts):
        best = max(best, logs[i][k])
    top[i] = best


@pk.workunit
def log_sum(
    i: int,
    out: pk.View1D[pk.double],
    logs: pk.View2D[pk.double],
    top: pk.View1D[pk.double],
    parts: int,
):
    s: float = 0.0
    for k in range(parts):
        s += pk.exp(logs[i][k] - top[i])
    out[i] = top[i] + pk.log(s)


@pk.workunit
def responsibility(
    i: int, k: int, r: pk.View2D[pk.double], logs: pk.View2D[pk.double], norm: pk.View1D[pk.double]
):
    r[i][k] = pk.exp(logs[i][k] - norm[i])


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@pk.workunit
def share(i: int, acc: pk.Acc[pk.double], r: pk.View2D[pk.double], k: int):
    acc += r[i][k]


@pk.workunit
def share_of(
    i: int, acc: pk.Acc[pk.double], r: pk.View2D[pk.double], x: pk.View1D[pk.double], k: int
):
    acc += r[i][k] * x[i]


@pk.workunit
def share_of_square(
    i: int,
    acc: pk.Acc[pk.double],
    r: pk.View2D[pk.double],
    x: pk.View1D[pk.double],
    k: int,
    mean: float,
):
    acc += r[i][k] * (x[i] - mean) * (x[i] - mean)


@pk.workunit
def most_likely(i: int, label: pk.View1D[pk.int32], r: pk.View2D[pk.double], parts: int):
    best: int = 0
    for k in range(1, parts):
        if r[i][k] > r[i][best]:
            best = k
    label[i] = best


@dataclass
class State:
    """The sample, its labels, the last responsibilities, the likelihoods and the parameters."""

    n: int
    x: pk.View
    label: pk.View
    last: list = field(default_factory=list)
    likelihood: list = field(default_factory=list)
    parameters: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(118)
    x, label = pk.View([n], pk.double), pk.View([n], pk.int32)
    which = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x.data[:] = np.array([-2.0, 1.0, 4.0])[which] + np.array([0.8, 0.6, 1.0])[
        which
    ] * rng.standard_normal(n)
    return State(n, x, label)


def step(x, n, weight, mean, variance):
    """The responsibilities, the likelihood and the new parameters."""
    logs = pk.View([n, PARTS], pk.double)
    for k in range(PARTS):
        constant = log(weight[k]) - 0.5 * log(2.0 * pi * variance[k])
        pk.parallel_for(
            n,
            log_density,
            out=logs,
            x=x,
            k=k,
            mean=mean[k],
            precision=1.0 / variance[k],
            constant=constant,
        )
    top, norm = pk.View([n], pk.double), pk.View([n], pk.double)
    pk.parallel_for(n, largest, top=top, logs=logs, parts=PARTS)
    pk.parallel_for(n, log_sum, out=norm, logs=logs, top=top, parts=PARTS)
    r = pk.View([n, PARTS], pk.double)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, PARTS]), responsibility, r=r, logs=logs, norm=norm)
    likelihood = float(pk.parallel_reduce(n, total, x=norm)) / n
    weights, means, variances = [], [], []
    for k in range(PARTS):
        s = float(pk.parallel_reduce(n, share, r=r, k=k))
        m = float(pk.parallel_reduce(n, share_of, r=r, x=x, k=k)) / s
        v = float(pk.parallel_reduce(n, share_of_square, r=r, x=x, k=k, mean=m)) / s
        weights.append(s / n)
        means.append(m)
        variances.append(v)
    return r, likelihood, weights, means, variances


def run(state: State) -> None:
    n = state.n
    weight, mean, variance = [1.0 / 3.0] * 3, [-1.5, 0.5, 3.0], [1.5, 1.5, 1.5]
    state.likelihood = []
    for _ in range(MOST):
        r, likelihood, weight, mean, variance = step(state.x, n, weight, mean, variance)
        state.likelihood.append(likelihood)
        if len(state.likelihood) > 1 and likelihood - state.likelihood[-2] < TOLERANCE:
            break
    pk.parallel_for(n, most_likely, label=state.label, r=r, parts=PARTS)
    state.last, state.parameters = [r], weight + mean + variance


def outputs(state: State) -> dict:
    return {
        "label": np.array(state.label.data),
        "r": np.array(state.last[0].data),
        "likelihood": np.array(state.likelihood),
        "parameters": np.array(state.parameters),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    x = np.array(setup(n).x.data)[:, None]
    weight, mean, variance = np.full(3, 1.0 / 3.0), np.array([-1.5, 0.5, 3.0]), np.full(3, 1.5)
    likelihood = []
    for _ in range(MOST):
        density = weight * np.exp(-0.5 * (x - mean) ** 2 / variance) / np.sqrt(2 * pi * variance)
        both = density.sum(axis=1, keepdims=True)
        likelihood.append(np.mean(np.log(both)))
        r = density / both
        s = r.sum(axis=0)
        mean = (r * x).sum(axis=0) / s
        variance = (r * (x - mean) ** 2).sum(axis=0) / s
        weight = s / n
        if len(likelihood) > 1 and likelihood[-1] - likelihood[-2] < TOLERANCE:
            break
    out = outputs(state)
    np.testing.assert_array_equal(out["label"], r.argmax(axis=1))
    np.testing.assert_allclose(out["r"], r, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out["likelihood"], likelihood, rtol=1e-11)
    np.testing.assert_allclose(out["parameters"], [*weight, *mean, *variance], rtol=1e-10)


if __name__ == "__main__":
    main(globals())
