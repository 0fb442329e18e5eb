"""Rounds of calls that move on: which calls are of one run."""

from __future__ import annotations

from typing import Any

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Param, Sym, Workunit
from pyfuser.trace.call import Argument, Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region
from pyfuser.trace.runs import Run, _step, _steps, runs_of

BUFFER = Allocation(1000, Handle())
SPACE = Space((0,), (4,))
UNIT = Workunit("w", (), (Param(Sym("x", 0, DType.FLOAT64), 1),), ())


def part(offset: int, buffer: Buffer = BUFFER, shape: int = 4, dtype: DType = DType.FLOAT64) -> Any:
    return Region(buffer, offset, (8,), (shape,), dtype)


class OtherCall(Call):
    __slots__ = ()


def call(
    *arguments: Argument,
    unit: Workunit = UNIT,
    space: Space = SPACE,
    pattern: str = "for",
    kind: type[Call] = Call,
) -> Call:
    return kind(pattern, space, unit, arguments, None, None, call.__code__, 0)


NAN = float("nan")
FUTURE = Future(DType.FLOAT64, lambda future: None)
OTHER = part(8, Allocation(1000, Handle()))


@pytest.mark.parametrize(
    ("one", "other", "step"),
    [
        (part(8), part(24), 16),
        (part(24), part(8), -16),
        (part(8), part(8), 0),
        (part(0), OTHER, None),
        (part(0), part(8, shape=5), None),
        (part(0), part(8, dtype=DType.INT64), None),
        (part(0), 8, None),
        (8, part(0), None),
        (3, 5, 2),
        (True, 2, None),
        (2, True, None),
        (True, True, 0),
        (True, False, None),
        (False, 0.0, None),
        (1.5, float("1.5"), 0),
        (1.5, 2.5, None),
        (0.0, -0.0, None),
        (NAN, float("nan"), None),
        (1, 1.0, None),
        (1.0, 1, None),
        (1j, complex("1j"), None),
        (FUTURE, FUTURE, None),
        (FUTURE, 1.0, None),
        (1.0, FUTURE, None),
    ],
)
def test_by_how_much_an_argument_moves(one: Any, other: Any, step: int | None) -> None:
    found = _step(one, other)
    assert (found, type(found)) == (step, type(step))


def test_calls_are_alike_but_for_their_arguments() -> None:
    first = call(part(0), 3)
    assert _steps(first, call(part(8), 3)) == (8, 0)
    assert _steps(first, call(part(8), 3, space=Space((0,), (4,)))) == (8, 0)
    assert _steps(first, call(part(8), 3.0)) is None
    unit = Workunit("w", (), UNIT.params, ())
    for other in (
        {"unit": unit},
        {"space": Space((0,), (5,))},
        {"pattern": "reduce"},
        {"kind": OtherCall},
    ):
        unlike = call(part(8), 3, **other)  # type: ignore[arg-type]
        assert _steps(first, unlike) is None and _steps(unlike, first) is None
        if "unit" not in other and "space" not in other:
            assert _steps(unlike, unlike) is None


def test_runs_of_a_call_and_of_two() -> None:
    one = [call(part(8 * n)) for n in range(5)]
    assert runs_of(one, 3) == [Run(0, 1, 5, ((8,),))]
    assert runs_of(one, 6) == []
    assert runs_of([*one, call(part(0))], 3) == [Run(0, 1, 5, ((8,),))]
    unit = Workunit("v", (), UNIT.params, ())
    two = [call(part(8 * (n // 2)), unit=(UNIT, unit)[n % 2]) for n in range(9)]
    assert runs_of(two, 3) == [Run(0, 2, 4, ((8,), (8,)))]
    assert runs_of(two, 3)[0].last == 8
    apart = [call(part((8, 16)[n % 2] * (n // 2)), unit=(UNIT, unit)[n % 2]) for n in range(9)]
    assert runs_of([call(OTHER), *apart], 3) == [Run(1, 2, 4, ((8,), (16,)))]
    still = [call(part(0)) for _ in range(6)]
    assert runs_of(still, 3) == []
    faster = [call(part(8 * n * n)) for n in range(6)]
    assert runs_of(faster, 3) == []
