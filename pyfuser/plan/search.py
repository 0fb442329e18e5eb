"""The plan of a trace: rewrites propose what else calls could be, and what costs less is kept.

    best = the trace as it is, but for what is better whatever else is done
    for each other rewrite, in the order of the list:
        the calls that it proposes are put in their place, and the trace is planned
        those that were of no use are taken back, and the trace is planned again
        the result is the best from now on if it is cheaper by what the rewrite has to gain

A greedy search, over few options: in nearly all programs no rewrite, or one, has something to
propose. Costs are those of the launches in which two plans differ (see `plan.cost_model`), as a
gain in one corner of a long trace is none in proportion to all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.cost_model import CostModel, cost_model
from pyfuser.plan.plan import Plan
from pyfuser.plan.plan_cache import plan_of
from pyfuser.plan.rewrite import Option, Planner, Rewrite
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import TraceShape
from pyfuser.tuning.host import Machine

ROUNDS = 3
"""How often what was of no use is taken back, and the rest planned anew."""


class Planned(NamedTuple):
    """A trace as it was planned, its dependences (or those of larger sizes) and its plan."""

    trace: TraceShape
    graph: DependenceGraph
    plan: Plan


def search(
    trace: TraceShape,
    rewrites: Sequence[Rewrite],
    capabilities: Capabilities = ALL,
    planner: Planner = plan_of,
) -> Planned:
    """The plan of a trace, with the trace as planned: rewrites may have changed calls."""
    usable = [
        each
        for each in rewrites
        if each.name not in capabilities.without and not left_out(each.name)
    ]
    given = Option(trace, (), capabilities, planner)
    for rewrite in usable:
        if rewrite.gain is None:
            changes = rewrite.candidates(given.trace, given)
            given = given.with_changes(changes) if changes else given
    best = _best(given, [rewrite for rewrite in usable if rewrite.gain is not None])
    plan = replace(best.plan, notes=(*best.notes, *best.plan.notes)) if best.notes else best.plan
    return Planned(best.trace, best.graph, plan)


def _best(given: Option, rewrites: Sequence[Rewrite]) -> Option:
    """The best option that rewrites make of one."""
    best = given
    for number, rewrite in enumerate(rewrites):
        start = given if rewrite.renews else best
        changes = rewrite.candidates(start.trace, best)
        for _ in range(ROUNDS):
            if not changes:
                break
            made = start.with_changes(changes)
            if rewrite.renews:
                made = _best(made, rewrites[:number])
            used = rewrite.used(start.trace, made, changes)
            if used and used != changes and not rewrite.regroups:
                made, changes = start.with_changes(used).with_loops_of(made), used
            if used == changes:
                work = rewrite.work(start.trace, changes)
                best = made if is_cheaper(rewrite, best, made, work) else best
                break
            changes = used
    return best


# --------------------------------------------------------------------------- costs


def is_cheaper(rewrite: Rewrite, best: Option, made: Option, work: float) -> bool:
    """Whether an option saves what its rewrite has to, of the costs in which it differs.

    work: seconds that it takes more, beside what the model knows.
    """
    old, new = compared(best, made)
    return new + work <= (1.0 - (rewrite.gain or 0.0)) * old


def compared(first: Option, second: Option) -> tuple[float, float]:
    """The seconds of two plans; what both have in common aside."""
    old, new = (
        {n: _seconds(cost_model(each.trace), each.plan, [n]) for n in _launches(each.plan)}
        for each in (first, second)
    )
    same = dict(old.items() & new.items())
    before, after = (sum(s for n, s in found.items() if n not in same) for found in (old, new))
    return before, after


def seconds(trace: TraceShape, plan: Plan, machine: Machine | None = None) -> float:
    """What the model says of all launches of a plan; on another machine, if one is given."""
    return _seconds(cost_model(trace, machine), plan, _launches(plan))


def _launches(plan: Plan) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(plan.groups[n].calls for n in places) for places in plan.launches()]


def _seconds(
    model: CostModel, plan: Plan, launches: Iterable[tuple[tuple[int, ...], ...]]
) -> float:
    rolling = {
        tuple(plan.groups[n].calls for n in sweep.groups): frozenset(
            view.cluster for view in sweep.rolling
        )
        for sweep in plan.sweeps
    }
    return sum(
        model.cost(loops[0])
        if len(loops) == 1
        else model.sweep_cost([n for calls in loops for n in calls], rolling[loops])
        for loops in launches
    )
