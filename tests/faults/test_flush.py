"""A flush that is interrupted or fails between two kernels: no call is lost, none runs twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime import building, execute, isolate, program
from pyfuser.runtime import flush as runtime_flush
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import ArgumentError
from pyfuser.support.extension import HOT
from pyfuser.trace import tracer
from pyfuser.trace.shape import shape_of
from tests.faults.conftest import Machine, Program
from tests.faults.workunits import SIZE, increment, scaled, total


@pyfuser.fuse
@pk.workunit
def copied(i, y, x):
    y[i] = x[i]


@pyfuser.fuse
@pk.workunit
def doubled(i, x):
    x[i] = 2.0 * x[i]


@pyfuser.fuse
@pk.workunit
def both(i, y, z):
    y[i] = 1.0
    z[i] = 2.0


#: Files in which it comes in between.
_WATCHED = {m.__file__ for m in (runtime_flush, building, execute, isolate, program, tracer)}


class Interruption:
    """Raises KeyboardInterrupt before the n-th bytecode of the code that runs kernels.

    A signal handler can do so at some of these places; which, differs between versions of Python.
    """

    def __init__(self, place: int) -> None:
        self.place = self.left = place
        self.happened = False

    def __enter__(self) -> None:
        sys.settrace(self._enter)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        # Between taking a lock and entering its block Python runs no signal handler, but this.
        while TRACER.lock._is_owned():  # type: ignore[attr-defined]
            TRACER.lock.release()

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in _WATCHED and not name.startswith("<launch of"):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.left -= 1
            if self.left < 0 and not self.happened:
                self.happened = True
                raise KeyboardInterrupt
        return self._step


def interruptions() -> Iterator[Interruption]:
    """One for each bytecode, until there is none left to interrupt."""
    place = misses = 0
    while misses < 2:  # Python 3.13 counts the bytecodes of a function from its second call on
        interruption = Interruption(place)
        yield interruption
        misses = 0 if interruption.happened else misses + 1
        place += interruption.happened


def test_ctrl_c_at_any_bytecode(machine: Machine, program: Program) -> None:
    program.check_done()  # compiled
    for interruption in interruptions():
        program = Program()
        try:
            with interruption:
                pyfuser.sync()
        except KeyboardInterrupt:
            pass
        try:
            program.check_done()
        except AssertionError as error:
            raise AssertionError(f"interrupted at bytecode {interruption.place}") from error
    assert interruption.place > (300 if HOT is None else 30), "so many bytecodes were tried"


def test_ctrl_c_while_a_call_is_recorded(machine: Machine) -> None:
    """Its view may be thought to be in use, never not to be."""
    for interruption in interruptions():
        x = pk.View([SIZE], pk.double)
        try:
            with interruption:
                pk.parallel_for(SIZE, increment, x=x)
        except KeyboardInterrupt:
            pass
        recorded = len(pyfuser.pending())
        assert x._region.buffer.pending >= recorded
        np.testing.assert_array_equal(x, np.full(SIZE, float(recorded)))
        assert pyfuser.pending() == ()
    assert interruption.place > 30 or HOT is not None


class Failing:
    """In place of a launchable: there is no memory for its view."""

    def __init__(self, of: Any) -> None:
        self.values = of.values

    def run(self, *arguments: Any) -> Any:
        raise MemoryError("no memory for a View")


def broken_in_the_middle(monkeypatch: pytest.MonkeyPatch, alone: bool) -> tuple[Any, ...]:
    """Three launches of four calls, of which the second fails; alone: unfused, too."""
    x, y, z = (pk.View([SIZE + n], pk.double) for n in range(3))
    pk.parallel_for(SIZE, increment, x=x)
    pk.parallel_for(SIZE + 1, increment, x=y)
    pk.parallel_for(SIZE + 2, increment, x=z)
    after = pk.parallel_reduce(SIZE + 2, total, x=z)
    plan = building.program_for(shape_of(TRACER.calls, structural_scalars))
    assert len(plan.launches) == 3
    first, second, third = plan.launches
    broken = replace(second, launchable=Failing(second.launchable))
    object.__setattr__(plan, "launches", (first, broken, third))
    if alone:
        failing = TRACER.calls[1]
        run = isolate._run_alone

        def run_alone(call: Any, *rest: Any) -> None:
            if call is failing:
                raise MemoryError("no memory for a View")
            run(call, *rest)

        monkeypatch.setattr(isolate, "_run_alone", run_alone)
    return x, y, z, after


def test_a_kernel_that_fails_between_others(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z, after = broken_in_the_middle(monkeypatch, alone=True)
    with pytest.raises(
        MemoryError, match=r"no memory for a View\n  called as 'increment' at .*py:\d+\n1 pending"
    ):
        pyfuser.sync()
    assert [line.split()[0] for line in pyfuser.pending()] == ["increment"]
    assert x._region.array()[0] == 1 and not y._region.buffer.allocated
    assert float(after) == SIZE + 2 and set(np.asarray(z)) == {1.0}
    monkeypatch.undo()
    SESSION.programs.clear()
    SESSION.families.clear()
    for view in (x, y, z):
        assert set(np.asarray(view)) == {1.0}


def test_a_kernel_that_fails_only_with_others(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, z, after = broken_in_the_middle(monkeypatch, alone=False)
    pyfuser.sync()
    assert float(after) == SIZE + 2
    for view in (x, y, z):
        assert set(np.asarray(view)) == {1.0}


HUGE = 1 << 45  # doubles: 256 TiB


@pytest.mark.parametrize("raw", [False, True])
def test_what_there_is_no_memory_for_holds_nobody_up(raw: bool, machine: Machine) -> None:
    """Calls on other memory run, also those that overwrite what the one without memory reads."""
    x = np.zeros(SIZE) if raw else pk.View([SIZE], pk.double)
    big = pk.View([HUGE], pk.double)
    part = pk.View([SIZE], pk.double)
    pk.parallel_for(SIZE, scaled, x=x, a=1.5)
    pk.parallel_for(SIZE, copied, y=big, x=x)
    pk.parallel_for(SIZE, copied, y=part, x=big)
    pk.parallel_for(SIZE, doubled, x=x)
    later = pk.parallel_reduce(SIZE, total, x=x)
    assert float(later) == 3.0 * SIZE
    message = r"no memory .* 281474976710656 bytes(.|\n)*1 that needs it"
    for wanted in (pyfuser.sync, lambda: big[0], lambda: part[0]):
        with pytest.raises(MemoryError, match=message):
            wanted()
    assert [line.split()[0] for line in pyfuser.pending()] == ["copied", "copied"]
    assert set(x) == {3.0}
    pk.parallel_for(SIZE, increment, x=x)
    with pytest.raises(MemoryError, match="all others have run"):
        pyfuser.sync()
    assert set(x) == {4.0}
    # Were there memory, they would compute what they would have computed then.
    smaller = pk.View([SIZE], pk.double)
    for call in list(TRACER.calls):
        TRACER.rebind(
            call,
            tuple(
                a._replace(buffer=smaller._region.buffer, shape=(SIZE,))
                if getattr(a, "shape", None) == (HUGE,)
                else a
                for a in call.arguments
            ),
        )
    assert set(part) == {1.5} and set(x) == {4.0} and pyfuser.pending() == ()


def test_what_must_follow_it_waits(machine: Machine) -> None:
    """The twin: a call that needs its result, or whose result it would overwrite."""
    big, y, z = pk.View([HUGE], pk.double), pk.View([SIZE], pk.double), np.zeros(SIZE)
    pk.parallel_for(SIZE, both, y=big, z=z)
    sum = pk.parallel_reduce(SIZE, total, x=big)
    pk.parallel_for(SIZE, scaled, x=y, a=sum)
    pk.parallel_for(SIZE, increment, x=z)
    for _ in range(2):
        with pytest.raises(MemoryError, match="1 pending call cannot run and 3 that need it; all"):
            pyfuser.sync()
    with pytest.raises(MemoryError):
        float(sum)
    names = ["both", "total", "scaled", "increment"]
    assert [line.split()[0] for line in pyfuser.discard()] == names
    assert not z.any() and not any(y) and pyfuser.pending() == ()


@pytest.mark.parametrize("fused", [True, False])
def test_memory_that_was_to_be_overwritten_is_zero(fused: bool, machine: Machine) -> None:
    """It comes from Views that died, and is not zeroed for a kernel that overwrites it."""
    n = 1 << 16
    dead = pk.View([n], pk.double)
    dead.fill(7.0)
    pyfuser.sync()
    del dead
    y, big = pk.View([n], pk.double), pk.View([HUGE], pk.double)
    with pytest.raises(MemoryError), pyfuser.fusing() if fused else pyfuser.unfused():
        pk.parallel_for(n, copied, y=y, x=big)
        pyfuser.sync()
    pyfuser.discard()
    assert not any(y)


def test_a_misaligned_array_is_refused_at_the_call(machine: Machine) -> None:
    """With the call's line; what was recorded before is not held up."""
    x = pk.View([SIZE], pk.double)
    bad = np.zeros(8 * SIZE + 1, np.uint8)[1:].view(np.float64)
    pk.parallel_for(SIZE, increment, x=x)
    message = r"test_flush.py:\d+: argument 'x' does not start at a multiple of 8 bytes.* a copy"
    with pytest.raises(ArgumentError, match=message):
        pk.parallel_for(SIZE, increment, x=bad)
    with pytest.raises(ArgumentError, match="the array does not start at a multiple of 8 bytes"):
        pk.View([SIZE], pk.double, array=bad)
    assert [line.split()[0] for line in pyfuser.pending()] == ["increment"]
    assert set(x) == {1.0} and not bad.any()
    records = np.zeros(SIZE, [("flag", np.uint8), ("value", np.float64)])
    pk.parallel_for(SIZE, increment, x=records["value"])
    pyfuser.sync()
    assert set(records["value"]) == {1.0} and not records["flag"].any()
