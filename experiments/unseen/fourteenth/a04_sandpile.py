"""The Abelian sandpile: grains fall on a table, sites of four or more topple until all is calm.

Integers; the host reads after each round how many sites toppled, and drops the next heap when none did.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 300, "large": 2_600}
HEAPS, HEAP = 4, 40


@pk.workunit
def lay(i: int, j: int, z: pk.View2D[pk.int32], first: pk.View2D[pk.int32]):
    z[i][j] = first[i][j]


@pk.workunit
def clear(i: int, j: int, x: pk.View2D[pk.int32]):
    x[i][j] = 0


@pk.workunit
def drop(k: int, z: pk.View2D[pk.int32], row: int, column: int, grains: int):
    z[row][column + k] += grains


@pk.workunit
def topple(i: int, j: int, t: pk.View2D[pk.int32], z: pk.View2D[pk.int32]):
    t[i][j] = z[i][j] // 4


@pk.workunit
def keep(i: int, j: int, z: pk.View2D[pk.int32], t: pk.View2D[pk.int32]):
    z[i][j] -= 4 * t[i][j]


@pk.workunit
def receive(i: int, j: int, z: pk.View2D[pk.int32], t: pk.View2D[pk.int32]):
    z[i][j] += t[i - 1][j] + t[i + 1][j] + t[i][j - 1] + t[i][j + 1]


@pk.workunit
def remember(i: int, j: int, odometer: pk.View2D[pk.int32], t: pk.View2D[pk.int32]):
    odometer[i][j] += t[i][j]


@pk.workunit
def active(i: int, j: int, acc: pk.Acc[pk.int64], t: pk.View2D[pk.int32]):
    if t[i][j] > 0:
        acc += 1


@pk.workunit
def grains(i: int, j: int, acc: pk.Acc[pk.int64], z: pk.View2D[pk.int32]):
    acc += z[i][j]


@dataclass
class State:
    n: int
    most: int
    first: pk.View
    z: pk.View
    odometer: pk.View
    rounds: list = field(default_factory=list)
    left: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1404)
    first, z, odometer = (pk.View([n + 2, n + 2], pk.int32) for _ in range(3))
    first.data[1:-1, 1:-1] = rng.choice([0, 1, 2, 3], (n, n), p=[0.1, 0.2, 0.35, 0.35])
    return State(n, 200 if n < 100 else 60 if n < 1_000 else 12, first, z, odometer)


def place(n: int, heap: int) -> tuple:
    return 1 + (2 * heap + 1) * n // (2 * HEAPS), 1 + (heap + 1) * n // (HEAPS + 2)


def run(s: State) -> None:
    n, z = s.n, s.z
    inner = pk.MDRangePolicy([1, 1], [n + 1, n + 1])
    whole = pk.MDRangePolicy([0, 0], [n + 2, n + 2])
    t = pk.View([n + 2, n + 2], pk.int32)
    pk.parallel_for(whole, lay, z=z, first=s.first)
    pk.parallel_for(whole, clear, x=t)
    pk.parallel_for(whole, clear, x=s.odometer)
    s.rounds, s.left = [], []
    for heap in range(HEAPS):
        row, column = place(n, heap)
        pk.parallel_for(3, drop, z=z, row=row, column=column, grains=HEAP)
        rounds, toppled = 0, 1
        while toppled > 0 and rounds < s.most:
            pk.parallel_for(inner, topple, t=t, z=z)
            pk.parallel_for(inner, keep, z=z, t=t)
            pk.parallel_for(inner, receive, z=z, t=t)
            pk.parallel_for(inner, remember, odometer=s.odometer, t=t)
            toppled = int(pk.parallel_reduce(inner, active, t=t))
            rounds += 1
        s.rounds.append(rounds)
        s.left.append(int(pk.parallel_reduce(inner, grains, z=z)))


def outputs(s: State) -> dict:
    return {
        "z": np.array(s.z.data),
        "odometer": np.array(s.odometer.data),
        "rounds": np.array(s.rounds),
        "left": np.array(s.left),
    }


def check(s: State, n: int) -> None:
    z = np.array(setup(n).first.data)
    odometer = np.zeros_like(z)
    for heap in range(HEAPS):
        row, column = place(n, heap)
        z[row, column : column + 3] += HEAP
        rounds, toppled = 0, 1
        while toppled and rounds < s.most:
            t = z // 4
            z -= 4 * t
            for axis in (0, 1):
                z += np.roll(t, 1, axis) + np.roll(t, -1, axis)
            z[0], z[-1], z[:, 0], z[:, -1] = 0, 0, 0, 0
            odometer += t
            toppled, rounds = np.count_nonzero(t), rounds + 1
        assert s.rounds[heap] == rounds and s.left[heap] == z.sum()
    np.testing.assert_array_equal(s.z.data, z)
    np.testing.assert_array_equal(s.odometer.data, odometer)


if __name__ == "__main__":
    main(globals())
