# ruff: noqa: B905
"""One training step of a small classifier: layer, batch normalisation, leaky ReLU, layer, softmax.

Single precision but for sums and probabilities; every gradient of a weight is a reduction.
"""

from dataclasses import dataclass
from math import exp, log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 256, "default": 25_000, "large": 1_000_000}
IN, HIDDEN, OUT = 4, 4, 3
EPSILON = 1e-5


@pk.workunit
def layer(i: int, o: int, out, x, w):
    total: pk.float = 0.0
    for k in range(IN):
        total += x[i][k] * w[o][k]
    out[i][o] = total


@pk.workunit
def layer_with_bias(i: int, o: int, out, x, w, bias):
    total: pk.float = bias[o]
    for k in range(HIDDEN):
        total += x[i][k] * w[o][k]
    out[i][o] = total


@pk.workunit
def column_sum(i: int, acc: pk.Acc[pk.double], f, c: int):
    acc += f[i][c]


@pk.workunit
def column_spread(i: int, acc: pk.Acc[pk.double], f, c: int, centre: float):
    away: pk.double = f[i][c] - centre
    acc += away * away


@pk.workunit
def columns_dot(i: int, acc: pk.Acc[pk.double], a, b, row: int, column: int):
    acc += a[i][row] * b[i][column]


@pk.workunit
def normalise(i: int, c: int, out, z, mean, inverse):
    out[i][c] = (z[i][c] - mean[c]) * inverse[c]


@pk.workunit
def scale_shift(i: int, c: int, out, x, gamma, beta):
    out[i][c] = gamma[c] * x[i][c] + beta[c]


@pk.workunit
def leaky(i: int, c: int, out, x, slope: pk.float):
    if x[i][c] > 0.0:
        out[i][c] = x[i][c]
    else:
        out[i][c] = slope * x[i][c]


@pk.workunit
def softmax(i: int, p: pk.View2D[pk.double], z: pk.View2D[pk.float]):
    top: pk.float = max(z[i][0], z[i][1], z[i][2])
    total: pk.double = 0.0
    for k in range(OUT):
        away: pk.double = z[i][k] - top
        p[i][k] = exp(away)
        total += p[i][k]
    for k in range(OUT):
        p[i][k] /= total


@pk.workunit
def surprise(i: int, acc: pk.Acc[pk.double], p, label):
    acc -= log(p[i][label[i]])


@pk.workunit
def error(i: int, k: int, d, p, label):
    value: pk.double = p[i][k]
    if label[i] == k:
        value -= 1.0
    d[i][k] = value


@pk.workunit
def back_layer(i: int, k: int, out, d, w):
    total: pk.float = 0.0
    for o in range(OUT):
        total += d[i][o] * w[o][k]
    out[i][k] = total


@pk.workunit
def back_leaky(i: int, c: int, d, x, slope: pk.float):
    if not (x[i][c] > 0.0):
        d[i][c] *= slope


@pk.workunit
def back_normalise(i: int, c: int, out, d, x, gamma, inverse, mean_d, mean_dx):
    out[i][c] = gamma[c] * inverse[c] * (d[i][c] - mean_d[c] - x[i][c] * mean_dx[c])


@pk.workunit
def descend(r: int, c: int, new, old, slope, rate: float):
    new[r][c] = old[r][c] - rate * slope[r][c]


@pk.workunit
def descend_row(c: int, new, old, slope, rate: float):
    new[c] = old[c] - rate * slope[c]


@pk.workunit
def decide(i: int, guess, sure, p):
    best: int = 0
    for k in range(1, OUT):
        if p[i][k] > p[i][best]:
            best = k
    guess[i] = best
    sure[i] = p[i][best]


@pk.workunit
def right(i: int, acc: pk.Acc[pk.int64], guess, label):
    if guess[i] == label[i]:
        acc += 1


