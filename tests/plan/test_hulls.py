"""Calls over boxes that differ: which may share one loop over their hull, and what pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, While
from pyfuser.plan.capabilities import ALL
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrites.enlarge_domain import Guarded, guarded_call, may_guard
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, TraceShape, shape_of
from tests.analysis.build import S, View, call, known, region, trace, workunit
from tests.fuzz.harness import _Memory, check_interpreted, lowered
from tests.fuzz.oracle import run
from tests.fuzz.program import Base, Call, Program, Statement
from tests.rewrites import kept_whatever_it_costs, searching
from tests.vendors import tune

N, M = 12, 5
SEEDS = range(1, 9)  # some have groups cut, the plan of larger sizes, or boxes that differ a lot
BASES = (
    *(Base(name, (N,), "float64") for name in "ABCD"),
    *(Base(name, (N,), "float64", True) for name in "TU"),
    *(Base(name, (N, M), "float64") for name in "XY"),
    Base("Z", (N, M), "float64", True),
    Base("Q", (16,), "int32"),
)


def line(text: str, *body: Statement) -> Statement:
    return Statement(text, (), (body,) if body else ())


def over(begin: int, end: int, text: str, **views: str) -> Call:
    return Call("for", (begin,), (end,), (line(text),), tuple(views.items()))


def box(begin: tuple[int, int], end: tuple[int, int], text: str, **views: str) -> Call:
    return Call("for", begin, end, (line(text),), tuple(views.items()))


def total(begin: int, end: int, text: str, **views: str) -> Call:
    return Call("reduce", (begin,), (end,), (line(text),), tuple(views.items()), (), "float64")


def trace_of(program: Program) -> TraceShape:
    expected = run(program)
    memory = _Memory(program)
    memory.forget(())
    calls = memory.record(program.steps, lowered(program, expected[1]), [])
    return shape_of(calls, structural_scalars)


planned = searching("coarsen", "enlarge-domain")


def plan_of(*calls: Call, common: float = 0.5) -> Plan:
    """The plan with guards wherever they are legal, after comparing the program's results."""
    for seed in SEEDS:
        check_interpreted(Program(BASES, calls, seed))
    with pytest.MonkeyPatch.context() as patch:
        kept_whatever_it_costs(patch, "enlarge-domain")
        tune(patch, common=common)
        return planned(trace_of(Program(BASES, calls, 1)), replace(ALL, sweeps=False))[2]


def groups(*calls: Call, common: float = 0.5) -> list[tuple[int, ...]]:
    return [group.calls for group in plan_of(*calls, common=common).groups]


SCALE = over(0, N, "x[i] = 2.0 * y[i]", x="T", y="A")
INNER = over(1, N - 1, "x[i] = y[i] + z[i]", x="B", y="T", z="A")
WHOLE = over(0, N, "x[i] = y[i] * y[i]", x="C", y="T")

# --------------------------------------------------------------------------- legality


def test_an_inner_range_in_the_loop_of_the_whole_one():
    plan = plan_of(SCALE, INNER, WHOLE)
    assert [group.calls for group in plan.groups] == [(0, 1, 2)]
    assert plan.of(Guarded) == (Guarded(1, 3),)


@pytest.mark.parametrize("k", ["i - 1", "i + 1", f"{N - 1} - i"])
def test_a_neighbour_is_another_iteration(k):
    """The element that the inner range reads is the own one, or one of another iteration."""
    inner = over(1, N - 1, f"x[i] = y[{k}] + z[i]", x="B", y="T", z="A")
    assert groups(SCALE, inner) == [(0,), (1,)]
    assert groups(SCALE, INNER) == [(0, 1)]


def test_an_element_of_an_equal_subscript_is_another_one_in_a_shifted_view():
    """What counts is memory: x[i] over [1, n) of a slice is not the x[i] of the whole."""
    shifted = over(0, N - 1, "x[i] = y[i] + z[i]", x="B", y="T[1:]", z="A")
    own = over(0, N - 1, "x[i] = y[i] + z[i]", x="B", y="T", z="A")
    assert groups(SCALE, shifted) == [(0,), (1,)]
    assert groups(SCALE, own) == [(0, 1)]


