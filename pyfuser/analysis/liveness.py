"""Who reads what a call wrote: reaching definitions, whole accesses at a time.

A value lives until a later call certainly overwrites it. Only an `exact` access that happens in
every iteration of its box may be taken to overwrite (see `accesses`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.layout import footprint
from pyfuser.trace.shape import RegionShape, TraceShape

MAX_LATER = 64  # how many later users of a cluster are looked at before giving up


class Lifetime(NamedTuple):
    """Who may read a value.

    readers: later calls, as a bit set. escapes: whether it may be read after the trace has run.
    """

    readers: int
    escapes: bool


class Liveness:
    """The lifetimes of everything the calls of a trace write."""

    def __init__(self, trace: TraceShape) -> None:
        self._trace = trace
        self._users: dict[int, list[int]] = {}
        for position, call in enumerate(trace.calls):
            for cluster in {a.cluster for a in call.arguments if isinstance(a, RegionShape)}:
                self._users.setdefault(cluster, []).append(position)
        self._known: dict[tuple[int, int], Lifetime] = {}

    def is_dead_after(self, cluster: int, positions: Iterable[int]) -> bool:
        """Whether nobody but a group's own calls reads what they write to a cluster."""
        group = 0
        for position in positions:
            group |= 1 << position
        return not any(
            lifetime.escapes or lifetime.readers & ~group
            for position in positions
            for lifetime in (self.lifetime(position, cluster),)
        )

    def lifetime(self, position: int, cluster: int) -> Lifetime:
        """The lifetime of what one call writes to a cluster."""
        key = position, cluster
        known = self._known.get(key)
        if known is None:
            readers, escapes = 0, False
            for access, region in self._accesses(position, cluster):
                if access.mode is not Mode.READ:
                    found = self._follow(position, access, region)
                    readers, escapes = readers | found.readers, escapes or found.escapes
            known = self._known[key] = Lifetime(readers, escapes)
        return known

    def _accesses(self, position: int, cluster: int) -> Iterable[tuple[Access, RegionShape]]:
        call = self._trace.calls[position]
        for access in accesses(call):
            region = call.arguments[access.param]
            if isinstance(region, RegionShape) and region.cluster == cluster:
                yield access, region

    def _follow(self, position: int, access: Access, region: RegionShape) -> Lifetime:
        """Look for readers of a written value until it is overwritten."""
        low, high = footprint(region, access.relation)
        readers = 0
        users = self._users[region.cluster]
        later = users[users.index(position) + 1 :]
        for user in later[:MAX_LATER]:
            killed = False
            for other, where in self._accesses(user, region.cluster):
                if other.mode is Mode.WRITE:
                    killed |= where == region and _overwrites(other, access)
                    continue
                first, last = footprint(where, other.relation)
                if first <= high and low <= last:
                    readers |= 1 << user
            if killed:
                return Lifetime(readers, False)
        temporary = self._trace.clusters[region.cluster].temporary
        return Lifetime(readers, not temporary or len(later) > MAX_LATER)


def _overwrites(later: Access, earlier: Access) -> bool:
    """Whether one access to a region certainly writes every element that the other touched."""
    mine, other = later.relation, earlier.relation
    if not (later.exact and mine.box) or mine.indices != other.indices:
        return False
    if len(mine.begin) != len(other.begin):
        return False
    used = {number for index in mine.indices if index is not None for number, _ in index.terms}
    return all(
        mine.ranges[number][0] <= other.ranges[number][0]
        and other.ranges[number][1] <= mine.ranges[number][1]
        for number in used
    )
