"""Short innermost axes that become loops of an iteration: which may, which must stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Cast, Read, Update
from pyfuser.plan.capabilities import ALL
from pyfuser.plan.plan import Plan
from pyfuser.plan.rewrites.sink_axes import Sunk, may_sink, short_axes, sunk_call
from pyfuser.trace.call import Space
from tests.fuzz.harness import check_interpreted
from tests.fuzz.program import Base, Call, Program, Statement
from tests.plan.test_coarsening import trace_of
from tests.rewrites import searching
from tests.vendors import tune

N, C = 70, 3
BASES = (
    Base("X", (N, C), "float64"),
    Base("Y", (N, C), "float64"),
    Base("K", (N, C), "int32"),
    Base("R", (N,), "float64"),
)
SHAPE = (N, C)


def over(text: str, pattern: str = "for", kind: str = "", **views: str) -> Call:
    body = tuple(Statement(line, (), ()) for line in text.split("; "))
    return Call(pattern, (0, 0), SHAPE, body, tuple(views.items()), (), kind)


def rows(text: str, **views: str) -> Call:
    return Call("for", (0,), (N,), (Statement(text, (), ()),), tuple(views.items()))


planned = searching("sink-axes")


def plan_of(*calls: Call) -> Plan:
    program = Program(BASES, calls, 1)
    check_interpreted(program)
    return planned(trace_of(program)).plan


def sunk(*calls: Call) -> list[int]:
    return [note.call for note in plan_of(*calls).of(Sunk)]


MOVED = over("x[i, j] = x[i, j] + 0.5 * y[i, j]", x="X", y="Y")
TURNED = over("x[i, j] = y[i, 2 - j]", x="X", y="Y")
COUNTED = over("acc += k[i, j]", "reduce", "pk.int64", k="K")
SUMMED = over("acc += x[i, j]", "reduce", "pk.double", x="X")


def test_maps_and_sums_of_integers() -> None:
    assert sunk(MOVED, TURNED) == [0, 1]
    assert sunk(over("k[i, j] = i - j", k="K"), COUNTED) == [0, 1]


def test_a_sum_of_floating_point_numbers_keeps_what_shares_its_memory() -> None:
    assert sunk(SUMMED) == []
    assert sunk(MOVED, SUMMED) == []
    assert sunk(MOVED, replace(SUMMED, views=(("x", "Y"),))) == []
    assert sunk(over("k[i, j] = i - j", k="K"), SUMMED) == [0]  # nothing is shared
    assert sunk(over("k[i, j] = i - j", k="K"), MOVED, SUMMED) == []  # of one space: all or none


def test_what_an_integer_sum_asks_of_itself() -> None:
    (counted,) = trace_of(Program(BASES, (COUNTED,), 1)).calls
    unit = counted.workunit
    (update,), (one,) = unit.body, unit.accumulators
    assert isinstance(update, Update) and may_sink(counted)

    def may(body: Update, pattern: str = "reduce", dtype: DType = one.sym.dtype) -> bool:
        other = replace(unit, body=(body,))
        if dtype is not one.sym.dtype:
            sym = replace(one.sym, dtype=dtype)
            body = replace(body, target=sym, value=Cast(body.value, dtype))
            other = replace(unit, body=(body,), accumulators=(replace(one, sym=sym),))
        return may_sink(counted._replace(workunit=other, pattern=pattern))

    assert may(update, dtype=DType.INT32) and may(update, dtype=DType.UINT64)
    for dtype in (DType.FLOAT64, DType.BOOL, DType.COMPLEX128):
        assert not may(update, dtype=dtype)
    assert not may(update, "scan")
    for op in ("max", "*"):
        assert not may(replace(update, op=op))
    assert not may(replace(update, value=Binary("+", update.value, Read(one.sym))))


def test_calls_over_rows_share_the_loop() -> None:
    plan = plan_of(MOVED, rows("r[i] = x[i, 0] + x[i, 2]", r="R", x="X"))
    assert [group.calls for group in plan.groups] == [(0, 1)]
    reach = rows("r[i] = x[(i + 1) % 70, 0]", r="R", x="X")
    assert [group.calls for group in plan_of(MOVED, reach).groups] == [(0,), (1,)]


WIDE = (Base("W", (N, 6), "float64"), Base("T", (6,), "float64"), *BASES)


def wide(text: str, **views: str) -> Call:
    return replace(over(text, **views), end=(N, 6))


def wide_sunk(*calls: Call) -> list[int]:
    program = Program(WIDE, calls, 1)
    check_interpreted(program)
    return [note.call for note in planned(trace_of(program)).plan.of(Sunk)]


SCALED = wide("w[i, j] = 0.5 * w[i, j] + t[j]", w="W", t="T")


def test_a_longer_axis_joins_calls_over_its_rows() -> None:
    """Alone, or where these use other memory, its loop has vectors of its own."""
    own = rows("r[i] = w[i, 0] + w[i, 5]", r="R", w="W")
    assert wide_sunk(SCALED, own) == [0]
    assert wide_sunk(SCALED) == []
    assert wide_sunk(SCALED, rows("r[i] = x[i, 0]", r="R", x="X")) == []
    part = replace(own, begin=(1,))
    assert wide_sunk(SCALED, part) == []


def test_a_longer_axis_with_long_loops_stays() -> None:
    own = rows("r[i] = w[i, 0]", r="R", w="W")
    body = "for k in range({}): w[i, j] = w[i, j] + t[k % 6]"
    few, many = (wide(body.format(trips), w="W", t="T") for trips in (8, 9))
    assert wide_sunk(few, own) == [0]
    assert wide_sunk(many, own) == []


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((N, 3), 1), ((N, 4), 1), ((N, 5), 0), ((N, 1), 0), ((N, 3, 3), 2), ((N, 4, 4), 1),
        ((N, N, 2), 1), ((N, 9, 3), 1), ((N,), 0), ((3, 3), 0), ((60, 3), 0), ((N, 0), 0),
    ],
)  # fmt: skip
def test_short_axes(shape: tuple[int, ...], axes: int) -> None:
    space = Space((0,) * len(shape), shape, "OpenMP")
    assert short_axes(space) == axes
    assert short_axes(space._replace(execution="Cuda")) == 0


def test_bounds_of_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    part = replace(MOVED, begin=(2, 0))
    assert sunk(part) == [0]
    assert sunk(replace(MOVED, begin=(0, 1))) == []  # a part that may move on
    (call,) = trace_of(Program(BASES, (part,), 1)).calls
    assert sunk_call(call, 1).space == Space((2,), (N,), call.space.execution)
    tune(monkeypatch, sunk_rows=N)
    assert sunk(part) == [] and sunk(MOVED) == [0]


def test_an_engine_may_have_no_use_for_it() -> None:
    trace = trace_of(Program(BASES, (MOVED,), 1))
    same, _, plan = planned(trace, replace(ALL, without=frozenset({"sink-axes"})))
    assert same is trace and not plan.of(Sunk)


@pk.workunit
def drift(i, j, c, x, v, w, dt):
    x[i][j][c] += dt * v[i][j][c] * w[i][j]


@pk.workunit
def count(i, j, c, acc: pk.Acc[pk.int64], k):
    acc += k[i][j][c]


def test_compiled() -> None:
    n = 40
    x, v, w = pk.View([n, n, 3], pk.double), pk.View([n, n, 3], pk.double), pk.View([n, n])
    k = pk.View([n, n, 3], pk.uint8)
    rng = np.random.default_rng(1)
    v.data[:], w.data[:] = rng.random((n, n, 3)), rng.random((n, n))
    k.data[:] = rng.integers(0, 255, (n, n, 3))
    box = pk.MDRangePolicy([0, 0, 0], [n, n, 3])
    with pyfuser.fusing():
        pk.parallel_for(box, drift, x=x, v=v, w=w, dt=0.5)
        total = pk.parallel_reduce(box, count, k=k)
        assert float(total) == k.data.astype(np.int64).sum()
    assert (x.data == 0.5 * v.data * w.data[:, :, None]).all()
    assert "short innermost axis is a loop" in str(pyfuser.explain())
