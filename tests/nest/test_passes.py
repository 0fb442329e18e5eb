"""Each pass over nests leaves what a kernel computes as it was: interpreted, without a compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Const, Stmt
from pyfuser.ir.verify import IRError
from pyfuser.ir.visit import map_body, statements
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Function, Nest, Run
from pyfuser.nest.passes.lower_boxes import lower_boxes
from pyfuser.nest.passes.safe_rows import safe_rows
from pyfuser.nest.printer import show
from pyfuser.nest.spec import LoopOrder
from pyfuser.nest.verify import verify
from pyfuser.pipeline import NEST_PASSES, NestPass, run_nest_passes
from tests.codegen.build import Case
from tests.nest import conditions as _conditions  # noqa: F401  (notes its bodies)
from tests.nest.bodies import random_case
from tests.nest.harness import SAMPLES, Sample
from tests.nest.interpret import interpret
from tests.vendors import tune

BLOCK = 4  # of conditions, in these tests
SIZES = (1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK + 3)
LOWER = NestPass("lower-boxes", lower_boxes)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, condition_gain=1000)


def built(given: Case, order: LoopOrder | None = None) -> Nest:
    spec = spec_of(given.kernel)
    small = {"tried": BLOCK, "together": 5, "shortest_row": 2}
    tuning = replace(spec.tuning, along=3, along_on_intel=3, **small)
    nest = nest_of(replace(spec, order=order or spec.order, tuning=tuning))
    verify(nest)
    return nest


def assert_same(given: Case, nest: Nest, seed: int = 0) -> None:
    """The nest does what the kernel does."""
    verify(nest)
    found = given.arguments()
    interpret(nest, given.kernel.space.begin, given.kernel.space.end, found, seed)
    for a, b in zip(found, given.interpreted()[0], strict=True):
        np.testing.assert_array_equal(a, b)


def cases(rank: int, seeds: range, **options: Any) -> Iterator[tuple[int, Case]]:
    for seed in seeds:
        size = SIZES[seed % len(SIZES)]
        extents = (size,) if rank == 1 else (size, BLOCK + 1)
        yield seed, random_case(seed, extents, begin=[seed % 2] * rank, **options)


@pytest.mark.parametrize("each", [*NEST_PASSES, LOWER], ids=lambda each: each.name)
@pytest.mark.parametrize("rank", [1, 2])
def test_a_pass_keeps_what_is_computed(each: NestPass, rank: int) -> None:
    changed = 0
    for seed, given in cases(rank, range(60)):
        before = built(given)
        after = each.run(before)
        changed += after is not before
        assert_same(given, after, seed)
        if after is not before:
            assert_same(given, lower_boxes(after), seed)
    if (each.name, rank) in (("split-rows", 2), ("safe-rows", 1)):
        assert not changed
    else:
        assert changed >= 5


@pytest.mark.parametrize(
    "sample",
    [s for s in SAMPLES["conditions"] if "safe-rows" in s.passes],
    ids=lambda s: s.name,
)
def test_rows_that_are_there(sample: Sample) -> None:
    given = sample.case()
    before = built(given)
    after = safe_rows(before)
    assert after is not before
    assert_same(given, after)


def test_all_passes_together() -> None:
    for seed, given in cases(1, range(200, 260)):
        nest = run_nest_passes(built(given))
        assert_same(given, nest, seed)
        assert set(nest.passes) <= {each.name for each in NEST_PASSES}


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_orders_of_loops(axes: tuple[int, int], block: int) -> None:
    for seed, given in cases(2, range(30)):
        nest = run_nest_passes(built(given, LoopOrder(axes, block)))
        assert_same(given, lower_boxes(nest), seed)


@pytest.mark.parametrize("each", NEST_PASSES, ids=lambda each: each.name)
def test_serial_loops_keep_their_order(each: NestPass) -> None:
    """Of one axis they may be split; of several, guards and conditions stay."""
    for rank in (1, 2):
        for seed, given in cases(rank, range(40), execution="Serial"):
            nest = each.run(built(given))
            assert rank == 1 or not nest.passes
            assert_same(given, nest, seed)


# --------------------------------------------------------------------------- faults are seen


def without(nest: Nest, number: int) -> Nest:
    """The nest whose last function does not run another one at a place."""
    found = [s for s in statements(nest.functions[-1].body) if isinstance(s, Run)]

    def drop(stmt: Stmt) -> Stmt | Body:
        return () if stmt is found[number] else stmt

    last = nest.functions[-1]
    return replace(nest, functions=(*nest.functions[:-1], _with(last, drop)))


def _with(f: Function, change: Any) -> Function:
    return replace(f, body=map_body(f.body, None, change))


@pytest.mark.parametrize("each", NEST_PASSES[:2], ids=lambda each: each.name)
def test_every_run_of_a_split_loop_is_needed(each: NestPass) -> None:
    """Which also shows that these tests see a fault. Rows: see test_split_rows."""
    missing: dict[tuple[int, int], int] = {}
    for seed, given in cases(1, range(120)):
        before = built(given)
        nest = each.run(before)
        if nest is before:
            continue
        runs = [s for s in statements(nest.functions[-1].body) if isinstance(s, Run)]
        for number in range(len(runs)):
            if missing.setdefault((len(runs), number), 0):
                continue
            try:
                assert_same(given, without(nest, number), seed)
            except AssertionError:
                missing[len(runs), number] += 1
    assert missing and all(missing.values())


def test_what_verify_refuses() -> None:
    given = next(iter(cases(1, range(1))))[1]
    nest = built(given)
    (loop,) = nest.functions
    (over,) = loop.body
    zero = (Const(0, DType.INT64),)
    faults = {
        "no function": replace(loop, body=(Run("pf_other", zero, zero),)),
        "no box": replace(loop, body=(replace(over, low=()),)),
        "expected int64": replace(loop, body=(replace(over, low=(Const(0, DType.INT32),)),)),
        "declared twice": replace(loop, body=(replace(over, body=(over,)),)),
        "has 64 bits": replace(loop, params=(nest.workunit.params[0].sym,)),
    }
    for message, function in faults.items():
        with pytest.raises(IRError, match=message):
            verify(replace(nest, functions=(function,)))


def test_text() -> None:
    given = random_case(3, (9,))
    assert show(lower_boxes(built(given))).startswith("function pf_loop(")
