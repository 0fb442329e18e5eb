"""Measured arbitration within few runs: launches that arithmetic decides on, against their calls.

The model knows bytes. A trace that takes longer fused than the model gives its calls apart, or
nearly as long, is bound by something else, such as arithmetic that lost its vectors, and little is
left that fusing could gain: it may well lose. Such a trace runs fused and unfused in turns, ROUNDS
times each, as soon as it has run long enough (`soon`), and for as long as it takes to compile what
it needs. Each launch that was slower than its calls by MARGIN is taken apart, with its calls as
they were given: `autotune` can but cut what rewrites have made. Often one of them is to blame, and
the others gain: so some are then tried apart and the others fused. What was found is remembered on
disk, as there; that nothing was is asked again by a process that has run for long (`again`), as
another program may have disturbed the trial.

Rewrites that change one call for the sake of another are taken back together, or not at all.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine.ahead import Ahead, Pending
from pyfuser.engine.cache import write_own
from pyfuser.plan.cost_model import group_cost
from pyfuser.plan.plan import Group, Plan, Rejection
from pyfuser.runtime.autotune import (
    flushes_until,
    looks,
    missing_kernels,
    spent,
)
from pyfuser.runtime.duel import Calls, Duel, latest
from pyfuser.runtime.partial import Partial, Parts, cut_before
from pyfuser.runtime.program import Judge, Program
from pyfuser.runtime.session import SESSION
from pyfuser.runtime.turns import takes_turns
from pyfuser.support.errors import PyFuserError
from pyfuser.support.passes import left_out
from pyfuser.support.private_files import read_own
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.shape import TraceShape
from pyfuser.tuning.host import identity
from pyfuser.tuning.thresholds import NOW

SUSPECT = 0.3
"""Of what the model gives calls apart: of 69 programs, on one and two threads, none that took less
lost by being fused."""

STEADY = 3
"""Flushes of a trace before it is looked at: memory is warm, and it is a loop."""

SCHEMA = 2


class Make(Protocol):
    """Makes the programs of a trace. Raises PyFuserError."""

    def __call__(self, trace: TraceShape, graph: DependenceGraph, plan: Plan, /) -> Program:
        """The program of a plan."""

    def begin(self, trace: TraceShape, graph: DependenceGraph, plan: Plan, /) -> Ahead:
        """Compile what it lacks while others run."""


class Apart:
    """Sees to the trials of one trace, before other referees do.

    First all suspects against their calls; then those that lost, or nearly did, taken apart in part
    (see `runtime.partial`) against the best so far, SPLITS times.

    open: not empty, until it is over. make: see `runtime.flush.compiled`, for the trace as it was
    given. others: the referee that is asked then. worth: seconds that a program takes first.
    """

    def __init__(self, make: Make, others: Judge | None, worth: float) -> None:
        self.open: list[str] = ["apart"]
        self._make = make
        self._others = others
        self._runs = 0
        self._worth = worth
        self._first: Program | None = None  # all fused
        self._duel: Duel[Program] | None = None
        self._partial: Partial | None = None
        self._parts: Parts = {}  # what is best so far
        self._tried: Parts = {}  # what else is tried
        self._ran = 0.0  # seconds, by programs that do not run any more
        self._pending = Pending()

    def after(self, program: Program) -> Program:
        """The program that the next flush of the trace runs, after this one ran."""
        if self._duel is not None:
            following = self._duel.add(program, latest(program))
            return self._judged(self._duel) if following is None else following
        if self._pending.is_begun:
            return self._go_on(program)
        if self._partial is not None:
            with contextlib.suppress(PyFuserError):
                return self._in_part(program) or program
            return self._over(program)
        self._runs += 1
        if self._runs < STEADY:
            return program
        self._tried = {calls: tuple((n,) for n in calls) for calls in suspects(program)}
        if not self._tried:
            return self._over(program)
        taken = _taken(program)
        if taken < self._worth:
            return program
        with contextlib.suppress(PyFuserError):
            alone = [part for parts in self._tried.values() for part in parts]
            missing = NOW.running.trial_kernel * missing_kernels(program.given, alone)
            if taken < missing:
                self._worth = missing
                return program
            self._first = program
            return self._against(program)
        return self._over(program)

    def wait(self, program: Program) -> int:
        """As `autotune.Referee.wait`."""
        if self._duel is not None or self._runs < STEADY:
            return 0
        if self._pending.is_begun:
            return looks(program.launches)
        return (
            flushes_until(self._worth, program.launches)
            if self._partial is None
            else NOW.running.later
        )

    @property
    def idle(self) -> bool:
        """Whether a trial waits until it is paid for."""
        return self._partial is not None and self._duel is None

    def _go_on(self, program: Program) -> Program:
        """What runs while a trial is compiled, or once that failed."""
        if self._pending.is_busy:
            return program
        with contextlib.suppress(PyFuserError):
            return self._against(program)
        return self._over(program)

    def _against(self, best: Program) -> Program:
        """Let another program take turns with the best so far, as the next one. Raises.

        The best runs on until the other is compiled.
        """
        assert self._first is not None
        planned = taken_apart(self._first, {**self._parts, **self._tried})
        if not self._pending.has(lambda: self._make.begin(*planned)):
            return best
        other = replace(self._make(*planned), referee=self)
        calls = tuple(range(len(best.given.calls)))
        self._duel = Duel((best, other), list(self._tried) if _separable(best.plan) else [calls])
        return other

    def _in_part(self, best: Program) -> Program | None:
        """What takes turns with the best so far, if the program ran for long enough; raises."""
        assert self._partial is not None
        ran = self._ran + sum(map(_taken, SESSION.programs.values()))
        paid = SESSION.budget.pays_trial(NOW.running.trial_kernel * self._partial.missing, ran)
        return self._against(best) if paid else None

    def _judged(self, duel: Duel[Program]) -> Program:
        """What runs after a trial: for good, or until the next one."""
        first, best = self._first, duel.programs[0]
        assert first is not None
        self._duel = None
        with contextlib.suppress(PyFuserError):
            if self._partial is not None:
                self._parts = {**self._parts, **self._partial.better(self._parts, duel)}
            elif not _separable(first.plan):
                self._parts = self._tried if duel.lost() else {}
            else:
                self._parts = {calls: self._tried[calls] for calls in duel.lost()}
                self._partial = Partial(first, duel)
            self._ran += sum(map(_taken, duel.programs))
            best = self._made(self._parts)
            self._ran -= _taken(best)
            self._tried = self._partial.following(self._parts) if self._partial else {}
            following = self._in_part(best) if self._tried else None
            if following is not None or (self._tried and self._parts):
                return following or best
        with contextlib.suppress(PyFuserError, OSError):
            remember(first, self._parts)
        return self._over(best)

    def _made(self, parts: Parts) -> Program:
        first = self._first
        assert first is not None
        return replace(without(first, parts, self._make), referee=self) if parts else first

    def _over(self, program: Program) -> Program:
        self.open.clear()
        same = self._first is None or program is self._first
        return replace(program, referee=self._others if same else None)


def doubted(program: Program) -> bool:
    """Whether a program may be tried against its calls."""
    if not SETTINGS.arbitrate or SETTINGS.verify or left_out("autotune"):
        return False
    return any(len(launch.calls) > 1 for launch in program.launches) and all(
        takes_turns(call.workunit) for call in program.given.calls
    )


def unfused_cost(trace: TraceShape, calls: Iterable[int]) -> float:
    """Seconds, modelled, of calls one by one."""
    return sum(group_cost(trace, (n,)) for n in calls)


def suspects(program: Program) -> list[Calls]:
    """The launches that take long, by what the model gives their calls apart.

    Where they cannot be taken apart by themselves, all.
    """
    slow = [
        la.calls
        for la in program.launches
        if len(la.calls) > 1
        and la.timing.mean > max(NOW.running.long, SUSPECT * unfused_cost(program.given, la.calls))
    ]
    return slow if _separable(program.plan) or not slow else [la.calls for la in program.launches]


def _taken(program: Program) -> float:
    return sum(map(spent, program.launches))


def _separable(plan: Plan) -> bool:
    """Whether each launch may be taken apart by itself."""
    return all(note.alone for note in plan.notes)


# law
def taken_apart(program: Program, parts: Parts) -> tuple[TraceShape, DependenceGraph, Plan]:
    """The trace and the plan in which some launches are in parts, of one call as it was given.

    Launches, unless what was done to each call was done for its own launch alone, are all apart.
    Calls of a launch are in an order that respects their dependences, loop by loop and in a loop
    ascending, and are cut where a part begins (see `autotune.cut_plan`).
    """
    plan, given = program.plan, program.given
    chosen = {n for calls in parts for n in calls}
    starts = {part[0] for each in parts.values() for part in each}
    if starts >= {n for group in plan.groups for n in group.calls}:
        groups = tuple(Group((n,)) for n in range(len(given.calls)))
        apart = tuple(Rejection(n, n + 1, "measured") for n in range(min(len(groups) - 1, 16)))
        return given, DependenceGraph(len(groups), ()), Plan(groups, apart)
    places: dict[int, int] = {}
    groups, rejections = (), list(plan.rejections)
    alone: set[int] = set()
    for place, group in enumerate(plan.groups):
        places[place] = len(groups)
        if chosen.isdisjoint(group.calls):
            groups += (group,)
            continue
        pieces = cut_before(group.calls, starts)
        groups += tuple(map(Group, pieces))
        alone |= {piece[0] for piece in pieces if len(piece) == 1}
        rejections += [Rejection(a[-1], b[0], "measured") for a, b in pairwise(pieces)]
    kept = [s for s in plan.sweeps if chosen.isdisjoint(plan.groups[s.groups[0]].calls)]
    made = replace(
        plan,
        groups=groups,
        rejections=tuple(rejections),
        sweeps=tuple(replace(s, groups=tuple(places[p] for p in s.groups)) for s in kept),
        notes=tuple(note for note in plan.notes if note.call not in alone),
    )
    trace = program.trace.with_calls({n: given.calls[n] for n in alone})
    return trace, program.graph, made


def without(program: Program, parts: Parts, make: Make) -> Program:
    """The program with some launches taken apart. Raises PyFuserError."""
    return make(*taken_apart(program, parts)) if parts else program


# --------------------------------------------------------------------------- what is remembered


def settled(program: Program) -> Parts | None:
    """What an earlier trial, of this process or another, found; None if there was none."""
    launches = [launch.calls for launch in program.launches]
    found = parsed(read_own(choice_file(program)) or b"", [len(calls) for calls in launches])
    if found is None:
        return None
    parts = {launches[n]: cut_before(launches[n], [launches[n][k] for k in at]) for n, at in found}
    whole = all(len(parts.get(calls, ())) == len(calls) for calls in launches)
    return parts if not parts or whole or _separable(program.plan) else None


def remember(program: Program, parts: Parts) -> None:
    """Keep what a trial found. Raises OSError or CacheError if that cannot be."""
    places = []
    for n, launch in enumerate(program.launches):
        starts = [part[0] for part in parts.get(launch.calls, ())]
        if starts:
            places.append((n, [launch.calls.index(call) for call in starts]))
    write_own(choice_file(program), f"{(SCHEMA, places)}\n")


def choice_file(program: Program, kind: str = "apart") -> Path:
    """Where the choice for a program is: named by its code, its sizes and the machine."""
    sizes = [n.bit_length() for call in program.given.calls for n in call.space.shape]
    sources = "\0".join(launch.launchable.source for launch in program.launches)
    text = f"{kind} {SCHEMA}\0{identity()}\0{sizes}\0{sources}"
    return SETTINGS.cache_dir / "choices" / hashlib.sha256(text.encode()).hexdigest()[:32]


# law: not None
def parsed(text: bytes, sizes: Sequence[int]) -> list[tuple[int, list[int]]] | None:
    """The launches, of so many calls, in a file, and where their parts begin; None if broken."""
    try:
        schema, places = ast.literal_eval(text.decode())
        right = (
            schema == SCHEMA
            and type(places) is list
            and all(type(n) is int and 0 <= n < len(sizes) for n, _ in places)
            and all(type(k) is int and 0 <= k < sizes[n] for n, starts in places for k in starts)
        )
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return places if right else None
