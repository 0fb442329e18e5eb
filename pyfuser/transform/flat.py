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
from pyfuser.ir.accesses import accesses, with_subscripts
from pyfuser.ir.affine import Linear, linear
from pyfuser.ir.definitions import expand
from pyfuser.ir.nodes import Binary, Body, Cast, Const, Expr, Read, Sym


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
        parts = _linear(expanded, ranges)
        if parts is None:
            return None
        factor = parts.terms.get(Read(index), 0)
        length = length or factor
        column = _sum(parts.plus(Linear({Read(index): 1}, 0), -factor), expanded)
        if factor != length or length < 2:
            return None
        columns[subscript] = column
    return FlatRow(length, columns) if columns else None


def as_rows(body: Body, view: Sym, index: Sym, row: FlatRow) -> Body:
    """The body with two subscripts for the view: the row and the column."""
    return with_subscripts(body, view, lambda at: (Read(index), row.columns[at[0]]))


def _linear(expr: Expr, ranges: Mapping[Sym, Interval]) -> Linear | None:
    """An integer expression as a sum; None where a part of it may leave its type."""

    def value(e: Expr) -> int | None:
        known = interval(e, ranges)
        return known[0] if known is not None and known[0] == known[1] else None

    if interval(expr, ranges) is None:
        return None
    return linear(expr, lambda e: interval(e, ranges) is not None, value)


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
