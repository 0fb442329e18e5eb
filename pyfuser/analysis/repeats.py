"""Changes of one element by several iterations, where the subscripts are elements in memory.

`y[p[i]] = x[i]` and `y[p[i]] += x[i]` are fine if p is a permutation. So p is looked at before the
first launch, if nothing pending writes it: one pass over it, once a shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from pyfuser.analysis.accesses import Mode
from pyfuser.analysis.elements import element_at, known_elements
from pyfuser.analysis.outside import Gather, Walk
from pyfuser.ir.nodes import Store, Update
from pyfuser.ir.visit import statements
from pyfuser.trace.call import Call


class Repeat(NamedTuple):
    """Two elements that are one subscript of a change, which iterations make for sure."""

    change: Store | Update
    subscript: int
    first: str
    second: str


def repeats(walk: Walk, call: Call, before: Sequence[Call]) -> Iterator[Repeat]:
    """The changes that meet. before: calls that run before this one and have not run."""
    changes: dict[object, Store | Update] = {}
    for stmt in statements(walk.body):
        if isinstance(stmt, Store):
            changes[stmt.view, stmt.location] = stmt
        elif isinstance(stmt, Update) and not stmt.atomic:
            changes[stmt.target, stmt.location] = stmt
    for gather in walk.gathers:
        change = changes.get((gather.view, gather.location))
        if change is None or len(change.indices) > 1 or gather.mode is not Mode.WRITE:
            continue
        found = _met(gather, call, before) if gather.alone else None
        if found is not None:
            yield Repeat(change, *found)


def _met(gather: Gather, call: Call, before: Sequence[Call]) -> tuple[int, str, str] | None:
    """A subscript that two iterations have, and which elements these are."""
    found = known_elements(call, gather.element, gather.relation, before)
    if found is None:
        return None
    box, values = found
    ranges = gather.relation.ranges[: len(gather.relation.begin)]
    if values.size < 2 or values.size != prod(high - low + 1 for low, high in ranges):
        return None  # one element is that of several iterations, or of some
    places = values.astype(np.intp) if values.dtype == bool else values  # no mask is meant
    if places.min() < 0:
        return None
    seen = np.zeros(int(places.max()) + 1, bool)
    seen[places.ravel()] = True
    if np.count_nonzero(seen) == places.size:
        return None
    index = int(np.argmax(np.bincount(places.ravel().astype(np.intp)) > 1))
    name = gather.element.view.name
    first, second = (
        f"{name}[{', '.join(map(str, element_at(box, place)))}]"
        for place in np.argwhere(places == index)[:2]
    )
    return index, first, second
