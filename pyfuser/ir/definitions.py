"""What locals are worth: those that keep their first value can be replaced by it."""

from __future__ import annotations

from collections.abc import Mapping

from pyfuser.ir.canonical import MAX_WORKUNITS
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Const,
    Declare,
    Expr,
    Load,
    Read,
    Sym,
    Unary,
    Workunit,
)
from pyfuser.ir.visit import as_written, assigned, expressions, map_expression, reads, statements
from pyfuser.support.caches import cached


# law
def stable_locals(body: Body) -> dict[Sym, Expr]:
    """Locals that keep their first value, with that value."""
    changed = assigned(body)
    return {
        stmt.sym: stmt.value
        for stmt in statements(body)
        if isinstance(stmt, Declare) and stmt.value is not None and stmt.sym not in changed
    }


# law
def expand(expr: Expr, stable: Mapping[Sym, Expr]) -> Expr:
    """The expression with stable locals of pure value replaced by that value."""
    known: dict[Sym, Expr | None] = {}  # None: not pure

    def change(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.sym not in stable:
            return node
        if node.sym not in known:
            value = map_expression(stable[node.sym], change)
            known[node.sym] = value if of_scalars(value) else None
        return known[node.sym] or node

    return map_expression(expr, change)


_PURE = (Const, Read, Binary, Cast, Unary)


# law: True
def of_scalars(expr: Expr) -> bool:
    """Whether the value depends on indices, scalars and locals alone."""
    return all(isinstance(node, _PURE) for node in expressions(expr))


def loaded(expr: Expr, unit: Workunit) -> Load | None:
    """The element that an expression, or the local that it reads, is; None: it is something else.

    What the element's subscripts read keeps its value, too.
    """
    stable, changed = _locals_of(unit)
    if isinstance(expr, Read):
        expr = as_written(stable.get(expr.sym, expr))
    if not isinstance(expr, Load):
        return None
    return expr if changed.isdisjoint(reads(*expr.indices)) else None


@cached(MAX_WORKUNITS)
def _locals_of(unit: Workunit) -> tuple[dict[Sym, Expr], set[Sym]]:
    """Of a workunit's locals those that keep their first value, with it, and those that do not."""
    return stable_locals(unit.body), assigned(unit.body)
