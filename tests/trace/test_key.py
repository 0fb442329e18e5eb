"""Equal keys have equal shapes, on random traces and on such that differ from them in one thing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import HOT
from pyfuser.trace.call import Call, Space
from pyfuser.trace.key import Key, key_of
from pyfuser.trace.memory import Buffer, Handle, Region
from pyfuser.trace.shape import TraceShape, shape_of
from tests.analysis.build import S, View, call, region, trace, workunit

SIZE = 24
DTYPES = (pk.double, pk.float, pk.int32)
NUMPY = {pk.double: np.float64, pk.float: np.float32, pk.int32: np.int32}


@pk.workunit
def scaled(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def shifted(i, y, x, k):
    y[i] = x[i + k]


@pk.workunit
def added(i, y, x):
    y[i] += x[i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@dataclass(frozen=True)
class Memory:
    """A View (kind "view"), or a part of one array that several of kind "array" share."""

    kind: str
    dtype: Any = pk.double
    start: int = 0
    step: int = 1
    alive: bool = True
    fresh: bool = True
    wide: bool = False

    def made(self, shared: np.ndarray) -> Any:
        count = SIZE // 2 if self.kind == "array" else SIZE * (1 + self.wide)
        if self.kind == "array":
            part = shared.view(NUMPY[self.dtype])[self.start :: self.step]
            return part[:count]
        view = pk.View([count], self.dtype)
        if not self.fresh:
            view[0] = 1
        return view[self.start : self.start + SIZE // 2] if self.kind == "part" else view


@dataclass(frozen=True)
class Made:
    """One call: which workunit, on which of the memories; `k` is what matters to the analysis."""

    which: str
    y: int
    x: int
    k: int = 0
    n: int = 4
    known: bool = True


@dataclass(frozen=True)
class Scenario:
    memories: tuple[Memory, ...]
    calls: tuple[Made, ...]


def recorded(scenario: Scenario) -> tuple[Key | None, Any, TraceShape]:
    """Key, the extension's key, and shape of a scenario, which does not run."""
    shared = np.zeros(8 * SIZE + 64, np.uint8)
    memories = [memory.made(shared) for memory in scenario.memories]
    number: Any = 0.5
    pyfuser.enable()
    try:
        for call in scenario.calls:
            y, x, n = memories[call.y], memories[call.x], call.n
            if call.which == "scaled":
                pk.parallel_for(n, scaled, y=y, x=x, a=0.5 if call.known else number)
            elif call.which == "shifted":
                pk.parallel_for(n, shifted, y=y, x=x, k=call.k)
            elif call.which == "added":
                pk.parallel_for(pk.RangePolicy(0, n), added, y=y, x=x)
            else:
                number = pk.parallel_reduce(n, total, x=x)
        y = x = None
        for place, memory in enumerate(scenario.memories):
            if not memory.alive:
                memories[place] = None
        found = key_of(TRACER.calls, structural_scalars)
        native = None if HOT is None else HOT.key_of(TRACER.calls)
        return found, native, shape_of(TRACER.calls, structural_scalars)
    finally:
        pyfuser.discard()
        pyfuser.disable()


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    yield
    pyfuser.frontends.modes.SWITCHES.everywhere = None  # type: ignore[attr-defined]


def a_memory(rng: random.Random) -> Memory:
    return Memory(
        rng.choice(["view", "view", "part", "array"]),
        rng.choice(DTYPES),
        rng.randrange(4),
        rng.choice([1, 1, 2]),
        rng.random() < 0.6,
        rng.random() < 0.6,
        rng.random() < 0.2,
    )


def a_call(rng: random.Random, memories: int) -> Made:
    y, x = rng.randrange(memories), rng.randrange(memories)
    which = rng.choice(["scaled", "scaled", "shifted", "added", "total"])
    return Made(which, y, x, rng.randrange(3), rng.choice([3, 4]), rng.random() < 0.5)


def a_scenario(rng: random.Random) -> Scenario:
    memories = tuple(a_memory(rng) for _ in range(rng.randint(1, 4)))
    calls = tuple(a_call(rng, len(memories)) for _ in range(rng.randint(1, 6)))
    return Scenario(memories, calls)


