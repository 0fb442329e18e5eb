"""Bands: launches that run one after the other on one part of an axis, then on the next part.

    for d in range(2, 80):                                  for each band of b:
        for_(d's diagonal, all b): e, f, h, best     ->         for d in range(2, 80):
                                                                    d's diagonal, b of the band

A long trace of calls that differ in numbers runs unfused, as its plan would cost more than it saves
(`runtime.budget`). Each call then streams through all of its arrays. Where no call needs of another
what belongs to other indices of an axis, as in many small problems side by side, all calls may run
for a few of these indices first: what they share stays in cache, and threads meet once, not after
each call.

*Law.* Maps whose iterations nothing watches, each with one of its indices, its lane. Memory that
any of them writes is lanes, too: all accesses of all calls are at one place along an axis of their
views, the lane plus a number, and the bytes of two lanes are apart. Then iterations of two lanes
touch no common byte that is written, and those of one lane run in the order of the program.

The bytes of a lane: views may differ in offset and shape, but agree in the distance `unit` between
lanes. What is inside an element of that axis stays in `unit` bytes; along all other axes a view
goes on by multiples of `period`, and all lanes are within one period. So a byte's lane is its
address modulo the period, divided by the unit, less the place where lane 0 is.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from typing import NamedTuple, TypeAlias

from pyfuser.ir.accesses import accesses
from pyfuser.ir.affine import linear
from pyfuser.ir.definitions import expand, stable_locals
from pyfuser.ir.divisions import divisions
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Cast, Read, Scratch, Workunit
from pyfuser.ir.visit import assigned, contains, written
from pyfuser.support.caches import cached
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape
from pyfuser.tuning.thresholds import NOW


class Lanes(NamedTuple):
    """Where the lanes of a view are: its axis, and what is added to the index."""

    axis: int
    shift: int


class Use(NamedTuple):
    """How a view is used along an index; no lanes: not all accesses are at one place."""

    lanes: Lanes | None
    writes: bool


Uses: TypeAlias = Mapping[int, Use]
"""Of views, by place among the parameters."""


class Bands(NamedTuple):
    """The calls [first, last), each with the index that is its lane, over lanes [begin, end).

    bytes: of one lane, of all memory together. near: whether lanes are neighbouring elements.
    """

    first: int
    last: int
    axes: tuple[int, ...]
    begin: int
    end: int
    bytes: int
    near: bool


def bands_of(trace: TraceShape) -> tuple[Bands, ...]:
    """The bands of a trace, in order, if most of its calls are in some; none is in two."""
    found: list[Bands] = []
    place = done = 0
    fewest, count = NOW.running.band_calls, len(trace.calls)
    while place + fewest <= count and 2 * (place - done) <= count:  # else most calls are in none
        rank = len(trace.calls[place].space.begin)
        tries = [_from(trace, place, axis) for axis in reversed(range(rank))]
        best = max(tries, key=lambda bands: bands.last)
        if best.last - best.first >= fewest:
            found.append(best)
            done += best.last - best.first
        place = max(best.last, place + 1)
    return tuple(found) if 2 * done >= count else ()


def _from(trace: TraceShape, first: int, axis: int) -> Bands:
    """The longest bands from a call on, of which this index is the lane."""
    memory = _Memory()
    axes: list[int] = []
    for place in range(first, len(trace.calls)):
        call = trace.calls[place]
        tries = [axis] if place == first else [*reversed(range(len(call.space.begin)))]
        kind = trace.kinds[place]
        taken = next((a for a in tries if memory.takes(kind, call, a)), None)
        if taken is None:
            break
        axes.append(taken)
    calls = trace.calls[first : first + len(axes)]
    ends = [(c.space.begin[a], c.space.end[a]) for c, a in zip(calls, axes, strict=True)]
    begin = min((low for low, _ in ends), default=0)
    end = max((high for _, high in ends), default=0)
    return Bands(first, first + len(axes), tuple(axes), begin, end, *memory.size())


# --------------------------------------------------------------------------- of a workunit


@cached(1024)
# law: ()
def _uses(workunit: Workunit) -> tuple[Uses, ...]:
    """For each index how views are used along it; none if order may show."""
    body = workunit.body
    if (
        effects(workunit).observable
        or workunit.accumulators
        or any(divisions(body))
        or contains(body, Scratch)
        or assigned(body) & {*workunit.indices}
    ):
        return ()
    return tuple([_along(workunit, axis) for axis in range(len(workunit.indices))])


# law
def _along(workunit: Workunit, index: int) -> Uses:
    values = stable_locals(workunit.body)
    lane = Read(workunit.indices[index])
    places = {param.sym: n for n, param in enumerate(workunit.params) if param.rank}
    found: dict[int, set[Lanes] | None] = {}
    for access in accesses(workunit.body):
        if access.view not in places:
            continue
        here = set()
        for axis, subscript in enumerate(access.indices):
            form = linear(expand(subscript, values), _keeps)
            if form.terms == {lane: 1}:
                here.add(Lanes(axis, form.constant))
        place = places[access.view]
        before = found.get(place, here)
        found[place] = here & before if before is not None else None
    stored = {places[view] for view in written(workunit.body) if view in places}
    return {
        place: Use(min(lanes) if lanes else None, place in stored) for place, lanes in found.items()
    }


# law: True
def _keeps(cast: Cast) -> bool:
    """Whether a conversion keeps every index: lanes are counted in 31 bits."""
    return cast.dtype in (DType.INT32, DType.INT64)


# --------------------------------------------------------------------------- of memory


class _Part(NamedTuple):
    """Where a view's lanes [low, high) are: lane 0 begins at byte `base`, and each has `span`."""

    base: int
    low: int
    high: int
    span: int
    unit: int