@dataclass
class State:
    n: int
    x: pk.View
    label: pk.View
    w1: pk.View
    w2: pk.View
    bias: pk.View
    gamma: pk.View
    beta: pk.View
    new_w1: pk.View
    new_w2: pk.View
    new_bias: pk.View
    new_gamma: pk.View
    new_beta: pk.View
    guess: pk.View
    sure: pk.View
    scores: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(18)
    x, label = pk.View([n, IN], pk.float), pk.View([n], pk.uint8)
    x.data[:] = rng.normal(size=(n, IN)) * [1, 2, 0.5, 1] + 0.3
    score = np.stack([x.data[:, 0] * x.data[:, 1], x.data[:, 2] * 3, 1 - x.data[:, 3] ** 2], axis=1)
    label.data[:] = (score + 0.3 * rng.normal(size=(n, OUT))).argmax(axis=1)
    weights = []
    for _ in range(2):  # the old ones and the new ones
        for shape in ([HIDDEN, IN], [OUT, HIDDEN], [OUT], [HIDDEN], [HIDDEN]):
            weights.append(pk.View(shape, pk.float))
    weights[0].data[:], weights[1].data[:] = (
        rng.normal(size=(HIDDEN, IN)),
        rng.normal(size=(OUT, HIDDEN)),
    )
    weights[2].data[:], weights[3].data[:], weights[4].data[:] = 0.1, 1.1, 0.05
    guess, sure = pk.View([n], pk.uint8), pk.View([n], pk.double)
    return State(n, x, label, *weights, guess, sure, pk.View([3], pk.double))


def run(s: State) -> None:
    n, x, label, slope, rate = s.n, s.x, s.label, 0.1, 0.5
    hidden, classes = pk.MDRangePolicy([0, 0], [n, HIDDEN]), pk.MDRangePolicy([0, 0], [n, OUT])

    def wide():
        return pk.View([n, HIDDEN], pk.float)

    mean, inverse, mean_d, mean_dx = (pk.View([HIDDEN], pk.float) for _ in range(4))

    def forward(w1, w2, bias, gamma, beta, learn):
        z, norm, y, h, out, p = (
            wide(),
            wide(),
            wide(),
            wide(),
            pk.View([n, OUT], pk.float),
            pk.View([n, OUT], pk.double),
        )
        pk.parallel_for(hidden, layer, out=z, x=x, w=w1)
        if learn:
            for c in range(HIDDEN):
                centre = float(pk.parallel_reduce(n, column_sum, f=z, c=c)) / n
                spread = float(pk.parallel_reduce(n, column_spread, f=z, c=c, centre=centre)) / n
                mean[c] = centre
                inverse[c] = 1.0 / (spread + EPSILON) ** 0.5
        pk.parallel_for(hidden, normalise, out=norm, z=z, mean=mean, inverse=inverse)
        pk.parallel_for(hidden, scale_shift, out=y, x=norm, gamma=gamma, beta=beta)
        pk.parallel_for(hidden, leaky, out=h, x=y, slope=slope)
        pk.parallel_for(classes, layer_with_bias, out=out, x=h, w=w2, bias=bias)
        pk.parallel_for(n, softmax, p=p, z=out)
        return norm, y, h, p

    norm, y, h, p = forward(s.w1, s.w2, s.bias, s.gamma, s.beta, True)
    s.scores[0] = float(pk.parallel_reduce(n, surprise, p=p, label=label)) / n
    d, dy, dz = pk.View([n, OUT], pk.float), wide(), wide()
    pk.parallel_for(classes, error, d=d, p=p, label=label)
    slope1, slope2 = pk.View([HIDDEN, IN], pk.double), pk.View([OUT, HIDDEN], pk.double)
    slope_bias, slope_gamma, slope_beta = (
        pk.View([OUT], pk.double),
        *(pk.View([HIDDEN], pk.double) for _ in range(2)),
    )
    sums = [
        [pk.parallel_reduce(n, columns_dot, a=d, b=h, row=o, column=k) for k in range(HIDDEN)]
        for o in range(OUT)
    ]
    biases = [pk.parallel_reduce(n, column_sum, f=d, c=o) for o in range(OUT)]
    for o in range(OUT):
        slope_bias[o] = float(biases[o]) / n
        for k in range(HIDDEN):
            slope2[o, k] = float(sums[o][k]) / n
    pk.parallel_for(hidden, back_layer, out=dy, d=d, w=s.w2)
    pk.parallel_for(hidden, back_leaky, d=dy, x=y, slope=slope)
    betas = [pk.parallel_reduce(n, column_sum, f=dy, c=c) for c in range(HIDDEN)]
    gammas = [
        pk.parallel_reduce(n, columns_dot, a=dy, b=norm, row=c, column=c) for c in range(HIDDEN)
    ]
    for c in range(HIDDEN):
        slope_beta[c] = mean_d[c] = float(betas[c]) / n
        slope_gamma[c] = mean_dx[c] = float(gammas[c]) / n
    pk.parallel_for(
        hidden,
        back_normalise,
        out=dz,
        d=dy,
        x=norm,
        gamma=s.gamma,
        inverse=inverse,
        mean_d=mean_d,
        mean_dx=mean_dx,
    )
    sums = [
        [pk.parallel_reduce(n, columns_dot, a=dz, b=x, row=o, column=k) for k in range(IN)]
        for o in range(HIDDEN)
    ]
    for o in range(HIDDEN):
        for k in range(IN):
            slope1[o, k] = float(sums[o][k]) / n
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [HIDDEN, IN]),
        descend,
        new=s.new_w1,
        old=s.w1,
        slope=slope1,
        rate=rate,
    )
    pk.parallel_for(
        pk.MDRangePolicy([0, 0], [OUT, HIDDEN]),
        descend,
        new=s.new_w2,
        old=s.w2,
        slope=slope2,
        rate=rate,
    )
    pk.parallel_for(OUT, descend_row, new=s.new_bias, old=s.bias, slope=slope_bias, rate=rate)
    pk.parallel_for(HIDDEN, descend_row, new=s.new_gamma, old=s.gamma, slope=slope_gamma, rate=rate)
    pk.parallel_for(HIDDEN, descend_row, new=s.new_beta, old=s.beta, slope=slope_beta, rate=rate)
    p = forward(s.new_w1, s.new_w2, s.new_bias, s.new_gamma, s.new_beta, False)[3]
    s.scores[1] = float(pk.parallel_reduce(n, surprise, p=p, label=label)) / n
    pk.parallel_for(n, decide, guess=s.guess, sure=s.sure, p=p)
    s.scores[2] = int(pk.parallel_reduce(n, right, guess=s.guess, label=label)) / n