def changed(scenario: Scenario, rng: random.Random) -> Scenario:
    """The scenario with one thing changed."""
    if rng.random() < 0.6:
        place = rng.randrange(len(scenario.memories))
        old, other = scenario.memories[place], a_memory(rng)
        field = rng.choice(["kind", "dtype", "start", "step", "alive", "fresh", "wide"])
        memory = replace(old, **{field: getattr(other, field)})
        kept = scenario.memories
        return replace(scenario, memories=(*kept[:place], memory, *kept[place + 1 :]))
    place = rng.randrange(len(scenario.calls))
    call, new = scenario.calls[place], a_call(rng, len(scenario.memories))
    field = rng.choice(["which", "y", "x", "k", "n", "known"])
    call = replace(call, **{field: getattr(new, field)})
    return replace(scenario, calls=(*scenario.calls[:place], call, *scenario.calls[place + 1 :]))


@pytest.mark.parametrize("seed", range(6))
def test_equal_keys_have_equal_shapes(seed: int) -> None:
    rng = random.Random(seed)
    shapes: dict[Key, TraceShape] = {}
    natives: dict[Any, Key] = {}
    told_apart = same = 0
    for _ in range(60):
        scenario = a_scenario(rng)
        for one in (scenario, scenario, *(changed(scenario, rng) for _ in range(6))):
            key, native, shape = recorded(one)
            assert key is not None and key.fits(shape)
            if HOT is not None:
                assert native is not None and natives.setdefault(native, key) == key, one
            before = shapes.setdefault(key, shape)
            assert before == shape, one
            same += before is not shape
            told_apart += before is shape
        first, second = recorded(scenario), recorded(scenario)
        assert first == second  # what repeats is found again, also by the extension
    assert same > 50 and told_apart > 50


@pytest.mark.parametrize("kind", ["alive", "fresh", "temporary"])
def test_where_memory_begins_is_known_of_what_is_fresh_or_temporary(kind: str) -> None:
    """Only that: a part of other memory that moves on has one key, as it has one shape."""
    memory = Memory("part", alive=kind != "temporary", fresh=kind == "fresh")
    moved = replace(memory, start=2)
    first, second = (
        recorded(Scenario((part, Memory("view", fresh=False)), (Made("added", 0, 1),)))
        for part in (memory, moved)
    )
    assert (first == second) == (first[0] == second[0]) == (kind == "alive")
    assert HOT is None or (first[1] == second[1]) == (kind == "alive")


def test_how_far_apart_parts_of_one_memory_are_is_known() -> None:
    i, x, y = S("i"), View("x"), View("y")
    unit = workunit("w", [i], [x, y], [x[i] << y[i]])
    buffer = Buffer(8 * SIZE, Handle())
    buffer.allocate()

    def key(*starts: int) -> Key | None:
        parts = [Region(buffer, 8 * start, (8,), (4,), DType.FLOAT64) for start in starts]
        space = Space((0,), (4,))
        made = Call("for", space, unit, tuple(parts), None, None, key.__code__, 0)
        return key_of([made], structural_scalars)

    assert key(0, 8)[0][3:] == key(4, 12)[0][3:] != key(0, 12)[0][3:]  # type: ignore[index]
    assert key(0, 8)[0][3:] != key(8, 0)[0][3:]  # type: ignore[index]


def test_a_shape_of_other_facts_does_not_fit() -> None:
    """As when another thread drops a View after its key was computed."""
    alive = Scenario((Memory("view"), Memory("view")), (Made("scaled", 0, 1),))
    dropped = replace(alive, memories=(Memory("view", alive=False), Memory("view")))
    key, _, shape = recorded(alive)
    other_key, _, other = recorded(dropped)
    assert key is not None and other_key is not None
    assert key.fits(shape) and other_key.fits(other)
    assert not key.fits(other) and not other_key.fits(shape)
    moved = Scenario((Memory("array"), Memory("array", start=1)), (Made("scaled", 0, 1),))
    apart = replace(moved, memories=(Memory("array"), Memory("array", start=2)))
    key, _, _ = recorded(moved)
    _, _, shape = recorded(apart)
    assert key is not None and not key.fits(shape)


def test_a_key_fits_only_where_the_same_memory_is_together() -> None:
    """Two of three arrays are parts of one; which two decides what overlaps."""
    i, *views = S("i"), *map(View, "xyz")
    unit = workunit("w", [i], views, [views[0][i] << views[1][i] + views[2][i]])
    regions = region(0, 8), region(0, 8, offset=64), region(1, 8)
    shape = trace(call(unit, 8, *regions))
    words = tuple((number, 0, "word") for number in range(3))
    assert Key(words, ((0, 0), (0, 64), (1, 0), *shape.clusters)).fits(shape)
    assert not Key(words, ((0, 0), (1, 64), (1, 0), *shape.clusters)).fits(shape)
    assert not Key(words, ((0, 0), (0, 32), (1, 0), *shape.clusters)).fits(shape)
