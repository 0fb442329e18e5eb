"""The terms of a reduction's accumulators: one of each, for each iteration of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyfuser.ir.nodes import Body, Declare, For, Load, Read, Stmt, Store, Sym, Update
from pyfuser.ir.visit import assigned, statements
from pyfuser.nest.build import local
from pyfuser.nest.nodes import Nest
from pyfuser.nest.passes.row_sums import ordered
from pyfuser.nest.sums import row_sums, totals


class Terms:
    """What becomes of the segments of a body, in order, with each accumulator a local."""

    def __init__(self, nest: Nest, arrays: Mapping[Sym, Sym]) -> None:
        """arrays: for the terms of each accumulator."""
        self.arrays, self.nest = arrays, nest
        self.place = (local("step"),)
        self.direct = _single_updates(nest.workunit.body, tuple(arrays))
        self.started: set[Sym] = set()

    def body(self, body: Body) -> Body:
        """A segment: accumulators start at zero, or where the segments before left them."""
        updated = assigned(body)
        starts, found, ends = list[Stmt](), list[Stmt](), list[Stmt]()
        for sym, array in self.arrays.items():
            if sym in self.direct or (sym in self.started and sym not in updated):
                continue
            starts.append(Declare(sym, Load(array, self.place) if sym in self.started else None))
            ends.append(Store(array, self.place, Read(sym)))
            self.started.add(sym)
        for stmt in body:
            if isinstance(stmt, Update) and stmt.target in self.direct and not stmt.indices:
                found.append(Store(self.arrays[stmt.target], self.place, stmt.value))
                continue
            rows = row_sums(stmt, self.arrays)
            if rows and isinstance(stmt, For):
                rows += row_sums(stmt, dict.fromkeys(totals(stmt, self.arrays)))
                stmt = ordered(self.nest, stmt, rows)
            found.append(stmt)
        return (*starts, *found, *ends)


def _single_updates(body: Body, syms: Sequence[Sym]) -> set[Sym]:
    """Accumulators with one unconditional `+=` of their own type: its value is the term.

    The zero that it would be added to changes only -0.0, and the sum has a zero to add it to.
    """
    updates = [s for s in statements(body) if isinstance(s, Update) and not s.indices]
    result = set()
    for sym in syms:
        own = [u for u in updates if u.target == sym]
        if len(own) != 1 or not any(own[0] is stmt for stmt in body):
            continue
        if own[0].op == "+" and own[0].value.dtype is sym.dtype:
            result.add(sym)
    return result
