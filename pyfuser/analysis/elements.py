"""Elements of views as they are in memory before a call's first launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from pyfuser.analysis.affine import Affine
from pyfuser.analysis.relation import Relation
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Load, Sym
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Region

Box: TypeAlias = tuple[slice, ...]


def known_elements(
    call: Call, load: Load, relation: Relation, before: Sequence[Call], own: Set[Sym] = frozenset()
) -> tuple[Box, np.ndarray[Any, Any]] | None:
    """The elements that a call loads in some place: which they are, and their values; None: that
    is not known before it runs.

    before: calls that run before it and have not run; own: views that the call may change, as it
    loads an element before it changes that.
    """
    params = [param.sym for param in call.workunit.params]
    region = call.arguments[params.index(load.view)]
    assert isinstance(region, Region)
    changed = [*_changed(call, own), *(other for each in before for other in _changed(each))]
    if any(_may_overlap(region, other) for other in changed):
        return None
    if region.buffer.away:
        return None  # a device's
    box = _box(relation, region.shape)
    if box is None:
        return None
    if not region.buffer.allocated:
        size = tuple(len(range(part.start, part.stop, part.step)) for part in box)
        return box, np.broadcast_to(np.zeros((), load.dtype.numpy), size)
    return box, region.array()[box]


def element_at(box: Box, place: Sequence[int]) -> tuple[int, ...]:
    """The subscripts of an element that stands at a place of a box."""
    return tuple(int(p.start + p.step * n) for p, n in zip(box, place, strict=True))


def _changed(call: Call, but: Set[Sym] = frozenset()) -> Iterator[Region]:
    changed = written_views(call.workunit) - but
    for param, argument in zip(call.workunit.params, call.arguments, strict=True):
        if param.sym in changed and isinstance(argument, Region):
            yield argument


def _may_overlap(one: Region, other: Region) -> bool:
    if one.buffer is other.buffer:
        return True
    if not (one.buffer.external and other.buffer.external):
        return False  # two allocations; what is external has an address
    (start, end), (low, high) = one.bounds(), other.bounds()
    here, there = one.buffer.address, other.buffer.address
    return here + start < there + high and there + low < here + end


def _box(relation: Relation, shape: tuple[int, ...]) -> tuple[slice, ...] | None:
    """The elements as a slice a dimension, all combinations of which are divided by."""
    if not relation.box:
        return None
    used: set[int] = set()
    parts = []
    for index, extent in zip(relation.indices, shape, strict=True):
        part = _part(index, relation, used)
        if part is None or not (part.start >= 0 and part.stop <= extent):
            return None
        parts.append(part)
    return tuple(parts)


def _part(index: Affine | None, relation: Relation, used: set[int]) -> slice | None:
    if index is None or len(index.terms) > 1:
        return None
    if not index.terms:
        return slice(index.constant, index.constant + 1, 1)
    ((number, factor),) = index.terms
    if number in used:
        return None
    used.add(number)
    low, high = index.span(relation.ranges)
    return slice(low, high + 1, abs(factor))
