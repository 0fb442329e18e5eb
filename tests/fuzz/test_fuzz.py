"""A small campaign for every run of the tests, and proof that it would find a wrong fusion."""

from __future__ import annotations

import shutil
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pyfuser.analysis import mistakes
from pyfuser.engine import compiler
from pyfuser.engine.gpu import graphs, launchable
from pyfuser.ir.dtypes import integral_promotion
from pyfuser.ir.nodes import Assign, Cast
from pyfuser.ir.visit import map_body
from pyfuser.lower import lockstep, lower
from pyfuser.lower.team import barrier_mark
from pyfuser.plan.plan import SCAN_TILE, Group, Plan
from pyfuser.support.caches import Table
from pyfuser.support.errors import WorkunitWarning
from pyfuser.support.settings import SETTINGS
from pyfuser.transform import scalars as scalars_pass
from pyfuser.tuning.thresholds import NOW
from tests import conftest
from tests.fuzz import choices, compiled, cxx, harness, inexact, on_device, oracle, teams
from tests.fuzz.__main__ import campaign, same_failure
from tests.fuzz.minimise import minimised, write_script
from tests.fuzz.program import Base, Call, Program, Statement
from tests.fuzz.team_maker import Phase, TeamCall, TeamProgram, random_teams
from tests.gpu.conftest import on_gpu
from tests.strategies import random_program

# Random programs race, and compute what they do not keep.
pytestmark = pytest.mark.filterwarnings("ignore::pyfuser.WorkunitWarning")

PROGRAMS = 100
COMPILED = range(29, 33)  # a loop, and three programs that run once
TEAMS = range(3)


def _raise(program: Any, error: Exception) -> None:
    raise AssertionError(f"seed {program.seed}: {error}\n{program.source()}") from error


def test_fused_programs_compute_what_python_computes() -> None:
    totals = campaign(range(PROGRAMS), harness.check_interpreted, _raise)
    assert totals.failed == 0
    # The generator is worth something only while most programs are judged and many calls fused.
    assert totals.rejected < PROGRAMS / 2
    assert totals.fused > totals.calls / 4
    assert totals.features["scan beside maps"] >= PROGRAMS / 100
    assert totals.features["flattened call beside MDRange"] >= PROGRAMS / 100


_words = partial(random_program, focus="words")


def test_words_are_stored_modulo_their_size() -> None:
    totals = campaign(range(40), harness.check_interpreted, _raise, _words)
    assert totals.failed == 0 and totals.rejected < 4
    assert totals.features["store of a number that wraps"] > 12
    assert all(totals.features[kind] for kind in cxx.WORDS)


_ROUNDED = ("-1 // 255", "(i - 5) // 2", "(2 - i) // (0 * i - 3)")
_AS_PYTHON = ("-510 // 255", "(i + 5) // 2", "-8 // (0 * i - 3)", "(i + 5) % 2")
_OVERFLOWED = ("(i + 2) * 2000000000", "(i + 3) << 30")
_COMPARED = ("1 if pk.uint32(i) > i - 2 else 0", "pk.uint64(i + 9) < -3 - i and i == 0")
_FITTING = ("(i + 2) * 200000000", "(i + 3) << 20", "-(i + 2) * 1000000000")


def _of_words(value: str) -> Program:
    body = Statement("t: pk.uint16 = {}", ((f"({value})",),))
    call = Call("for", (0,), (1,), (body, Statement("x[i] = t")), (("x", "A"),))
    return Program((Base("A", (1,), "uint16", False),), (call,), seed=1)


_SAID = {"rounded": _ROUNDED, "overflowed": _OVERFLOWED, "compared": _COMPARED}


@pytest.mark.parametrize("value", [*sum(_SAID.values(), ()), *_AS_PYTHON, *_FITTING])
def test_the_oracle_has_seen_what_is_said_of_numbers(value: str) -> None:
    kinds = {kind for kind, values in _SAID.items() if value in values}
    found = harness.check_interpreted(_of_words(value)).features
    assert found & {*_SAID} == kinds


