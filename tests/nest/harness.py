"""Bodies as data: what passes over loops make of them, and what runs them in three ways.

A body is a function whose arguments are known by their names (`ARGUMENTS`). `@body(...)` notes
which passes have something to do for it: those, and no others. Its illegal twins stand beside it,
with the passes that are left, mostly none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.nodes import Accumulator, Body, Load, Stmt
from pyfuser.ir.printer import show_node
from pyfuser.ir.visit import assigned, statements, substitute_syms
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Nest, OrderedSum
from pyfuser.nest.passes.blocks import Blocks, blocks_of
from pyfuser.nest.passes.unroll_and_jam import is_long
from pyfuser.nest.spec import KernelSpec, given_order
from pyfuser.nest.verify import verify
from pyfuser.pipeline import lowered
from pyfuser.tuning.target import host
from tests.codegen.build import Case, case, from_text
from tests.nest.interpret import interpret

N, M = 40, 21
LINES = 64  # of what is longer than the space, at least
SMALL = {"block": 16, "strips": (16, 8), "fewest_columns": 3, "block_bytes": 4096}
SMALL |= {"tried": 4, "together": 45, "shortest_row": 4, "along": 3, "along_on_intel": 3}
SMALL |= {"tile": 48, "tiles": 4, "smallest_tile": 5}
"""Blocks that an interpreter sees several of."""

PROCESSORS: dict[str, dict[str, Any]] = {
    "": {"intel": False},
    "avx2": {"vector_bytes": 32, "intel": False},
    "wide": {"vector_bytes": 64, "intel": False},
    "intel": {"vector_bytes": 64, "intel": True},
}


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng((seed, *shape)).normal(size=shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng((seed, *shape)).uniform(0.1, 2.0, shape)


def whole(most: int, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng((seed, *shape)).integers(0, most, shape).astype(np.int32)


def of_many_sizes(n: int) -> np.ndarray[Any, Any]:
    """Numbers whose sums depend on the order of additions, with zeros of both signs."""
    rng = np.random.default_rng(3)
    found = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
    found[rng.integers(0, n, n // 4)] = -0.0
    found[rng.integers(0, n, n // 4)] = 0.0
    return found


ARGUMENTS: dict[str, Callable[[int, int], Any]] = {
    # lines, with room for what is outside of the space
    "x": lambda n, m: positive(max(n, m, LINES) + 5),
    "v": lambda n, m: positive(max(n, m, LINES) + 2, seed=1),
    "y": lambda n, m: numbers(max(n, m, LINES) + 2, seed=2),
    "z": lambda n, m: np.zeros(max(n, m, LINES) + 2),
    "far": lambda n, m: np.zeros(2 * n + 2),
    "w": lambda n, m: numbers(max(m, LINES), seed=3),  # weights of trips
    # tables whose rows are iterations, and those whose columns are
    "a": lambda n, m: numbers(n, max(m, 41), seed=4),
    "b": lambda n, m: numbers(n, max(m, 41), seed=5),
    "c": lambda n, m: numbers(max(m, 30), n, seed=6),
    "o": lambda n, m: numbers(max(m, 30), n, seed=7),
    "cube": lambda n, m: numbers(max(m, 30), n + 1, n + 1, seed=9),
    "solid": lambda n, m: numbers(n, n, n, seed=10),
    "flat": lambda n, m: numbers(max(m, 30), n, seed=6).ravel(),
    "e": lambda n, m: of_many_sizes(n),
    "u": lambda n, m: positive(n, max(m, 41), seed=8),
    # places, labels, counts
    # a table whose rows all iterations read; how much of them: more than there is, without trips
    "t": lambda n, m: numbers(max(n, m, 30), max(m, 41), seed=11),
    "d": lambda n, m: m - 2,
    "wide": lambda n, m: 19 if m else 60,
    "seen": lambda n, m: whole(2, n, max(m, 41)) > 0,
    "to": lambda n, m: np.random.default_rng(n).permutation(n).astype(np.int32),
    "near": lambda n, m: whole(n, n, max(m, 30)),
    # beside doubles
    "byte": lambda n, m: whole(250, n + 2).astype(np.uint8),
    "mark": lambda n, m: np.zeros(n, np.uint8),
    "gap": lambda n, m: (whole(9, n + 2) - 4).astype(np.int16),
    "flag": lambda n, m: whole(2, n) > 0,
    "skips": lambda n, m: of_many_sizes(2 * n)[::2],
    "hit": lambda n, m: whole(2, n),
    "label": lambda n, m: np.zeros(n, np.int32),
    "long": lambda n, m: whole(8, n).astype(np.int64),
    "whole": lambda n, m: np.zeros(n, np.int64),
    "many": lambda n, m: whole(99, n, max(m, 21)).astype(np.uint64),
    "some": lambda n, m: whole(99, n, max(m, 21)).astype(np.int64),
    "few": lambda n, m: np.zeros(50),
    "other": lambda n, m: np.zeros(50),
    "lock": lambda n, m: np.zeros(1, np.int32),
    # the trips, other numbers
    "m": lambda n, m: m,
    "n": lambda n, m: n,
    "k": lambda n, m: 3,
    "five": lambda n, m: 5,
    "zero": lambda n, m: 0,
    # where guards begin and end to hold: of some sizes they hold nowhere, or overlap
    "low": lambda n, m: m // 7,
    "high": lambda n, m: n - m // 4,
    "start": lambda n, m: m - 4,
    "stop": lambda n, m: n + 5 - m,
    "box": lambda n, m: 2.0,
}


@dataclass(frozen=True)
class Sample:
    """A body, and what passes have to do for it.

    kinds: of the segments, v(ector) or s(calar). trips: loops that run trip by trip along strips.
    arrays: what is kept for the iterations of a strip. lanes: whether iterations take long trips in
    the lanes of vectors. kept: what passes between segments. hoisted: whether calls are made
    ahead of their conditions.
    aliased: names of one array. sums: how many copies of its one sum there are. m: its trips.
    dtype: of its floating-point arrays, if not the usual one. runs: whether it may.
    on: the processor, one of `PROCESSORS`. parts: loops that a chain is cut into. asked: the
    elements that blocks ask for ahead.
    """

    function: Callable[..., Any]
    passes: frozenset[str]
    kinds: str = ""
    trips: int | None = None
    arrays: int | None = None
    lanes: bool | None = None
    kept: int | None = None
    hoisted: bool | None = None
    aliased: str = ""
    sums: int = 1
    m: int = M
    n: int = N
    dtype: str = ""
    execution: str = "OpenMP"
    copies: int | None = None
    runs: bool = True
    on: str = ""
    parts: int | None = None
    asked: str = ""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.function.__name__} {self.dtype}".strip()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of all of them, indices and sums included."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def rtol(self) -> float:
        """Of maths functions for vectors."""
        return 1e-6 if self.dtype == "float32" else 1e-11

    @property
    def pattern(self) -> str:
        return "reduce" if "acc" in self.arguments else "for"

    @property
    def rank(self) -> int:
        return sum(name in ("i", "j", "p") for name in self.arguments)

    def _typed(self, value: Any) -> Any:
        if not self.dtype or not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return value
        return (10 * value).astype(self.dtype)

    def case(self, n: int = 0, m: int | None = None, begin: int = 0) -> Case:
        """The kernel over the iterations from `begin` to n."""
        n, m = n or self.n, self.m if m is None else m
        names = [a for a in self.arguments if a in ARGUMENTS]

        def arguments() -> list[Any]:
            made = {name: self._typed(ARGUMENTS[name](n, m)) for name in names}
            first, *same = self.aliased.split() or [""]
            return [made[first] if name in same else made[name] for name in names]

        extents, start = [n] * self.rank, [begin] * self.rank
        given = case(self.function, extents, arguments, self.pattern, start, self.execution)
        return given if self.sums == 1 else copied_sum(given, self.sums)


SAMPLES: dict[str, list[Sample]] = {}


def body(passes: str = "", **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Note a body among those of its file. passes: names, with blanks between."""

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        found = SAMPLES.setdefault(function.__module__.rpartition(".")[2], [])
        found.append(Sample(function, frozenset(passes.split()), **options))
        return function

    return note


