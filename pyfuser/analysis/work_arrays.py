"""Arrays that a trace overwrites, and whether what it computes in them can be computed again.

The law. Calls may run again, after their trace, and give what they gave, if

- each is a map without effects (`ir.effects`) that divides no integers,
- whatever they read is written by no call of the trace, or is overwritten whole, before it is read,
  by calls that run again with them, as do all others that write anything that these touch.

An array is a cluster here: all memory that is connected by overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import NamedTuple

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.ir.divisions import divisions
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import written
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape

ALL = None
"""In place of an index: all along its axis."""


class Work(NamedTuple):
    """Of a trace: the arrays that may wait, with the calls that compute each; what it overwrites.

    An array that may wait is one that the trace reads when it is complete: what no call reads is a
    result, which the program wants though it reads it only now and then.

    An array is named by the argument that is the first of it. overwritten: those that nothing reads
    before all of their elements are written, whatever happens in between. written: the places of
    the arguments that each of those calls writes.
    """

    arrays: dict[tuple[int, int], set[int]]
    overwritten: tuple[tuple[int, int], ...]
    written: dict[int, tuple[int, ...]]


# law
def work_of(given: TraceShape) -> Work:
    """What of a trace may wait for a reader, and what it overwrites."""
    calls = given.calls
    touched = [_clusters(call) for call in calls]
    writers: dict[int, list[int]] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for n, call in enumerate(calls):
        for cluster in touched[n]:
            first.setdefault(cluster, n)
            last[cluster] = n
        for cluster in _written(call):
            writers.setdefault(cluster, []).append(n)
    whole = {c: place for c, n in first.items() if (place := _overwritten(calls[n], c)) is not None}
    chosen: dict[int, set[int]] = {}
    for cluster in whole:
        if given.clusters[cluster].temporary or writers[cluster][-1] == last[cluster]:
            continue
        again = _closure(cluster, touched, writers)
        repeats = all(_may_repeat(calls[n]) for n in again)
        if repeats and _is_closed(again, touched, writers, whole):
            chosen[cluster] = again
    fails = any(any(divisions(call.workunit.body)) for call in calls)
    return Work(
        {(first[c], whole[c]): again for c, again in chosen.items()},
        () if fails else tuple((first[c], place) for c, place in whole.items()),
        {n: places_written(calls[n]) for n in set().union(*chosen.values())},
    )


# law
def _closure(cluster: int, touched: Sequence[set[int]], writers: dict[int, list[int]]) -> set[int]:
    """The calls that compute a cluster, and all that write anything these touch."""
    found: set[int] = set()
    wanted = [*writers[cluster]]
    while wanted:
        n = wanted.pop()
        if n not in found:
            found.add(n)
            wanted += [m for other in touched[n] for m in writers.get(other, ())]
    return found


# law: True
def _is_closed(
    again: set[int],
    touched: Sequence[set[int]],
    writers: dict[int, list[int]],
    whole: Collection[int],
) -> bool:
    """Whether calls read nothing that the trace has changed, but what they write again before.

    Whoever writes what they touch is among them, so also who overwrites it first.
    """
    return all(c not in writers or c in whole for n in again for c in touched[n])


# law: True
def _may_repeat(call: CallShape) -> bool:
    """Whether running it once more, on the same values, writes what it wrote."""
    return call.pattern == "for" and _is_plain(call.workunit)


@cached(1024)
# law: True
def _is_plain(workunit: Workunit) -> bool:
    known = effects(workunit)
    return not (known.observable or any(divisions(workunit.body)))


# law
def _overwritten(call: CallShape, cluster: int) -> int | None:
    """The argument, if any, all of which a call overwrites, and reads nothing of it."""
    places = [
        n for n, a in enumerate(call.arguments) if type(a) is RegionShape and a.cluster == cluster
    ]
    if len(places) != 1 or not _may_repeat(call):
        return None
    shape = call.arguments[places[0]]
    assert type(shape) is RegionShape
    uses = [access for access in accesses(call) if access.param == places[0]]
    stored = [_stored(access, shape.shape) for access in uses]
    if any(access.mode is not Mode.WRITE for access in uses):
        return None
    return places[0] if _covers({part for part in stored if part}, shape.shape) else None


# law
def _stored(access: Access, shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """What a store writes in any case: an index for each axis, ALL for all of it; else ()."""
    relation = access.relation
    if not (access.exact and relation.box):
        return ()
    found: list[int | None] = []
    used: set[int] = set()
    for index, extent in zip(relation.indices, shape, strict=True):
        if index is None:
            return ()
        if not index.terms:
            found.append(index.constant)
            continue
        ((number, factor), *more) = index.terms
        low, high = relation.ranges[number]
        if more or factor != 1 or number in used or low + index.constant != 0:
            return ()
        if high + index.constant != extent - 1:
            return ()
        used.add(number)
        found.append(ALL)
    return tuple(found)


# law: True
def _covers(parts: set[tuple[int | None, ...]], shape: tuple[int, ...]) -> bool:
    """Whether stores write all elements: they differ in some axes, and have all indices there."""
    if len({tuple(at is ALL for at in part) for part in parts}) != 1:
        return False
    example = next(iter(parts))
    wanted = prod(extent for at, extent in zip(example, shape, strict=True) if at is not ALL)
    return len(parts) == wanted and all(
        at is ALL or 0 <= at < extent
        for part in parts
        for at, extent in zip(part, shape, strict=True)
    )


def _clusters(call: CallShape) -> set[int]:
    return {a.cluster for a in call.arguments if type(a) is RegionShape}


def _written(call: CallShape) -> set[int]:
    arguments = [call.arguments[place] for place in places_written(call)]
    return {a.cluster for a in arguments if type(a) is RegionShape}


# law
def places_written(call: CallShape) -> tuple[int, ...]:
    """The arguments whose elements a call may write, by their places."""
    views = written(call.workunit.body)
    params = enumerate(zip(call.workunit.params, call.arguments, strict=True))
    return tuple([n for n, (p, a) in params if type(a) is RegionShape and p.sym in views])