@pytest.mark.parametrize("value", [*_AS_PYTHON, *_FITTING])
@pytest.mark.parametrize(
    "words", ["does not fit into", "round quotients", "is compared with unsigned"]
)
def test_a_false_alarm_about_numbers_is_found(
    value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alarm(shape: Any, facts: Any) -> None:
        warnings.warn(words, WorkunitWarning, stacklevel=1)

    monkeypatch.setattr(mistakes, "_warn_of_overflows", alarm)
    with pytest.raises(harness.Mismatch, match="in a program where none are"):
        harness.check_interpreted(_of_words(value))


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_compiled_words_are_stored_modulo_their_size() -> None:
    totals = campaign(COMPILED, compiled.check_compiled, _raise, _words)
    assert totals.failed == 0 and totals.features["store of a number that wraps"] > 1


class _WithoutNarrowing(scalars_pass._CellRewriter):
    """Passes on what is stored to words in the type in which it was computed: wrong."""

    def _write(self, stmt: Any) -> Any:
        found = super()._write(stmt)
        first, *rest = found if isinstance(found, tuple) else (found,)
        if not isinstance(first, Assign) or first.sym != self.local:
            return found
        value, wide = first.value, self.local.dtype
        if isinstance(value, Cast) and value.operand.dtype is wide:
            value = value.operand
        return Assign(self.local, value if value.dtype is wide else Cast(value, wide)), *rest


def test_a_stored_word_that_is_passed_on_without_its_conversion_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh = scalars_pass.fresh
    wide = lambda name, dtype: fresh(name, integral_promotion(dtype))  # noqa: E731
    failures: list[tuple[Program, Exception]] = []

    def failing(seeds: range) -> int:
        failures.clear()
        return campaign(
            seeds, harness.check_interpreted, lambda p, e: failures.append((p, e)), _words
        ).failed

    with monkeypatch.context() as patch:
        patch.setattr(scalars_pass, "fresh", wide)
        patch.setattr(scalars_pass, "_CellRewriter", _WithoutNarrowing)
        for module in (harness, conftest):
            patch.setattr(module, "verify", lambda _: None)  # it would refuse the types
        seed = next(seed for seed in range(1000) if failing(range(seed, seed + 1)))
        ((_, error),) = failures
        assert isinstance(error, harness.Mismatch)
    assert not failing(range(seed, seed + 1))


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_compiled_programs_compute_what_python_computes() -> None:
    totals = campaign(COMPILED, compiled.check_compiled, _raise)
    assert totals.failed == 0
    assert totals.calls > 0


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_a_copy_stays_before_the_store_that_changes_its_source() -> None:
    """g++ 12 distributed this loop, and kept the terms of a sum too late (see `IN_ONE_LOOP`)."""

    def call(pattern: str, end: int, statement: Statement, *names: str) -> Call:
        views = tuple(zip("xyz", names, strict=False))
        accumulator = "pk.double" if pattern == "reduce" else ""
        return Call(pattern, (0,), (end,), (statement,), views, (), accumulator)

    shapes = {"O": "float64", "P": "float64", "R": "float64", "I": "int32"}
    calls = (
        call("reduce", 64, Statement("acc += {}", (("x[i // 2]",),)), "O"),
        call("reduce", 64, Statement("acc += {}", (("x[i]",),)), "P"),
        call("for", 26, Statement("x[i] = {}", (("0.5 * y[i] + z[i]",),)), "P", "O", "I"),
    )
    bases = tuple(Base(name, (64,), dtype, False) for name, dtype in shapes.items())
    found = compiled.check_compiled(Program(bases, calls, seed=2600038))
    assert any(len(group) > 12 for group in found.groups)


def test_fused_programs_have_the_bits_that_they_have_unfused() -> None:
    totals = campaign(COMPILED, inexact.check_inexact, _raise)
    assert totals.failed == 0 and totals.rejected < len(COMPILED) / 2


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_programs_on_a_gpu_compute_what_python_computes() -> None:
    totals = campaign(COMPILED[:2], on_device.check_on_device, _raise)
    assert totals.failed == 0 and totals.fused > 0


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("where", "seeds"), [(nullcontext, TEAMS), (on_gpu, TEAMS[:1])], ids=["host", "GPU"]
)
def test_random_teams_compute_what_threads_compute(where: Any, seeds: range) -> None:
    with where():
        totals = campaign(seeds, teams.check, _raise, random_teams)
    assert totals.failed == 0 and totals.fused > totals.calls / 2


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_a_barrier_that_is_overlooked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    dealt = "for i in range(team.team_rank(), n, team.team_size()):"
    fill = Phase((dealt, "    a0[j][i] = i + 1.0"))
    turn = Phase(("team.team_barrier()", dealt, "    a1[j][i] = a0[j][n - 1 - i]"))
    call = TeamCall((fill, turn), 3, False, ("a0", "a1"))
    program = TeamProgram(1, 2, 8, 1, frozenset(), frozenset(), (call,))
    teams.check(program)

    def without_barriers(body: Any, team: Any, accumulators: Any) -> Any:
        body = map_body(body, None, lambda s: s if barrier_mark(s) is None else ())
        return lockstep.in_lockstep(body, team, accumulators)

    monkeypatch.setattr(lower, "in_lockstep", without_barriers)
    with pytest.raises(harness.Mismatch):
        teams.check(program)


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("seed", [31, 32], ids=["exact", "inexact"])
def test_a_wrong_kernel_of_a_gpu_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bases = tuple(Base(name, (99,), "float64", name == "T") for name in "ABT")
    negated = Statement("x[i] = {}", (("-{}", ("y[i]",)),))
    calls = [Call("for", (0,), (99,), (negated,), (("x", x), ("y", y))) for x, y in ("TA", "BT")]
    program = Program(bases, tuple(calls), seed)
    assert on_device.check_on_device(program).fused == 2
    monkeypatch.setattr(launchable, "KERNELS", Table("of a test", 999))  # compile it again
    code = launchable.machine_code

    def doubled(kernel: Any, device: Any) -> bytes:
        fused = kernel.source.startswith("// fused")
        source = kernel.source.replace("] = ", "] = 2.0 * ") if fused else kernel.source
        return code(replace(kernel, source=source), device)

    monkeypatch.setattr(launchable, "machine_code", doubled)
    with pytest.raises(harness.Mismatch):
        on_device.check_on_device(program)


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_a_graph_of_a_gpu_that_keeps_an_old_number_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bases = tuple(Base(name, (99,), "float64") for name in "ABC")
    turned = Statement("x[i] = {}", (("y[98 - i] * s0",),))  # so that each is a launch
    calls = [
        Call("for", (0,), (99,), (turned,), (("x", x), ("y", y)), (("s0", "0.5"),))
        for x, y in ("BA", "CB", "AC")
    ]
    program = Program(bases, tuple(calls), seed=95)  # a loop without trials
    assert "graph of a GPU" in on_device.check_on_device(program).features
    kernels = lambda bounds: tuple(bound.launchable for bound in bounds)  # noqa: E731
    monkeypatch.setattr(graphs, "key_of", kernels)
    with pytest.raises(harness.Mismatch):
        on_device.check_on_device(program)


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_a_product_that_is_not_rounded_shows_in_inexact_numbers_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bases = tuple(Base(name, (999,), "float64", name == "T") for name in "ABCDT")
    product = Statement("x[i] = {}", (("({} * {})", ("y[i]",), ("z[i]",)),))
    total = Statement("x[i] = {}", (("({} + {})", ("y[i]",), ("z[i]",)),))
    calls = [
        Call("for", (0,), (999,), (body,), tuple(zip("xyz", names, strict=True)))
        for body, names in ((product, "TAB"), (total, "CTD"))
    ]
    program = Program(bases, tuple(calls), seed=32)  # no loop, no maths functions
    assert inexact.check_inexact(program).fused == 2
    monkeypatch.setattr(choices, "_launchables", choices.tables())  # compile it again
    flags = compiler.flags
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "flags", lambda _: flags(True))
        compiled.check_compiled(program)

    def contracted(program: Program, small_tiles: bool, place: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "flags", lambda _: flags(True))
            return compiled.run_forced(program, small_tiles, place)

    monkeypatch.setattr(inexact, "run_forced", contracted)
    with pytest.raises(harness.Mismatch):
        inexact.check_inexact(program)


