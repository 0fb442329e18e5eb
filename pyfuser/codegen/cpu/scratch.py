"""Scratch memory in C++: an allocation of each iteration, seen as a view."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Sym
from pyfuser.ir.visit import statements
from pyfuser.nest.spec import UNIT, ViewSpec


def scratch_views(body: Body, views: Mapping[Sym, ViewSpec]) -> dict[Sym, ViewSpec]:
    """How scratch memory is addressed: row by row, with strides of its own."""
    used = [stride for view in views.values() for stride in view.strides]
    free = count(1 + max(used, default=0))
    return {
        s.sym: ViewSpec((*(next(free) for _ in s.shape[1:]), UNIT), restrict=True, written=True)
        for s in statements(body)
        if isinstance(s, nodes.Scratch)
    }
