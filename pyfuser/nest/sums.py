"""Which loops of an iteration sum what: see `passes.row_sums`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyfuser.ir import nodes
from pyfuser.ir.affine import values_of
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import only_combines, operations
from pyfuser.ir.nodes import Body, Expr, For, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, contains, declared, expressions, reads, statements

SHORTEST = 24
"""Trips of a loop that is run in blocks; unrolled loops are shorter (see `transform.unroll`)."""


def is_sum(workunit: Workunit, sym: Sym) -> bool:
    """Whether the body does nothing with an accumulator but add to it (or subtract)."""
    return sym.dtype is not DType.BOOL and only_combines(workunit.body, (sym,), "+-")


def row_sums(stmt: Stmt, accumulators: Mapping[Sym, object]) -> list[Sym]:
    """The accumulators that a loop adds to, if the loop may be run in blocks."""
    if not isinstance(stmt, For) or not isinstance(stmt.step, nodes.Const) or stmt.step.value != 1:
        return []
    if _is_short(stmt):
        return []
    changed = assigned(stmt.body)
    if stmt.sym in changed or _leaves(stmt.body):
        return []
    if any(_may_change(bound, changed) for bound in (stmt.start, stmt.stop)):
        return []
    return [sym for sym in accumulators if sym in changed and not sym.dtype.is_complex]


def totals(stmt: Stmt, accumulators: Collection[Sym]) -> list[Sym]:
    """The locals that a loop does nothing with but add to them, in a free order."""
    if not isinstance(stmt, For):
        return []
    other = reads(*statements(stmt.body)) | {*declared(stmt.body), *accumulators}
    return [
        sym
        for sym, changes in operations(stmt.body).items()
        if changes == {"+"} and sym not in other and sym.dtype is not DType.BOOL
    ]


def _is_short(loop: For) -> bool:
    """Whether the trips are known to be too few for blocks."""
    values = values_of(loop)
    return values is not None and len(values) < SHORTEST


def _may_change(bound: Expr, changed: set[Sym]) -> bool:
    return any(
        isinstance(e, (nodes.Load, nodes.AtomicFetch))
        or (isinstance(e, nodes.Read) and e.sym in changed)
        for e in expressions(bound)
    )


def _leaves(body: Body) -> bool:
    """Whether a trip may end early, do what must keep its order among all trips, or loop itself.

    Around a loop a sum costs nothing, and code that is there twice compiles twice as long.
    """
    return contains(body, *_APART)


_APART = (
    *(nodes.Break, nodes.Continue, nodes.For, nodes.While),
    *(nodes.Eval, nodes.AtomicFetch),
)
