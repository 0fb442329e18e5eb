"""Passes over loops: what they do to bodies, and that these compute what they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from pyfuser.engine import native
from pyfuser.engine.launchable import team
from pyfuser.engine.native import Launchable
from pyfuser.ir.nodes import DeclareArray
from pyfuser.ir.visit import statements
from pyfuser.nest.build import nest_of
from pyfuser.nest.passes import distribute, scalar_expansion
from pyfuser.nest.passes.columns import columns_of
from pyfuser.nest.passes.copy_rows import AGAIN, ROW, SHORT, copied_rows
from pyfuser.nest.passes.scalar_expansion import Trips
from pyfuser.nest.segments import expansion
from pyfuser.nest.spec import LoopOrder
from pyfuser.pipeline import LOOP_PASSES as STEPS
from pyfuser.pipeline import NEST_PASSES, lowered
from pyfuser.support import passes
from pyfuser.support.caches import Table
from pyfuser.tuning.target import host
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case
from tests.nest import (
    branches,
    chains,
    columns,
    conditions,
    many_sums,
    rows,
    segments,
    strips,
    widths,
)
from tests.nest.harness import (
    PROCESSORS,
    SAMPLES,
    Sample,
    assert_interpreted,
    bits,
    decided,
    spec_for,
)  # fmt: skip
from tests.nest.interpret import interpret
from tests.nest.random_bodies import random_sample
from tests.vendors import decide_with_maths, emit_as_on, tune

FILES = (columns, rows, branches, strips, segments, conditions, chains, many_sums, widths)
ALL = [sample for file in FILES for sample in SAMPLES[file.__name__.rpartition(".")[2]]]
LOOP_PASSES = [each.name for each in (*NEST_PASSES, *STEPS)]
SIZES = (1, 3, 7, 8, 9, 16, 17, 40)
of_all = pytest.mark.parametrize("sample", ALL, ids=lambda s: s.name)


@pytest.fixture(autouse=True)
def vector_maths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of a machine that has vector maths, wherever the tests run."""
    decide_with_maths(monkeypatch, "exp", "log", "sin", "cos", "pow")


