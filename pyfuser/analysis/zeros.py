"""Divisors that are elements of views, looked at in memory before a call's first launch.

Divisions of integers of up to 32 bits go through doubles (`quotient.h`), which do not trap: a
quotient by 0 is some number. So where a division is made for sure, by an element that nothing
pending writes, the elements are looked at. The cost is one pass over the divisors, once a shape.
The call itself may write them, if each iteration writes what it alone divides by, and afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyfuser.analysis.elements import element_at, known_elements
from pyfuser.analysis.relation import Relation
from pyfuser.ir.divisions import Division
from pyfuser.ir.nodes import AtomicFetch, Body, For, If, Load, Store, While
from pyfuser.ir.visit import contains, expressions, statements, written
from pyfuser.trace.call import Call


def zero_element(
    call: Call, division: Division, load: Load, relation: Relation, before: Sequence[Call]
) -> tuple[int, ...] | None:
    """The first element that a call divides by and that is 0; None: there is none, or who knows.

    before: calls that run before it and have not run.
    """
    own = {load.view} if _divides_first(call.workunit.body, division, load, relation) else set()
    found = known_elements(call, load, relation, before, own)
    if found is None:
        return None
    box, values = found
    zeros = np.argwhere(values == 0)
    return element_at(box, zeros[0]) if len(zeros) else None


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
