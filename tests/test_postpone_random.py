"""Random loops over work arrays and state, disturbed now and then, against NumPy.

`python -m tests.test_postpone_random 0 100` tries these seeds. All values are integers.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime import postpone
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.tuning.thresholds import tuned
from tests.sessions import compiled_late, fresh

N = 8
INSIDE = pk.RangePolicy(1, N - 1)
HALVES = pk.RangePolicy(0, 3), pk.RangePolicy(3, N)


@pk.workunit
def put(i, y, a: int):
    y[i] = a


@pk.workunit
def scaled(i, y, x, a: int):
    y[i] = (x[i] >> 1) + a


@pk.workunit
def mixed(i, y, x, z):
    y[i] = (x[i] - z[i]) & 1023


@pk.workunit
def added(i, y, x):
    y[i] = (y[i] + x[i]) & 1023


@pk.workunit
def halved(i, y):
    y[i] = y[i] >> 1


@pk.workunit
def inner(i, y, a: int):
    if i > 2:
        y[i] = a


@pk.workunit
def mirrored(i, y, x):
    y[i] = x[7 - i]


@pk.workunit
def both(i, y, z, x):
    y[i] = x[i] ^ 5
    z[i] = x[i] & 63


@pk.workunit
def total(i, acc: pk.Acc[pk.int64], x):
    acc += x[i]


class World:
    """Arrays as the program has them, and the values that they should have."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.arrays: list[Any] = []
        self.values: list[np.ndarray] = []
        self.exports: list[Any] = []
        for n in range(rng.randint(4, 7)):
            self.arrays.append(pk.View([N], pk.int64))
            self.values.append(np.zeros(N, np.int64))
            if n < 2:
                self.set(n)

    def set(self, n: int) -> None:
        values = self.rng.choices(range(64), k=N)
        for i, value in enumerate(values):
            self.arrays[n][i] = value
        self.values[n][:] = values

    def step(self, plan: list[tuple[str, int, int, int]], a: int) -> None:
        """What the loop does each time."""
        sums: list[tuple[Any, int]] = []
        for what, y, x, z in plan:
            mine, other, third = (self.arrays[n] for n in (y, x, z))
            to, source, more = (self.values[n] for n in (y, x, z))
            if what == "put":
                pk.parallel_for(N, put, y=mine, a=a)
                to[:] = a
            elif what == "scaled":
                pk.parallel_for(N, scaled, y=mine, x=other, a=a)
                to[:] = (source >> 1) + a
            elif what == "mixed":
                pk.parallel_for(N, mixed, y=mine, x=other, z=third)
                to[:] = (source - more) & 1023
            elif what == "added":
                pk.parallel_for(N, added, y=mine, x=other)
                to[:] = (to + source) & 1023
            elif what == "halved":
                pk.parallel_for(N, halved, y=mine)
                to >>= 1
            elif what == "inner":
                pk.parallel_for(N, inner, y=mine, a=a)
                to[3:] = a
            elif what == "mirrored" and y != x:
                pk.parallel_for(N, mirrored, y=mine, x=other)
                to[:] = source[::-1].copy()
            elif what == "both" and len({x, y, z}) == 3:
                pk.parallel_for(N, both, y=mine, z=third, x=other)
                to[:], more[:] = source ^ 5, source & 63
            elif not self.parts(what, (y, x, z), a):
                self.look(what, x, sums)
        self.read(sums)

    def parts(self, what: str, places: tuple[int, int, int], a: int) -> bool:
        """Calls that write a part of an array; False: it is none."""
        mine, other, third = (self.arrays[n] for n in places)
        to, source, more = (self.values[n] for n in places)
        if what == "inside":
            pk.parallel_for(INSIDE, scaled, y=mine, x=other, a=a)
            to[1:-1] = (source[1:-1] >> 1) + a
        elif what == "centre":
            pk.parallel_for(INSIDE, mixed, y=mine, x=other, z=third)
            to[1:-1] = (source - more)[1:-1] & 1023
        elif what == "halves":
            for n, part in enumerate(HALVES):
                pk.parallel_for(part, scaled, y=mine, x=other, a=a + n)
                to[part.begin : part.end] = (source[part.begin : part.end] >> 1) + a + n
        elif what == "ends":
            for n in (0, N - 1):
                pk.parallel_for(pk.RangePolicy(n, n + 1), put, y=mine, a=a)
                to[n] = a
        elif places[0] == places[1]:
            return what in ("front", "back")  # iterations would read what others write
        elif what == "front":
            pk.parallel_for(3, added, y=mine[:3], x=other[2:5])
            to[:3] = (to[:3] + source[2:5]) & 1023
        elif what == "back":
            pk.parallel_for(N - 3, scaled, y=mine[3:], x=other, a=a)
            to[3:] = (source[: N - 3] >> 1) + a
        return what in ("inside", "centre", "halves", "ends", "front", "back")

    def look(self, what: str, n: int, sums: list[tuple[Any, int]]) -> None:
        if what == "total":
            found = pk.parallel_reduce(N, total, x=self.arrays[n])
            sums.append((found, int(self.values[n].sum())))
        elif what == "read":
            self.read(sums)
        elif what == "look":
            assert self.arrays[n][n] == self.values[n][n]

    def read(self, sums: list[tuple[Any, int]]) -> None:
        for found, expected in sums:
            assert int(found) == expected
        sums.clear()

    def disturb(self) -> None:
        """What happens between two steps once in a while."""
        n, other = (self.rng.randrange(len(self.arrays)) for _ in range(2))
        self.rng.choice(DISTURBANCES)(self, n, other)
        assert TRACER.postponed <= len(TRACER.calls)

    def check(self) -> None:
        for view, values in zip(self.arrays, self.values, strict=True):
            assert np.array_equal(np.array(view), values)


