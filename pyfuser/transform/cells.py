"""Which elements of a view the accesses of one iteration name."""

from __future__ import annotations

from itertools import combinations

from pyfuser.ir.accesses import ElementAccess, Subscripts, accesses
from pyfuser.ir.affine import linear
from pyfuser.ir.definitions import expand, of_scalars
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import evaluates_purely
from pyfuser.ir.nodes import (
    ARITHMETIC_OPS,
    AtomicFetch,
    Body,
    Expr,
    Extent,
    Load,
    Stmt,
    Store,
    Sym,
    Update,
)
from pyfuser.ir.visit import (
    expressions,
    map_body,
    reads,
    statements,
    sym_of,
)


# law: not None
def cells_of(
    body: Body, view: Sym, stable: dict[Sym, Expr], fixed: frozenset[Sym], changing: set[Sym]
) -> list[Subscripts] | None:
    """The distinct subscripts of a view; None if two might name one cell, or none is written.

    body: the statements that name the view. changing: locals that any statement assigns.
    Several cells are told apart only by what is `fixed` for the whole iteration: subscripts with
    the variable of an inner loop may name one cell in different trips.
    """
    cells: dict[Subscripts, None] = {}
    used: set[Sym] = set()
    written = False
    for access in accesses(body, view):
        expanded = tuple(expand(index, stable) for index in access.indices)
        if not is_simple(access) or not all(of_scalars(index) for index in expanded):
            return None
        used |= reads(*expanded)
        cells[expanded] = None
        written |= access.writes
    if used & changing:
        return None
    if not written:
        return None
    if len(cells) > 1 and not (used <= fixed and _all_differ(list(cells))):
        return None
    return list(cells)


# law: True
def is_simple(access: ElementAccess) -> bool:
    """Whether a pass can put a local in the element's place: not one of an atomic, min or max."""
    node = access.node
    return not access.atomic and (not isinstance(node, Update) or node.op in ARITHMETIC_OPS)


def _all_differ(cells: list[Subscripts]) -> bool:
    """Whether in each pair some subscript differs by a constant other than zero."""
    return all(
        any(_differ(a, b) for a, b in zip(left, right, strict=True))
        for left, right in combinations(cells, 2)
    )


# law: True
def _differ(left: Expr, right: Expr) -> bool:
    difference = linear(left).plus(linear(right), -1)
    size = 1 << 8 * min(left.dtype.size, right.dtype.size)  # sums wrap around
    return not difference.terms and difference.constant % size != 0


def is_unread(body: Body, view: Sym) -> bool:
    """Whether nothing here depends on what the view holds."""
    for stmt in statements(body):
        for expr in expressions(stmt):
            if isinstance(expr, (Load, AtomicFetch, Extent)) and expr.view == view:
                return False
    return True


# law
def without_writes(body: Body, view: Sym) -> Body:
    def drop(stmt: Stmt) -> Stmt | Body:
        writes = isinstance(stmt, (Store, Update)) and sym_of(stmt) == view
        return () if writes and evaluates_purely(stmt) else stmt

    return map_body(body, None, drop)


def zero(dtype: DType) -> bool | int | float | complex:
    """The zero of a type."""
    if dtype.is_complex:
        return 0j
    if dtype.is_float:
        return 0.0
    return False if dtype is DType.BOOL else 0