def outputs(s: State) -> dict:
    views = {
        "w1": s.new_w1,
        "w2": s.new_w2,
        "bias": s.new_bias,
        "gamma": s.new_gamma,
        "beta": s.new_beta,
        "guess": s.guess,
        "sure": s.sure,
        "scores": s.scores,
    }
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    """In double precision."""
    x, label = np.array(s.x.data).astype(float), np.array(s.label.data)
    w1, w2, bias, gamma, beta = (
        np.array(v.data).astype(float) for v in (s.w1, s.w2, s.bias, s.gamma, s.beta)
    )

    def forward(w1, w2, bias, gamma, beta):
        norm = (x @ w1.T - mean) * inverse
        y = gamma * norm + beta
        h = np.where(y > 0, y, 0.1 * y)
        e = np.exp(h @ w2.T + bias)
        return norm, y, h, e / e.sum(axis=1, keepdims=True)

    mean = (x @ w1.T).mean(axis=0)
    inverse = 1 / np.sqrt((x @ w1.T).var(axis=0) + EPSILON)
    norm, y, h, p = forward(w1, w2, bias, gamma, beta)
    first = -np.log(p[np.arange(n), label]).mean()
    d = p - (np.arange(OUT) == label[:, None])
    dy = d @ w2 * np.where(y > 0, 1, 0.1)
    slopes = [None, d.T @ h / n, d.mean(axis=0), (dy * norm).mean(axis=0), dy.mean(axis=0)]
    dz = gamma * inverse * (dy - slopes[4] - norm * slopes[3])
    slopes[0] = dz.T @ x / n
    new = [old - 0.5 * slope for old, slope in zip((w1, w2, bias, gamma, beta), slopes)]
    for view, expected in zip((s.new_w1, s.new_w2, s.new_bias, s.new_gamma, s.new_beta), new):
        np.testing.assert_allclose(view.data, expected, rtol=1e-4, atol=1e-5)
    p = forward(*new)[3]
    np.testing.assert_allclose(s.sure.data, p.max(axis=1), rtol=1e-4)
    second = -np.log(p[np.arange(n), label]).mean()
    expected = [first, second, (p.argmax(axis=1) == label).mean()]
    np.testing.assert_allclose(s.scores.data, expected, rtol=1e-3)


if __name__ == "__main__":
    main(globals())
