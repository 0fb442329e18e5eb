"""Random loops whose rounds repeat each other but for one thing, against NumPy.

What changes: which memory is whose (views, slices that overlap, one array twice), where in a View
parts are, what stays alive, what is fresh, dtypes, alignment, numbers, globals, whether calls are
recorded or run at once, where results are read; errors come between calls, and other threads call
as well. All values are integers of few bits, so that sums are exact in any order.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime.session import TRACER

N = 12
OFFSET = 1.0


@pk.workunit
def put(i, y, a):
    y[i] = a


@pk.workunit
def add(i, y, x):
    y[i] += x[i]


@pk.workunit
def mix(i, y, x, z, a):
    y[i] = x[i] - z[i] + a


@pk.workunit
def moved(i, y, x, k):
    y[i] = x[(i + k) % 12]


@pk.workunit
def lifted(i, y):
    y[i] = y[i] + OFFSET


@pk.workunit
def total(i, acc, x):
    acc += x[i]


class World:
    """Memory as the program has it, and the values that it should have."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shared = np.zeros(4 * N)
        self.whole = np.zeros(4 * N)  # what `shared` should be
        self.parts: dict[int, tuple[Any, np.ndarray, int]] = {}  # by id() of a part's values
        self.memories: list[tuple[Any, np.ndarray]] = []
        for _ in range(5):
            self.memories.append(self.made())
        self.futures: list[tuple[Any, float]] = []

    def made(self) -> tuple[Any, np.ndarray]:
        kind = self.rng.choice(["view", "view", "single", "part", "slice", "packed"])
        if kind == "view":
            return pk.View([N], pk.double), np.zeros(N)
        if kind == "single":
            return pk.View([N], pk.float), np.zeros(N, np.float32)
        if kind == "part":
            view, values = pk.View([3 * N], pk.double), np.zeros(3 * N)
            return self.part(view, values, self.rng.randrange(2 * N))
        if kind == "slice":
            start, step = self.rng.randrange(N), self.rng.choice([1, 2])
            place = slice(start, start + step * N, step)
            return self.shared[place], self.whole[place]
        record = np.zeros(N, np.dtype([("a", np.int16), ("x", np.float64)], align=False))
        return record["x"], np.zeros(N)

    def part(self, view: Any, values: np.ndarray, start: int) -> tuple[Any, np.ndarray]:
        found = view[start : start + N], values[start : start + N]
        self.parts[id(found[1])] = view, values, start
        return found

    def step(self, which: str, y: int, x: int, z: int, a: int, k: int) -> None:
        (mine, to), (other, source), (third, more) = (self.memories[n] for n in (y, x, z))
        if which == "put":
            pk.parallel_for(N, put, y=mine, a=a)
            to[:] = a
        elif which == "add" and not _overlap(to, source):
            pk.parallel_for(N, add, y=mine, x=other)
            to += source
        elif which == "mix" and not _overlap(to, source) and not _overlap(to, more):
            pk.parallel_for(pk.RangePolicy(0, N), mix, y=mine, x=other, z=third, a=float(a))
            to[:] = source - more + a
        elif which == "moved" and not _overlap(to, source):
            pk.parallel_for("moved", N, moved, y=mine, x=other, k=k)
            to[:] = np.roll(source, -k)
        elif which == "lifted":
            pk.parallel_for(N, lifted, y=mine)
            to += globals()["OFFSET"]
        elif which == "total":
            self.futures.append((pk.parallel_reduce(N, total, x=other), float(source.sum())))
        elif which == "error":
            with pytest.raises(pyfuser.PyFuserError):
                pk.parallel_for(N, add, y=mine, x="nothing")
        elif which == "next" and id(to) in self.parts:
            view, values, start = self.parts.pop(id(to))
            self.memories[y] = self.part(view, values, (start + a + 1) % (2 * N))
        elif which == "fresh":
            self.memories[y] = self.made() if k else (pk.View([N], pk.double), np.zeros(N))

    def check(self) -> None:
        pyfuser.sync()
        for future, expected in self.futures:
            assert float(future) == expected
        self.futures.clear()
        for mine, values in self.memories:
            assert np.array_equal(np.asarray(mine), values)
        assert np.array_equal(self.shared, self.whole)


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.shares_memory(one, other))


STEPS = [
    "put", "add", "add", "mix", "mix", "moved", "lifted", "total", "error", "fresh", "next", "next",
]  # fmt: skip


def a_step(rng: random.Random) -> list[Any]:
    return [rng.choice(STEPS), *(rng.randrange(5) for _ in range(3)), rng.randrange(4),
            rng.randrange(3)]  # fmt: skip


def run(seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    world = World(rng)
    body = [a_step(rng) for _ in range(rng.randint(1, 7))]
    reads = rng.random() < 0.5
    for _ in range(rounds):
        if rng.random() < 0.3:
            rng.choice(body)[rng.randrange(1, 6)] = rng.randrange(3)
        if rng.random() < 0.1:
            globals()["OFFSET"] = float(rng.randrange(3))
        mode = pyfuser.unfused() if rng.random() < 0.2 else contextlib.nullcontext()
        with mode:
            for step in body:
                world.step(*step)
        if reads and world.futures:
            future, expected = world.futures.pop()
            assert float(future) == expected
        for _, values in world.memories:  # stay small: sums are exact
            if np.abs(values).max() > 2**16:
                pyfuser.sync()
                world = World(rng)
                break
        if rng.random() < 0.3:
            world.check()
    world.check()


@pytest.fixture(autouse=True)
def recording() -> Iterator[None]:
    before = OFFSET
    with pyfuser.fusing():
        yield
    globals()["OFFSET"] = before
    assert not TRACER.raw and not TRACER._bytes and TRACER.gate is None


@pytest.mark.parametrize("seed", [0, 2, 5, 7, 9])
def test_rounds_that_repeat_but_for_one_thing(seed: int) -> None:
    before = pyfuser.stats()
    run(seed, 60)
    after = pyfuser.stats()
    assert after.replays + after.launches > before.replays + before.launches


def test_two_threads_record_and_flush() -> None:
    """Each its own memory; flushes run what both have recorded."""
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = random.Random(seed)
            x, y = pk.View([N], pk.double), pk.View([N], pk.double)
            expected = 0.0
            with pyfuser.fusing():
                for _ in range(150):
                    pk.parallel_for(N, put, y=x, a=seed)
                    pk.parallel_for(N, add, y=y, x=x)
                    expected += seed
                    if rng.random() < 0.3:
                        assert float(pk.parallel_reduce(N, total, x=y)) == N * expected
                assert np.asarray(y).tolist() == [expected] * N
        except BaseException as error:
            failed.append(error)

    _in_threads([lambda k=k: work(k + 1) for k in range(3)])  # type: ignore[misc]
    assert not failed


def _in_threads(functions: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
