"""The order of groups, where it is free, around scans: what can go with one stands beside it.

Only neighbours share a launch (see `plan.wavefront`), and beside a scan only maps over its
iterations. A small call that happens to stand between a scan and a map over the same memory would
part them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.plan import Group
from pyfuser.plan.wavefront import CLEARLY, sweeps
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import RegionShape, TraceShape

REACH = 8  # how many groups before and behind a scan are looked at

Calls = tuple[int, ...]


def beside_scans(
    trace: TraceShape, groups: Sequence[Calls], predecessors: Sequence[int], model: CostModel
) -> list[Calls]:
    """The groups, with maps moved to a scan where that saves more than where they stand.

    predecessors: the calls, as bits, that must run before each.
    """
    ordered = list(groups)
    for scan in groups:
        if trace.calls[scan[0]].pattern == "scan" and not left_out("order-around-scans"):
            around = _Around(trace, ordered, predecessors, model, scan)
            around.fetch_from_behind()
            around.fetch_from_before()
    return ordered


class _Around:
    """The groups around one scan."""

    def __init__(
        self,
        trace: TraceShape,
        groups: list[Calls],
        predecessors: Sequence[int],
        model: CostModel,
        scan: Calls,
    ) -> None:
        self._trace = trace
        self._groups = groups
        self._predecessors = predecessors
        self._model = model
        self._scan = scan
        self._clusters = self._touched(scan)

    def fetch_from_behind(self) -> None:
        """Move maps from behind to the scan, and those that follow it already."""
        groups = self._groups
        end = groups.index(self._scan) + 1
        for place in range(end, min(len(groups), end + REACH)):
            if not self._goes_with_it(groups[place]):
                continue
            free = not any(self._needs(groups[place], other) for other in groups[end:place])
            if place == end or (free and self._gains(place, (self._scan, groups[place]))):
                groups.insert(end, groups.pop(place))
                end += 1

    def fetch_from_before(self) -> None:
        """Move maps from before to the scan, and those that it follows already."""
        groups = self._groups
        start = groups.index(self._scan)
        for place in range(start - 1, max(-1, start - 1 - REACH), -1):
            if not self._goes_with_it(groups[place]):
                continue
            free = not any(self._needs(other, groups[place]) for other in groups[place + 1 : start])
            if place == start - 1 or (free and self._gains(place, (groups[place], self._scan))):
                start -= 1
                groups.insert(start, groups.pop(place))

    def _goes_with_it(self, group: Calls) -> bool:
        """Whether a group has the scan's iterations, and touches what it touches."""
        calls = [self._trace.calls[n] for n in group]
        space = self._trace.calls[self._scan[0]].space
        alike = all(call.pattern == "for" and call.space == space for call in calls)
        return alike and not self._clusters.isdisjoint(self._touched(group))

    def _touched(self, group: Iterable[int]) -> set[int]:
        calls = (self._trace.calls[n] for n in group)
        return {a.cluster for call in calls for a in call.arguments if isinstance(a, RegionShape)}

    def _needs(self, second: Calls, first: Calls) -> bool:
        """Whether a group must run after another, between which no other stands that must."""
        members = sum(1 << n for n in first)
        return any(self._predecessors[n] & members for n in second)

    def _gains(self, place: int, pair: tuple[Calls, Calls]) -> bool:
        """Whether a group may share a launch with the scan, and saves more than by its neighbours.

        pair: both, in their order.
        """
        groups = self._groups
        if not sweeps(self._trace, [*map(Group, pair)], self._model):
            return False
        near = [groups[n] for n in (place - 1, place + 1) if 0 <= n < len(groups)]
        saved = self._saved(self._scan, groups[place])
        return all(CLEARLY * self._saved(other, groups[place]) < saved for other in near)

    def _saved(self, first: Calls, second: Calls) -> float:
        """Seconds that a launch of two groups saves."""
        alone = self._model.cost(first) + self._model.cost(second)
        return alone - self._model.sweep_cost((*first, *second), frozenset())
