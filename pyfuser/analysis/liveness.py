"""Who reads what a call wrote: reaching definitions, whole accesses at a time.

A value lives until a later call certainly overwrites it. Only an `exact` access that happens in
every iteration of its box may be taken to overwrite (see `accesses`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.layout import footprint
from pyfuser.support.caches import cached
from pyfuser.trace.shape import RegionShape, TraceShape

MAX_LATER = 64  # how many later users of a cluster are looked at before giving up


class Lifetime(NamedTuple):
    """Who may read a value.

    readers: later calls, as a bit set. escapes: whether it may be read after the trace has run.
    """

    readers: int
    escapes: bool


class _Use(NamedTuple):
    """An access of a call, with the first and the last byte of the cluster that it may touch."""

    access: Access
    region: RegionShape
    low: int
    high: int


class _Effect(NamedTuple):
    """Whether a call may read a value, and whether it certainly overwrites it."""

    reads: bool
    kills: bool


class Liveness:
    """The lifetimes of everything the calls of a trace write."""

    def __init__(self, trace: TraceShape) -> None:
        self._trace = trace
        self._users: dict[int, list[int]] = {}
        for position, call in enumerate(trace.calls):
            for cluster in call.clusters:
                self._users.setdefault(cluster, []).append(position)
        self._uses: dict[int, dict[int, list[_Use]]] = {}  # by kind of call, by cluster
        self._effects: dict[tuple[int, int, int, int], _Effect] = {}  # see `_effect`
        self._lifetimes: dict[tuple[int, int], Lifetime] = {}  # by call and cluster

    def is_dead_after(self, cluster: int, positions: Sequence[int]) -> bool:
        """Whether nobody but a group's own calls reads what they write to a cluster.

        Where they write nothing, either answer is right.
        """
        group = 0
        for position in positions:
            group |= 1 << position
        last = self._users[cluster][-1]
        if group >> last & 1 and not self._trace.clusters[cluster].temporary:
            return False  # what the last user writes stays
        for position in reversed(positions):  # what is written last mostly decides
            readers, escapes = self.lifetime(position, cluster)
            if escapes or readers & ~group:
                return False
        return True

    def lifetime(self, position: int, cluster: int) -> Lifetime:
        """The lifetime of what one call writes to a cluster."""
        key = position, cluster
        known = self._lifetimes.get(key)
        if known is None:
            readers, escapes = 0, False
            for number, use in enumerate(self._accesses(position, cluster)):
                if use.access.mode is not Mode.READ:
                    found = self._follow(position, cluster, number)
                    readers, escapes = readers | found.readers, escapes or found.escapes
            known = self._lifetimes[key] = Lifetime(readers, escapes)
        return known

    def _accesses(self, position: int, cluster: int) -> Sequence[_Use]:
        kind = self._trace.kinds[position]
        known = self._uses.get(kind)
        if known is None:
            call = self._trace.calls[position]
            known = self._uses[kind] = {}
            for access in accesses(call):
                region = call.arguments[access.param]
                assert isinstance(region, RegionShape)
                use = _Use(access, region, *footprint(region, access.relation))
                known.setdefault(region.cluster, []).append(use)
        return known.get(cluster, ())

    def users(self, cluster: int) -> Sequence[int]:
        """The calls that have to do with a cluster, ascending."""
        return self._users[cluster]

    # law
    def _follow(self, position: int, cluster: int, number: int) -> Lifetime:
        """Look for readers of a value until it is overwritten.

        number: of the access that wrote it, among those of its call to the cluster.
        """
        readers = 0
        users = self._users[cluster]
        first = bisect_right(users, position)
        for user in users[first : first + MAX_LATER]:
            reads, kills = self._effect(position, cluster, number, user)
            if reads:
                readers |= 1 << user
            if kills:
                return Lifetime(readers, False)
        temporary = self._trace.clusters[cluster].temporary
        return Lifetime(readers, not temporary or len(users) - first > MAX_LATER)

    # law
    def _effect(self, position: int, cluster: int, number: int, user: int) -> _Effect:
        """What a later call does to the value that an access of an earlier one wrote."""
        kinds = self._trace.kinds
        key = kinds[position], cluster, number, kinds[user]
        known = self._effects.get(key)
        if known is None:
            access, region, low, high = self._accesses(position, cluster)[number]
            reads = kills = False
            for other, where, first, last in self._accesses(user, cluster):
                if other.mode is Mode.WRITE:
                    kills |= where == region and _overwrites(other, access)
                elif first <= high and low <= last:
                    reads = True
            known = self._effects[key] = _Effect(reads, kills)
        return known


@cached(4)
def liveness(trace: TraceShape) -> Liveness:
    """The lifetimes of a trace, which several steps of planning ask for."""
    return Liveness(trace)


# law: True
def _overwrites(later: Access, earlier: Access) -> bool:
    """Whether one access to a region certainly writes every element that the other touched.

    Subscripts of one form, over ranges that hold those of the other: whatever the variables count.
    """
    mine, other = later.relation, earlier.relation
    if not (later.exact and mine.box) or mine.indices != other.indices:
        return False
    used = {number for index in mine.indices if index is not None for number, _ in index.terms}
    return all(
        mine.ranges[number][0] <= other.ranges[number][0]
        and other.ranges[number][1] <= mine.ranges[number][1]
        for number in used
    )
