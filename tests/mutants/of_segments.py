"""Loops that are distributed over blocks: `codegen/passes/distribute.py`, `cost/pipeline.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "codegen/test_segments.py::"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "statements on views that overlap change places",
        "codegen/passes/distribute.py",
        "return (syms - aliased) | {first} if first and syms & aliased else syms",
        "return syms",
        _TEST + "test_statements_on_overlapping_views_keep_their_order",
    ),
    Mutant(
        "iterations that may wait for others are cut",
        "codegen/passes/distribute.py",
        "if not effects_of(body).may_interleave:",
        "if False:",
        _TEST + "test_an_iteration_that_may_wait_for_another_is_not_cut",
    ),
    Mutant(
        "what some iterations load, all do",
        "codegen/passes/distribute.py",
        "if e in sometimes or not wanted(e):",
        "if not wanted(e):",
        _TEST + "test_kinds",
    ),
    Mutant(
        "serial loops are cut",
        "codegen/cpu/blocks.py",
        "if not context.independent or context.spec.checked or _aliased(context):",
        "if context.spec.checked or _aliased(context):",
        "codegen/test_latency.py::test_a_serial_loop_is_not_cut",
    ),
)