def _read(world: World, n: int, other: int) -> None:
    i = world.rng.randrange(N)
    assert world.arrays[n][i] == world.values[n][i]


def _all(world: World, n: int, other: int) -> None:
    assert np.array_equal(np.array(world.arrays[n]), world.values[n])


def _write(world: World, n: int, other: int) -> None:
    i = world.rng.randrange(N)
    world.arrays[n][i] = 5
    world.values[n][i] = 5


def _export(world: World, n: int, other: int) -> None:
    array = world.arrays[n].data
    assert np.array_equal(array, world.values[n])
    array[1] = 9
    world.values[n][1] = 9
    if world.rng.random() < 0.3:
        world.exports.append(array)


def _withdraw(world: World, n: int, other: int) -> None:
    world.exports.clear()


def _anew(world: World, n: int, other: int) -> None:
    world.arrays[n] = pk.View([N], pk.int64)
    world.values[n] = np.zeros(N, np.int64)


def _swap(world: World, n: int, other: int) -> None:
    for each in (world.arrays, world.values):
        each[n], each[other] = each[other], each[n]


def _fill(world: World, n: int, other: int) -> None:
    world.arrays[n].fill(3)
    world.values[n][:] = 3


def _assign(world: World, n: int, other: int) -> None:
    world.arrays[n][:] = world.arrays[other]
    world.values[n][:] = world.values[other].copy()


def _sync(world: World, n: int, other: int) -> None:
    world.rng.choice([pyfuser.sync, pk.fence])()
    assert pyfuser.pending() == ()


def _unfused(world: World, n: int, other: int) -> None:
    with pyfuser.unfused():
        _launch(world, n, other)


def _launch(world: World, n: int, other: int) -> None:
    if n == other:
        return
    pk.parallel_for(N, mirrored, y=world.arrays[n], x=world.arrays[other])
    world.values[n][:] = world.values[other][::-1].copy()


def _recorded(world: World, n: int, other: int) -> None:
    with pyfuser.fusing():
        _launch(world, n, other)


def _discard(world: World, n: int, other: int) -> None:
    with pyfuser.fusing():
        for _ in range(world.rng.randint(1, 3)):
            pk.parallel_for(N, put, y=world.arrays[n], a=77)
            n = other
        pyfuser.discard()


