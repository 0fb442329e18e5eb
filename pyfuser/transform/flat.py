"""Rows of a one-dimensional view: `joint[i * 4 + c]` in iteration i is element c of row i.

The iterations of a one-dimensional space name elements of their own if every subscript of the view
is C * i + e with 0 <= e < C (delinearisation: V. Maslov, "Delinearization: an efficient way to
break multiloop dependence equations", 1992). The view then is one of rows of C elements, and
`transform.rows` can do with it what it does with those; it also proves that e stays in the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyfuser.analysis.intervals import Interval, interval
from pyfuser.ir.accesses import accesses
from pyfuser.ir.nodes import Binary, Body, Cast, Const, Expr, Load, Read, Stmt, Store, Sym, Update
from pyfuser.ir.visit import map_body
from pyfuser.transform.cells import expand


class Linear(NamedTuple):
    """sum(factor * part) + constant."""

    terms: dict[Expr, int]
    constant: int


class FlatRow(NamedTuple):
    """The rows of a view: their length, and the column that each subscript of the view names."""

    length: int
    columns: dict[Expr, Expr]


def flat_row(
    body: Body,
    view: Sym,
    index: Sym,
    stable: Mapping[Sym, Expr],
    ranges: Mapping[Sym, Interval],
) -> FlatRow | None:
    """How iterations, numbered by `index`, share a one-dimensional view; None: not by rows.

    Whether the columns lie in the row is not decided here.

    stable: locals that keep their value. ranges: bounds of Syms, wherever they are read.
    """
    length = 0
    columns: dict[Expr, Expr] = {}
    for _, (subscript,), *_ in accesses(body, view):
        if subscript in columns:
            continue
        expanded = expand(subscript, dict(stable))
        parts = linear(expanded, ranges)
        if parts is None:
            return None
        factor = parts.terms.pop(Read(index), 0)
        length = length or factor
        column = _sum(parts, expanded)
        if factor != length or length < 2:
            return None
        columns[subscript] = column
    return FlatRow(length, columns) if columns else None


def as_rows(body: Body, view: Sym, index: Sym, row: FlatRow) -> Body:
    """The body with two subscripts for the view: the row and the column."""

    def both(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return Read(index), row.columns[indices[0]]

    def load(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.view == view:
            return Load(view, both(expr.indices), expr.location)
        return expr

    def write(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.view == view:
            return Store(view, both(stmt.indices), stmt.value, stmt.location)
        if isinstance(stmt, Update) and stmt.target == view:
            op, value, atomic = stmt.op, stmt.value, stmt.atomic
            return Update(op, view, both(stmt.indices), value, atomic, stmt.location)
        return stmt

    return map_body(body, load, write)


def linear(expr: Expr, ranges: Mapping[Sym, Interval]) -> Linear | None:
    """An integer expression as a sum; None where a part of it may leave its type."""
    if interval(expr, ranges) is None:
        return None
    return _linear(expr, ranges)


def _linear(expr: Expr, ranges: Mapping[Sym, Interval]) -> Linear:
    known = interval(expr, ranges)
    if known is not None and known[0] == known[1]:
        return Linear({}, known[0])
    if isinstance(expr, Cast) and expr.operand.dtype.is_integer and known is not None:
        return _linear(expr.operand, ranges)
    if isinstance(expr, Binary) and expr.op in ("+", "-", "*"):
        left, right = _linear(expr.left, ranges), _linear(expr.right, ranges)
        if expr.op == "+":
            return _plus(left, right, 1)
        if expr.op == "-":
            return _plus(left, right, -1)
        for one, other in ((left, right), (right, left)):
            if not other.terms:
                return _plus(Linear({}, 0), one, other.constant)
    return Linear({expr: 1}, 0)


def _plus(left: Linear, right: Linear, factor: int) -> Linear:
    terms = dict(left.terms)
    for part, count in right.terms.items():
        terms[part] = terms.get(part, 0) + factor * count
    terms = {part: count for part, count in terms.items() if count}
    return Linear(terms, left.constant + factor * right.constant)


def _sum(parts: Linear, like: Expr) -> Expr:
    """The expression of a sum, in the type of another one."""
    dtype = like.dtype
    total: Expr | None = None
    for part, factor in parts.terms.items():
        value = part if part.dtype is dtype else Cast(part, dtype)
        if factor != 1:
            value = Binary("*", value, Const(factor, dtype))
        total = value if total is None else Binary("+", total, value)
    if total is None:
        return Const(parts.constant, dtype)
    if parts.constant:
        total = Binary("+", total, Const(parts.constant, dtype))
    return total
