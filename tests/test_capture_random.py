"""Random steps, captured, with other arguments each time, against NumPy.

Between two calls of a step change: which memory its arguments are (views, parts that overlap, one
view twice, arrays of others, fresh ones), their types, numbers, and what is pending. A step has
temporaries, parts of its arguments, memory from outside, sums that later calls use, and results.
All values are integers of few bits, so that sums are exact in any order.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.support.extension import HOT
from tests.test_replay_random import add, mix, moved, put

N = 12
ARGUMENTS = 3
SUMS = ["total", "used", "scalar"]
KINDS = ["put", "add", "mix", "moved", "half", "temporary", "outside", "one", *SUMS]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def used(i, y, s):
    y[i] = y[i] + s


class Body:
    """A step's calls, chosen once; `run` makes them, and `expect` is what they do."""

    def __init__(self, rng: random.Random) -> None:
        self.steps = []
        for _ in range(rng.randint(1, 6)):
            kind, (y, x, z) = rng.choice(KINDS), (rng.randrange(ARGUMENTS) for _ in range(3))
            if kind in ("moved", "half") and x == y:  # they depend on the order of i
                x = (y + 1) % ARGUMENTS
            self.steps.append((kind, y, x, z, rng.randrange(3)))
        self.outside = pk.View([N], pk.double)
        self.outside_values = np.zeros(N)
        self.returns = rng.random() < 0.5

    def run(self, *given: Any, k: int, a: float) -> Any:
        """The step."""
        views, sums, made = given, [], []
        for kind, y, x, z, n in self.steps:
            if kind == "put":
                pk.parallel_for(N, put, y=views[y], a=a)
            elif kind == "add":
                pk.parallel_for(N, add, y=views[y], x=views[x])
            elif kind == "mix":
                pk.parallel_for(N, mix, y=views[y], x=views[x], z=views[z], a=a)
            elif kind == "moved":
                pk.parallel_for("moved", N, moved, y=views[y], x=views[x], k=k + n)
            elif kind == "half":
                pk.parallel_for(N // 2, add, y=views[y][: N // 2], x=views[x][N // 2 :])
            elif kind == "temporary":
                t = pk.View([N], pk.double)
                pk.parallel_for(N - n, add, y=t, x=views[x])
                pk.parallel_for(N, add, y=views[y], x=t)
                if self.returns:
                    made.append(t)
            elif kind == "outside":
                pk.parallel_for(N, add, y=self.outside, x=views[x])
                pk.parallel_for(N, mix, y=views[y], x=self.outside, z=views[z], a=1.0)
            elif kind == "one":
                pk.parallel_for(pk.RangePolicy(n, n + 1), used, y=views[y], s=a)
            else:
                sums += _sums(kind, pk.parallel_reduce(N, total, x=views[x]), a)
                if kind != "total":
                    pk.parallel_for(N, used, y=views[y], s=sums[-1])
        return sums, made

    def expect(self, values: tuple[np.ndarray, ...], k: int, a: float) -> Any:
        """The same with NumPy; what overlaps goes through copies."""
        sums, made = [], []
        for kind, y, x, z, n in self.steps:
            to, source, more = values[y], values[x].copy(), values[z].copy()
            if kind == "put":
                to[:] = a
            elif kind == "add":
                to += source
            elif kind == "mix":
                to[:] = source - more + a
            elif kind == "moved":
                to[:] = np.roll(source, -(k + n))
            elif kind == "half":
                to[: N // 2] += source[N // 2 :]
            elif kind == "temporary":
                t = np.where(np.arange(N) < N - n, source, 0)
                to += t.astype(to.dtype)
                if self.returns:
                    made.append(t)
            elif kind == "outside":
                self.outside_values += source
                to[:] = self.outside_values - more + 1.0
            elif kind == "one":
                to[n] += a
            else:
                sums += _sums(kind, float(source.sum()), a)
                if kind != "total":
                    to += to.dtype.type(sums[-1])
        return sums, made


def _sums(kind: str, s: Any, a: float) -> list[Any]:
    """A sum, and what is made of it."""
    return [s, (2 * s - a * 2.0) / 2.0 + -s + s] if kind == "scalar" else [s]


class World:
    """Memory as the program has it, and the values that it should have."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.array = np.zeros(4 * N)
        self.view = pk.View([4 * N], pk.double)
        self.others = np.zeros(4 * N)
        self.whole = np.zeros(4 * N)  # what `view` should be
        self.beside = np.zeros(4 * N)  # and `array`
        self.memories = [self.made() for _ in range(5)]

    def made(self) -> tuple[Any, np.ndarray]:
        kind = self.rng.choice(["view", "view", "single", "part", "part", "array", "strided"])
        start = self.rng.randrange(2 * N)
        place = slice(start, start + N)
        if kind == "view":
            return pk.View([N], pk.double), np.zeros(N)
        if kind == "single":
            return pk.View([N], pk.float), np.zeros(N, np.float32)
        if kind == "part":
            return self.view[start : start + N], self.whole[place]
        if kind == "strided":
            place = slice(start % N, start % N + 2 * N, 2)
            return self.view[start % N : start % N + 2 * N : 2], self.whole[place]
        given = self.array[place]
        return pk.View([N], pk.double, array=given), self.beside[place]

    def chosen(self, body: Body) -> list[tuple[Any, np.ndarray]]:
        """Arguments for a step whose calls, each by itself, do not depend on the order of i."""
        for _ in range(50):
            found = [self.rng.choice(self.memories) for _ in range(ARGUMENTS)]
            if all(_harmless(step, [values for _, values in found]) for step in body.steps):
                return found
        return [(pk.View([N], pk.double), np.zeros(N)) for _ in range(ARGUMENTS)]


def _harmless(step: tuple[Any, ...], values: list[np.ndarray]) -> bool:
    kind, y, x, z, _ = step
    if kind in ("put", "one", "total", "used", "scalar"):
        return True
    pairs = [(x, kind != "moved" and kind != "half")]
    if kind in ("mix", "outside"):
        pairs.append((z, True))
    return all(
        not np.shares_memory(values[y], values[n]) or (same and _is_same(values[y], values[n]))
        for n, same in pairs
    )


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.__array_interface__ == other.__array_interface__


def run(seed: int, rounds: int) -> int:
    """Rounds of one step; how many arguments' layouts the extension knew in the end."""
    rng = random.Random(seed)
    world, body = World(rng), Body(rng)
    step = pyfuser.capture(body.run)
    chosen = world.chosen(body)
    k, a = rng.randrange(3), float(rng.randrange(3))
    for _ in range(rounds):
        if rng.random() < 0.3:
            chosen = world.chosen(body)
        if rng.random() < 0.1:
            world.memories[rng.randrange(5)] = world.made()
        if rng.random() < 0.2:
            k = rng.randrange(3)
        a = float(rng.randrange(3))
        if rng.random() < 0.1:  # something is pending
            mine, values = rng.choice(world.memories)
            with pyfuser.fusing():
                pk.parallel_for(N, put, y=mine, a=2.0)
                values[:] = 2.0
                result = step(*(view for view, _ in chosen), k=k, a=a)
        elif rng.random() < 0.05:
            with pyfuser.unfused():
                result = step(*(view for view, _ in chosen), k=k, a=a)
        else:
            result = step(*(view for view, _ in chosen), k=k, a=a)
        expected = body.expect(tuple(values for _, values in chosen), k, a)
        assert [float(s) for s in result[0]] == expected[0]
        for mine, values in [*zip(result[1], expected[1], strict=True), *chosen, *world.memories]:
            assert np.array_equal(np.asarray(mine._host()), values)
        assert np.array_equal(np.asarray(body.outside._host()), body.outside_values)
        for mine, values in [*world.memories, *chosen, (body.outside, body.outside_values)]:
            if np.abs(values).max() > 2**12:  # stay small: sums are exact
                mine.fill(1.0)
                values[:] = 1.0
        pyfuser.sync()
    return len(step.entries)


@pytest.mark.filterwarnings("ignore::pyfuser.WorkunitWarning")
@pytest.mark.parametrize("seed", [2, 3, 7, 9])
def test_captured_steps(seed: int) -> None:
    before = pyfuser.stats().replays
    found = run(seed, 50)
    assert HOT is None or (found and pyfuser.stats().replays > before)


@pytest.mark.filterwarnings("ignore::pyfuser.WorkunitWarning")
@pytest.mark.parametrize("seed", range(100, 103))
def test_repeated_steps(seed: int) -> None:
    """Some steps at once, two arguments changing places."""
    rng = random.Random(seed)
    body = Body(rng)
    body.returns = False
    step = pyfuser.capture(body.run)
    for _ in range(6):
        views = [pk.View([N], pk.double) for _ in range(ARGUMENTS)]
        values = [np.zeros(N) for _ in range(ARGUMENTS)]
        assert all(_harmless(each, values) for each in body.steps)
        n, k, a = rng.randrange(6), rng.randrange(2), float(rng.randrange(2))
        done = step.repeat(n, *views, k=k, a=a, swap=[(views[0], views[2])])
        sums: list[float] = []
        for _ in range(n):
            sums, _ = body.expect(tuple(values), k, a)
            values[0], values[2] = values[2], values[0]
        assert n == 0 or [float(s) for s in done.result[0]] == sums
        for mine, expected in zip(views, values, strict=True):
            assert np.array_equal(np.asarray(mine), expected)
        body.outside.fill(0.0)
        body.outside_values[:] = 0.0
        pyfuser.sync()
