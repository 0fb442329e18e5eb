"""Measured arbitration: where the cost model is in doubt, a steady loop tries both and keeps one.

A group whose modelled gain over its best cut in two is within DOUBT may well lose by sharing a
loop: the model knows bytes, not how a processor overlaps them. And a launch that takes longer than
its parts should is one that the model knows too little of: a sweep is then tried against its loops,
a loop against its calls, each in a launch of its own. Once such a launch has run long enough
(`soon`), and for as long as it takes to compile what a cut needs, the flushes of its trace run
fused and cut in turns (see `runtime.duel`), with all cuts in doubt at a time. Each that was faster
stays, for this process and, through a small file in the cache directory, for those to come. Either
side gives the same bits, or there is no trial: maps do as their language says, the order of a sum's
additions depends on its space alone, and calls are left out whose atomics' order may show.

A program that runs once never gets here; one whose trials are over pays for the test of an empty
list in each flush.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from pyfuser.engine import native
from pyfuser.engine.ahead import Ahead, Pending
from pyfuser.engine.cache import write_own
from pyfuser.engine.engine import ENGINE
from pyfuser.plan.cost_model import bytes_moved, group_cost, surely_cheaper
from pyfuser.plan.plan import Group, Plan, Rejection, Sweep
from pyfuser.runtime import duel
from pyfuser.runtime.duel import MARGIN, Calls, Duel, latest
from pyfuser.runtime.launch import Launch
from pyfuser.runtime.turns import takes_turns
from pyfuser.support.errors import PyFuserError
from pyfuser.support.passes import left_out
from pyfuser.support.private_files import read_own
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.shape import RegionShape, TraceShape
from pyfuser.transform.group import group_shapes
from pyfuser.tuning.host import identity
from pyfuser.tuning.thresholds import NOW

DOUBT = 0.1
"""Modelled gains, as a part of the fused time, that may turn out to be losses."""

STEADY = 4
"""Flushes of a trace before one is measured: memory is warm, and it is a loop."""

NEARLY = 0.5
"""Launches that took so much of what one must have taken are tried with it."""

SCHEMA = 2

APART = 0
"""The place of a cut everywhere."""


class Measured(duel.Measured, Protocol):
    """What a program must have to be tried (see `runtime.program.Program`)."""

    @property
    def trace(self) -> TraceShape: ...
    @property
    def plan(self) -> Plan: ...


Program = TypeVar("Program", bound=Measured)


class Choice(NamedTuple):
    """What a trial found: seconds of both sides, and how many calls come before the cut (APART: a
    sweep's loops, or a loop's calls, are all apart).
    """

    place: int
    fused: float
    cut: float

    @property
    def cuts(self) -> bool:
        """Whether the group should be cut."""
        return self.cut <= MARGIN * self.fused


def doubts(program: Measured) -> list[Calls]:
    """The launches of a program that a trial may cut."""
    if not SETTINGS.arbitrate or SETTINGS.verify or left_out("autotune"):
        return []
    trace = program.trace
    return [
        launch.calls
        for launch in program.launches
        if len(launch.calls) > 1
        and not surely_cheaper(trace, launch.calls, NOW.running.long)
        and sum(group_cost(trace, part) for part in parts_of(program.plan, launch.calls))
        >= NOW.running.long
        and all(takes_turns(trace.calls[n].workunit) for n in launch.calls)
    ]


class Referee(Generic[Program]):
    """Sees to the trials of one trace, one at a time.

    open: the launches that may still be in doubt. make: the program of the trace with another plan;
    raises PyFuserError if there is none. begin: compiles it while others run.
    """

    __slots__ = (
        "_begin",
        "_duel",
        "_make",
        "_pending",
        "_places",
        "_plan",
        "_runs",
        "_watched",
        "_worth",
        "open",
    )

    def __init__(
        self, groups: list[Calls], make: Callable[[Plan], Program], begin: Callable[[Plan], Ahead]
    ) -> None:
        self.open = groups
        self._make = make
        self._begin = begin
        self._pending = Pending()
        self._plan: Plan | None = None  # what is tried
        self._runs = 0
        self._watched: list[Launch] = []
        self._worth: dict[Calls, float] = {}
        self._duel: Duel[Program] | None = None
        self._places: dict[Calls, int] = {}  # the cuts that it is about

    def after(self, program: Program) -> Program:
        """The program that the next flush of the trace runs, after this one ran."""
        if self._duel is not None:
            following = self._duel.add(program, latest(program))
            return self._over(self._duel) if following is None else following
        if self._pending.is_begun:
            return program if self._pending.is_busy else self._against(program)
        self._runs += 1
        if self._runs < STEADY:
            return program
        if self._runs == STEADY:
            self._watched = [la for la in program.launches if la.calls in self.open]
        return self._doubt(program) if any(map(self._is_due, self._watched)) else program

    def wait(self, program: Program) -> int:
        """How many flushes may pass before `after` has something to decide."""
        if self._duel is not None or self._runs < STEADY:
            return 0
        if self._pending.is_begun:
            return looks(program.launches)
        return min(
            [flushes_until(self._worth_of(la), (la,)) for la in self._watched],
            default=NOW.running.most_flushes,
        )

    def _worth_of(self, launch: Launch) -> float:
        return self._worth.get(launch.calls, NOW.running.soon)

    def _is_due(self, launch: Launch, share: float = 1.0) -> bool:
        return spent(launch) >= share * self._worth_of(launch)

    def _doubt(self, program: Program) -> Program:
        """Try all that are due, and what nearly is, at a time."""
        plan, places = program.plan, {}
        for launch in [la for la in self._watched if self._is_due(la, NEARLY)]:
            place, missing = doubtful_cut(program, launch), 0.0
            if place is not None:
                try:
                    parts = cut_into(program.plan, launch.calls, place)
                    missing = NOW.running.trial_kernel * missing_kernels(program.trace, parts)
                except PyFuserError:
                    place = None
            if place is None:
                self._close([launch.calls])
            elif spent(launch) < missing:
                self._worth[launch.calls] = missing
            else:
                places[launch.calls] = place
                plan = cut_plan(plan, launch.calls, place)
        if not places:
            return program
        self._places, self._plan = places, plan
        return self._against(program)

    def _against(self, program: Program) -> Program:
        """Let another program take turns with this one, as the next, once it is compiled."""
        plan = self._plan
        assert plan is not None
        try:
            if not self._pending.has(lambda: self._begin(plan)):
                return program
            self._duel = Duel((program, self._make(plan)), list(self._places))
        except PyFuserError:
            self._close(self._places)
            return program
        return self._duel.programs[1]

    def _over(self, ended: Duel[Program]) -> Program:
        fused, cut = ended.programs
        plan, lost = fused.plan, ended.lost()
        for calls, place in self._places.items():
            choice = Choice(place, ended.taken(0, calls), ended.taken(1, calls))
            with contextlib.suppress(PyFuserError, OSError):
                remember(fused, calls, choice)
            if calls in lost:
                plan = cut_plan(plan, calls, place)
        self._duel = None
        self._close(self._places)
        if len(lost) in (0, len(self._places)):
            return cut if lost else fused
        try:
            return self._make(plan)
        except PyFuserError:
            return fused

    def _close(self, groups: Collection[Calls]) -> None:
        self.open = [calls for calls in self.open if calls not in groups]
        self._runs = STEADY - 1  # the launches of another program are to be watched


# --------------------------------------------------------------------------- cuts


def doubtful_cut(program: Measured, launch: Launch) -> int | None:
    """Where to try a cut of a launch; None if nothing speaks for one."""
    calls, trace = launch.calls, program.trace
    group = any(group.calls == calls for group in program.plan.groups)
    if group:
        place, gain = best_cut(trace, calls)
        if gain <= DOUBT:
            return place
    apart = sum(group_cost(trace, part) for part in parts_of(program.plan, calls))
    return APART if launch.timing.mean > apart else None


def cut_into(plan: Plan, calls: Calls, place: int) -> list[Calls]:
    """What a launch becomes by a cut."""
    return parts_of(plan, calls) if place == APART else [calls[:place], calls[place:]]


def missing_kernels(trace: TraceShape, parts: Sequence[Calls]) -> int:
    """How many kernels would have to be compiled to run groups of calls."""
    from pyfuser.pipeline import kernel_of

    shapes = group_shapes(trace, parts)
    return native.missing([ENGINE.final(kernel_of(shape)) for shape in dict.fromkeys(shapes)])


def parts_of(plan: Plan, calls: Calls) -> list[Calls]:
    """What a launch consists of: a sweep of loops, a loop of calls."""
    for sweep in plan.sweeps:
        if _calls_of(plan, sweep) == calls:
            return [plan.groups[place].calls for place in sweep.groups]
    return [(call,) for call in calls]


def best_cut(trace: TraceShape, calls: Calls) -> tuple[int, float]:
    """Where to cut a group in two for least modelled cost, and what fusing gains over that."""
    fused = group_cost(trace, calls)
    working = [
        n
        for n, call in enumerate(calls)
        if any(isinstance(a, RegionShape) for a in trace.calls[call].arguments)
    ]
    if len(working) < 2:
        return 1, inf  # nothing to cut: the others have vanished (see `plan.rewrites.recompute`)
    costs = [
        (group_cost(trace, calls[:place]) + group_cost(trace, calls[place:]), place)
        for place in working[1:]
    ]
    cost, place = min(costs)
    return place, (cost - fused) / fused


def cut_plan(plan: Plan, calls: Calls, place: int, why: str = "measured") -> Plan:
    """The plan with a launch cut in two, or all apart.

    Calls of a group are in an order that respects their dependences, and no path of dependences
    leaves a group and comes back, so the parts may run one after the other where the group did.
    So may the loops of a sweep: that is what they were before they became one.
    """
    at = next((n for n, group in enumerate(plan.groups) if group.calls == calls), None)
    if at is None:
        return _without_sweep(plan, calls, why)
    cuts = [place] if place != APART else range(1, len(calls))
    ends = [*cuts, len(calls)]
    parts = [Group(calls[b:e]) for b, e in zip([0, *cuts], ends, strict=True)]
    apart = [Rejection(calls[n - 1], calls[n], why) for n in cuts]
    more = len(parts) - 1
    return replace(
        plan,
        groups=(*plan.groups[:at], *parts, *plan.groups[at + 1 :]),
        rejections=(*plan.rejections, *apart),
        sweeps=tuple(
            replace(sweep, groups=tuple(_moved(sweep.groups, at, more))) for sweep in plan.sweeps
        ),
    )


def _without_sweep(plan: Plan, calls: Calls, why: str) -> Plan:
    """The plan whose sweep of these calls is none."""
    gone = next(s for s in plan.sweeps if _calls_of(plan, s) == calls)
    kept = tuple(sweep for sweep in plan.sweeps if sweep is not gone)
    first, last = plan.groups[gone.groups[0]].calls, plan.groups[gone.groups[-1]].calls
    return replace(
        plan, sweeps=kept, rejections=(*plan.rejections, Rejection(first[0], last[-1], why))
    )


def _calls_of(plan: Plan, sweep: Sweep) -> Calls:
    return tuple(call for place in sweep.groups for call in plan.groups[place].calls)


# law
def _moved(places: Sequence[int], at: int, more: int) -> Iterator[int]:
    return (place + more * (place > at) for place in places)


def flushes_until(worth: float, launches: Sequence[Launch]) -> int:
    """In how many flushes launches will have taken `worth` seconds in all, about."""
    missing = worth - sum(map(spent, launches))
    each = sum(launch.timing.mean for launch in launches)
    return int(min(max(missing, 0.0), NOW.running.most_flushes * each) / each) if each > 0.0 else 0


def looks(launches: Sequence[Launch]) -> int:
    """How many flushes may pass before it is asked again whether something is compiled."""
    return flushes_until(sum(map(spent, launches)) + NOW.running.soon, launches)


def spent(launch: Launch) -> float:
    """What all runs of a launch took."""
    return launch.timing.runs * launch.timing.mean


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


# law: not None
def parsed(text: bytes, calls: int) -> Choice | None:
    """The choice in a file, for a group of so many calls; None if it is broken."""
    try:
        schema, place, fused, cut = ast.literal_eval(text.decode())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    right = (
        (type(place), type(fused), type(cut)) == (int, float, float)
        and schema == SCHEMA
        and APART <= place < calls
        and fused > 0.0
        and cut > 0.0
    )
    return Choice(place, fused, cut) if right else None
