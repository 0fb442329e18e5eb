"""Which calls run together: the partition of a trace into groups of least total cost.

Weighted loop fusion is NP-hard (K. Kennedy and K. McKinley, "Maximizing loop parallelism and
improving data locality via loop fusion and distribution", 1993; G. Gao et al., "Collective loop
fusion for array contraction", 1992). Traces fall into short segments that no group can span, and
those are solved exactly; a long one is solved greedily.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.cost_model import cost_model
from pyfuser.plan.fuse_into_scan import join_tails
from pyfuser.plan.legality import Legality, reasons
from pyfuser.plan.plan import Group, Plan, Rejection
from pyfuser.plan.refine_partition import moved
from pyfuser.plan.rounds import MAX_CALLS, cuts_of
from pyfuser.plan.wavefront import search
from pyfuser.support.records import dataclass
from pyfuser.trace.shape import ArgumentShape, RegionShape, TraceShape
from pyfuser.tuning.thresholds import NOW

MAX_VIEWS = 40  # of a kernel, without those that only its own calls use
MAX_SCALARS = 96  # arithmetic takes them from memory; a GPU has room for 4 KiB of arguments
MAX_STEPS = 400  # ... if it does not take more groups than this to try
MAX_CANDIDATES = 8  # groups that the greedy tries for a call
MAX_REJECTIONS = 64
NEARBY = 4  # how far apart two calls may be for a rejection to be of interest


def partition(trace: TraceShape, graph: DependenceGraph, capabilities: Capabilities = ALL) -> Plan:
    """Choose the groups of a trace, in an order that respects its dependences.

    capabilities: of the engine that will run them.
    """
    if len(trace.calls) == 1:
        return Plan((Group((0,)),), ())
    planner = _Planner(trace, graph, capabilities)
    groups = [group for segment in planner.segments() for group in planner.solve(segment)]
    ordered = _ordered(groups, planner.legality.predecessors)
    chosen = tuple(Group(calls) for calls in ordered)
    found, declined = search(trace, chosen, planner.model) if capabilities.sweeps else ((), ())
    plan = Plan(chosen, tuple(_rejections(trace, planner, ordered)), found, declined)
    return join_tails(trace, plan, planner.within_limits)


def with_sweeps(trace: TraceShape, plan: Plan, capabilities: Capabilities) -> Plan:
    """A plan whose groups are those of another one, in its order."""
    if not capabilities.sweeps:
        return replace(plan, sweeps=(), notes=())
    found, declined = search(trace, plan.groups, cost_model(trace))
    return replace(plan, sweeps=found, notes=declined)


class _Planner:
    def __init__(
        self, trace: TraceShape, graph: DependenceGraph, capabilities: Capabilities
    ) -> None:
        self.legality: Legality = reasons(trace, graph)
        self.model = cost_model(trace)
        self.cuts = cuts_of(trace)
        self.max_accumulators = capabilities.accumulators
        self.accumulators = [len(call.workunit.accumulators) for call in trace.calls]
        self.views = [frozenset(filter(_is_view, call.arguments)) for call in trace.calls]
        self.clusters = trace.clusters
        self.users: dict[int, set[int]] = {}
        for place, call in enumerate(trace.calls):
            for argument in call.arguments:
                if isinstance(argument, RegionShape):
                    self.users.setdefault(argument.cluster, set()).add(place)
        self.scalars = [
            sum(1 + a.dtype.is_complex for a in call.arguments if not _is_view(a))
            for call in trace.calls
        ]

    def within_limits(self, calls: tuple[int, ...]) -> bool:
        """Whether a kernel of these calls has a size that is reasonable, and the engine can run.

        One call always has.
        """
        if len(calls) == 1:
            return True
        if len(calls) > MAX_CALLS:
            return False
        if sum(self.accumulators[c] for c in calls) > self.max_accumulators:
            return False
        if sum(self.scalars[c] for c in calls) > MAX_SCALARS:
            return False
        views = frozenset[object]().union(*(self.views[c] for c in calls))
        return len(views) <= MAX_VIEWS or len(self._kept(views, calls)) <= MAX_VIEWS

    def _kept(self, views: frozenset[object], calls: tuple[int, ...]) -> list[RegionShape]:
        """The views whose memory outlives a kernel of these calls, or that others need."""
        inside = set(calls)
        return [
            view
            for view in views
            if isinstance(view, RegionShape)
            and not (self.clusters[view.cluster].temporary and self.users[view.cluster] <= inside)
        ]

    def segments(self) -> Iterator[tuple[int, ...]]:
        """Runs of calls such that no group can hold calls of two runs, or should."""
        compatible = self.legality.compatible
        size = len(compatible)
        end = lowest = size
        for position in reversed(range(size)):
            lowest = min(lowest, (compatible[position] & -compatible[position]).bit_length() - 1)
            if lowest == position or position in self.cuts:
                yield tuple(range(position, end))
                end = lowest = position

    def solve(self, segment: tuple[int, ...]) -> list[tuple[int, ...]]:
        if len(segment) == 1 or self._all_together(segment):
            return [segment]
        if len(segment) <= NOW.tuning.exact_calls:
            exact = _Exact(self, segment).solve()
            if exact is not None:
                return exact
        legality = self.legality
        return moved(
            _greedy(self, segment),
            legality.compatible,
            legality.predecessors,
            self.model,
            self.within_limits,
        )

    def _all_together(self, segment: tuple[int, ...]) -> bool:
        """The common case: everything may share a loop and nothing gets too large."""
        members = _bits(segment)
        if any(members & ~self.legality.compatible[c] for c in segment):
            return False
        _, streams = self.model.traffic(segment)
        if self.model.gathers(segment) or self.model.slowed(segment):
            return len(segment) == 1
        return streams <= self.model.machine.streams and self.within_limits(segment)


# --------------------------------------------------------------------------- exact


class _TooLarge(Exception):
    """The exact search took too many steps."""


class _Exact:
    """Dynamic programming over the down-sets of the dependence order.

    A legal partition is a sequence of groups whose unions are closed under predecessors, so the
    least cost of what follows a down-set depends on nothing but the down-set.
    """

    def __init__(self, planner: _Planner, segment: tuple[int, ...]) -> None:
        self._planner = planner
        self._calls = segment
        place = {call: n for n, call in enumerate(segment)}
        legality = planner.legality
        inside = _bits(segment)
        self._before = [
            _bits(place[p] for p in _members(legality.predecessors[c] & inside)) for c in segment
        ]
        self._compatible = [
            _bits(place[p] for p in _members(legality.compatible[c] & inside)) for c in segment
        ]
        self._costs: dict[int, float | None] = {}
        self._best: dict[int, tuple[float, int]] = {}  # down-set -> (cost of the rest, next group)
        self._steps = 0

    def solve(self) -> list[tuple[int, ...]] | None:
        """The groups of least cost, or None if the search is too large."""
        every = (1 << len(self._calls)) - 1
        try:
            self._rest(0, every)
        except _TooLarge:
            return None
        groups = []
        done = 0
        while done != every:
            group = self._best[done][1]
            groups.append(self._positions(group))
            done |= group
        return groups

    def _positions(self, group: int) -> tuple[int, ...]:
        return tuple(sorted(self._calls[n] for n in _members(group)))

    def _rest(self, done: int, every: int) -> float:
        if done == every:
            return 0.0
        known = self._best.get(done)
        if known is not None:
            return known[0]
        best = (float("inf"), 0)
        for group in self._next_groups(done, 0, 0):
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise _TooLarge
            cost = self._cost(group)
            if cost is not None:
                best = min(best, (cost + self._rest(done | group, every), group))
        self._best[done] = best
        return best[0]

    # law
    def _next_groups(self, done: int, group: int, first: int) -> Iterator[int]:
        """Groups that may run next; members are added in ascending order, closed as they grow."""
        for call in range(first, len(self._calls)):
            if done >> call & 1 or self._before[call] & ~(done | group):
                continue
            if group & ~self._compatible[call]:
                continue
            larger = group | 1 << call
            yield from self._next_groups(done, larger, call + 1)
            yield larger

    def _cost(self, group: int) -> float | None:
        if group not in self._costs:
            calls = self._positions(group)
            fits = self._planner.within_limits(calls)
            self._costs[group] = self._planner.model.cost(calls) if fits else None
        return self._costs[group]


# --------------------------------------------------------------------------- greedy


@dataclass(slots=True)
class _Open:
    """A group that may still grow; `after` are the groups that must run before it."""

    calls: tuple[int, ...]
    members: int
    cost: float
    after: int = 0


def _greedy(planner: _Planner, segment: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Each call in turn joins the group where it saves most, if the order allows it.

    Only the latest groups that could take it are tried.
    """
    groups: list[_Open] = []
    home: dict[int, int] = {}
    inside = _bits(segment)
    for call in segment:
        before = 0
        for other in _members(planner.legality.predecessors[call] & inside):
            number = home[other]
            before |= 1 << number | groups[number].after
        alone = planner.model.cost((call,))
        choice = _best_group(planner, groups, call, before, alone)
        if choice is None:
            home[call] = len(groups)
            groups.append(_Open((call,), 1 << call, alone, before))
            continue
        number, cost = choice
        home[call] = number
        group = groups[number]
        group.calls, group.members, group.cost = (
            (*group.calls, call),
            group.members | 1 << call,
            cost,
        )
        _order_after(groups, number, before)
    return [group.calls for group in groups]


