"""Calls over the elements of a table: which run over rows and columns, which do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.engine import engine
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Assign, Eval, Update
from pyfuser.ir.nodes import Call as FunctionCall
from pyfuser.pipeline import planned
from pyfuser.plan import plan_cache
from pyfuser.plan.capabilities import ALL
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrites.delinearize import (
    Delinearized,
    in_box,
    over_rows_and_columns,
    row_length,
)
from pyfuser.support.caches import Table
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, FutureShape, TraceShape, shape_of
from tests.analysis.build import S, View, call, known, let, region, when, workunit
from tests.analysis.build import trace as trace_by_hand
from tests.fuzz.harness import _Memory, check_interpreted, lowered
from tests.fuzz.oracle import run
from tests.fuzz.program import Base, Call, Program, Statement

N, M = 4, 6
FORCED = 1  # a seed whose program has boxes wherever they pay, with no cut
BASES = (
    *(Base(name, (N, M), "float64") for name in "AB"),
    Base("T", (N, M), "float64", True),
    *(Base(name, (N * M,), "float64") for name in "UV"),
    Base("Q", (16,), "int32"),
)


def line(text: str, *body: Statement) -> Statement:
    return Statement(text, (), (body,) if body else ())


def flat(*lines: str, end: int = N * M, begin: int = 0, m: str = str(M), **views: str) -> Call:
    body = tuple(map(line, lines))
    return Call("for", (begin,), (end,), body, tuple(views.items()), (("s0", m),))


def box(text: str, **views: str) -> Call:
    return Call("for", (0, 0), (N, M), (line(text),), tuple(views.items()))


def total(text: str, *, boxed: bool = False, **views: str) -> Call:
    scalars = () if boxed else (("s0", str(M)),)
    begin, end = ((0, 0), (N, M)) if boxed else ((0,), (N * M,))
    return Call("reduce", begin, end, (line(text),), tuple(views.items()), scalars, "pk.double")


def trace_of(program: Program) -> TraceShape:
    memory = _Memory(program)
    memory.forget(())
    results = run(program)[1]
    recorded = memory.record(program.steps, lowered(program, results), [])
    return shape_of(recorded, structural_scalars)


def plan_of(*calls: Call) -> tuple[TraceShape, Plan]:
    """The plan, and the trace as planned, after comparing the program's results."""
    program = Program(BASES, calls, FORCED)
    check_interpreted(program)
    trace, _, plan = planned(trace_of(program), replace(ALL, without=frozenset({"recompute"})))
    return trace, plan


def boxed(plan: Plan) -> list[int]:
    """The calls that run over rows and columns."""
    return [note.call for note in plan.of(Delinearized)]


def groups(*calls: Call) -> list[tuple[int, ...]]:
    return [group.calls for group in plan_of(*calls)[1].groups]


SCALED = flat("x[i // s0, i % s0] = 0.5 * y[i // s0, i % s0]", x="T", y="A")
AFTER = box("x[i, j] = y[i, j] - 1.0", x="B", y="T")

# --------------------------------------------------------------------------- what fuses


def test_a_flattened_call_and_one_over_two_axes():
    trace, plan = plan_of(SCALED, AFTER)
    assert [group.calls for group in plan.groups] == [(0, 1)]
    assert boxed(plan) == [0]
    assert [call.space for call in trace.calls] == [Space((0, 0), (N, M))] * 2


@pytest.mark.parametrize(
    "text", ["x[i, j] = y[3 - i, j]", "x[i, j] = y[i, 5 - j]", "x[i, j] = y[(i + 1) % 4, j]"]
)
def test_another_cell_is_not_the_own_one(text):
    assert groups(SCALED, box(text, x="B", y="T")) == [(0,), (1,)]


@pytest.mark.parametrize(
    "lines",
    [
        ("r: int = i // s0", "c: int = i % s0", "x[r, c] = 0.5 * y[r, c]"),
        ("r: int = i // s0", "c: int = i - r * s0", "x[r, c] = 0.5 * y[r, c]"),
        ("r: int = i // 6", "x[r, i % s0] = 0.5 * y[r, i % 6]"),
        ("x[i // s0, i % s0] = y[i // s0, i % s0] + i",),
    ],
)
def test_ways_to_write_it(lines):
    assert groups(flat(*lines, x="T", y="A"), AFTER) == [(0, 1)]


def test_lines_of_the_same_elements_follow():
    """`u[i]` is `u[row * m + column]`: all of it stays one loop, and the line has no memory."""
    first = flat("u[i] = y[i // s0, i % s0]", u="U", y="A")
    then = flat("v[i] = 2.0 * u[i]", v="V", u="U")
    back = flat("x[i // s0, i % s0] = v[i] + i", x="T", v="V")
    plan = plan_of(first, then, back, AFTER)[1]
    assert [group.calls for group in plan.groups] == [(0, 1, 2, 3)]
    assert boxed(plan) == [0, 1, 2]


def test_a_line_from_behind_does_not_share_the_loop():
    first = flat("u[i] = y[i // s0, i % s0]", u="U", y="A")
    assert groups(first, flat("v[i] = u[23 - i]", v="V", u="U")) == [(0,), (1,)]


