"""A body where some conditions are known."""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.ir import nodes
from pyfuser.ir.definitions import stable_locals
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Compare, Const, Expr, Logical, Read, Stmt, Sym
from pyfuser.ir.visit import map_body
from pyfuser.transform.unused import without_unread_locals


def settled(body: Body, verdict: Callable[[Compare], bool | None]) -> Body:
    """The body without what the conditions that are known leave out.

    verdict: whether a comparison holds, None if it may be any.
    """
    known: dict[Sym, Const] = {}

    def change(e: Expr) -> Expr:
        if isinstance(e, Compare):
            holds = verdict(e)
            return e if holds is None else Const(holds, DType.BOOL)
        if isinstance(e, Read):
            return known.get(e.sym, e)
        return _folded(e)

    while True:
        body = map_body(body, change, _branch)
        found = {
            sym: value
            for sym, value in stable_locals(body).items()
            if isinstance(value, Const) and sym.dtype is DType.BOOL and sym not in known
        }
        if not found:
            return without_unread_locals(body)
        known |= found


def _folded(e: Expr) -> Expr:
    """An expression without conditions that are constants."""
    if isinstance(e, nodes.Select) and isinstance(e.condition, Const):
        return e.then if e.condition.value else e.orelse
    if isinstance(e, nodes.Unary) and e.op == "!" and isinstance(e.operand, Const):
        return Const(not e.operand.value, DType.BOOL)
    if isinstance(e, Logical) and isinstance(e.left, Const):
        decides = bool(e.left.value) == (e.op == "||")
        return e.left if decides else e.right
    if isinstance(e, Logical) and isinstance(e.right, Const):
        decides = bool(e.right.value) == (e.op == "||")
        if not decides:
            return e.left
    return e


def _branch(stmt: Stmt) -> Stmt | Body:
    if isinstance(stmt, nodes.If) and isinstance(stmt.condition, Const):
        return stmt.then if stmt.condition.value else stmt.orelse
    return stmt