class _Cluster:
    """What the calls so far do to the memory of a cluster. bytes: of a lane, at most."""

    __slots__ = ("bytes", "everywhere", "parts", "period", "written")

    def __init__(self) -> None:
        self.parts: set[_Part] = set()
        self.written = self.everywhere = False
        self.period = self.bytes = 0

    def copy(self) -> _Cluster:
        made = _Cluster()
        made.parts = set(self.parts)
        made.written, made.everywhere = self.written, self.everywhere
        made.period, made.bytes = self.period, self.bytes
        return made

    # law: True
    def is_apart(self) -> bool:
        """Whether no byte that is written belongs to two lanes."""
        if not self.written:
            return True
        units = {part.unit for part in self.parts}
        if self.everywhere or len(units) != 1:
            return False
        (unit,) = units
        firsts = set()
        for base, low, high, span, _ in self.parts:
            first, rest = divmod(base % self.period if self.period else base, unit)
            if rest + span > unit:
                return False
            if self.period and not (first + low >= 0 and (first + high) * unit <= self.period):
                return False
            firsts.add(first)
        return len(firsts) == 1


class _Memory:
    """The clusters that the calls of bands touch."""

    def __init__(self) -> None:
        self._clusters: dict[int, _Cluster] = {}
        self._known: set[tuple[int, int]] = set()

    def size(self) -> tuple[int, bool]:
        """The bytes of a lane, and whether lanes are neighbours somewhere."""
        found = self._clusters.values()
        near = any(part.span == part.unit for cluster in found for part in cluster.parts)
        return sum(cluster.bytes for cluster in found), near

    # law: True
    def takes(self, kind: int, call: CallShape, axis: int) -> bool:
        """Whether a call may go with those so far; then it does. Equal calls are of one kind."""
        if (kind, axis) in self._known:
            return True
        uses = _uses(call.workunit)
        if call.pattern != "for" or call.space.execution != "OpenMP" or not uses:
            return False
        ends = call.space.begin[axis], call.space.end[axis]
        changed: dict[int, _Cluster] = {}
        for place, (lanes, writes) in uses[axis].items():
            region = call.arguments[place]
            assert isinstance(region, RegionShape)
            known = self._clusters.get(region.cluster)
            cluster = changed.get(region.cluster) or (known.copy() if known else _Cluster())
            changed[region.cluster] = cluster
            cluster.written |= writes
            part = None if lanes is None else _part(region, lanes, *ends)
            if lanes is None or part is None:
                cluster.everywhere = True
                continue
            cluster.parts.add(part[0])
            cluster.period = gcd(cluster.period, part[1])
            size = prod(region.shape) * region.dtype.size // region.shape[lanes.axis]
            cluster.bytes = max(cluster.bytes, size)
        if not all(cluster.is_apart() for cluster in changed.values()):
            return False
        self._clusters.update(changed)
        self._known.add((kind, axis))
        return True


# law: not None
def _part(region: RegionShape, lanes: Lanes, begin: int, end: int) -> tuple[_Part, int] | None:
    """The lanes of a view that a call touches, and by what the view goes on along other axes."""
    _, offset, strides, shape, dtype = region
    axis, shift = lanes
    unit = strides[axis]
    if begin + shift < 0 or end + shift > shape[axis] or begin >= end:
        return None
    others = [
        (step, n) for k, (step, n) in enumerate(zip(strides, shape, strict=True)) if k != axis
    ]
    if unit <= 0 or any(step < 0 for step, _ in others):
        return None
    inner = sum((n - 1) * step for step, n in others if step < unit)
    period = gcd(*[step for step, n in others if step >= unit and n > 1])
    return _Part(offset + shift * unit, begin, end, inner + dtype.size, unit), period
