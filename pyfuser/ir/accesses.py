"""The accesses of a body: each element of a view or local array that its code names.

What an access touches over all iterations, as a set of integers, is `analysis.accesses`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pyfuser.ir.nodes import AtomicFetch, Body, Expr, Load, SourceLocation, Stmt, Store, Sym, Update
from pyfuser.ir.visit import expressions, map_body, statements

Subscripts: TypeAlias = tuple[Expr, ...]
AccessNode: TypeAlias = Load | AtomicFetch | Store | Update


class ElementAccess(NamedTuple):
    """An access to an element; an update reads and writes it, an atomic one in one step."""

    view: Sym
    indices: Subscripts
    reads: bool
    writes: bool
    atomic: bool
    node: AccessNode

    @property
    def location(self) -> SourceLocation | None:
        """Where it is in the user's source."""
        return self.node.location


def accesses(body: Body, view: Sym | None = None) -> Iterator[ElementAccess]:
    """Every access in the order of the code; of one view, if it is given."""
    for stmt in statements(body):
        for access in own_accesses(stmt):
            if view is None or access.view == view:
                yield access


# law
def own_accesses(part: Expr | Stmt) -> Iterator[ElementAccess]:
    """The accesses of an expression, or of a statement without those of statements in it."""
    for e in expressions(part):
        match e:
            case Load():
                yield ElementAccess(e.view, e.indices, True, False, False, e)
            case AtomicFetch():
                yield ElementAccess(e.view, e.indices, True, True, True, e)
    match part:
        case Store():
            yield ElementAccess(part.view, part.indices, False, True, False, part)
        case Update(indices=(_, *_)):
            yield ElementAccess(part.target, part.indices, True, True, part.atomic, part)


# law
def with_subscripts(
    body: Body, view: Sym, change: Callable[[Subscripts], Subscripts], new: Sym | None = None
) -> Body:
    """The body with other subscripts for a view, and another view or array in its place."""
    sym = view if new is None else new

    def read(e: Expr) -> Expr:
        if isinstance(e, (Load, AtomicFetch)) and e.view == view:
            return replace(e, view=sym, indices=change(e.indices))
        return e

    def write(stmt: Stmt) -> Stmt:
        match stmt:
            case Store() if stmt.view == view:
                return replace(stmt, view=sym, indices=change(stmt.indices))
            case Update() if stmt.target == view:
                return replace(stmt, target=sym, indices=change(stmt.indices))
        return stmt

    return map_body(body, read, write)
