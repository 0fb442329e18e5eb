"""Measured arbitration on a GPU: by the device's clock, and without waiting for it.

As `runtime.autotune` on the host, with two differences. A launch returns before its kernel runs, so
its time is that between two events in its stream, which is read flushes later, when they have
happened. So a trial has run before its times are known, and the loop goes on fused until they are.
And only one flush tells how long the launches in doubt take, since a flush that is timed replays no
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyfuser.ir.nodes import For
from pyfuser.ir.visit import statements
from pyfuser.plan.plan import Plan
from pyfuser.runtime.autotune import (
    ROUNDS,
    STEADY,
    WORTH,
    Calls,
    Measured,
    Program,
    Referee,
    doubts,
    spent,
)


class Span(Protocol):
    """See `engine.gpu.timing.Span`."""

    @property
    def done(self) -> bool: ...
    @property
    def seconds(self) -> float: ...


class Measure:
    """The launches of one flush that belong to some groups, and what they take."""

    __slots__ = ("_groups", "_marks")

    def __init__(self, groups: Sequence[Calls]) -> None:
        self._groups = [frozenset(calls) for calls in groups]
        self._marks: list[tuple[Calls, list[Span]]] = []

    def marks(self, calls: Calls) -> list[Span] | None:
        """Where the span of a launch of these calls goes; None if nobody asks for it."""
        if not any(group.issuperset(calls) for group in self._groups):
            return None
        self._marks.append((calls, []))
        return self._marks[-1][1]

    @property
    def done(self) -> bool:
        """Whether the device has run all of them."""
        return all(span.done for _, spans in self._marks for span in spans)

    def seconds(self, group: Calls) -> float:
        """What the launches of a group took together; all must be done."""
        inside = frozenset(group)
        return sum(
            s.seconds for calls, spans in self._marks if inside.issuperset(calls) for s in spans
        )


def device_doubts(program: Measured) -> list[Calls]:
    """See `doubts`. In a cut group a team may add in another order than in the whole one."""
    return [
        calls
        for calls in doubts(program)
        if not any(
            isinstance(stmt, For) and stmt.shared
            for n in calls
            for stmt in statements(program.trace.calls[n].workunit.body)
        )
    ]


class DeviceReferee(Referee[Program]):
    """Sees to the trials of a trace that a GPU runs; see `Referee`."""

    __slots__ = ("_current", "_first", "_measures")

    def __init__(self, groups: list[Calls], make: Callable[[Plan], Program]) -> None:
        super().__init__(groups, make)
        self._current: Measure | None = None
        self._first: Measure | None = None
        self._measures: list[tuple[Program, Measure]] = []

    def measure(self) -> Measure | None:
        """What the next flush is to time, if anything."""
        self._current = None
        if self._trial is not None:
            if len(self._measures) < 2 * ROUNDS:
                self._current = Measure([self._trial.calls])
        elif self._first is None and self._runs + 1 >= STEADY:
            self._current = Measure(self.open)
        return self._current

    def after(self, program: Program) -> Program:
        """The program that the next flush of the trace runs, after this one was launched."""
        measure, self._current = self._current, None
        if self._trial is not None:
            return self._tried(program, measure)
        self._runs += 1
        self._first = self._first or measure
        if self._first is not None and self._first.done:
            for launch in program.launches:
                if launch.calls in self.open:
                    launch.timing.runs = self._runs
                    launch.timing.mean = self._first.seconds(launch.calls)
                    if spent(launch) >= self._worth.get(launch.calls, WORTH):
                        self._measures = []
                        return self._begin(program, launch)
        return program

    def _tried(self, program: Program, measure: Measure | None) -> Program:
        """The same in a trial."""
        trial = self._trial
        assert trial is not None
        fused, cut = trial.programs
        if measure is not None:
            self._measures.append((program, measure))
        if len(self._measures) < 2 * ROUNDS:
            return fused if program is cut else cut
        if not all(taken.done for _, taken in self._measures):
            return fused
        for ran, taken in self._measures:
            trial.times[ran is cut].append(taken.seconds(trial.calls))
        return self._over(trial)
