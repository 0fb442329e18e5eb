"""Inference by a network of bytes: two layers of int8 with int32 sums, then a softmax.

Inputs are quantised with the scale of each row; a team computes the first layer of a sample.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 60, "default": 4_000, "large": 60_000}
INPUTS, HIDDEN, CLASSES, GAIN = 32, 24, 10, 1.0 / 64.0


@pk.workunit
def row_scale(i: int, scale: pk.View1D[pk.float], x: pk.View2D[pk.float], inputs: int):
    most: float = 1e-6
    for a in range(inputs):
        most = max(most, abs(x[i][a]))
    scale[i] = most / 127.0


@pk.workunit
def quantise(
    i: int, a: int, q: pk.View2D[pk.int8], x: pk.View2D[pk.float], scale: pk.View1D[pk.float]
):
    q[i][a] = pk.floor(x[i][a] / scale[i] + 0.5)


@pk.workunit
def first_layer(
    team: pk.TeamMember,
    sums: pk.View2D[pk.int32],
    q: pk.View2D[pk.int8],
    w: pk.View2D[pk.int8],
    inputs: int,
    hidden: int,
):
    i: int = team.league_rank()
    row: pk.ScratchView1D[int] = pk.ScratchView1D(team.team_scratch(0), inputs)

    def fetch(a: int):
        row[a] = q[i][a]

    pk.parallel_for(pk.TeamThreadRange(team, inputs), fetch)
    team.team_barrier()

    def neuron(h: int):
        total: int = 0
        for a in range(inputs):
            total += w[h][a] * row[a]
        sums[i][h] = total

    pk.parallel_for(pk.TeamThreadRange(team, hidden), neuron)


@pk.workunit
def add_bias(i: int, h: int, sums: pk.View2D[pk.int32], bias: pk.View1D[pk.int32]):
    sums[i][h] += bias[h]


@pk.workunit
def relu(i: int, h: int, sums: pk.View2D[pk.int32]):
    sums[i][h] = max(sums[i][h], 0)


@pk.workunit
def requantise(i: int, h: int, q: pk.View2D[pk.int8], sums: pk.View2D[pk.int32], gain: float):
    q[i][h] = min(127, sums[i][h] >> 6)


@pk.workunit
def second_layer(
    i: int,
    c: int,
    sums: pk.View2D[pk.int32],
    q: pk.View2D[pk.int8],
    w: pk.View2D[pk.int8],
    hidden: int,
):
    total: int = 0
    for h in range(hidden):
        total += w[c][h] * q[i][h]
    sums[i][c] = total


@pk.workunit
def dequantise(
    i: int,
    c: int,
    z: pk.View2D[pk.float],
    sums: pk.View2D[pk.int32],
    scale: pk.View1D[pk.float],
    gain: float,
):
    z[i][c] = sums[i][c] * scale[i] * gain


@pk.workunit
def greatest(i: int, top: pk.View1D[pk.float], z: pk.View2D[pk.float], classes: int):
    top[i] = z[i][0]
    for c in range(1, classes):
        top[i] = max(top[i], z[i][c])


@pk.workunit
def exponentiate(
    i: int, c: int, p: pk.View2D[pk.float], z: pk.View2D[pk.float], top: pk.View1D[pk.float]
):
    p[i][c] = pk.exp(z[i][c] - top[i])


@pk.workunit
def row_sum(i: int, total: pk.View1D[pk.float], p: pk.View2D[pk.float], classes: int):
    acc: float = 0.0
    for c in range(classes):
        acc += p[i][c]
    total[i] = acc


@pk.workunit
def normalise(i: int, c: int, p: pk.View2D[pk.float], total: pk.View1D[pk.float]):
    p[i][c] /= total[i]


@pk.workunit
def decide(i: int, choice: pk.View1D[pk.uint8], sums: pk.View2D[pk.int32], classes: int):
    best: int = 0
    for c in range(1, classes):
        if sums[i][c] > sums[i][best]:
            best = c
    choice[i] = best


@pk.workunit
def vote(i: int, votes: pk.View1D[pk.int32], choice: pk.View1D[pk.uint8]):
    pk.atomic_increment(votes, [choice[i]])


@pk.workunit
def clear(c: int, votes: pk.View1D[pk.int32]):
    votes[c] = 0


@pk.workunit
def confidence(i: int, acc: pk.Acc[pk.double], p: pk.View2D[pk.float], choice: pk.View1D[pk.uint8]):
    acc += p[i][choice[i]]


@dataclass
class State:
    size: int
    x: pk.View
    w1: pk.View
    b1: pk.View
    w2: pk.View
    p: pk.View
    choice: pk.View
    votes: pk.View
    mean: float = 0.0


def problem(n):
    rng = np.random.default_rng(11)
    x = rng.normal(0, 1, (n, INPUTS)).astype(np.float32)
    w1 = rng.integers(-20, 21, (HIDDEN, INPUTS)).astype(np.int8)
    b1 = rng.integers(-500, 501, HIDDEN).astype(np.int32)
    w2 = rng.integers(-40, 41, (CLASSES, HIDDEN)).astype(np.int8)
    return x, w1, b1, w2


def setup(n):
    return State(
        n,
        *map(view, problem(n)),
        pk.View([n, CLASSES], pk.float),
        pk.View([n], pk.uint8),
        pk.View([CLASSES], pk.int32),
    )


def run(s):
    n = s.size
    hidden, classes = pk.MDRangePolicy([0, 0], [n, HIDDEN]), pk.MDRangePolicy([0, 0], [n, CLASSES])
    scale, top, total = (pk.View([n], pk.float) for _ in range(3))
    q, q1 = pk.View([n, INPUTS], pk.int8), pk.View([n, HIDDEN], pk.int8)
    sums, out = pk.View([n, HIDDEN], pk.int32), pk.View([n, CLASSES], pk.int32)
    z = pk.View([n, CLASSES], pk.float)
    pk.parallel_for(n, row_scale, scale=scale, x=s.x, inputs=INPUTS)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, INPUTS]), quantise, q=q, x=s.x, scale=scale)
    team = pk.TeamPolicy(n, pk.AUTO)
    team.set_scratch_size(0, pk.PerTeam(pk.ScratchView1D[int].shmem_size(INPUTS)))
    pk.parallel_for(team, first_layer, sums=sums, q=q, w=s.w1, inputs=INPUTS, hidden=HIDDEN)
    pk.parallel_for(hidden, add_bias, sums=sums, bias=s.b1)
    pk.parallel_for(hidden, relu, sums=sums)
    pk.parallel_for(hidden, requantise, q=q1, sums=sums, gain=GAIN)
    pk.parallel_for(classes, second_layer, sums=out, q=q1, w=s.w2, hidden=HIDDEN)
    pk.parallel_for(classes, dequantise, z=z, sums=out, scale=scale, gain=GAIN)
    pk.parallel_for(n, greatest, top=top, z=z, classes=CLASSES)
    pk.parallel_for(classes, exponentiate, p=s.p, z=z, top=top)
    pk.parallel_for(n, row_sum, total=total, p=s.p, classes=CLASSES)
    pk.parallel_for(classes, normalise, p=s.p, total=total)
    pk.parallel_for(n, decide, choice=s.choice, sums=out, classes=CLASSES)
    pk.parallel_for(CLASSES, clear, votes=s.votes)
    pk.parallel_for(n, vote, votes=s.votes, choice=s.choice)
    s.mean = float(pk.parallel_reduce(n, confidence, p=s.p, choice=s.choice)) / n


def outputs(s):
    return {a: np.array(getattr(s, a).data) for a in ("p", "choice", "votes")} | {"mean": s.mean}


def check(s):
    x, w1, b1, w2 = problem(s.size)
    scale = np.maximum(abs(x).max(axis=1).astype(float), 1e-6) / 127
    scale = scale.astype(np.float32)
    q = np.floor((x / scale[:, None]).astype(float) + 0.5).astype(int)
    q1 = np.minimum(np.maximum(q @ w1.T.astype(int) + b1, 0) >> 6, 127)
    out = q1 @ w2.T.astype(int)
    z = out * scale[:, None].astype(float) * GAIN
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    off = (abs(s.p.data - p) > 1e-4).any(axis=1)
    assert off.sum() <= s.size // 500, off.sum()  # x / scale halfway between two numbers
    choice = out.argmax(axis=1)
    assert (s.choice.data != choice).sum() <= s.size // 500
    assert (s.votes.data == np.bincount(s.choice.data, minlength=CLASSES)).all()
    np.testing.assert_allclose(s.mean, p.max(axis=1).mean(), rtol=1e-3)


if __name__ == "__main__":
    main(globals())
