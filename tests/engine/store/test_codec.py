"""Values as text and back, and texts that nobody wrote."""

from __future__ import annotations

import contextlib
import json
import math
import random
from typing import Any

import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.store.codec import Table, Unstorable, digest_of
from pyfuser.ir.canonical import all_syms, canonical, fresh, rename
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Read, SourceLocation, Sym
from pyfuser.ir.printer import show
from pyfuser.pipeline import for_c, kernel_of, planned
from pyfuser.plan.plan import Plan
from pyfuser.runtime.session import TRACER
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.group import group_shapes
from tests.fuzz.compiled import run_compiled
from tests.strategies import random_program


def back(value: Any, *key: Any) -> Any:
    """A value after a round trip under a key, into a table of another process."""
    written, read = Table(), Table()
    for part in key:
        written.number(part)
        read.number(part)
    return read.read(written.text(value).encode())


VALUES = [
    None, True, False, 0, 1, -1, 1 << 70, 0.0, -0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308,
    math.inf, -math.inf, "", "a", "\ud800", "\0", "ä", (), (1,), (1, 1.0, True), ((), ((),)),
    1j, -0.0 + 1j, frozenset(), frozenset({1, 2}), frozenset({"b", "a"}), DType.INT8,
    Const(0.0, DType.FLOAT64), SourceLocation("file.py", 3, 1, "f"), Plan((), ()),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_comes_back(value: Any) -> None:
    found = back(value)
    assert type(found) is type(value)
    assert found == value if type(value) is frozenset else repr(found) == repr(value)


def test_not_a_number_comes_back() -> None:
    assert math.isnan(back(math.nan))


def test_equal_numbers_of_several_types_stay_apart() -> None:
    found = back((True, 1, 1.0, 0, False, 0.0, -0.0))
    assert repr(found) == repr((True, 1, 1.0, 0, False, 0.0, -0.0))


def test_what_is_shared_is_written_once() -> None:
    small = (1, 2, 3)
    large = small
    for _ in range(60):
        large = (large, large)  # type: ignore[assignment]
    assert len(Table().text(large)) < 2000


def test_symbols_are_fresh_and_as_many() -> None:
    a, b = Sym("a", 1001, DType.INT32), Sym("a", 1002, DType.INT32)
    x, y, z = back((Read(a), Read(b), Read(a)))
    assert x == z != y
    assert {x.sym.uid, y.sym.uid}.isdisjoint({1001, 1002})
    assert back(Sym("", 7, DType.BOOL)) == Sym("", 7, DType.BOOL)


def test_parts_of_the_key_are_the_very_objects() -> None:
    part = (5, ("x", 2.5))
    assert back((part, 1), part)[0] is part


class Foreign:
    pass


@pytest.mark.parametrize(
    "value", [Foreign(), object(), {1: 2}, [1], b"bytes", print, Foreign, (1, (Foreign(),)), TRACER]
)
def test_what_is_no_plain_value_of_ours_is_refused(value: Any) -> None:
    with pytest.raises(Unstorable):
        Table().text(value)


CALLED: list[Any] = []

TEXTS = [
    "", "{}", "[]", "1", "[0]", "[0, []]", "[0, [5]]", "[0, [-9]]", "[1, [null, 0]]",
    '[0, [["os:system", 0], 0]]', '[0, [["builtins:eval", 0], 0]]', '[0, ["a", ["no", 0], 1]]',
    '[0, ["id", ["posix:system", 0], 1]]', '[0, ["id", ["pyfuser:os.system", 0], 1]]',
    '[0, ["id", ["pyfuser.engine.cache:os.system", 0], 1]]',
    '[0, ["x", ["pyfuser.engine.cache:KernelCache", 0], 1]]',
    '[0, ["x", ["pyfuser.engine.cache:key_of", 0, 0], 1]]',
    '[0, ["x", ["pyfuser.support.errors:CacheError", 0], 1]]',
    '[0, ["x", ["pyfuser.runtime.session:SESSION.clear"], 1]]',
    '[0, ["x", ["pyfuser.ir.nodes:Const", 0], 1]]',
    '[0, ["x", ["pyfuser.ir.nodes:Const", 0, 0, 0], 1]]',
    '[0, ["x", ["pyfuser.ir.dtypes:DType", 0], 1]]',
    '[0, ["x", ["tests.engine.store.test_codec:CALLED.append", 0], 1]]',
    '[0, [["tuple", 3], 0]]', '[0, [["tuple", "a"], 0]]', '[0, [["tuple", [0]], 0]]',
    '[0, [["tuple", null], 0]]', '[0, [[], 0]]', '[0, [[[]], 0]]', '[0, [[1, 2], 0]]',
    "[" * 100_000, '[0, ["a", ["complex", 0], 1]]', '[0, [["sym"], 0]]',
    '[0, ["x", ["pyfuser.missing:Const", 0], 1]]',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_nobody_wrote_is_refused(text: str) -> None:
    with pytest.raises(Unstorable):
        Table().read(text.encode())
    assert not CALLED


def test_damaged_texts_are_refused_or_read_as_plain_values() -> None:
    """Digests find damage; this is what happens without them. Nothing but our classes is made."""
    rng = random.Random(5)
    text = bytearray(Table().text(tuple(VALUES)).encode())
    refused = 0
    for _ in range(3000):
        damaged = bytearray(text)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(len(damaged))] = rng.choice(b'0123456789[]",:abcpyfuser.')
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            Table().read(bytes(damaged))
        except Unstorable:
            refused += 1
    assert refused > 500


def traces(count: int) -> list[TraceShape]:
    """The traces of random programs."""
    found = []

    def kept(given: TraceShape, *_: Any) -> Any:
        found.append(given)
        raise RuntimeError("seen")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyfuser.runtime.building.program_for", kept)
        for seed in range(count):
            with contextlib.suppress(Exception):
                run_compiled(random_program(seed))
            TRACER.remove(list(TRACER.calls))
    return found


@pytest.mark.filterwarnings("ignore::pyfuser.WorkunitWarning")
def test_plans_and_kernels_of_random_programs_come_back() -> None:
    """What is read is equal to what was written, and is printed as the same source."""
    looked = 0
    for given in traces(60):
        trace, graph, plan = planned(given)
        read = back((trace.calls, trace.clusters, graph, plan), given.calls, given.clusters)
        calls, clusters, other_graph, other_plan = read
        if trace is given:
            assert TraceShape(calls, clusters) == given
        assert (other_graph, other_plan) == (graph, plan)
        assert repr(other_plan.notes) == repr(plan.notes)
        for shape in group_shapes(trace, [group.calls for group in plan.groups]):
            kernel = kernel_of(shape)
            other = back(kernel, shape)
            assert show(canonical(other.workunit)) == show(canonical(kernel.workunit))
            assert other.space == kernel.space and other.slots == kernel.slots
            assert emit(spec_of(for_c(other))) == emit(spec_of(for_c(kernel)))
            spec = spec_of(for_c(kernel))
            assert back(spec, shape) == spec and hash(back(spec, shape)) == hash(spec)
            looked += 1
    assert looked > 50


@pytest.mark.filterwarnings("ignore::pyfuser.WorkunitWarning")
def test_the_digest_of_a_workunit_is_not_that_of_its_numbers() -> None:
    for given in traces(5):
        for call in given.calls:
            unit = call.workunit
            anew = rename(unit, {s: fresh(s.name, s.dtype) for s in all_syms(unit)})
            assert digest_of(anew) == digest_of(unit) != digest_of(canonical(unit))


def test_a_text_is_one_line_of_json() -> None:
    text = Table().text((1, "a\n"))
    assert "\n" not in text and json.loads(text)
