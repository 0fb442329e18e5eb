"""Two blocks of a ConvNeXt-like network on sequences, in float: inference with dropout left on.

Depthwise convolution, layer norm (one team a token), dense layers, GELU, dropout by a hash, residuals.
"""

from dataclasses import dataclass, field
from math import sqrt, tanh

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_024, "default": 32_768, "large": 1_048_576}
WIDTH, REACH, BLOCKS, KEEP = 32, 2, 2, 0.9


@pk.workunit
def copy(t: int, c: int, to, x):
    to[t][c] = x[t][c]


@pk.workunit
def depthwise(t: int, c: int, y, x, k, n: int):
    total: pk.float = 0.0
    for d in range(-REACH, REACH + 1):
        if t + d >= 0 and t + d < n:
            total += k[d + REACH][c] * x[t + d][c]
    y[t][c] = total


@pk.workunit
def layer_norm(team: pk.TeamMember, y, x, scale, shift):
    t: int = team.league_rank()

    def add(c: int, acc: pk.Acc[pk.double]):
        acc += x[t][c]

    mean: pk.double = pk.parallel_reduce(pk.TeamThreadRange(team, WIDTH), add) / WIDTH

    def add_square(c: int, acc: pk.Acc[pk.double]):
        acc += (x[t][c] - mean) * (x[t][c] - mean)

    spread: pk.double = pk.parallel_reduce(pk.TeamThreadRange(team, WIDTH), add_square) / WIDTH
    factor: pk.double = 1.0 / sqrt(spread + 1e-5)

    def store(c: int):
        y[t][c] = scale[c] * (x[t][c] - mean) * factor + shift[c]

    pk.parallel_for(pk.TeamThreadRange(team, WIDTH), store)


@pk.workunit
def dense(t: int, o: int, y, x, w, bias):
    total: pk.float = bias[o]
    for c in range(WIDTH):
        total += w[c][o] * x[t][c]
    y[t][o] = total


@pk.workunit
def gelu(t: int, c: int, x):
    v: pk.float = x[t][c]
    x[t][c] = 0.5 * v * (1.0 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


@pk.workunit
def dropout(t: int, c: int, x, seed: pk.uint32):
    h: pk.uint32 = t * WIDTH + c + seed
    h = (h ^ (h >> 16)) * 2146121005
    h = (h ^ (h >> 15)) * 2221713035
    h = h ^ (h >> 16)
    if (h >> 8) < KEEP * 16777216.0:
        x[t][c] = x[t][c] / KEEP
    else:
        x[t][c] = 0.0


@pk.workunit
def residual(t: int, c: int, x, y, gamma: float):
    x[t][c] += gamma * y[t][c]


@pk.workunit
def pool(c: int, mean, x, n: int):
    total: pk.double = 0.0
    for t in range(n):
        total += x[t][c]
    mean[c] = total / n


@pk.workunit
def square_loss(t: int, c: int, acc: pk.Acc[pk.double], x, target):
    acc += (x[t][c] - target[t][c]) * (x[t][c] - target[t][c])


@dataclass
class State:
    tokens: int
    source: pk.View
    target: pk.View
    x: pk.View
    mean: pk.View
    kernels: list
    weights: list
    vectors: list
    losses: list = field(default_factory=list)


def setup(n: int) -> State:
    tokens, rng = n // WIDTH, np.random.default_rng(210)

    def random(*shape, scale=1.0, centre=0.0):
        v = pk.View(list(shape), pk.float)
        v.data[:] = centre + scale * rng.standard_normal(shape)
        return v

    source, target = random(tokens, WIDTH), random(tokens, WIDTH, scale=0.5)
    kernels = [random(2 * REACH + 1, WIDTH, scale=0.4) for _ in range(BLOCKS)]
    weights = [random(WIDTH, WIDTH, scale=WIDTH**-0.5) for _ in range(2 * BLOCKS)]
    vectors = [random(WIDTH, scale=0.1, centre=k % 4 == 0) for k in range(4 * BLOCKS)]
    x, mean = pk.View([tokens, WIDTH], pk.float), pk.View([WIDTH], pk.float)
    return State(tokens, source, target, x, mean, kernels, weights, vectors)


def run(s: State) -> None:
    n, x = s.tokens, s.x
    every = pk.MDRangePolicy([0, 0], [n, WIDTH])
    a, b = pk.View([n, WIDTH], pk.float), pk.View([n, WIDTH], pk.float)
    pk.parallel_for(every, copy, to=x, x=s.source)
    s.losses = []
    for k in range(BLOCKS):
        scale, shift, bias1, bias2 = s.vectors[4 * k : 4 * k + 4]
        pk.parallel_for(every, depthwise, y=a, x=x, k=s.kernels[k], n=n)
        pk.parallel_for(pk.TeamPolicy(n, pk.AUTO), layer_norm, y=b, x=a, scale=scale, shift=shift)
        pk.parallel_for(every, dense, y=a, x=b, w=s.weights[2 * k], bias=bias1)
        pk.parallel_for(every, gelu, x=a)
        pk.parallel_for(every, dense, y=b, x=a, w=s.weights[2 * k + 1], bias=bias2)
        pk.parallel_for(every, dropout, x=b, seed=7777 * (k + 1))
        pk.parallel_for(every, residual, x=x, y=b, gamma=0.5)
        s.losses.append(pk.parallel_reduce(every, square_loss, x=x, target=s.target) / (n * WIDTH))
    pk.parallel_for(WIDTH, pool, mean=s.mean, x=x, n=n)


def outputs(s: State) -> dict:
    losses = np.array([float(loss) for loss in s.losses])
    return {"x": np.array(s.x.data), "mean": np.array(s.mean.data), "losses": losses}


def check(s: State, n: int) -> None:
    x = np.array(s.source.data, float)
    kernels, weights, vectors = (
        [np.array(v.data, float) for v in q] for q in (s.kernels, s.weights, s.vectors)
    )
    for k in range(BLOCKS):
        scale, shift, bias1, bias2 = vectors[4 * k : 4 * k + 4]
        wide = np.pad(x, ((REACH, REACH), (0, 0)))
        y = sum(kernels[k][d] * wide[d : d + len(x)] for d in range(2 * REACH + 1))
        y = scale * (y - y.mean(1)[:, None]) / np.sqrt(y.var(1) + 1e-5)[:, None] + shift
        y = y @ weights[2 * k] + bias1
        y = 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))
        y = y @ weights[2 * k + 1] + bias2
        h = np.arange(x.size, dtype=np.uint32).reshape(x.shape) + np.uint32(7777 * (k + 1))
        h = (h ^ (h >> np.uint32(16))) * np.uint32(2146121005)
        h = (h ^ (h >> np.uint32(15))) * np.uint32(2221713035)
        h ^= h >> np.uint32(16)
        x = x + 0.5 * np.where((h >> np.uint32(8)) < KEEP * 2**24, y / KEEP, 0)
        np.testing.assert_allclose(float(s.losses[k]), ((x - s.target.data) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(s.x.data, x, atol=2e-5)
    np.testing.assert_allclose(s.mean.data, x.mean(0), atol=1e-5)


if __name__ == "__main__":
    main(globals())