def test_lines_stay_lines_where_some_cannot_follow():
    """Else the two that fuse today would not."""
    first = flat("u[i] = y[i // s0, i % s0]", u="U", y="A")
    then = flat("v[i] = 2.0 * u[i]", v="V", u="U")
    third = flat("v[i] = v[i] + i // 5", v="V")
    assert boxed(plan_of(first, then)[1]) == [0, 1]
    assert boxed(plan_of(first, then, third)[1]) == [0]
    assert groups(first, then, third) == [(0,), (1, 2)]


# --------------------------------------------------------------------------- what stays as it is


@pytest.mark.parametrize(
    "call_",
    [
        flat("x[i // s0, i % s0] = 1.0", x="A", end=N * M - 1),
        flat("x[i // s0, i % s0] = 1.0", x="A", begin=1),
        flat("x[i // s0, i % s0] = 1.0", x="A", begin=M),
        flat("x[0, i // s0] = y[i % s0, 0]", x="A", y="B", end=4, m="1"),
        flat("x[i // s0, i % s0] = 1.0", x="A", end=M),
        flat("x[i // s0, i % s0] = 1.0", x="A", end=0),
        flat("x[i // s0, i % 5] = 1.0", x="A"),
        flat("x[i // s0, i % s0] = y[i // 8, i % s0]", x="A", y="B"),
        flat("x[i // s0, i % s0] = y[(i + 1) // 7, i % s0]", x="A", y="B"),
        flat("i = 23 - i", "x[i // s0, i % s0] = i", x="A"),
        flat("x[i // s0, i % s0] = 1.0", "i = 0", x="A"),
        flat("u[i] = v[i // s0] + i % s0", u="U", v="V"),
        flat("x[i // s0, 0] = 1.0", x="A", end=M * N, m=str(M)),
    ],
)
def test_calls_that_keep_their_index(call_):
    given = Program(BASES, (call_, call_), FORCED)
    trace = trace_of(given)
    assert not over_rows_and_columns(trace)


