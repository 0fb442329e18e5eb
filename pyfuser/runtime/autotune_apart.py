"""Measured arbitration within few runs: launches that arithmetic decides on, against their calls.

The model knows bytes. A trace that takes longer fused than the model gives its calls apart, or
nearly as long, is bound by something else, such as arithmetic that lost its vectors, and little is
left that fusing could gain: it may well lose. Such a trace runs fused and unfused in turns, ROUNDS
times each, as soon as it has run for SOON seconds, and for as long as it takes to compile what it
needs. Each launch that was slower than its calls by MARGIN is taken apart, with its calls as they
were given: `autotune` can but cut what rewrites have made. What lost is remembered on disk, as
there.

Rewrites that change one call for the sake of another are taken back together, or not at all.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine.cache import write_own
from pyfuser.plan.cost_model import group_cost
from pyfuser.plan.plan import Group, Plan, Rejection
from pyfuser.runtime.autotune import (
    LONG,
    MARGIN,
    SOON,
    Calls,
    flushes_until,
    missing_kernels,
)
from pyfuser.runtime.budget import KERNEL
from pyfuser.runtime.program import Judge, Program
from pyfuser.runtime.turns import takes_turns
from pyfuser.support.errors import PyFuserError
from pyfuser.support.passes import left_out
from pyfuser.support.private_files import read_own
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.shape import TraceShape
from pyfuser.tuning.host import identity

SUSPECT = 0.3
"""Of what the model gives calls apart: of 69 programs, on one and two threads, none that took less
lost by being fused."""

STEADY = 3
"""Flushes of a trace before it is looked at: memory is warm, and it is a loop."""

ROUNDS = 5
"""Runs of each side, of which the first pays for new memory."""

HOPELESS = 2.0
"""Calls that take so many times as long as what is fused, in the first FEWEST runs, get no more."""

FEWEST = 3

SCHEMA = 1

Make = Callable[[TraceShape, DependenceGraph, Plan], Program]


class Apart:
    """Sees to the trial of one trace, before other referees do.

    open: not empty, until it is over. make: see `runtime.flush.compiled`, for the trace as it was
    given. others: the referee that is asked then.
    """

    def __init__(self, make: Make, others: Judge | None) -> None:
        self.open: list[str] = ["apart"]
        self._make = make
        self._others = others
        self._runs = 0
        self._worth = SOON
        self._other: Program | None = None
        self._fused: Program | None = None
        self._times: tuple[list[list[float]], list[list[float]]] = ([], [])

    def after(self, program: Program) -> Program:
        """The program that the next flush of the trace runs, after this one ran."""
        if self._fused is not None:
            return self._judged(program)
        self._runs += 1
        spent = sum(launch.timing.runs * launch.timing.mean for launch in program.launches)
        if self._runs < STEADY:
            return program
        slow = suspects(program)
        if not slow:
            return self._over(program)
        if spent < self._worth:
            return program
        with contextlib.suppress(PyFuserError):
            alone = [(n,) for calls in slow for n in calls]
            missing = KERNEL * missing_kernels(program.given, alone)
            if spent < missing:
                self._worth = missing
                return program
            other = self._make(*taken_apart(program, slow))
            self._fused, self._other = program, replace(other, referee=program.referee)
            return self._other
        return self._over(program)

    def wait(self, program: Program) -> int:
        """As `autotune.Referee.wait`."""
        if self._fused is not None or self._runs < STEADY:
            return 0
        return flushes_until(self._worth, program.launches)

    def _judged(self, program: Program) -> Program:
        fused, other = self._fused, self._other
        assert fused is not None and other is not None
        self._times[program is other].append(_seconds(program))
        rounds = min(map(len, self._times))
        if rounds == ROUNDS or (rounds == FEWEST and self._hopeless()):
            slower = self.slower(fused, other)
            if slower:
                with contextlib.suppress(PyFuserError, OSError):
                    remember(fused, slower)
            with contextlib.suppress(PyFuserError):
                fused = self._without(fused, slower)
            return self._over(fused)
        return other if len(self._times[1]) < len(self._times[0]) else fused

    def _hopeless(self) -> bool:
        fused, other = (min(map(sum, times[1:])) for times in self._times)
        return other > HOPELESS * fused

    def slower(self, fused: Program, other: Program) -> list[Calls]:
        """The launches, by their calls, that took longer than these apart."""
        first, second = ([min(t) for t in zip(*times[1:], strict=True)] for times in self._times)
        alone = {la.calls: seconds for la, seconds in zip(other.launches, second, strict=True)}
        if not _separable(fused.plan):
            return [la.calls for la in fused.launches] if sum(second) <= MARGIN * sum(first) else []
        return [
            la.calls
            for la, seconds in zip(fused.launches, first, strict=True)
            if la.calls not in alone and sum(alone[(n,)] for n in la.calls) <= MARGIN * seconds
        ]

    def _without(self, fused: Program, slower: Sequence[Calls]) -> Program:
        return without(fused, slower, self._make)

    def _over(self, program: Program) -> Program:
        self.open.clear()
        same = self._fused is None or program is self._fused
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
        and la.timing.mean > max(LONG, SUSPECT * unfused_cost(program.given, la.calls))
    ]
    return slow if _separable(program.plan) or not slow else [la.calls for la in program.launches]


def _seconds(program: Program) -> list[float]:
    """What the latest launches of a program took."""
    return [launch.timing.latest for launch in program.launches]


def _separable(plan: Plan) -> bool:
    """Whether each launch may be taken apart by itself."""
    return all(note.alone for note in plan.notes)


# law
def taken_apart(
    program: Program, slower: Iterable[Calls]
) -> tuple[TraceShape, DependenceGraph, Plan]:
    """The trace and the plan in which some launches are calls as they were given.

    All launches, unless what was done to each call was done for its own launch alone. Calls of a
    launch are in an order that respects their dependences, loop by loop and in a loop ascending.
    """
    plan, given = program.plan, program.given
    chosen = {n for calls in slower for n in calls}
    if chosen >= {n for group in plan.groups for n in group.calls}:
        groups = tuple(Group((n,)) for n in range(len(given.calls)))
        apart = tuple(Rejection(n, n + 1, "measured") for n in range(min(len(groups) - 1, 16)))
        return given, DependenceGraph(len(groups), ()), Plan(groups, apart)
    places: dict[int, int] = {}
    groups, rejections = (), list(plan.rejections)
    for place, group in enumerate(plan.groups):
        places[place] = len(groups)
        if chosen.issuperset(group.calls):
            groups += tuple(Group((n,)) for n in group.calls)
            pairs = zip(group.calls, group.calls[1:], strict=False)
            rejections += [Rejection(a, b, "measured") for a, b in pairs]
        else:
            groups += (group,)
    kept = [s for s in plan.sweeps if chosen.isdisjoint(plan.groups[s.groups[0]].calls)]
    made = replace(
        plan,
        groups=groups,
        rejections=tuple(rejections),
        sweeps=tuple(replace(s, groups=tuple(places[p] for p in s.groups)) for s in kept),
        notes=tuple(note for note in plan.notes if note.call not in chosen),
    )
    trace = program.trace.with_calls({n: given.calls[n] for n in chosen})
    return trace, program.graph, made


def without(program: Program, slower: Sequence[Calls], make: Make) -> Program:
    """The program with some launches taken apart. Raises PyFuserError."""
    return make(*taken_apart(program, slower)) if slower else program


# --------------------------------------------------------------------------- what is remembered


def settled(program: Program) -> list[Calls] | None:
    """What an earlier trial, of this process or another, found; None if there was none."""
    launches = [launch.calls for launch in program.launches]
    places = parsed(read_own(choice_file(program)) or b"", len(launches))
    return None if places is None else [launches[n] for n in places]


def remember(program: Program, slower: Sequence[Calls]) -> None:
    """Keep what a trial found. Raises OSError or CacheError if that cannot be."""
    places = [n for n, launch in enumerate(program.launches) if launch.calls in slower]
    write_own(choice_file(program), f"{(SCHEMA, places)}\n")


def choice_file(program: Program) -> Path:
    """Where the choice for a program is: named by its code, its sizes and the machine."""
    sizes = [n.bit_length() for call in program.given.calls for n in call.space.shape]
    sources = "\0".join(launch.launchable.source for launch in program.launches)
    text = f"apart {SCHEMA}\0{identity()}\0{sizes}\0{sources}"
    return SETTINGS.cache_dir / "choices" / hashlib.sha256(text.encode()).hexdigest()[:32]


# law: not None
def parsed(text: bytes, launches: int) -> list[int] | None:
    """The places in a file, of a program of so many launches; None if it is broken."""
    try:
        schema, places = ast.literal_eval(text.decode())
        right = schema == SCHEMA and all(type(n) is int and 0 <= n < launches for n in places)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return list(places) if right and type(places) is list else None
