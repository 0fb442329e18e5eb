"""Divisors that are elements of views, looked at in memory before a call's first launch.

Divisions of integers of up to 32 bits go through doubles (`quotient.h`), which do not trap: a
quotient by 0 is some number. So where a division is made for sure, by an element that nothing
pending writes, the elements are looked at. The cost is one pass over the divisors, once a shape.
The call itself may write them, if each iteration writes what it alone divides by, and afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import numpy as np

from pyfuser.analysis.affine import Affine
from pyfuser.analysis.relation import Relation
from pyfuser.ir.divisions import Division
from pyfuser.ir.nodes import AtomicFetch, Body, For, If, Load, Store, Sym, While
from pyfuser.ir.visit import contains, expressions, statements, written
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Region


def zero_element(
    call: Call, division: Division, load: Load, relation: Relation, before: Sequence[Call]
) -> tuple[int, ...] | None:
    """The first element that a call divides by and that is 0; None: there is none, or who knows.

    before: calls that run before it and have not run.
    """
    params = [param.sym for param in call.workunit.params]
    region = call.arguments[params.index(load.view)]
    assert isinstance(region, Region)
    own = {load.view} if _divides_first(call.workunit.body, division, load, relation) else set()
    changed = [*_changed(call, own), *(other for each in before for other in _changed(each))]
    if any(_may_overlap(region, other) for other in changed):
        return None
    if region.buffer.root is None and region.buffer.image is not None:
        return None  # a device's
    box = _box(relation, region.shape)
    if box is None:
        return None
    if not region.buffer.allocated:  # all zeros
        return tuple(part.start for part in box)
    zeros = np.argwhere(region.array()[box] == 0)
    if not len(zeros):
        return None
    return tuple(
        int(part.start + part.step * place) for part, place in zip(box, zeros[0], strict=True)
    )


def _divides_first(body: Body, division: Division, load: Load, relation: Relation) -> bool:
    """Whether an iteration writes of this view only the element that it divides by before, and no
    two iterations divide by the same.
    """
    used = {number for index in relation.indices if index for number, _ in index.terms}
    if len(used) < len(relation.ranges):
        return False
    for stmt in body:
        divides = any(e is division for s in statements((stmt,)) for e in expressions(s))
        if load.view in written((stmt,)):
            return divides and isinstance(stmt, Store) and _writes_alike(body, load)
        if divides:
            return _writes_alike(body, load)
    return False


def _writes_alike(body: Body, load: Load) -> bool:
    """Whether all that is written of the element's view is that element."""
    return not contains(body, AtomicFetch) and all(
        isinstance(s, (If, For, While)) or (isinstance(s, Store) and s.indices == load.indices)
        for s in statements(body)
        if load.view in written((s,))
    )


def _changed(call: Call, but: Set[Sym] = frozenset()) -> Iterator[Region]:
    changed = written(call.workunit.body) - but
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