# law
def _best_group(
    planner: _Planner, groups: list[_Open], call: int, before: int, alone: float
) -> tuple[int, float] | None:
    """The group where a call saves most, with the group's new cost."""
    compatible = planner.legality.compatible[call]
    best: tuple[float, int, float] | None = None
    tried = 0
    # A group that must run before another predecessor of the call cannot take it.
    closed = 0
    for number in _members(before):
        closed |= groups[number].after
    for number in reversed(range(len(groups))):
        group = groups[number]
        if group.members & ~compatible or closed >> number & 1:
            continue
        calls = (*group.calls, call)
        if not planner.within_limits(calls):
            continue
        cost = planner.model.cost(calls)
        saved = group.cost + alone - cost
        if saved > 0 and (best is None or saved > best[0]):
            best = saved, number, cost
        tried += 1
        if tried == MAX_CANDIDATES:
            break
    return None if best is None else best[1:]


def _order_after(groups: list[_Open], number: int, before: int) -> None:
    """Note that a group must run after others, and so must those that run after it."""
    new = before & ~(1 << number) & ~groups[number].after
    if not new:
        return
    for other, group in enumerate(groups):
        if other == number or group.after >> number & 1:
            group.after |= new


# --------------------------------------------------------------------------- order, report


# law
def _ordered(groups: list[tuple[int, ...]], predecessors: list[int]) -> list[tuple[int, ...]]:
    """Topological order of the groups, that of their first calls where there is a choice."""
    groups = sorted(groups)
    home = {call: number for number, calls in enumerate(groups) for call in calls}
    followers: list[set[int]] = [set() for _ in groups]
    waiting = [0] * len(groups)
    for call, number in home.items():
        for other in _members(predecessors[call]):
            before = home[other]
            if before != number and number not in followers[before]:
                followers[before].add(number)
                waiting[number] += 1
    ready = [number for number, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    result = []
    while ready:
        number = heapq.heappop(ready)
        result.append(groups[number])
        for follower in followers[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    assert len(result) == len(groups), "the groups depend on each other in a cycle"
    return result


def _rejections(
    trace: TraceShape, planner: _Planner, groups: list[tuple[int, ...]]
) -> Iterator[Rejection]:
    """Why neighbours do not share a kernel; each kind of reason once for a pair of workunits."""
    home = {call: calls for calls in groups for call in calls}
    seen: set[tuple[str | None, ...]] = set()
    for second in range(1, len(trace.calls)):
        for first in range(max(0, second - NEARBY), second):
            if home[first] is home[second]:
                continue
            names = trace.calls[first].workunit.name, trace.calls[second].workunit.name
            if (*names, planner.legality.reason(first, second)) in seen:
                continue
            rejection = planner.legality.may_share_loop(first, second)
            if rejection is None and first == second - 1:
                rejection = _not_chosen(planner, home[first], home[second], first, second)
            if rejection is None or (rejection.dependence is None and first != second - 1):
                continue
            key = (
                trace.calls[rejection.first].workunit.name,
                trace.calls[rejection.second].workunit.name,
                rejection.reason,
            )
            if key in seen:
                continue
            seen.add(key)
            yield rejection
            if len(seen) == MAX_REJECTIONS:
                return


def _not_chosen(
    planner: _Planner, group: tuple[int, ...], other: tuple[int, ...], first: int, second: int
) -> Rejection:
    """Why two calls that may share a loop do not: another pair of their groups, size, or cost."""
    legality, others = planner.legality, _bits(other)
    for a in group:
        if not others & ~legality.compatible[a]:
            continue
        for b in other:
            rejection = legality.may_share_loop(min(a, b), max(a, b))
            if rejection is not None and rejection.dependence is not None:
                return rejection
    merged = tuple(sorted({*group, *other}))
    return Rejection(first, second, "profit" if planner.within_limits(merged) else "limit")


# --------------------------------------------------------------------------- small helpers


def _is_view(argument: ArgumentShape) -> bool:
    return isinstance(argument, RegionShape)


def _bits(numbers: Iterator[int] | tuple[int, ...]) -> int:
    result = 0
    for number in numbers:
        result |= 1 << number
    return result


def _members(bits: int) -> Iterator[int]:
    while bits:
        number = bits.bit_length() - 1
        bits ^= 1 << number
        yield number