@pytest.mark.parametrize("m", [0, -6, -1])
def test_rows_of_no_length(m):
    i, x, width = S("i"), View("x", 2), S("m")
    unit = workunit("w", [i], [x, width], [x[i // width, i % width] << 1.0])
    shape = call(unit, N * M, region(0, (N, M)), known(m))
    assert row_length(shape) is None


def table_fill(index: DType = DType.INT32) -> CallShape:
    i, x, width = S("i", index), View("x", 2), S("m", index)
    unit = workunit("w", [i], [x, width], [x[i // width, i % width] << 1.0])
    return call(unit, N * M, region(0, (N, M)), known(M, index))


def is_boxed(shape: CallShape) -> bool:
    return 0 in over_rows_and_columns(trace_by_hand(shape))


def test_a_length_that_nobody_knows():
    shape = table_fill()
    assert is_boxed(shape)
    assert not is_boxed(shape._replace(arguments=(shape.arguments[0], known(None))))
    future = FutureShape(DType.INT32, 0)
    assert not is_boxed(shape._replace(arguments=(shape.arguments[0], future)))


def test_indices_of_64_bits_stay_one():
    assert not is_boxed(table_fill(DType.INT64))


def test_scans_and_effects_stay_as_they_are():
    shape = table_fill()
    assert not is_boxed(shape._replace(pattern="scan"))
    effect = Eval(FunctionCall("printf", (), DType.INT32))
    unit = replace(shape.workunit, body=(*shape.workunit.body, effect))
    assert not is_boxed(shape._replace(workunit=unit))


def test_a_number_that_changes_is_no_length():
    shape = table_fill()
    unit = shape.workunit
    change = Assign(unit.params[1].sym, unit.body[0].indices[1])
    assert not is_boxed(shape._replace(workunit=replace(unit, body=(*unit.body, change))))


def test_an_index_that_changes():
    shape = table_fill()
    unit = shape.workunit
    change = Assign(unit.indices[0], unit.body[0].indices[1])
    assert not is_boxed(shape._replace(workunit=replace(unit, body=(change, *unit.body))))


def test_elements_of_rows_of_lines_are_left_to_coarsening():
    """No subscript of a table follows the index: `k // classes` and `k % classes` of lines."""
    k, c, joint, top = S("k"), S("c"), View("joint"), View("top")
    likely, mean, row = View("x", 2), View("mean", 2), S("row")
    body = [
        let(row, k // c),
        joint[k] << likely[row, 0] * mean[k % c, 0] + top[row],
    ]
    unit = workunit("w", [k], [joint, top, likely, mean, c], body)
    shapes = [region(0, N * M), region(1, N), region(2, (N, 1)), region(3, (M, 1)), known(M)]
    assert not is_boxed(call(unit, N * M, *shapes))


def test_guards_that_ask_for_row_and_column():
    i, m, x = S("i"), S("m"), View("x")
    r, c = S("r"), S("c")

    def guarded(*conditions):
        store = (x[i] << 1.0,)
        for condition in conditions:
            store = (when(condition, store),)
        unit = workunit("w", [i], [x, m], [let(r, i // m), let(c, i % m), *store])
        return call(unit, N * M, region(0, N * M), known(M))

    assert is_boxed(guarded(r > 0, c > 0))
    assert not is_boxed(guarded(r > 0))
    assert not is_boxed(guarded(c > 0, i > 7))


# --------------------------------------------------------------------------- sums


def test_sums_keep_their_order():
    add = "acc += math.fmod(pk.floor(x[i // s0, i % s0]), 64.0)"
    trace, plan = plan_of(SCALED, total(add, x="T"), AFTER)
    assert [group.calls for group in plan.groups] == [(0, 1, 2)]
    assert trace.calls[1].workunit.accumulators[0].flat


def test_sums_in_different_orders_have_loops_of_their_own():
    value = "math.fmod(pk.floor({}), 64.0)"
    one = total("acc += " + value.format("x[i // s0, i % s0]"), x="A")
    two = total("acc += " + value.format("x[i, j]"), x="A", boxed=True)
    fill = flat("x[i // s0, i % s0] = 2.0", x="A")
    plan = plan_of(fill, one, two)[1]
    assert [group.calls for group in plan.groups] == [(0, 1), (2,)]
    assert {rejection.reason for rejection in plan.rejections} == {"order"}
    assert groups(fill, one, one) == [(0, 1, 2)]
    assert groups(fill, two, two) == [(0, 1, 2)]


def summed(op: str, columns: int) -> CallShape:
    i, m, x, acc = S("i"), S("m"), View("x", 2), S("acc", DType.FLOAT64)
    add = Update(op, acc.sym, (), x[i // m, i % m].node)
    unit = workunit("w", [i], [x, m], [add], [Accumulator(acc.sym)])
    shape = region(0, (N, columns))
    return call(unit, N * columns, shape, known(columns), pattern="reduce")


def test_a_product_is_no_sum():
    assert is_boxed(summed("+", 8))
    assert not is_boxed(summed("*", 8))


def test_a_sum_of_short_rows_only_follows():
    assert not is_boxed(summed("+", 7))
    add = "acc += math.fmod(pk.floor(x[i // s0, i % s0]), 64.0)"
    assert boxed(plan_of(total(add, x="A"))[1]) == []
    assert boxed(plan_of(SCALED, total(add, x="T"))[1]) == [0, 1]


# --------------------------------------------------------------------------- plans


def test_an_engine_may_have_no_use_for_it():
    trace = trace_of(Program(BASES, (SCALED, AFTER), FORCED))
    same, _, plan = planned(trace, replace(ALL, without=frozenset({"delinearize"})))
    assert same is trace
    assert not plan.of(Delinearized) and len(plan.groups) == 2


def test_pykokkos_keeps_one_index():
    """PyKokkos runs no MDRangePolicy with a workunit."""
    assert "delinearize" not in engine.Native.capabilities.without
    assert "delinearize" not in engine.ON_DEVICE.without
    assert "delinearize" in engine.PyKokkos.capabilities.without


def test_equal_calls_stay_equal():
    """Plans and kernels are found again by the shapes of their calls."""
    shape = table_fill()
    made = in_box(shape, M)
    in_box.cache_clear()
    assert in_box(shape, M) == made
    assert made.arguments[1] == known(None)  # which no subscript has any more


def test_what_still_decides_is_kept():
    i, k, m, x = S("i"), S("k"), S("m"), View("x", 2)
    unit = workunit("w", [i], [x, k, m], [x[i // m, (i % m + k) % 2] << 1.0])
    made = in_box(call(unit, N * M, region(0, (N, M)), known(1), known(M)), M)
    assert made.arguments[1:] == (known(1), known(None))


def test_other_sizes_are_of_one_family():
    """The length of rows has become an extent: the plan of larger tables holds."""
    sizes = ((100, 50), (99, 49), (98, 47))
    plans = []
    for rows, columns in sizes:
        i, j, m = S("i"), S("j"), S("m")
        x, y, z = (View(name, 2) for name in "xyz")
        first = _SHARED.setdefault(
            "first", workunit("f", [i], [x, y, m], [x[i // m, i % m] << y[i // m, i % m]])
        )
        second = _SHARED.setdefault("second", workunit("g", [i, j], [z, x], [z[i, j] << x[i, j]]))
        a, b, c = (
            region(n, (rows, columns), strides=(8 * 64, 8)) for n in range(3)
        )  # rows of one allocation
        trace = trace_by_hand(
            call(first, rows * columns, a, b, known(columns)), call(second, (rows, columns), c, a)
        )
        plans.append(planned(trace, ALL))
    assert [boxed(plan) for _, _, plan in plans] == [[0]] * 3
    assert [trace.calls[0].space.end for trace, _, _ in plans] == list(sizes)
    assert plans[1][1] is plans[2][1]  # the graph of the proof


_SHARED: dict = {}


@pytest.fixture(autouse=True)
def _no_families(monkeypatch):
    monkeypatch.setattr(plan_cache, "FAMILIES", Table("of a test", 99))
