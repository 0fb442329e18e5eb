"""Rounds of calls that move on: which calls are of one run."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Param, Sym, Workunit
from pyfuser.support.extension import HOT
from pyfuser.trace import runs
from pyfuser.trace.call import Argument, Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Allocation, Buffer, Handle, Region
from pyfuser.trace.runs import Run, _rounds, _step, _steps, runs_of

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


PAIRS: list[tuple[Any, Any, int | None]] = [
    (part(8), part(24), 16),
    (part(24), part(8), -16),
    (part(8), part(8), 0),
    (part(0), OTHER, None),
    (part(0), part(8, shape=5), None),
    (part(0), part(8, dtype=DType.INT64), None),
    (part(0), 8, None),
    (8, part(0), None),
    (3, 5, 2),
    (3, 2, -1),
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
]


@pytest.mark.parametrize(("one", "other", "step"), PAIRS)
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


@pytest.mark.parametrize("rounds", [_rounds, runs.ROUNDS])
def test_runs_of_a_call_and_of_two(rounds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROUNDS", rounds)
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


@pytest.mark.skipif(HOT is None, reason="needs the extension")
@pytest.mark.parametrize(("one", "other", "step"), PAIRS)
def test_the_extension_knows_the_same_rounds(one: Any, other: Any, step: int | None) -> None:
    """A pair of arguments follows another if it moves by the same step, and by no other."""
    calls = [call(one), call(other)]
    for wanted in {step or 0, 0, 8, 2**70}:
        expected = _rounds(calls, 0, ((wanted,),))
        assert HOT.rounds(calls, 0, ((wanted,),)) == expected == 1 + (wanted == step)


@pytest.mark.skipif(HOT is None, reason="needs the extension")
def test_the_extension_counts_rounds_as_python_does() -> None:
    rng = random.Random(5)
    unit = Workunit("v", (), UNIT.params, ())
    for _ in range(300):
        period = rng.choice((1, 1, 2, 3))
        steps = tuple((rng.choice((0, 8, -8)), rng.choice((0, 1))) for _ in range(period))
        kinds = [(rng.choice((UNIT, unit)), rng.choice((SPACE, Space((1,), (4,))))) for _ in steps]
        calls = []
        for n in range(rng.randint(period + 1, 20)):
            (x, k), (used, space) = steps[n % period], kinds[n % period]
            turn = n // period
            calls.append(call(part(400 + x * turn), k * turn, unit=used, space=space))
        if rng.random() < 0.6:
            one, other = UNIT, Space((0,), (5,))
            unlike = rng.choice(
                ({"unit": one}, {"space": other}, {"pattern": "scan"}, {"kind": OtherCall})
            )
            calls[rng.randrange(len(calls))] = call(part(rng.choice((0, 400))), 0, **unlike)  # type: ignore[arg-type]
        first = rng.randrange(len(calls) - period)
        phase = first % period
        moved = (*steps[phase:], *steps[:phase])
        assert HOT.rounds(calls, first, moved) == _rounds(calls, first, moved)
    assert HOT.rounds([*map(call, (1, 2, 3))], 0, ((1,),)) == 3
    assert (
        HOT.rounds([call(1), call(2), call(2, 3)], 0, ((1,),)) == 2
    )  # another number of arguments
