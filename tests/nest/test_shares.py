"""How a processor's threads share iterations: a part of the nest, which prints it and runs it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.verify import IRError
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Nest
from pyfuser.nest.printer import show
from pyfuser.nest.shares import Shares, Varying
from pyfuser.nest.spec import SweepSpec
from pyfuser.nest.verify import verify
from pyfuser.pipeline import for_c, lowered, lowered_sweep
from pyfuser.support import passes
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, case
from tests.nest.interpret import interpret

N = 640


def counted(i, t, key):
    pk.atomic_add(t, [key[i] % 7], 1)
    pk.atomic_sub(t, [key[i] % 5], 3)


def highest(i, t, key):
    pk.atomic_max(t, [key[i] % 7], key[i])


def bits_kept(i, t, key):
    pk.atomic_and(t, [key[i] % 7], ~(1 << (key[i] % 31)))


def stored(i, t, key):
    """The illegal twin: the table is read."""
    pk.atomic_add(t, [key[i] % 7], t[0] * 0 + 1)


def in_order(i, acc, t, key):
    """One thread runs it, as nothing else is known of such products."""
    pk.atomic_add(t, [key[i] % 7], 1)
    acc *= key[i]


def heavy(i, y, m):
    for k in range(m):
        y[i] += 1.0 / (k + 1.0)


def halves(i, y):
    y[i] = 0.5 * y[i]


def tallied(function: Any, execution: str = "OpenMP") -> Case:
    def arguments() -> list[Any]:
        key = np.random.default_rng(3).integers(0, 1 << 20, N).astype(np.int32)
        return [np.random.default_rng(5).integers(-99, 99, 7).astype(np.int32), key]

    pattern = "reduce" if "acc" in function.__code__.co_varnames else "for"
    return case(function, [N], arguments, pattern, execution=execution)


def nest(given: Case, **numbers: Any) -> Nest:
    spec = spec_of(for_c(given.kernel), tuning=replace(DEFAULT, **numbers))
    made = lowered(nest_of(spec))
    verify(made)
    return made


def shares(given: Case, **numbers: Any) -> Shares:
    found = nest(given, **numbers).shares
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("function", [counted, highest, bits_kept], ids=lambda f: f.__name__)
def test_copies_of_tables_are_joined(function: Any, seed: int) -> None:
    given = tallied(function)
    made = nest(given)
    assert made.shares is not None and [t.count for t in made.shares.tables] == [7]
    assert f"copy of v.1[7], joined by {made.shares.tables[0].op}" in show(made)
    found = given.arguments()
    interpret(made, [0], [N], found, seed)
    for got, wanted in zip(found, given.interpreted()[0], strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_copy_that_begins_with_another_operand_shows() -> None:
    given = tallied(counted)
    made = nest(given)
    assert made.shares is not None
    (table,) = made.shares.tables
    wrong = replace(table, nothing=replace(table.nothing, value=1))
    found = given.arguments()
    interpret(replace(made, shares=replace(made.shares, tables=(wrong,))), [0], [N], found)
    assert (found[0] != given.interpreted()[0][0]).any()


def test_what_is_read_has_no_copies() -> None:
    made = nest(tallied(stored))
    assert made.shares is not None and not made.shares.tables
    tables = shares(tallied(counted)).tables
    own = [replace(t, view=made.workunit.params[0].sym) for t in tables]
    with pytest.raises(IRError, match="copies of is not read"):
        verify(replace(made, shares=replace(made.shares, tables=tuple(own))))


def test_what_runs_in_order_is_not_shared() -> None:
    assert nest(tallied(counted, "Serial")).shares is None
    assert shares(tallied(in_order)).least == 0


def test_how_many_iterations_a_thread_gets() -> None:
    light = case(halves, [N], lambda: [np.zeros(N)])
    bounded = case(heavy, [N], lambda: [np.zeros(N), 9])
    few = shares(light, worth_a_thread=100)
    assert 1 < few.least < 100 and few.together == 1  # type: ignore[operator]
    assert shares(light).together == 64
    varying = shares(bounded).least
    assert isinstance(varying, Varying) and varying.worth == DEFAULT.worth_a_thread
    assert "threads share 131072 / (" in show(nest(bounded))


def test_without_the_pass_one_thread_runs_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "left_out", lambda name: name == "share-threads")
    monkeypatch.setattr("pyfuser.nest.passes.share_threads.left_out", passes.left_out)
    given = case(halves, [N], lambda: [np.zeros(N)])
    assert lowered(nest_of(spec_of(given.kernel))).shares is None


def test_without_it_a_sweep_runs_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    given = case(halves, [N], lambda: [np.zeros(N)])
    sweep = SweepSpec((spec_of(given.kernel),) * 2)
    assert lowered_sweep(sweep).shared and "threads = schedule.parts" in emit(sweep)
    monkeypatch.setattr("pyfuser.nest.passes.share_threads.left_out", lambda name: True)
    assert not lowered_sweep(sweep).shared and "threads = 1;" in emit(sweep)