def test_compiled_scans_have_small_tiles() -> None:
    with choices.forced_for(0):
        assert NOW.tuning.scan_tile == 3
    assert NOW.tuning.scan_tile == SCAN_TILE


def test_the_same_seed_makes_the_same_program() -> None:
    assert random_program(11) == random_program(11)
    assert random_program(11) != random_program(12)


def _fuse_neighbours(trace: Any, graph: Any, capabilities: Any) -> Plan:
    """A planner that fuses whatever shares a space and pattern: wrong."""
    groups: list[list[int]] = []
    for n, call in enumerate(trace.calls):
        last = trace.calls[groups[-1][-1]] if groups else None
        simple = call.pattern == "for" and not any(hasattr(a, "producer") for a in call.arguments)
        if last and simple and last.pattern == "for" and last.space == call.space:
            groups[-1].append(n)
        else:
            groups.append([n])
    return Plan(tuple(Group(tuple(group)) for group in groups), ())


def test_an_illegal_fusion_is_found_and_minimised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("pyfuser.plan.partition.partition", _fuse_neighbours)
    few = [
        each for each in choices.TRACE_REWRITES if each.name not in ("coarsen", "enlarge-domain")
    ]
    monkeypatch.setattr(choices, "TRACE_REWRITES", few)  # so that two calls are enough
    failures: list[tuple[Program, Exception]] = []
    campaign(range(40), harness.check_interpreted, lambda p, e: failures.append((p, e)))
    assert failures and all(isinstance(error, harness.Mismatch) for _, error in failures)
    short = [f for f in failures if max(call.end[0] for call in f[0].calls) < 40]
    program, error = max(short, key=lambda failure: len(failure[0].source()))
    small = minimised(program, same_failure(harness.check_interpreted, error), budget=400)
    assert 2 <= len(small.calls) <= 3 < len(program.calls)
    assert len(small.source().splitlines()) < len(program.source().splitlines())
    script = write_script(small, "interpret", str(error), tmp_path)
    namespace: dict[str, Any] = {"__name__": "not main"}
    exec(script.read_text(), namespace)
    assert namespace["PROGRAM"] == small


def test_half_powers_are_roots_to_the_oracle() -> None:
    """C's pow(x, 0.5) is 1.0 for the double before 1.0, whose root is that double again."""
    body = Statement("x[i] = {}", (("({} ** 0.5)", ("x[i]",)),))
    call = Call("for", (0,), (1,), (body,), (("x", "A"),))
    program = Program((Base("A", (1,), "float64", False),), (call,), seed=1)
    (root,) = oracle.functions(program, as_meant=True)
    x = np.nextafter(np.ones(1), 0.0)
    root(0, x)
    assert x[0] == np.nextafter(1.0, 0.0)


_moving = partial(random_program, focus="moving")


def test_calls_on_parts_that_move_on_compute_what_python_computes() -> None:
    totals = campaign(range(60), harness.check_interpreted, _raise, _moving)
    assert totals.failed == 0 and totals.rejected < 20
    assert totals.features["calls rolled"] > 5


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_compiled_calls_on_parts_that_move_on_compute_what_python_computes() -> None:
    totals = campaign(range(10, 23, 6), compiled.check_compiled, _raise, _moving)
    assert totals.failed == 0 and totals.features["calls rolled"] > 1
