"""What a rewrite of a trace is: calls that may become others, so that more of them fuse.

A rewrite makes of some calls other ones with the same results, for which the law of fusion answers
as for any others. It is one file under plan/rewrites/ that has, in this order, its law (which calls
*may* become what), its candidates (which had better *try*), what it makes of a call, and the note
from which all who run or explain a plan learn what was done. `pipeline.TRACE_REWRITES` lists them,
and `plan.search` decides which are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeAlias

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.partition import with_sweeps
from pyfuser.plan.plan import Note, Plan
from pyfuser.trace.shape import CallShape, TraceShape

UNSURE = 0.1
"""What must be saved, as a part of the cost, by a rewrite after which loops do something else: the
model does not know how they vectorise, or how their arithmetic overlaps memory."""

CHEAPER = 0.0
"""By one after which loops do the same."""

EQUAL = -0.01
"""By one whose loops are better than the model knows: costs that differ by less are equal."""

Planner: TypeAlias = Callable[[TraceShape, Capabilities], tuple[DependenceGraph, Plan]]
"""Makes the groups and sweeps of a trace that is not to be rewritten (see `plan.plan_cache`)."""


class Option:
    """A trace and, once somebody looks at it, its plan. notes: how it became what it is."""

    def __init__(
        self,
        trace: TraceShape,
        notes: tuple[Note, ...],
        capabilities: Capabilities,
        planner: Planner,
    ) -> None:
        self.trace = trace
        self.notes = notes
        self.capabilities = capabilities
        self._planner = planner

    def with_changes(self, changes: Changes) -> Option:
        """The option with other calls."""
        trace = self.trace.with_calls({n: change.call for n, change in changes.items()})
        notes = (*self.notes, *(changes[n].note for n in sorted(changes)))
        return Option(trace, notes, self.capabilities, self._planner)

    def with_loops_of(self, other: Option) -> Option:
        """The option with the loops of another, which it may have; some are sweeps now."""
        found = other.graph, with_sweeps(self.trace, other.plan, self.capabilities)
        return Option(self.trace, self.notes, self.capabilities, lambda *_: found)

    @cached_property
    def _planned(self) -> tuple[DependenceGraph, Plan]:
        return self._planner(self.trace, self.capabilities)

    @property
    def graph(self) -> DependenceGraph:
        """The dependences of the trace."""
        return self._planned[0]

    @property
    def plan(self) -> Plan:
        """The plan of the trace, without the notes of rewrites."""
        return self._planned[1]


class Change(NamedTuple):
    """What a call becomes, and what is to be said of it."""

    call: CallShape
    note: Note


Changes: TypeAlias = Mapping[int, Change]
"""By the places of the calls that change."""


def all_used(given: TraceShape, made: Option, changes: Changes) -> Changes:
    """Of a rewrite that never takes anything back."""
    return changes


def no_work(given: TraceShape, changes: Changes) -> float:
    """Of a rewrite after which calls do what they did."""
    return 0.0


class Rewrite(NamedTuple):
    """A rewrite of a trace.

    candidates: the calls of a trace that should become others, which they may. The best option that
    is known is that trace, or was made of it.
    gain: what of the cost must be saved, as a part of it. None: the changes are better whatever
    else is done, and are made before anything is planned.
    used: of these changes, or less of the same, what was of use to the loops that were planned. If
    that is not all, it is planned in turn, anew if `regroups` is set, else with the same loops.
    work: seconds that the changed calls take more, which the model does not know.
    renews: whether it begins with the trace as it was given, and all rewrites before it in the list
    are tried again on what it makes. Else it goes on from the best option.
    """

    name: str
    what: str
    candidates: Callable[[TraceShape, Option], Changes]
    gain: float | None
    used: Callable[[TraceShape, Option, Changes], Changes] = all_used
    regroups: bool = True
    work: Callable[[TraceShape, Changes], float] = no_work
    renews: bool = False
