"""Short outermost axes that become loops of an iteration: which may, which must stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrites.sink_axes import sunk_call
from pyfuser.plan.rewrites.sink_outer_axis import SunkOuter, inner_space, may_turn, turned
from pyfuser.trace.call import Space
from tests.fuzz.harness import check_interpreted
from tests.fuzz.program import Base, Call, Program, Statement
from tests.plan.test_coarsening import trace_of
from tests.rewrites import searching
from tests.vendors import tune

C, N = 3, 70
BASES = (
    Base("U", (C, N), "float64"),
    Base("V", (C, N), "float64"),
    Base("K", (C, N), "int32"),
    Base("P", (N,), "float64"),
)


def over(text: str, pattern: str = "for", kind: str = "", **views: str) -> Call:
    body = tuple(Statement(line, (), ()) for line in text.split("; "))
    return Call(pattern, (0, 0), (C, N), body, tuple(views.items()), (), kind)


def points(text: str, **views: str) -> Call:
    return Call("for", (0,), (N,), (Statement(text, (), ()),), tuple(views.items()))


planned = searching("sink-outer-axis")


def plan_of(*calls: Call) -> Plan:
    program = Program(BASES, calls, 1)
    check_interpreted(program)
    return planned(trace_of(program)).plan


def sunk(*calls: Call) -> list[int]:
    return [note.call for note in plan_of(*calls).of(SunkOuter)]


MOVED = over("u[i, j] = u[i, j] + 0.5 * v[i, j]", u="U", v="V")
SLOPE = points("v[1, i] = u[0, i] - u[2, i]", u="U", v="V")
SUMMED = over("acc += u[i, j]", "reduce", "pk.double", u="U")


def test_calls_over_components_share_the_loop_of_points() -> None:
    plan = plan_of(MOVED, SLOPE, MOVED)
    assert [group.calls for group in plan.groups] == [(0, 1, 2)]
    assert [note.call for note in plan.of(SunkOuter)] == [0, 2]
    near = points("v[1, i] = u[0, (i + 1) % 70]", u="U", v="V")
    assert [group.calls for group in plan_of(MOVED, near).groups] == [(0,), (1,)]


def test_nothing_is_changed_where_it_saves_nothing() -> None:
    assert sunk(MOVED, MOVED) == []  # they fuse as they are
    assert sunk(MOVED, points("p[i] = 2.0 * p[i]", p="P")) == []  # nothing is shared
    assert sunk(MOVED, replace(SLOPE, end=(N - 1,))) == []  # of another space


def test_what_keeps_its_space() -> None:
    assert sunk(MOVED, SLOPE, MOVED, SLOPE, SUMMED) == [0, 2]
    counted = over("k[i, j] += 1", k="K")
    tallied = over("pk.atomic_add(p, [j], 1.0)", p="P")
    assert sunk(counted, MOVED, SLOPE, MOVED, SLOPE, tallied) == [0, 1, 3]
    mixed = over("u[i, j] = u[i, j] + 0.5 * v[i, j]; pk.atomic_add(p, [j], 1.0)",
                 u="U", v="V", p="P")  # fmt: skip
    assert sunk(mixed, SLOPE) == []


def test_an_order_that_shows() -> None:
    (moved,) = trace_of(Program(BASES, (MOVED,), 1)).calls
    assert may_turn(moved)
    assert not may_turn(moved._replace(space=moved.space._replace(execution="Serial")))
    (tallied,) = trace_of(Program(BASES, (over("pk.atomic_add(p, [j], 1.0)", p="P"),), 1)).calls
    assert not may_turn(tallied)
    (summed,) = trace_of(Program(BASES, (SUMMED,), 1)).calls
    assert not may_turn(summed)


@pytest.mark.parametrize(
    ("shape", "inner"),
    [
        ((3, N), (N,)), ((9, N), (N,)), ((10, N), None), ((1, N), None), ((0, N), None),
        ((3, 8, 8), (8, 8)), ((3, 8, 7), None), ((N,), None),
    ],
)  # fmt: skip
def test_inner_spaces(shape: tuple[int, ...], inner: tuple[int, ...] | None) -> None:
    space = Space((0,) * len(shape), shape, "OpenMP")
    found = inner_space(space)
    assert (found and found.end) == inner
    assert inner_space(space._replace(execution="Cuda")) is None
    assert inner_space(space._replace(begin=(1, *space.begin[1:]))) is None


def test_bounds_of_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    part = replace(MOVED, begin=(0, 2))
    assert sunk(part, replace(SLOPE, begin=(2,))) == [0]
    (call,) = trace_of(Program(BASES, (part,), 1)).calls
    made = sunk_call(turned(call), 1)
    assert made.space == Space((2,), (N,), call.space.execution)
    tune(monkeypatch, sunk_rows=N + 1)
    assert sunk(MOVED, SLOPE) == []


@pk.workunit
def along(c: int, i: int, out: pk.View2D[pk.double], u: pk.View2D[pk.double], h: float):
    out[c][i] = u[c][i] + h * out[c][i]


@pk.workunit
def turn(i: int, out: pk.View2D[pk.double], u: pk.View2D[pk.double]):
    out[0][i] = u[1][i] - u[2][i]
    out[2][i] = out[2][i] + u[0][i]


@pk.workunit
def size(c: int, i: int, acc: pk.Acc[pk.double], u: pk.View2D[pk.double]):
    acc += u[c][i] * u[c][i]


def test_compiled() -> None:
    n, rng = 20_000, np.random.default_rng(2)
    start = rng.random((3, n))

    def steps() -> tuple[float, np.ndarray]:
        u, v = pk.View([3, n], pk.double), pk.View([3, n], pk.double)
        u.data[:] = start
        box = pk.MDRangePolicy([0, 0], [3, n])
        for _ in range(3):
            pk.parallel_for(n, turn, out=v, u=u)
            pk.parallel_for(box, along, out=u, u=v, h=0.25)
        return float(pk.parallel_reduce(box, size, u=u)), u.data.copy()

    with pyfuser.unfused():
        expected = steps()
    with pyfuser.fusing():
        found = steps()
    assert found[0] == expected[0] and (found[1] == expected[1]).all()
    assert "short outermost axis is a loop of each iteration: along" in str(pyfuser.explain())