@of_all
def test_what_has_something_to_do(sample: Sample) -> None:
    given = sample.case()
    spec = spec_for(given, on=sample.on)
    found = decided(spec)
    assert found.passes == sample.passes
    assert found.asked == sample.asked
    parts, along = found.blocks.segments, columns_of(found.nest)
    assert not sample.kinds or found.kinds == sample.kinds
    assert sample.kept in (None, len(expansion(parts)))
    assert sample.lanes is None or found.lanes is sample.lanes
    if sample.hoisted is not None:
        assert (parts[0].body != spec.workunit.body) is sample.hoisted
    if found.blocks.parts is not None:
        assert len(found.blocks.parts.segments) == sample.parts
    if sample.copies is not None:
        copied = copied_rows(made := nest_of(spec), made.workunit.indices[-1])
        assert len(copied.rows if copied else ()) == sample.copies
        assert not copied or (along is not None and along.fits == copied.fits)
    if along is not None:
        trips = sum(isinstance(part, Trips) for part in along.parts)
        assert sample.trips in (None, trips)
        assert sample.arrays in (None, len(set(along.arrays.values())))
    if sample.runs:
        sizes = [(17, 3), (9, sample.m), (33, 30)]
        for n, m in sizes[: 2 if sample.copies else 3 if sample.passes else 1]:
            if n**sample.rank < 3000:
                assert_interpreted(sample.case(n, m, n // 9), on=sample.on)


@pytest.mark.parametrize(
    ("module", "limit", "name"),
    [(scalar_expansion, "MOST_KEPT", "kept_column"), (distribute, "MAX_ROW", "row_first")],
)
def test_what_is_kept_has_a_limit(
    module: ModuleType, limit: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sample,) = (s for s in ALL if s.name == name)
    monkeypatch.setattr(module, limit, 2)
    assert decided(spec_for(sample.case())).passes != sample.passes


COPIED = [s for s in ALL if s.copies and not s.dtype]


@pytest.mark.parametrize("m", [0, 2, AGAIN - 1, AGAIN, SHORT + 2, SHORT + 3, ROW + 2, ROW + 3])
def test_copied_rows_of_any_length(m: int) -> None:
    """Of m trips and rows of m - 2 elements: where none fit, none are read."""
    for sample in COPIED if m < ROW else COPIED[:3]:
        for n in range(1, 5) if m <= AGAIN else (3,):
            assert_interpreted(sample.case(n, m))


def test_copied_rows_share_their_room() -> None:
    rooms = {
        (len(rows), len(row.values))
        for sample in COPIED
        if (rows := _rows_of(sample))
        for row in rows
    }
    assert rooms >= {(1, ROW), (2, ROW // 2)}
    assert all(count * room <= ROW or room == SHORT for count, room in rooms)


def _rows_of(sample: Sample) -> list[DeclareArray]:
    made = nest_of(spec_for(sample.case()))
    found = copied_rows(made, made.workunit.indices[-1])
    if found is None:
        return []
    body = (*found.ahead, *found.body)
    return [s for s in statements(body) if isinstance(s, DeclareArray) and s.sym in found.rows]


def test_tiled_loops_copy_no_rows_of_an_axis() -> None:
    (sample,) = (s for s in ALL if s.name == "product_of_rows")
    spec = spec_for(sample.case())
    for block in (0, 8):
        made = nest_of(replace(spec, order=LoopOrder((0, 1), block)))
        assert bool(copied_rows(made, made.workunit.indices[-1])) is not bool(block)


def test_random_sums() -> None:
    done: Counter[str] = Counter()
    for seed in range(120):
        sample = random_sample(seed, sums=1 + seed % 3)
        n = (*SIZES, 100)[seed % (len(SIZES) + 1)]
        done.update(assert_interpreted(sample.case(n, begin=seed % 2 * (n // 3)), seed))
    assert min(done[name] for name in ("strip-mine", "distribute", "unroll-and-jam")) >= 12


def test_random_bodies() -> None:
    done: Counter[str] = Counter()
    for seed in range(240):
        sample = random_sample(seed)
        n = SIZES[seed % len(SIZES)]
        done.update(assert_interpreted(sample.case(n, begin=seed % 2 * (n // 3)), seed))
    assert min(done[name] for name in ("strip-mine", "distribute", "unroll-and-jam")) >= 30
    assert done["copy-rows"] >= 5


# --------------------------------------------------------------------------- compiled


def compiled(cases: list[tuple[Sample, Case]]) -> list[Launchable]:
    """Each for its processor, if this one can stand for it."""
    made = {}
    for on in {sample.on for sample, _ in cases}:
        own = on if PROCESSORS[on].get("vector_bytes", 0) <= host().vector_bytes else ""
        specs = {k: spec_for(c, on=own) for k, (s, c) in enumerate(cases) if s.on == on}
        with pytest.MonkeyPatch.context() as patch:
            emit_as_on(patch, **PROCESSORS[own])
            made |= dict(zip(specs, native._prepare([*specs.values()]), strict=True))
    return [made[k] for k in range(len(cases))]


@contextmanager
def no_passes() -> Iterator[None]:
    """Specs of the block are lowered without any pass over loops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "SETTINGS", SimpleNamespace(without=LOOP_PASSES))
        patch.setattr(native, "KERNELS", Table("of a test", 999))
        tune(patch, block=DEFAULT.block)  # other specs
        yield


def test_compiled_bodies() -> None:
    """Some of each kind that passes change, and random ones: what the interpreter computes.

    Maths functions for vectors have bits of their own, that passes do not change.
    """
    samples = [*map(random_sample, range(0, 240, 12))]
    kinds: Counter[object] = Counter()
    for s in ALL:
        if s.passes and s.pattern == "for" and s.runs:
            kinds[kind := (s.passes, s.kinds, s.lanes, s.trips, s.arrays, s.on, s.dtype)] += 1
            samples += [s] * (kinds[kind] <= 2)
    assert len(kinds) >= 30
    cases = [(s, s.case(s.n + 100 * (s.rank == 1))) for s in samples]
    others = []
    for (sample, given), one in zip(cases, compiled(cases), strict=True):
        with np.errstate(all="ignore"):
            expected, found = given.interpreted()[0], given.run(one)[0]
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, sample.rtol, 1e-12, err_msg=sample.name)
        if bits((found, ())) != bits((expected, ())):
            others.append((sample, given, bits((found, ()))))
    with no_passes():
        plain = compiled([(sample, given) for sample, given, _ in others])
    for (sample, given, found), one in zip(others, plain, strict=True):
        if "few" not in sample.arguments:  # its order of additions shows
            assert found == bits(given.run(one)), sample.name


SUMS = [s for s in ALL if s.passes and s.pattern == "reduce"]
SPACES = ((1, 0), (31, 0), (33, 5), (300, 0), (1700, 3))  # what fills no block, runs and rounds


def test_sums_have_the_bits_of_those_without_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many threads add them up."""
    cases = [(s, s.case(n, begin=b)) for s in SUMS for n, b in SPACES if s.rank == 1 or n < 40]
    made = compiled(cases)
    found = {}
    for threads in (1, 3):
        monkeypatch.setattr(team, "count", threads)
        found[threads] = [bits(given.run(one)) for (_, given), one in zip(cases, made, strict=True)]
    assert found[1] == found[3]
    others = []
    for (sample, given), one, bits_found in zip(cases, made, found[1], strict=True):
        results, wanted = given.run(one)[1], given.interpreted()[1]
        np.testing.assert_allclose(results, wanted, rtol=100 * sample.rtol, err_msg=sample.name)
        with no_passes():
            nest = lowered(nest_of(spec_for(given, on=sample.on)))
        arguments, space = given.arguments(), given.kernel.space
        sums = interpret(nest, space.begin, space.end, arguments)
        if bits((arguments, sums)) != bits_found:  # by maths functions, or by mistake
            others.append((sample, given, bits_found))
    with no_passes():
        plain = compiled([(sample, given) for sample, given, _ in others])
    for (sample, given, bits_found), one in zip(others, plain, strict=True):
        assert bits_found == bits(given.run(one)), sample.name