def test_anti_and_output_dependences():
    read = over(0, N, "x[i] = y[i] + 1.0", x="B", y="A")
    assert groups(read, over(2, N - 1, "x[i] = 0.5", x="A")) == [(0, 1)]
    assert groups(read, over(2, N - 1, "x[i - 1] = 0.5", x="A")) == [(0,), (1,)]
    assert groups(read, over(2, N - 1, "x[i] = 0.5", x="B")) == [(0, 1)]
    assert groups(read, over(2, N - 1, "x[i + 1] = 0.5", x="B")) == [(0,), (1,)]


def test_ranges_of_which_none_holds_the_other():
    first = over(0, N - 2, "x[i] = 2.0 * y[i]", x="T", y="A")
    second = over(2, N, "x[i] = y[i] + z[i]", x="B", y="T", z="A")
    plan = plan_of(first, second)
    assert [group.calls for group in plan.groups] == [(0, 1)]
    assert plan.of(Guarded) == (Guarded(0, 2), Guarded(1, 3))
    other = replace(second, body=(line("x[i] = y[i - 1] + z[i]"),))
    assert groups(first, other) == [(0,), (1,)]


def test_a_view_is_zero_where_the_smaller_range_did_not_write():
    inner = over(3, N - 2, "x[i] = 2.0 * y[i]", x="T", y="A")
    assert groups(inner, WHOLE) == [(0, 1)]


def test_what_smaller_ranges_pass_to_each_other():
    calls = (
        over(2, N - 1, "x[i] = 2.0 * y[i]", x="T", y="A"),
        over(2, N - 1, "x[i] = y[i] + 1.0", x="B", y="T"),
        over(0, N, "x[i] = y[i] * y[i]", x="C", y="B"),
        over(2, N - 1, "x[i] += y[i]", x="D", y="C"),
    )
    assert groups(*calls) == [(0, 1, 2, 3)]


@pytest.mark.parametrize(("begin", "end"), [(3, 3), (5, 2), (0, 0), (N, N)])
def test_ranges_without_iterations_stay_apart(begin, end):
    assert groups(SCALE, over(begin, end, "x[i] = y[i]", x="B", y="T"), common=0.0) != [(0, 1)]


def test_ranges_that_do_not_overlap():
    low = over(0, 5, "x[i] = 2.0 * y[i]", x="T", y="A")
    high = over(7, N, "x[i] = y[i] + 1.0", x="B", y="T")
    assert groups(low, high, common=0.0) == [(0, 1)]
    assert groups(low, high) == [(0,), (1,)]
    crossed = over(7, N, "x[i] = y[i - 7]", x="B", y="T")
    assert groups(low, crossed, common=0.0) == [(0,), (1,)]


@pytest.mark.parametrize("inner", [((1, 1), (N - 1, M)), ((0, 1), (N, M - 1)), ((2, 0), (N, M))])
def test_boxes(inner):
    fill = box((0, 0), (N, M), "x[i, j] = 2.0 * y[i, j]", x="Z", y="X")
    legal = box(*inner, "x[i, j] = y[i, j]", x="Y", y="Z")
    assert groups(fill, legal) == [(0, 1)]
    assert groups(legal, fill) == [(0, 1)]
    left = box(*inner, f"x[i, j] = y[i, {M - 1} - j]", x="Y", y="Z")
    above = box(*inner, f"x[i, j] = y[{N - 1} - i, j]", x="Y", y="Z")
    assert groups(fill, left) == groups(fill, above) == [(0,), (1,)]


def test_a_line_is_no_box():
    fill = box((0, 0), (N, M), "x[i, j] = 2.0 * y[i, j]", x="Z", y="X")
    assert groups(fill, over(0, N - 1, "x[i] = y[i, 0]", x="B", y="Z"), common=0.0) == [(0,), (1,)]