def function_of(name: str, text: str, first: str = "i") -> Callable[..., Any]:
    """A body from its text; arguments are those that it names, after `first`."""
    pairs = re.findall(r"\bfor (\w+) in|\b(\w+): |\b(\w+) =", text)
    own = {name for names in pairs for name in names}
    names = [n for n in ARGUMENTS if re.search(rf"\b{n}\b", text) and n not in own]
    lines = text.strip("\n").replace("\n", "\n    ")
    source = f"def {name}({', '.join([first, *names])}):\n    {lines}\n"
    return from_text(source)


def variants(
    table: str,
    passes: str,
    text: str,
    changes: dict[str, tuple[str, ...]],
    first: str = "i",
    **options: Any,
) -> None:
    """Note bodies that differ from a text in a few words: what is replaced, and by what."""
    for name, words in changes.items():
        other = text
        for old, new in zip(words[::2], words[1::2], strict=True):
            assert old in other, (name, old)
            other = other.replace(old, new)
        function = function_of(name, other, first + ", acc" * ("acc +=" in other))
        function.__module__ = table
        body(passes, **options)(function)


def copied_sum(given: Case, count: int) -> Case:
    """The kernel with so many sums that take the statements of the one that it has."""
    unit, (one,) = given.kernel.workunit, given.kernel.workunit.accumulators
    syms = [one.sym, *(replace(one.sym, uid=10**9 + n) for n in range(1, count))]

    def copies(stmt: Stmt) -> Body:
        if one.sym not in assigned((stmt,)):
            return (stmt,)
        return tuple(s for sym in syms for s in substitute_syms((stmt,), {one.sym: sym}))

    body = tuple(copy for stmt in unit.body for copy in copies(stmt))
    unit = replace(unit, body=body, accumulators=tuple(map(Accumulator, syms)))
    kernel = replace(given.kernel, workunit=unit, results=tuple(range(count)))
    return replace(given, kernel=kernel)


