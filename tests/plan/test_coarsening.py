"""Coarsened calls: which may share a loop with calls over rows, which may not, and what pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, While
from pyfuser.plan.capabilities import ALL
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrite import Change
from pyfuser.plan.rewrites import coarsen
from pyfuser.plan.rewrites.coarsen import Coarsened, coarsened_call, factor_to, may_coarsen
from pyfuser.trace.call import Space
from pyfuser.trace.shape import TraceShape, shape_of
from tests.analysis.build import S, View, call, loop, region, workunit
from tests.analysis.build import trace as build_trace
from tests.fuzz.harness import _Memory, check_interpreted, lowered
from tests.fuzz.oracle import run
from tests.fuzz.program import Base, Call, Program, Statement
from tests.rewrites import kept_whatever_it_costs, searching
from tests.vendors import tune

N, C = 6, 4
FORCED = 2  # a seed whose program is coarsened wherever it may be, with no cut and no sweep


def line(text: str, *body: Statement) -> Statement:
    return Statement(text, (), (body,) if body else ())


def per_element(text: str, size: int = N * C, **views: str) -> Call:
    scalars = (("s0", str(C)),)
    return Call("for", (0,), (size,), (line(text),), tuple(views.items()), scalars)


def per_row(*body: Statement, size: int = N, **views: str) -> Call:
    return Call("for", (0,), (size,), body, tuple(views.items()), (("s0", str(C)),))


def row_sum(element: str = "x[i * s0 + k]", first: str = "0", **views: str) -> Call:
    loop = line(f"for k in range({first}, s0):", line(f"total += {element}"))
    return per_row(line("total: float = 0.0"), loop, line("y[i] = total"), **views)


def best_of(element: str, **views: str) -> Call:
    test = line(f"if x[i * s0 + k] > {element}:", line("best = k"))
    loop = line("for k in range(1, s0):", test)
    return per_row(line("best: int = 0"), loop, line(f"y[i] = {element}"), **views)


BASES = (
    Base("A", (N * C,), "float64"),
    Base("B", (N * C,), "float64"),
    Base("T", (N * C,), "float64", True),
    Base("R", (N,), "float64"),
    Base("M", (N, C), "float64"),
    Base("Q", (16,), "int32"),
)


planned = searching("coarsen")


def trace_of(program: Program) -> TraceShape:
    expected = run(program)
    memory = _Memory(program)
    memory.forget(())
    calls = memory.record(program.steps, lowered(program, expected[1]), [])
    return shape_of(calls, structural_scalars)


def plan_of(*calls: Call) -> Plan:
    """The plan with coarsening wherever it is legal, after comparing the program's results."""
    program = Program(BASES, calls, FORCED)
    check_interpreted(program)
    with pytest.MonkeyPatch.context() as patch:
        kept_whatever_it_costs(patch, "coarsen")
        return planned(trace_of(program))[2]


def groups(*calls: Call) -> list[tuple[int, ...]]:
    return [group.calls for group in plan_of(*calls).groups]


SCALED = per_element("x[i] = 0.5 * y[i] + z[i // s0]", x="T", y="A", z="R")
SUMMED = row_sum(x="T", y="R")

# --------------------------------------------------------------------------- legality


def test_elements_of_a_row_and_the_row():
    plan = plan_of(per_element("x[i] = 0.5 * y[i]", x="T", y="A"), SUMMED)
    assert [group.calls for group in plan.groups] == [(0, 1)]
    assert plan.of(Coarsened) == (Coarsened(0, C),)


def test_the_rows_before_and_after():
    assert groups(row_sum(x="A", y="R"), SCALED, row_sum(x="T", y="R")) == [(0, 1, 2)]


@pytest.mark.parametrize("text", ["x[i] = y[i] + z[i // 5]", "x[i] = y[i] + z[i % s0]"])
def test_another_row_is_not_the_own_one(text):
    """Elements read sums of rows that other coarsened iterations compute."""
    before = row_sum(x="A", y="R")
    assert groups(before, per_element("x[i] = y[i] + z[i // s0]", x="B", y="A", z="R")) == [(0, 1)]
    assert groups(before, per_element(text, x="B", y="A", z="R")) == [(0,), (1,)]