def test_sums_keep_their_iterations():
    """A sum is met in its own range, and not in a larger one: bits depend on how many terms."""
    whole = total(0, N, "acc += x[i]", x="T")
    inner = total(1, N - 1, "acc += x[i]", x="T")
    assert groups(SCALE, whole) == [(0, 1)]
    assert groups(SCALE, INNER, whole) == [(0, 1, 2)]
    assert groups(SCALE, inner) == [(0,), (1,)]
    assert groups(over(1, N - 1, "x[i] = 2.0 * y[i]", x="T", y="A"), whole) == [(0, 1)]


def test_a_range_with_a_sum_is_the_hull_or_stays():
    """The maps of the sum's range stay with it."""
    inner = over(1, N - 1, "x[i] = y[i] + z[i]", x="B", y="T", z="A")
    inside = total(1, N - 1, "acc += x[i]", x="B")
    assert groups(SCALE, inner, inside) == [(0,), (1, 2)]


I, X = S("i"), View("x")
STORE = workunit("store", [I], [X], [X[I] << 1.0])


def shape_over(begin: int, end: int, execution: str = "OpenMP") -> CallShape:
    return call(STORE, Space((begin,), (end,), execution), region(0, 64))


def test_what_may_be_guarded():
    shape = shape_over(0, 8)
    assert may_guard(shape)
    assert not may_guard(shape._replace(pattern="reduce"))
    assert not may_guard(shape._replace(pattern="scan"))


@pytest.mark.parametrize(
    ("begin", "end", "fits"),
    [(0, 2**31 - 1, True), (0, 2**31, False), (-(2**31), 0, True), (-(2**31) - 1, 0, False)],
)
def test_bounds_are_numbers_of_the_type_of_the_index(begin, end, fits):
    assert may_guard(shape_over(begin, end)) is fits


def test_loops_and_changed_scalars_stay_unguarded():
    i, a, x = S("i"), S("a"), View("x")
    body = (x[i] << a.cast(DType.FLOAT64),)
    loop = While((x[i] > 2.0).node, body)
    change = Assign(a.sym, (a + 1).node)
    for statements, legal in ((body, True), ((loop,), False), ((change, *body), False)):
        unit = workunit("w", [i], [x, a], list(statements))
        assert may_guard(call(unit, 8, region(0, 8), known(None))) is legal


def test_execution_spaces_stay_apart():
    for execution, number in (("OpenMP", 1), ("Serial", 2)):
        shape = trace(shape_over(0, 64), shape_over(1, 63, execution))
        assert len(planned(shape, ALL)[2].groups) == number


# --------------------------------------------------------------------------- profit


def test_boxes_have_most_in_common():
    for begin, number in ((16, 1), (17, 2)):
        shape = trace(shape_over(0, 64), shape_over(begin, 64))
        assert len(planned(shape, ALL)[2].groups) == number


def test_a_plan_that_costs_more_is_not_taken():
    shape = trace(shape_over(0, 64), shape_over(1, 64))
    assert planned(shape).plan.of(Guarded)
    assert not searching("enlarge-domain", gain=0.9)(shape).plan.of(Guarded)


def test_engines_without_guards():
    shape = trace(shape_over(0, 64), shape_over(1, 64))
    assert not planned(shape, replace(ALL, without=frozenset({"enlarge-domain"}))).plan.of(Guarded)


def test_calls_that_meet_no_other_box_keep_theirs():
    i, x, y = S("i"), View("x"), View("y")
    copy = workunit("copy", [i], [x, y], [y[i] << x[i - 1]])
    shape = trace(shape_over(0, 64), call(copy, Space((1,), (64,)), region(0, 64), region(1, 64)))
    found, _, plan = planned(shape, ALL)
    assert found == shape and not plan.of(Guarded)


# --------------------------------------------------------------------------- the calls


def test_equal_calls_stay_equal():
    """Plans and kernels are found again by the shapes of their calls."""
    shape, hull = shape_over(1, 7), Space((0,), (8,))
    changed = guarded_call(shape, hull)
    guarded_call.cache_clear()
    assert guarded_call(shape, hull) == changed
    assert changed.space == hull
    assert changed.workunit == guarded_call(shape_over(2, 5), hull).workunit
    assert changed.workunit != guarded_call(shape_over(0, 5), hull).workunit
