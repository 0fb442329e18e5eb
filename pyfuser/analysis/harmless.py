"""Writes of one value by several iterations, whichever comes last."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.analysis.accesses import Access, Mode
from pyfuser.ir import nodes
from pyfuser.ir.definitions import stable_locals
from pyfuser.ir.nodes import Expr, SourceLocation, Store, Sym, Workunit
from pyfuser.ir.visit import assigned, child_expressions, statements, written


class Harmless:
    """Which writes of a workunit are of one value, whichever iteration comes last.

    `v[i] |= c` and `v[i] &= c` set or clear the same bits, however often they do.
    """

    def __init__(self, unit: Workunit) -> None:
        self._unit = unit
        self._written = written(unit.body)
        self._scalars = {p.sym for p in unit.params if not p.rank} - assigned(unit.body)
        self._locals = stable_locals(unit.body)
        self._stores: dict[tuple[Sym, SourceLocation | None], Store] = {
            (s.view, s.location): s for s in statements(unit.body) if isinstance(s, Store)
        }
        self._marks = {
            (s.target, s.location)
            for s in statements(unit.body)
            if isinstance(s, nodes.Update) and self.marks(s)
        }

    def alone(self, stmt: Store | nodes.Update) -> bool:
        """Whether all iterations that make a change of one element make the same one."""
        if isinstance(stmt, Store):
            return self._is_same(stmt.value, ())
        return self.marks(stmt)

    def meeting(self, stmt: Store | nodes.Update) -> bool:
        """Whether all iterations that change one element make the same change of it."""
        if isinstance(stmt, Store):
            return self._is_same(stmt.value, stmt.indices)
        return self.marks(stmt)

    def marks(self, stmt: nodes.Update) -> bool:
        """Whether iterations that change one element set the same bits, or clear them."""
        return stmt.op in ("|", "&") and self._is_same(stmt.value, stmt.indices)

    def updates(self, access: Access) -> bool:
        """Whether an access is that of `v[i] op= e`, which reads and writes."""
        return access.mode is Mode.WRITE and self._store(access) is None

    def pair(self, first: Access, second: Access) -> bool:
        """Whether it does not matter which of two racing accesses comes first."""
        one = self._store(first)
        if one is None:
            place = (self._unit.params[first.param].sym, first.location)
            return place in self._marks and second.location == first.location
        if second.mode is Mode.READ:  # a mark that is set, and looked at
            return self._is_same(one.value, ())
        other = self._store(second)
        if other is None:
            return False
        if first == second:
            return self._is_same(one.value, one.indices)
        return one.value == other.value and self._is_same(one.value, ())

    def _store(self, access: Access) -> Store | None:
        return self._stores.get((self._unit.params[access.param].sym, access.location))

    def _is_same(self, value: Expr, subscripts: Sequence[Expr]) -> bool:
        """Whether iterations whose subscripts are equal compute one value."""
        if any(value == subscript for subscript in subscripts):
            return True
        if isinstance(value, nodes.Read):
            known = self._locals.get(value.sym)
            if known is not None:
                return self._is_same(known, subscripts)
            return value.sym in self._scalars
        if isinstance(value, nodes.AtomicFetch):
            return False
        if isinstance(value, nodes.Load) and not self._is_constant(value.view):
            return False
        return all(self._is_same(child, subscripts) for child in child_expressions(value))

    def _is_constant(self, view: Sym) -> bool:
        params = {param.sym for param in self._unit.params}
        return view in params and view not in self._written
