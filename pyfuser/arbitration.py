"""Measured arbitration: where the cost model is in doubt, a steady loop tries both and keeps one.

A group whose modelled gain over its best cut in two is within DOUBT may well lose by sharing a
loop: the model knows bytes, not how a processor overlaps them. Once such a launch has run for WORTH
seconds in all, the flushes of its trace run fused and cut in turns, ROUNDS times each. If the cut
was faster by MARGIN (each side's best run counts), it stays, for this process and, through a small
file in the cache directory, for those to come. Either side gives the same bits, or there is no
trial: maps do as their language says, the order of a sum's additions depends on its space alone,
and calls with atomics are left out.

A program that runs once never gets here; one whose trials are over pays for the test of an empty
list in each flush.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from pyfuser.engine.cache import write_own
from pyfuser.errors import PyFuserError
from pyfuser.files import read_own
from pyfuser.ir import nodes
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.launches import Launch
from pyfuser.machine import identity
from pyfuser.plan.plan import Declined, Group, Plan, Rejection
from pyfuser.plan.profit import bytes_moved, group_cost, surely_cheaper
from pyfuser.settings import SETTINGS
from pyfuser.trace.shape import TraceShape

DOUBT = 0.1
"""Modelled gains, as a part of the fused time, that may turn out to be losses."""

LONG = 2e-4
"""Seconds, modelled, below which nobody will notice."""

WORTH = 1.0
"""Seconds that a launch must have taken in all: it will go on, and a cut must be compiled."""

STEADY = 4
"""Flushes of a trace before one is measured: memory is warm, and it is a loop."""

ROUNDS = 6
"""Runs of each side, of which the first pays for new memory."""

MARGIN = 0.95
"""The cut stays if it takes at most this part of the fused time."""

SCHEMA = 1

Calls = tuple[int, ...]


class Measured(Protocol):
    """What a program must have to be tried (see `driver.Program`)."""

    @property
    def trace(self) -> TraceShape: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def launches(self) -> tuple[Launch, ...]: ...


Program = TypeVar("Program", bound=Measured)


class Choice(NamedTuple):
    """What a trial found: seconds of both sides, and how many calls come before the cut."""

    place: int
    fused: float
    cut: float

    @property
    def cuts(self) -> bool:
        """Whether the group should be cut."""
        return self.cut <= MARGIN * self.fused


@dataclass(slots=True)
class Trial(Generic[Program]):
    """Two programs for one trace that take turns; they differ in one group."""

    calls: Calls
    place: int
    programs: tuple[Program, Program]
    times: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def add(self, program: Program) -> Program | None:
        """Note what a run took; the program that runs next, None when the trial is over."""
        side = int(program is self.programs[1])
        self.times[side].append(_seconds(program, self.calls))
        if min(map(len, self.times)) == ROUNDS:
            return None
        return self.programs[len(self.times[1]) <= len(self.times[0])]

    def choice(self) -> Choice:
        """The best run of each side, the first ones apart."""
        fused, cut = (min(times[1:]) for times in self.times)
        return Choice(self.place, fused, cut)


def doubts(program: Measured) -> list[Calls]:
    """The groups of a program that a trial may cut."""
    if not SETTINGS.arbitrate or SETTINGS.verify:
        return []
    swept = {place for sweep in program.plan.sweeps for place in sweep.groups}
    return [
        group.calls
        for place, group in enumerate(program.plan.groups)
        if len(group.calls) > 1
        and place not in swept
        and not surely_cheaper(program.trace, group.calls, LONG)
        and group_cost(program.trace, group.calls) >= LONG
        and not any(_has_atomics(program.trace.calls[n].workunit) for n in group.calls)
    ]


class Referee(Generic[Program]):
    """Sees to the trials of one trace, one at a time.

    open: the groups that may still be in doubt. make: the program of the trace with another plan;
    raises PyFuserError if there is none.
    """

    __slots__ = ("_make", "_runs", "_trial", "_watched", "open")

    def __init__(self, groups: list[Calls], make: Callable[[Plan], Program]) -> None:
        self.open = groups
        self._make = make
        self._runs = 0
        self._watched: list[Launch] = []
        self._trial: Trial[Program] | None = None

    def after(self, program: Program) -> Program:
        """The program that the next flush of the trace runs, after this one ran."""
        if self._trial is not None:
            following = self._trial.add(program)
            return self._over(self._trial) if following is None else following
        self._runs += 1
        if self._runs < STEADY:
            return program
        if self._runs == STEADY:
            self._watched = [la for la in program.launches if la.calls in self.open]
        for launch in self._watched:
            if launch.timing.runs * launch.timing.mean >= WORTH:
                return self._begin(program, launch.calls)
        return program

    def _begin(self, program: Program, calls: Calls) -> Program:
        place, gain = best_cut(program.trace, calls)
        if gain <= DOUBT:
            with contextlib.suppress(PyFuserError):
                other = self._make(cut_plan(program.plan, calls, place))
                self._trial = Trial(calls, place, (program, other))
                return other
        self._close(calls)
        return program

    def _over(self, trial: Trial[Program]) -> Program:
        choice = trial.choice()
        fused, cut = trial.programs
        with contextlib.suppress(PyFuserError, OSError):
            remember(fused, trial.calls, choice)
        self._trial = None
        self._close(trial.calls)
        return cut if choice.cuts else fused

    def _close(self, calls: Calls) -> None:
        self.open.remove(calls)
        self._runs = STEADY - 1  # the launches of another program are to be watched


# --------------------------------------------------------------------------- cuts


def best_cut(trace: TraceShape, calls: Calls) -> tuple[int, float]:
    """Where to cut a group in two for least modelled cost, and what fusing gains over that."""
    fused = group_cost(trace, calls)
    costs = [
        (group_cost(trace, calls[:place]) + group_cost(trace, calls[place:]), place)
        for place in range(1, len(calls))
    ]
    cost, place = min(costs)
    return place, (cost - fused) / fused


def cut_plan(plan: Plan, calls: Calls, place: int, why: str = "measured") -> Plan:
    """The plan with a group cut in two.

    Calls of a group are in an order that respects their dependences, and no path of dependences
    leaves a group and comes back, so the parts may run one after the other where the group did.
    """
    at = next(n for n, group in enumerate(plan.groups) if group.calls == calls)
    parts = Group(calls[:place]), Group(calls[place:])
    apart = Rejection(calls[place - 1], calls[place], why)
    return replace(
        plan,
        groups=(*plan.groups[:at], *parts, *plan.groups[at + 1 :]),
        rejections=(*plan.rejections, apart),
        sweeps=tuple(
            replace(sweep, groups=tuple(_moved(sweep.groups, at))) for sweep in plan.sweeps
        ),
        declined=tuple(
            Declined(tuple(_moved(d.groups, at)), d.place + (d.place > at), d.why)
            for d in plan.declined
        ),
    )


def _moved(places: Sequence[int], at: int) -> Iterator[int]:
    return (place + (place > at) for place in places)


@lru_cache(maxsize=1024)
def _has_atomics(workunit: Workunit) -> bool:
    """Whether results may depend on the order of iterations, which a cut changes."""
    return any(
        isinstance(stmt, nodes.Update) and stmt.atomic for stmt in statements(workunit.body)
    ) or any(isinstance(e, nodes.AtomicFetch) for e in all_expressions(workunit.body))


def _seconds(program: Measured, calls: Calls) -> float:
    """What the latest launches of these calls took."""
    inside = frozenset(calls)
    return sum(la.timing.latest for la in program.launches if inside.issuperset(la.calls))


# --------------------------------------------------------------------------- what is remembered


def settled(program: Measured, groups: Sequence[Calls]) -> dict[Calls, Choice]:
    """What earlier trials, of this process or another, found of these groups."""
    found = {}
    for calls in groups:
        choice = parsed(read_own(choice_file(program, calls)) or b"", len(calls))
        if choice is not None:
            found[calls] = choice
    return found


def remember(program: Measured, calls: Calls, choice: Choice) -> None:
    """Keep what a trial found. Raises OSError or CacheError if that cannot be."""
    write_own(choice_file(program, calls), text_of(choice))


def choice_file(program: Measured, calls: Calls) -> Path:
    """Where the choice for a group is: named by its kernel's code, its size and the machine.

    Sizes count to the next power of two.
    """
    launch = next(la for la in program.launches if la.calls == calls)
    space = program.trace.calls[calls[0]].space
    extents = [end - begin for begin, end in zip(space.begin, space.end, strict=True)]
    sizes = [n.bit_length() for n in (*extents, int(bytes_moved(program.trace, calls)))]
    text = f"{SCHEMA}\0{identity()}\0{len(calls)}\0{sizes}\0{launch.launchable.source}"
    return SETTINGS.cache_dir / "choices" / hashlib.sha256(text.encode()).hexdigest()[:32]


def text_of(choice: Choice) -> str:
    """A choice as a file."""
    return f"{(SCHEMA, *choice)}\n"


def parsed(text: bytes, calls: int) -> Choice | None:
    """The choice in a file, for a group of so many calls; None if it is broken."""
    try:
        schema, place, fused, cut = ast.literal_eval(text.decode())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    right = (
        (type(place), type(fused), type(cut)) == (int, float, float)
        and schema == SCHEMA
        and 0 < place < calls
        and fused > 0.0
        and cut > 0.0
    )
    return Choice(place, fused, cut) if right else None
