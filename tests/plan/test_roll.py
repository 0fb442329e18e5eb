"""Calls on parts of arrays that move on: when one may stand for all of them, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Cast,
    Const,
    Declare,
    Param,
    Read,
    Store,
    Sym,
    Workunit,
)
from pyfuser.ir.verify import verify as verify_ir
from pyfuser.plan.rewrites import roll as rewrite
from pyfuser.runtime import replay, roll, verify
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import VerificationError
from pyfuser.trace.shape import shape_of
from tests import sessions
from tests.vendors import tune

ROWS, N = 9, 6
ROUNDS = 3


@pk.workunit
def scale(i, x, y, c):
    y[i] = c * x[i] + 1.0


@pk.workunit
def add(i, x, y):
    y[i] += 0.5 * x[i]


@pk.workunit
def mirror(i, x, y, n):
    y[i] = x[n - 1 - i] + 1.0


@pk.workunit
def second(i, x, y):
    y[i] = 2.0 * x[2 * i]


@pk.workunit
def row(i, a, k):
    a[k, i] = a[k, i] * 2.0 + k


@pk.workunit
def sized(i, x, y):
    y[i] = x[i] * x.extent(0)


@pk.workunit
def count(i, x, y):
    k: int = i
    i = 0
    y[k] = x[k] + i


@pk.workunit
def tally(i, x, y):
    pk.atomic_add(y, [0], x[i])


@pk.workunit
def divide(i, x, k):
    x[i] = x[i] + 12 // k


@pk.workunit
def divide_by_elements(i, x, y):
    x[i] = x[i] + 12 // (int(0.0 * y[i]) + 1)


@pk.workunit
def beyond(i, x, y):
    if x[i] > 1e300:
        y[i] = x[i + 1]


@pk.workunit
def edges(i, x, y, n):
    y[i] = x[i]
    if i > 0:
        y[i] += x[i - 1]
    if i + 1 < n:
        y[i] += x[i + 1]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def lengths(i, j, x, y):
    y[i, j] = x[i, j] + 10 * x.extent(0) + x.extent(1)


@pk.workunit
def box(i, j, x, y):
    y[i, j] = x[i, j] + y[i, j]


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tune(monkeypatch, rolled_rounds=ROUNDS)
    with sessions.fresh():
        yield
    pyfuser.discard()


def table(rows: int = ROWS, columns: int = N, dtype: Any = pk.double) -> Any:
    made = pk.View([rows, columns], dtype)
    made[...] = np.arange(rows * columns).reshape(rows, columns) % 7 + 1
    return made


Program = Callable[..., None]


def ways(program: Program, *views: Any) -> list[str]:
    """What the calls of a program become: "wide", "serial", or "own" for each that stays."""
    with pyfuser.fusing():
        program(*views)
        calls = list(TRACER.calls)
        made, _ = roll.rolled(calls, ROUNDS)
        known = set(map(id, calls))
        pyfuser.discard()
    names = []
    for call in made:
        serial = call.workunit.params and call.workunit.params[-1].sym.name == "rounds"
        names.append("own" if id(call) in known else "serial" if serial else "wide")
    return names


def agrees(program: Program, *make: Callable[[], Any]) -> int:
    """Fused and unfused runs give the same bits; how many calls others stand for."""
    expected, found = [m() for m in make], [m() for m in make]
    program(*expected)
    before = pyfuser.stats().rolled
    with pyfuser.fusing():
        program(*found)
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))
    return pyfuser.stats().rolled - before


# --------------------------------------------------------------------------- on one View each


def up(workunit: Any, x: int, y: int, **more: Any) -> Program:
    """Rounds on rows k + x and k + y of one table."""

    def program(a: Any) -> None:
        for k in range(1, ROWS - 2):
            pk.parallel_for(N, workunit, x=a[k + x], y=a[k + y], **more)

    return program


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (up(add, 0, 0), "wide"),  # each its own row
        (up(add, -1, 0), "serial"),  # the row before, which is new
        (up(add, 1, 0), "serial"),  # the row behind, which is old
        (up(scale, -1, 0, c=0.5), "serial"),
        (up(mirror, 0, 0, n=N), None),  # a race of its own, which nobody has to keep
        (up(mirror, -1, 0, n=N), "own"),  # other iterations' elements of the row before
        (up(mirror, 1, 0, n=N), "own"),
    ],
)
def test_rows_of_one_table(program: Program, expected: str | None) -> None:
    found = ways(program, table())
    assert found == ([expected] if expected != "own" else ["own"] * (ROWS - 3)) or expected is None
    if expected is not None:
        assert agrees(program, table) == (expected != "own") * (ROWS - 3)


def windows(distance: int, workunit: Any = scale, **more: Any) -> Program:
    """Windows of x that overlap, and parts of y so far from each other."""

    def program(x: Any, y: Any) -> None:
        for k in range(6):
            first, start = 2 * k, distance * k
            pk.parallel_for(N, workunit, x=x[first : first + N], y=y[start : start + N], **more)

    return program


def line() -> Any:
    made = pk.View([60], pk.double)
    made[...] = np.arange(60.0) % 11
    return made


@pytest.mark.parametrize(("distance", "rolled"), [(N, 6), (N + 2, 6), (N - 1, 0), (2, 0)])
def test_windows_that_are_read_may_overlap_and_those_written_not(
    distance: int, rolled: int
) -> None:
    assert agrees(windows(distance, c=0.5), line, line) == rolled


def test_parts_that_share_elements_by_one_iteration_each_round() -> None:
    def program(x: Any, y: Any) -> None:
        for k in range(6):  # y stays where it is
            pk.parallel_for(N, add, x=x[k : k + N], y=y[0:N])

    assert ways(program, line(), line()) == ["serial"]
    assert agrees(program, line, line) == 6


def test_every_other_element_and_the_way_down() -> None:
    def strided(x: Any, y: Any) -> None:
        for k in range(6):
            pk.parallel_for(N, add, x=x[k : k + 2 * N : 2], y=y[6 * k : 6 * k + N])

    def down(x: Any, y: Any) -> None:
        for k in range(5, 0, -1):
            pk.parallel_for(N, add, x=x[N * k : N * (k + 1)], y=y[N * (k - 1) : N * k])

    def both(x: Any) -> None:
        down(x, x)

    assert agrees(strided, line, line) == 6
    assert agrees(down, line, line) == 5
    assert ways(both, line()) == ["serial"]
    assert agrees(both, line) == 5


def test_parts_of_one_array_at_speeds_that_differ() -> None:
    def apart(a: Any) -> None:
        for k in range(4):
            pk.parallel_for(3, scale, x=a[3 * k : 3 * k + 3], y=a[20 + 6 * k : 23 + 6 * k], c=2.0)

    def meet(a: Any) -> None:
        for k in range(4):  # y overtakes x
            pk.parallel_for(
                3, scale, x=a[9 + 3 * k : 12 + 3 * k], y=a[6 * k + 1 : 6 * k + 4], c=2.0
            )

    def between(a: Any) -> None:
        for k in range(3):
            start, to = 12 * k + 3, 3 * k + 18
            pk.parallel_for(3, scale, x=a[start : start + 3], y=a[to : to + 3], c=2.0)

    assert agrees(apart, line) == 4
    assert agrees(between, line) == 3
    assert agrees(meet, line) == 0


# --------------------------------------------------------------------------- several calls


def pair(first: Any, then: Any) -> Program:
    def program(a: Any, b: Any) -> None:
        for k in range(1, ROWS - 1):
            first(a, b, k)
            then(a, b, k)

    return program


def on(x: str, dx: int, y: str, dy: int) -> Any:
    def call(a: Any, b: Any, k: int) -> None:
        views = {"a": a, "b": b}
        pk.parallel_for(N, add, x=views[x][k + dx], y=views[y][k + dy])

    return call


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (on("a", 0, "b", 0), on("b", 0, "a", 0), ["wide", "wide"]),
        (on("a", 0, "b", 0), on("b", -1, "a", 0), ["wide", "wide"]),  # what is there already
        (on("a", -1, "a", 0), on("a", 0, "b", 0), ["serial", "serial"]),
        (on("a", -1, "b", 0), on("b", 0, "a", 0), None),  # each needs the other's round before
        (on("a", 0, "b", 0), on("b", 1, "a", 0), None),  # b[k + 1] is made a round too early
        (on("a", 1, "b", 0), on("b", 0, "a", 0), ["wide", "wide"]),  # a[k + 1] is still old
    ],
)
def test_all_rounds_of_a_call_come_before_those_of_the_next(
    first: Any, then: Any, expected: list[str] | None
) -> None:
    program = pair(first, then)
    count = 2 * (ROWS - 2)
    assert ways(program, table(), table()) == (expected or ["own"] * count)
    assert agrees(program, table, table) == (count if expected else 0)


# --------------------------------------------------------------------------- numbers


def test_numbers_that_count() -> None:
    def counting(a: Any) -> None:
        for k in range(1, ROWS):
            pk.parallel_for(N, row, a=a, k=k)

    def down(a: Any) -> None:
        for k in range(ROWS - 1, 0, -2):
            pk.parallel_for(N, row, a=a, k=k)

    def irregular(a: Any) -> None:
        for k in (1, 2, 4, 8, 3, 6):
            pk.parallel_for(N, row, a=a, k=k)

    assert agrees(counting, table) == ROWS - 1
    assert agrees(down, table) == 4
    assert agrees(irregular, table) == 0


@pytest.mark.parametrize("numbers", [(2.0, 2.0, 2.0, 3.0, 2.0), (0.0, -0.0, 0.0, -0.0, 0.0)])
def test_numbers_that_differ(numbers: tuple[float, ...]) -> None:
    def program(a: Any, b: Any) -> None:
        for k, c in enumerate(numbers):
            pk.parallel_for(N, scale, x=a[k], y=b[k], c=c)

    assert agrees(program, table, table) == (3 if numbers[1] else 0)


# --------------------------------------------------------------------------- what stays


def test_one_that_is_not_like_the_others_ends_a_run() -> None:
    short = pk.View([N - 1], pk.double)
    single = pk.View([N], pk.float)

    def program(a: Any, b: Any, other: Any, n: int = N) -> None:
        for k in range(ROWS):
            x = other if k == 4 else a[k]
            pk.parallel_for(min(n, N - 1), scale, x=x, y=b[k], c=2.0)

    for other in (short, single):
        found = ways(program, table(), table(), other)
        assert found == ["wide", "own", "wide"]

    def ranges(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N - (k == 4), scale, x=a[k], y=b[k], c=2.0)

    assert ways(ranges, table(), table()) == ["wide", "own", "wide"]
    assert agrees(ranges, table, table) == ROWS - 1


def test_branches_keep_neighbours_inside() -> None:
    def apart(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N, edges, x=a[k], y=b[k], n=N)

    def beyond_the_end(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N, edges, x=a[k], y=b[k], n=N + 1)

    def across(a: Any) -> None:
        for k in range(1, ROWS):
            pk.parallel_for(N, edges, x=a[k - 1], y=a[k], n=N)

    assert ways(apart, table(), table()) == ["wide"]
    assert ways(across, table()) == ["own"] * (ROWS - 1)
    assert set(ways(beyond_the_end, table(), table())) == {"own"}
    assert agrees(apart, table, table) == ROWS


def test_atomics_divisions_reductions_and_what_may_leave_its_view_stay() -> None:
    def atomics(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N, tally, x=a[k], y=b[k])

    def divisions(a: Any) -> None:
        for k in range(1, ROWS):
            pk.parallel_for(N, divide, x=a[k], k=k)

    def divisions_by_elements(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N, divide_by_elements, x=a[k], y=b[k])

    def outside(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N, beyond, x=a[k], y=b[k])

    def sums(a: Any) -> None:
        for k in range(ROWS):
            pk.parallel_reduce(N, total, x=a[k])

    for program, views in (
        (atomics, 2),
        (divisions, 1),
        (divisions_by_elements, 2),
        (outside, 2),
        (sums, 1),
    ):
        assert set(ways(program, *[table() for _ in range(views)])) == {"own"}


def test_what_does_not_move_stays() -> None:
    def program(a: Any, b: Any) -> None:
        for _ in range(ROWS):
            pk.parallel_for(N, add, x=a[0], y=b[0])

    assert ways(program, table(), table()) == ["own"] * ROWS


# --------------------------------------------------------------------------- what they become


def test_extents_are_those_of_a_row() -> None:
    def program(a: Any, b: Any) -> None:
        for k in range(ROWS):
            pk.parallel_for(N, sized, x=a[k], y=b[k])

    assert agrees(program, table, table) == ROWS


def test_what_an_iteration_changes_for_itself_it_has_anew_in_each_round() -> None:
    def program(a: Any) -> None:
        for k in range(1, ROWS):
            pk.parallel_for(N, count, x=a[k - 1], y=a[k])

    assert agrees(program, table) == ROWS - 1
    i, c = Sym("i", 1, DType.INT32), Sym("c", 2, DType.FLOAT64)
    for changed in (i, c):
        body = (Assign(changed, Const(1, changed.dtype)),)
        assert not rewrite._begins_anew(Workunit("", (i,), (Param(c),), body))
    assert rewrite._begins_anew(Workunit("", (i,), (Param(c),), ()))


def cube() -> Any:
    made = pk.View([ROWS, 4, 5], pk.double)
    made[...] = np.arange(ROWS * 20.0).reshape(ROWS, 4, 5)
    return made


@pytest.mark.parametrize("workunit", [box, lengths])
def test_planes_of_boxes(workunit: Any) -> None:
    def program(a: Any) -> None:
        for k in range(1, ROWS):
            policy = pk.MDRangePolicy([0, 1], [4, 5])
            pk.parallel_for(policy, workunit, x=a[k - 1], y=a[k])

    assert agrees(program, cube) == ROWS - 1


def test_a_parameter_that_changes_ends_with_its_iteration() -> None:
    with pyfuser.fusing():
        a = table()
        pk.parallel_for(N, scale, x=a[0], y=a[1], c=2.0)
        call = shape_of(TRACER.calls, structural_scalars).calls[-1]
    unit = call.workunit
    again = replace(unit, body=(*unit.body, Assign(unit.params[2].sym, Const(3.0, DType.FLOAT64))))
    assert rewrite._may_move(call) and not rewrite._may_move(call._replace(workunit=again))


def test_a_call_with_a_sum_that_is_not_known_yet_stays() -> None:
    def program(a: Any, b: Any) -> None:
        c = pk.parallel_reduce(N, total, x=a[0])
        for k in range(ROWS):
            pk.parallel_for(N, scale, x=a[k], y=b[k], c=c)

    assert ways(program, table(), table()) == ["own"] * (1 + ROWS)


def counting(axes: int, rank: int, *dtypes: DType) -> Workunit:
    """A workunit with so many indices, a view and numbers, which it stores."""
    indices = tuple([Sym(f"i{n}", n, DType.INT32) for n in range(axes)])
    view = Sym("a", axes, DType.FLOAT64)
    numbers = [Sym(f"k{n}", axes + 1 + n, dtype) for n, dtype in enumerate(dtypes)]
    at = tuple([Read(indices[0])] * rank)
    body = tuple([Store(view, at, Cast(Read(k), view.dtype)) for k in numbers])
    return Workunit("w", indices, (*map(Param, numbers), Param(view, rank)), body)


def test_wide_workunits_are_well_formed() -> None:
    unit = counting(2, 2, DType.INT32, DType.INT64, DType.INT32)
    verify_ir(unit)
    made = rewrite.wide(unit, (1, 2, 3, 8), (0, 0, 0, 2))
    assert made is not None
    for each in (made, rewrite.serial(made)):
        verify_ir(each)
        syms = all_syms(each)
        assert len({sym.uid for sym in syms}) == len(set(syms))
    moved = [s.value.right for s in made.body if isinstance(s, Declare)]  # by the round * a step
    assert [type(each.left) for each in moved] == [Read, Cast, Read]


def test_as_many_axes_as_there_may_be() -> None:
    def is_wide(axes: int, rank: int, *dtypes: DType) -> bool:
        unit = counting(axes, rank, *dtypes)
        steps, ahead = (*[1 for _ in dtypes], 8), (0,) * (1 + len(dtypes))
        return rewrite.wide(unit, steps, ahead) is not None

    assert is_wide(2, 7) and not is_wide(3, 1) and not is_wide(1, 8, DType.INT64)
    assert is_wide(1, 1, DType.INT64) and not is_wide(1, 1, DType.UINT32)


# --------------------------------------------------------------------------- in a program


def test_a_read_in_the_middle_and_calls_around() -> None:
    def program(a: Any, b: Any) -> None:
        pk.parallel_for(N, add, x=a[0], y=b[0])
        for k in range(1, ROWS):
            pk.parallel_for(N, add, x=a[k - 1], y=a[k])
            if k == 4:
                assert b[0][0] >= 0
        pk.parallel_for(N, add, x=a[ROWS - 1], y=b[1])

    assert agrees(program, table, table) == ROWS - 1


def test_views_that_die_in_the_middle() -> None:
    def program(b: Any) -> None:
        a = table()
        for k in range(1, ROWS):
            pk.parallel_for(N, add, x=a[k - 1], y=a[k])
        pk.parallel_for(N, add, x=a[ROWS - 1], y=b[0])
        del a
        again = table()
        for k in range(1, ROWS):
            pk.parallel_for(N, add, x=again[k], y=b[k])

    assert agrees(program, table) == 2 * (ROWS - 1)


def test_memory_counts_as_pending_until_it_has_run() -> None:
    a, b = table(), table()
    with pyfuser.fusing():
        for k in range(ROWS):
            pk.parallel_for(N, add, x=a[k], y=b[k])
        buffers = a._region.buffer, b._region.buffer
        made, _ = roll.rolled(TRACER.calls, ROUNDS)
        assert TRACER.exchange(list(TRACER.calls), made)
        assert [buffer.pending for buffer in buffers] == [1, 1]
        assert not TRACER.exchange([*made, *made], made)  # they are not pending any more
        assert [buffer.pending for buffer in buffers] == [1, 1]
        assert a[0][0] == 1.0 and b[2][1] == 0.5 * a[2][1] + a[2][1]
        assert [buffer.pending for buffer in buffers] == [0, 0]


def test_parts_that_move_from_trace_to_trace_have_one_program() -> None:
    a, b = table(), table()
    for k in range(1, 6):
        if k == 2:
            before = pyfuser.stats().plans
        with pyfuser.fusing():
            pk.parallel_for(N, add, x=a[k - 1], y=a[k])
            pk.parallel_for(N, add, x=a[k], y=b[k])
    assert pyfuser.stats().plans == before


def test_verification_runs_what_the_program_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Were rolled calls compared with themselves, a wrong one would pass."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verify, "SETTINGS", replace(verify.SETTINGS, verify=True))
    monkeypatch.setattr(replay, "SETTINGS", replace(replay.SETTINGS, verify=True))
    monkeypatch.setattr("pyfuser.plan.rewrites.roll.are_serial", lambda calls: True)
    a = table()
    before = pyfuser.stats().rolled
    with pytest.raises(VerificationError), pyfuser.fusing():
        for k in range(1, ROWS):  # the row before is new
            pk.parallel_for(N, mirror, x=a[k - 1], y=a[k], n=N)
    pyfuser.discard()
    assert pyfuser.stats().rolled == before + ROWS - 1


def test_a_report_tells_for_how_many_rounds_a_call_stands() -> None:
    agrees(up(add, -1, 0), table)
    assert f"add ({ROWS - 3} rounds)" in str(pyfuser.explain())