# --------------------------------------------------------------------------- what is decided


@dataclass(frozen=True)
class Decided:
    """The loops of a kernel, with what was done to them."""

    nest: Nest
    blocks: Blocks

    @property
    def passes(self) -> frozenset[str]:
        ordered = self.nest.spec.order != given_order(self.nest.rank)
        return frozenset({*self.nest.passes, *["loop-order"] * ordered})

    @property
    def kinds(self) -> str:
        return "".join("v" if s.vector else "s" for s in self.blocks.segments)

    @property
    def asked(self) -> str:
        """What blocks ask for ahead."""
        found = (show_node(Load(*s[:2])) + " stored" * s.written for s in self.blocks.ahead)
        names = self.nest.spec.names
        return re.sub(r"\?#(\d+)", lambda number: names[int(number[1])], ", ".join(found))

    @property
    def lanes(self) -> bool:
        """Whether iterations of a strip take a loop in the lanes of vectors."""
        parts = [part for strips in self.blocks.strips if strips for part in strips.parts]
        return any(part.vector and any(map(is_long, part.body)) for part in parts)


def spec_for(given: Case, small: bool = False, on: str = "") -> KernelSpec:
    """The spec of a case, with blocks that an interpreter sees several of."""
    spec = spec_of(given.kernel, target=replace(host(), **PROCESSORS[on]))
    if not small:
        return spec
    order = spec.order._replace(block=min(spec.order.block, 4))
    return replace(spec, order=order, tuning=replace(spec.tuning, **SMALL))


def decided(spec: KernelSpec) -> Decided:
    """What passes do for a kernel."""
    sums = [a.sym for a in spec.workunit.accumulators]
    blocks = blocks_of(nest_of(spec), sum(sym.dtype.size for sym in sums), 32 if sums else 0)
    return Decided(lowered(nest_of(spec)), blocks)


# --------------------------------------------------------------------------- three ways to run


def assert_interpreted(given: Case, seed: int = 0, on: str = "") -> frozenset[str]:
    """The nest does, in any order, what the kernel does; the passes that had something to do."""
    nest = lowered(nest_of(spec_for(given, True, on)))
    verify(nest)
    rtol = 1e-11 if is_free(nest) else 0.0
    found, space = given.arguments(), given.kernel.space
    with np.errstate(all="ignore"):
        results = interpret(nest, space.begin, space.end, found, seed)
        expected, sums = given.interpreted()
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol, 1e-12 if rtol else 0.0)
    for array, result, wanted in zip(nest.workunit.accumulators, results, sums, strict=True):
        rtol = 1e-5 if array.sym.dtype.size == 4 else 1e-11
        np.testing.assert_allclose(result, wanted, rtol, 1e-12)
    return frozenset(nest.passes)


def is_free(nest: Nest) -> bool:
    """Whether more than accumulators is added up in any order."""
    parts = (s for f in nest.functions for s in statements(f.body))
    return any(isinstance(s, OrderedSum) or getattr(s, "atomic", False) for s in parts)


def bits(results: tuple[Sequence[Any], Sequence[Any]]) -> tuple[bytes, ...]:
    """All of a run, to be compared."""
    arrays, sums = results
    written = (a.tobytes() for a in arrays if isinstance(a, np.ndarray))
    return (*written, *(np.asarray(value).tobytes() for value in sums))
