"""Arrays that a trace overwrites, and whether what it computes in them can be computed again.

The law. Calls may run again, after their trace, and give what they gave, if

- each is a map without effects (`ir.effects`) that divides no integers,
- whatever they read is written by no call of the trace, or is overwritten, before it is read, by
  calls that run again with them, as do all others that write anything that these touch.

An array is a cluster here: all memory that is connected by overlap. Of one that a trace writes in
part, as the interior of a grid, and reads there alone, that part stands for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple, TypeAlias

from pyfuser.analysis.accesses import Access, Mode, accesses
from pyfuser.analysis.affine import Interval
from pyfuser.analysis.layout import byte_range
from pyfuser.ir.divisions import divisions
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import written
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape

Source: TypeAlias = tuple[int, int]
"""A call, and the place of one of its arguments."""

Box: TypeAlias = tuple[Interval, ...]
"""Elements of an array: first and last index along each axis."""


class Overwritten(NamedTuple):
    """What a trace overwrites of an array before it reads any of it, which is all that it touches.

    whole: whether that is all of the argument, and all memory that other arguments of the array
    have. boxes: the elements. calls: those that, together, write them first.
    """

    whole: bool
    boxes: tuple[Box, ...]
    calls: frozenset[int]

    # law: True
    def covers(self, other: Overwritten) -> bool:
        """Whether it has all elements that another one has, of an array of the same shape."""
        return all(_is_inside(box, self.boxes) for box in other.boxes)


class Work(NamedTuple):
    """Of a trace: the arrays that may wait, with the calls that compute each; what it overwrites.

    An array that may wait is one that the trace reads when it is complete: what no call reads is a
    result, which the program wants though it reads it only now and then.

    An array is named by the argument that is the first of it. parts: of those that are overwritten,
    the elements. fails: whether the trace may end in between, so that some are not. written: the
    places of the arguments that each of the calls writes that compute what may wait.
    """

    arrays: dict[Source, set[int]]
    parts: dict[Source, Overwritten]
    fails: bool
    written: dict[int, tuple[int, ...]]

    @property
    def overwritten(self) -> dict[Source, Overwritten]:
        """What is overwritten, whatever happens."""
        return {} if self.fails else self.parts


# law
def work_of(given: TraceShape) -> Work:
    """What of a trace may wait for a reader, and what it overwrites."""
    calls = given.calls
    touched = [_clusters(call) for call in calls]
    writers: dict[int, list[int]] = {}
    users: dict[int, list[int]] = {}
    for n, call in enumerate(calls):
        for cluster in touched[n]:
            users.setdefault(cluster, []).append(n)
        for cluster in _written(call):
            writers.setdefault(cluster, []).append(n)
    parts = {c: part for c in writers if (part := _overwritten(calls, users[c], c)) is not None}
    source = {c: (users[c][0], _places(calls[users[c][0]], c)[0]) for c in parts}
    chosen: dict[int, set[int]] = {}
    for cluster in parts:
        if given.clusters[cluster].temporary or writers[cluster][-1] == users[cluster][-1]:
            continue
        again = _closure(cluster, touched, writers)
        repeats = all(_may_repeat(calls[n]) for n in again)
        if repeats and _is_closed(again, touched, writers, parts):
            chosen[cluster] = again
    return Work(
        {source[c]: again for c, again in chosen.items()},
        {source[c]: part for c, part in parts.items()},
        any(any(divisions(call.workunit.body)) for call in calls),
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
    parts: Collection[int],
) -> bool:
    """Whether calls read nothing that the trace has changed, but what they write again before.

    Whoever writes what they touch is among them, so also who overwrites it first.
    """
    return all(c not in writers or c in parts for n in again for c in touched[n])


# law: True
def _may_repeat(call: CallShape) -> bool:
    """Whether running it once more, on the same values, writes what it wrote."""
    return call.pattern == "for" and _is_plain(call.workunit)


@cached(1024)
# law: True
def _is_plain(workunit: Workunit) -> bool:
    known = effects(workunit)
    return not (known.observable or any(divisions(workunit.body)))


def _places(call: CallShape, cluster: int) -> list[int]:
    """The arguments of a call in an array."""
    return [
        n for n, a in enumerate(call.arguments) if type(a) is RegionShape and a.cluster == cluster
    ]


# law: not None
def _overwritten(
    calls: Sequence[CallShape], users: Sequence[int], cluster: int
) -> Overwritten | None:
    """What calls overwrite of an array before they read any of it, if they touch nothing else."""
    boxes: list[Box] = []
    writers: set[int] = set()
    touched: list[Box] = []
    first: RegionShape | None = None
    for n in users:
        places = _places(calls[n], cluster)
        shape = calls[n].arguments[places[0]]
        assert type(shape) is RegionShape
        if len(places) > 1 or shape != (first or shape):
            return None
        first = shape
        uses = [access for access in accesses(calls[n]) if access.param == places[0]]
        if not all(_is_inside(_bounds(use, shape.shape), boxes) for use in uses if _reads(use)):
            return None
        found = [box for use in uses if (box := _stored(use))] if _may_repeat(calls[n]) else []
        if not all(_is_inside(box, boxes) for box in found):
            boxes = _joined([*boxes, *found])
            writers.add(n)
        if _is_inside(_all(shape.shape), boxes):
            others = [calls[m].arguments[at] for m in users for at in _places(calls[m], cluster)]
            whole = Overwritten(True, tuple(boxes), frozenset(writers))
            return whole if all(_is_in(other, shape) for other in others) else None
        touched += [_bounds(use, shape.shape) for use in uses]
    if not all(_is_inside(box, boxes) for box in touched):
        return None
    return Overwritten(False, tuple(boxes), frozenset(writers))


# law: True
def _is_in(argument: object, region: RegionShape) -> bool:
    """Whether all memory of an argument lies in a region that has all bytes from first to last."""
    assert type(argument) is RegionShape
    if argument == region:
        return True
    (low, high), (first, last) = byte_range(region), byte_range(argument)
    size = prod(region.shape) * region.dtype.size
    return high - low + 1 == size and low <= first and last <= high


def _reads(use: Access) -> bool:
    return use.mode is not Mode.WRITE


def _all(shape: tuple[int, ...]) -> Box:
    return tuple((0, extent - 1) for extent in shape)


# law: ()
def _stored(access: Access) -> Box:
    """The elements that a store writes in any case, all of them; else ()."""
    relation = access.relation
    if access.mode is not Mode.WRITE or not (access.exact and relation.box):
        return ()
    found: list[Interval] = []
    used: set[int] = set()
    for index in relation.indices:
        if index is None:
            return ()
        if not index.terms:
            found.append((index.constant, index.constant))
            continue
        ((number, factor), *more) = index.terms
        if more or abs(factor) != 1 or number in used:
            return ()
        used.add(number)
        found.append(index.span(relation.ranges))
    return tuple(found)


# law
def _bounds(access: Access, shape: tuple[int, ...]) -> Box:
    """Elements among which are all that an access may touch."""
    pairs = zip(access.relation.indices, _all(shape), strict=True)
    return tuple(
        every if index is None else index.span(access.relation.ranges) for index, every in pairs
    )


# law: True
def _is_inside(box: Box, boxes: Sequence[Box]) -> bool:
    """Whether one of the boxes has all elements of a box."""
    return any(
        all(
            low <= first and last <= high
            for (first, last), (low, high) in zip(box, other, strict=True)
        )
        for other in boxes
    )


# law
def _joined(boxes: Sequence[Box]) -> list[Box]:
    """The same elements in fewer boxes: two are one if they differ along one axis and touch."""
    found = list(boxes)
    for one, other in combinations(found, 2):
        apart = [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        if not apart:
            both = one
        elif len(apart) == 1 and _touch(one[apart[0]], other[apart[0]]):
            low, high = zip(one[apart[0]], other[apart[0]], strict=True)
            both = (*one[: apart[0]], (min(low), max(high)), *one[apart[0] + 1 :])
        else:
            continue
        return _joined([*(box for box in found if box not in (one, other)), both])
    return found


# law: True
def _touch(one: Interval, other: Interval) -> bool:
    """Whether two ranges overlap, or one begins where the other ends."""
    return one[0] <= other[1] + 1 and other[0] <= one[1] + 1


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