@pytest.mark.parametrize("element", ["x[i * s0 + k + 1 - (i + 1) // 6]", "x[k * 5 + i]"])
def test_rows_that_reach_into_others(element):
    fill = per_element("x[i] = 0.5 * y[i]", x="T", y="A")
    assert groups(fill, row_sum(x="T", y="R")) == [(0, 1)]
    assert groups(fill, row_sum(element, x="T", y="R")) == [(0,), (1,)]


def test_an_anti_dependence_inside_the_row_and_across_rows():
    """What a row read is overwritten afterwards, by its own elements or by other rows' ones."""
    own = per_element("x[i] = 2.0 * y[i]", x="A", y="B")
    other = per_element(f"x[{N * C} - 1 - i] = 2.0 * y[i]", x="A", y="B")
    assert groups(row_sum(x="A", y="R"), own) == [(0, 1)]
    assert groups(row_sum(x="A", y="R"), other) == [(0,), (1,)]


def test_a_place_that_data_decides_stays_in_the_row():
    fill = per_element("x[i] = 0.5 * y[i]", x="T", y="A")
    assert groups(fill, best_of("x[i * s0 + best]", x="T", y="R")) == [(0, 1)]
    assert groups(fill, best_of("x[i * s0 // 2 + best]", x="T", y="R")) == [(0,), (1,)]


def test_two_axes():
    body = (line("x[i, j] = y[i] + j"),)
    two = Call("for", (0, 0), (N, C), body, (("x", "M"), ("y", "R")))
    down = replace(two, body=(line("x[5 - i, j] = y[i] + j"),))
    rows = row_sum("x[i, k]", x="M", y="R")
    assert groups(two, rows) == [(0, 1)]
    assert groups(down, rows) == [(0,), (1,)]


def test_columns_are_no_rows():
    """Calls over the second axis are not those over the first."""
    two = Call("for", (0, 0), (N, C), (line("x[i, j] = 1.0 * j"),), (("x", "M"),))
    columns = per_row(line("y[i] = x[0, i]"), size=C, x="M", y="R")
    assert groups(two, columns) == [(0,), (1,)]


def test_what_is_one_iteration_shows_in_sums_and_scans():
    i, x = S("i"), View("x")
    store = workunit("w", [i], [x], [x[i] << 1.0])
    shape = call(store, 8, region(0, 8))
    assert may_coarsen(shape)
    assert not may_coarsen(shape._replace(pattern="reduce"))
    assert not may_coarsen(shape._replace(pattern="scan"))


def test_iterations_that_wait_for_each_other_stay_apart():
    i, x, y = S("i"), View("x"), View("y")
    body = (x[i] << 1.0,)
    free = workunit("w", [i], [x], [While((x[i] > 2.0).node, body)])
    fetching = workunit("w", [i], [x], [While((x[i].fetch("+", 1.0) > 2.0).node, body)])
    ticket = nodes.Declare(S("t", DType.FLOAT64).sym, x[i].fetch("+", 1.0).node)
    taking = workunit("w", [i], [x, y], [ticket, While((x[0] < 8.0).node, (y[i] << 1.0,))])
    counting = workunit("w", [i], [x, y], [While((x[0] < 8.0).node, (y[i] << 1.0,))])
    straight = workunit("w", [i], [x], list(body))
    for unit in (taking, counting):
        assert may_coarsen(call(unit, 8, region(0, 8), region(1, 8))) is (unit is counting)
    for unit, legal in ((free, False), (fetching, False), (straight, True)):
        assert may_coarsen(call(unit, 8, region(0, 8))) is legal


def test_a_scalar_that_iterations_change_is_theirs_alone():
    """In a loop the second iteration would start with what the first one left."""
    i, a, x = S("i"), S("a"), View("x")
    body = [Assign(a.sym, (a + 1).node), x[i] << a.cast(DType.FLOAT64)]
    for first, legal in ((0, False), (1, True)):
        assert may_coarsen(call(workunit("w", [i], [x, a], body[first:]), 8, region(0, 8))) is legal