def _thread(world: World, n: int, other: int) -> None:
    what = world.rng.choice([_read, _write, _launch, _recorded, _all])
    thread = threading.Thread(target=what, args=(world, n, other))
    thread.start()
    thread.join()


def _resize(world: World, n: int, other: int) -> None:
    world.arrays[n].resize(0, N + 1)
    world.arrays[n].resize(0, N)


def _part(world: World, n: int, other: int) -> None:
    part = world.arrays[n][2:5]
    with pyfuser.fusing():
        pk.parallel_for(3, put, y=part, a=4)
    world.values[n][2:5] = 4


def _forget(world: World, n: int, other: int) -> None:
    SESSION.clear()


DISTURBANCES: tuple[Callable[[World, int, int], None], ...] = (
    _read, _all, _write, _export, _withdraw, _anew, _swap, _swap, _fill, _assign, _sync, _unfused,
    _launch, _recorded, _discard, _thread, _resize, _part, _forget,
)  # fmt: skip

CALLS = (
    "put", "scaled", "scaled", "mixed", "mixed", "added", "halved", "inner", "mirrored", "both",
    "total", "total", "read", "look", "inside", "centre", "halves", "ends",
    "front", "back",
)  # fmt: skip


# What computes a work array, and what reads it; of a part, another part, too.
WORK = (
    ("scaled", "mixed"), ("scaled", "mixed"), ("halves", "mixed"), ("inside", "centre"),
    ("inside", "mixed"), ("inside", "centre"), ("back", "mixed"),
)  # fmt: skip

CREDITS = {"plan_credit": (1e9, 1e9), "kernel_credit": (1e9, 1e9)}


@contextmanager
def at_once() -> Iterator[None]:
    with (
        tuned(postponed_bytes=1, trial_kernel=0.0, misses=50, **CREDITS),
        patch.object(postpone, "_seconds", lambda program: 1.0),  # so small, any may win
        fresh(),
    ):
        SESSION.budget.forget()
        yield
    SESSION.budget.forget()


def plan_of(rng: random.Random, count: int) -> list[tuple[str, int, int, int]]:
    """Calls of a step: some of them compute a work array, and read it at once or later."""
    plan = [
        (rng.choice(CALLS), *(rng.randrange(count) for _ in range(3)))
        for _ in range(rng.randint(0, 5))
    ]
    for _ in range(rng.randint(0, 2)):
        work, other = rng.sample(range(2, count), 2)
        at = rng.randint(0, len(plan))
        first, then = rng.choice(WORK)
        plan.insert(at, (then, other, work, rng.randrange(count)))
        plan.insert(rng.randint(0, at), (first, work, rng.randrange(count), 0))
        if first == "inside" and rng.random() < 0.4:
            plan.insert(rng.randint(0, at), ("ends", work, 0, 0))
        if first == "back":  # and what is computed from both parts is read, too
            plan.insert(rng.randint(0, at), ("front", work, rng.randrange(count), 0))
            plan.append(("total", 0, other, 0))
    return [*plan, ("total", 0, rng.randrange(count), 0)]


def run(seed: int) -> int:
    """Run a random program; how many calls it postponed. Raises AssertionError if it is wrong."""
    rng = random.Random(seed)
    before = COUNTERS.postponed
    with compiled_late(random.Random(seed)) if seed % 3 else nullcontext(), at_once():
        world = World(rng)
        count = len(world.arrays)
        plans = [plan_of(rng, count) for _ in range(rng.choice([1, 1, 1, 2]))]
        for n in range(rng.randint(16, 40)):
            with pyfuser.fusing():
                world.step(plans[n % len(plans)], n % 8)
            if rng.random() < 0.12:
                world.disturb()
        world.check()
        pyfuser.sync()
    return COUNTERS.postponed - before


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int) -> None:
    run(seed)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    postponed = loops = 0
    for number in range(first, last):
        try:
            found = run(number)
        except Exception:
            print(f"seed {number}", flush=True)
            raise
        postponed += found
        loops += found > 0
    print(f"{last - first} programs, {loops} postponed stores, of {postponed} calls; none is wrong")
