"""Registration of two images by mutual information: a walk over shifts.

For a shift the grey values of both images are put into bins and counted together by atomics; the
entropies of the counts give the mutual information. From no shift the walk goes to the best of the
four neighbours until none is better. The second image is another modality: its greys are reversed.
"""

from dataclasses import dataclass, field
from math import log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 700, "large": 2_000}
BINS, RIM, MOST = 16, 8, 10


@pk.workunit
def quantise(i: int, j: int, bin: pk.View2D[pk.int32], image: pk.View2D[pk.float], bins: int):
    b: int = int(image[i][j] * bins)
    if b < 0:
        b = 0
    if b > bins - 1:
        b = bins - 1
    bin[i][j] = b


@pk.workunit
def clear(a: int, b: int, joint: pk.View2D[pk.int32]):
    joint[a][b] = 0


@pk.workunit
def count(
    i: int,
    j: int,
    joint: pk.View2D[pk.int32],
    one: pk.View2D[pk.int32],
    two: pk.View2D[pk.int32],
    dy: int,
    dx: int,
):
    pk.atomic_add(joint, [one[i][j], two[i + dy][j + dx]], 1)


@pk.workunit
def row_sums(a: int, p: pk.View1D[pk.double], joint: pk.View2D[pk.int32], bins: int, total: float):
    s: int = 0
    for b in range(bins):
        s += joint[a][b]
    p[a] = s / total


@pk.workunit
def column_sums(
    b: int, q: pk.View1D[pk.double], joint: pk.View2D[pk.int32], bins: int, total: float
):
    s: int = 0
    for a in range(bins):
        s += joint[a][b]
    q[b] = s / total


@pk.workunit
def entropy(a: int, acc: pk.Acc[pk.double], p: pk.View1D[pk.double]):
    if p[a] > 0.0:
        acc -= p[a] * log(p[a])


@pk.workunit
def joint_entropy(a: int, b: int, acc: pk.Acc[pk.double], joint: pk.View2D[pk.int32], total: float):
    if joint[a][b] > 0:
        p: float = joint[a][b] / total
        acc -= p * log(p)


@pk.workunit
def overlay(
    i: int,
    j: int,
    out: pk.View2D[pk.float],
    one: pk.View2D[pk.float],
    two: pk.View2D[pk.float],
    dy: int,
    dx: int,
):
    out[i][j] = one[i][j] - two[i + dy][j + dx]


@dataclass
class State:
    """The images, their difference where they fit best, the shifts tried and what they gave."""

    n: int
    one: pk.View
    two: pk.View
    out: pk.View
    walk: list = field(default_factory=list)
    shift: tuple = (0, 0)


def setup(n: int) -> State:
    rng = np.random.default_rng(107)
    one, two, out = (pk.View([n, n], pk.float) for _ in range(3))
    y, x = np.mgrid[0 : n + 2 * RIM, 0 : n + 2 * RIM] - RIM
    scene = 0.5 + 0.2 * np.sin(0.21 * x + 0.05 * y) + 0.2 * np.sin(0.17 * y - 0.04 * x)
    scene += 0.08 * np.sin(0.011 * x * y / n * 40)
    one.data[:] = scene[RIM:-RIM, RIM:-RIM] + rng.normal(0, 0.02, (n, n))
    two.data[:] = (
        1.0 - scene[RIM - 2 : -RIM - 2, RIM + 1 : n + RIM + 1] + rng.normal(0, 0.02, (n, n))
    )
    return State(n, one, two, out)


def run(state: State) -> None:
    n = state.n
    inner = pk.MDRangePolicy([RIM, RIM], [n - RIM, n - RIM])
    table = pk.MDRangePolicy([0, 0], [BINS, BINS])
    total = float((n - 2 * RIM) ** 2)
    one, two = (pk.View([n, n], pk.int32) for _ in range(2))
    joint = pk.View([BINS, BINS], pk.int32)
    p, q = (pk.View([BINS], pk.double) for _ in range(2))
    for bin, image in ((one, state.one), (two, state.two)):
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), quantise, bin=bin, image=image, bins=BINS)

    def information(dy, dx):
        pk.parallel_for(table, clear, joint=joint)
        pk.parallel_for(inner, count, joint=joint, one=one, two=two, dy=dy, dx=dx)
        pk.parallel_for(BINS, row_sums, p=p, joint=joint, bins=BINS, total=total)
        pk.parallel_for(BINS, column_sums, q=q, joint=joint, bins=BINS, total=total)
        h1 = pk.parallel_reduce(BINS, entropy, p=p)
        h2 = pk.parallel_reduce(BINS, entropy, p=q)
        h12 = pk.parallel_reduce(table, joint_entropy, joint=joint, total=total)
        return float(h1 + h2 - h12)

    y, x = 0, 0
    best = information(y, x)
    state.walk = [best]
    for _ in range(MOST):
        found = (best, y, x)
        for dy, dx in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if abs(y + dy) <= RIM and abs(x + dx) <= RIM:
                value = information(y + dy, x + dx)
                state.walk.append(value)
                if value > found[0]:
                    found = (value, y + dy, x + dx)
        if found[0] == best:
            break
        best, y, x = found
    state.shift = (y, x)
    pk.parallel_for(inner, overlay, out=state.out, one=state.one, two=state.two, dy=y, dx=x)


def outputs(state: State) -> dict:
    return {
        "out": np.array(state.out.data),
        "walk": np.array(state.walk),
        "shift": np.array(state.shift, dtype=float),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    image1, image2 = np.array(fresh.one.data), np.array(fresh.two.data)
    one, two = (np.clip((a * np.float32(BINS)).astype(int), 0, BINS - 1) for a in (image1, image2))
    inner = np.s_[RIM : n - RIM, RIM : n - RIM]

    def moved(a, y, x):
        return a[RIM + y : n - RIM + y, RIM + x : n - RIM + x]

    def h(p):
        return -np.sum(p[p > 0] * np.log(p[p > 0]))

    def information(y, x):
        joint = np.zeros((BINS, BINS))
        np.add.at(joint, (one[inner], moved(two, y, x)), 1.0)
        joint /= joint.sum()
        return h(joint.sum(1)) + h(joint.sum(0)) - h(joint)

    y, x = 0, 0
    walk = [information(0, 0)]
    best = walk[0]
    for _ in range(MOST):
        steps = [(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)]
        steps = [s for s in steps if max(map(abs, s)) <= RIM]
        values = [information(*s) for s in steps]
        walk += values
        if max(values) <= best:
            break
        best, (y, x) = max(values), steps[int(np.argmax(values))]
    out = outputs(state)
    np.testing.assert_array_equal(out["shift"], (y, x))
    np.testing.assert_allclose(out["walk"], walk, rtol=1e-10)
    np.testing.assert_allclose(out["out"][inner], image1[inner] - moved(image2, y, x), rtol=1e-6)


if __name__ == "__main__":
    main(globals())