@pytest.mark.parametrize(
    ("fine", "row", "factor"),
    [
        (Space((0,), (24,)), Space((0,), (6,)), 4),
        (Space((0,), (24,)), Space((0,), (5,)), None),
        (Space((0,), (24,)), Space((0,), (24,)), None),
        (Space((1,), (25,)), Space((0,), (6,)), None),
        (Space((0,), (24,)), Space((2,), (8,)), None),
        (Space((0,), (24,), "Serial"), Space((0,), (6,)), None),
        (Space((1, 0), (7, 4)), Space((1,), (7,)), 4),
        (Space((1, 0), (7, 4)), Space((0,), (6,)), None),
        (Space((1, 0), (7, 4)), Space((0,), (7,)), None),
        (Space((0, 0), (6, 4)), Space((0,), (4,)), None),
        (Space((0,), (257 * 6,)), Space((0,), (6,)), None),
        (Space((0, 0), (6, 0)), Space((0,), (6,)), None),
    ],
)
def test_spaces_that_fit(fine, row, factor):
    unit = workunit("w", [S("i"), S("j")][: len(fine.begin)], [], [])
    assert factor_to(call(unit, fine), row) == factor


def test_equal_calls_stay_equal():
    """Plans and kernels are found again by the shapes of their calls."""
    i, x = S("i"), View("x")
    shape = call(workunit("w", [i], [x], [x[i] << 1.0]), 24, region(0, 24))
    coarse = coarsened_call(shape, 4)
    coarsen.coarsened_call.cache_clear()
    assert coarsened_call(shape, 4) == coarse
    assert coarse.space == Space((0,), (6,))
    assert coarse != coarsened_call(shape, 3)


# --------------------------------------------------------------------------- profit


def test_few_rows_of_much_data_are_left_to_threads_and_vectors(monkeypatch):
    program = Program(BASES, (per_element("x[i] = 0.5 * y[i]", x="T", y="A"), SUMMED), FORCED)
    trace = trace_of(program)
    assert planned(trace).plan.of(Coarsened)
    tune(monkeypatch, coarse_bytes=0)
    assert not planned(trace).plan.of(Coarsened)
    tune(monkeypatch, coarse_rows=N)
    assert planned(trace).plan.of(Coarsened)


def test_a_small_gain_is_left_alone():
    """One launch and a temporary are saved, which is no 99% of the cost."""
    program = Program(BASES, (per_element("x[i] = 0.5 * y[i]", x="T", y="A"), SUMMED), FORCED)
    trace, _, plan = searching("coarsen", gain=0.99)(trace_of(program))
    assert not plan.of(Coarsened)
    assert [call.space.size for call in trace.calls] == [N * C, N]


@pytest.mark.parametrize(
    ("factor", "temporary", "loses"),
    [
        (4, (), False),
        (5, (), True),
        (5, (1,), True),
        (5, (0, 1), False),
        (12, (), False),
        (15, (), True),
        (20, (), False),
    ],
)
def test_short_rows_that_are_no_whole_vectors_lose_them(factor, temporary, loses):
    """But those of temporaries: they become locals."""
    i, x, y = S("i"), View("x"), View("y")
    shape = call(
        workunit("w", [i], [x, y], [x[i] << y[i] * 2.0]), 240, region(0, 240), region(1, 240)
    )
    change = Change(coarsened_call(shape, factor), Coarsened(0, factor))
    given = build_trace(shape, temporary=temporary)
    assert (coarsen._lost_vectors(given, {0: change}) > 0.0) is loses


def test_what_has_no_vectors_loses_none():
    i, k, x, y = S("i"), S("k"), View("x"), View("y")
    again = loop(k, 0, 3, [x[i] << y[i] * 2.0])
    shape = call(workunit("w", [i], [x, y], [again]), 240, region(0, 240), region(1, 240))
    change = Change(coarsened_call(shape, 5), Coarsened(0, 5))
    assert coarsen._lost_vectors(build_trace(shape), {0: change}) == 0.0


def test_an_engine_may_have_no_use_for_it():
    program = Program(BASES, (per_element("x[i] = 0.5 * y[i]", x="T", y="A"), SUMMED), FORCED)
    trace = trace_of(program)
    assert planned(trace).plan.of(Coarsened)
    same, _, plan = planned(trace, replace(ALL, without=frozenset({"coarsen"})))
    assert same is trace
    assert not plan.of(Coarsened)


def test_a_call_that_shares_nothing_stays_as_it_was():
    """Its own loop is better over elements: they are neighbours in memory."""
    apart = per_element("x[i] = y[i] + z[i % s0]", x="B", y="A", z="R")
    plan = plan_of(per_element("x[i] = 0.5 * y[i]", x="T", y="A"), SUMMED, apart)
    assert {note.call for note in plan.of(Coarsened)} == {0}
