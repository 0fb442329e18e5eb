"""Loops that do something in a few of their iterations only, each named by a scalar.

    x[row] = ...                 calls over several edges of a grid, which run at these rows of a
    if row == row0: ...          sweep (see `plan.rewrites.embedded_body`), have this form, perhaps
    beside others if row == row1: ...

Such a loop runs without these parts from one of the iterations to the next, and with them there.
"""

from __future__ import annotations

from typing import NamedTuple

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, function
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Cast, Compare, If, Read, Stmt, Sym
from pyfuser.ir.visit import assigned
from pyfuser.support.passes import left_out

PLAIN, AT_ROWS = "pf_plain", "pf_at_rows"
LOCALS = frozenset({PLAIN, AT_ROWS, "at", "next"})


class Spread(NamedTuple):
    """The scalars that name iterations in which a loop does more, and what it does in all."""

    rows: tuple[Sym, ...]
    body: Body


def spread(context: Context) -> Spread | None:
    """What a loop does by iterations; None if it does the same in all of them."""
    spec, workunit = context.spec, context.workunit
    if spec.checked or spec.pattern != "for" or spec.rank != 1 or left_out("peel-points"):
        return None
    (index,) = workunit.indices
    changing = assigned(workunit.body)
    types = (DType.INT32, index.dtype)
    scalars = {p.sym for p in workunit.params if not p.rank and p.sym.dtype in types} - changing
    rows: dict[Sym, None] = {}
    body: list[Stmt] = []
    for stmt in workunit.body:
        row = _row(stmt, index)
        if row in scalars and row is not None:
            rows[row] = None
        else:
            body.append(stmt)
    return Spread(tuple(rows), tuple(body)) if rows and index not in changing else None


def _row(stmt: Stmt, index: Sym) -> Sym | None:
    """The scalar that the index must equal for a statement to do anything."""
    if not isinstance(stmt, If) or stmt.orelse or not isinstance(stmt.condition, Compare):
        return None
    left, right = stmt.condition.left, stmt.condition.right
    if isinstance(left, Cast) and left.dtype is DType.INT32:  # see `transform.widen`
        left = left.operand
    same = stmt.condition.op == "==" and isinstance(left, Read) and left.sym == index
    return right.sym if same and isinstance(right, Read) else None


def spread_code(context: Context, found: Spread) -> str:
    """`pf_loop`, which runs a range as `pf_plain`, if that does anything, and `pf_at_rows`."""
    tail = "".join(", " + a for a in context.arguments)
    nearest = [
        f"    if ({name} >= at && {name} < next) next = {name};"
        for name in (context.names[row] for row in found.rows)
    ]
    lines = []
    if any(row.dtype is DType.INT32 for row in found.rows):  # compared with 32 bits of the index
        wide = "(int32_t)begin != begin || (int32_t)(end - 1) != end - 1"
        lines = [f"if ({wide}) return {AT_ROWS}(begin, end{tail});"]
    lines += [
        "for (int64_t at = begin, next; at < end; at = next + 1) {",
        "    next = end;",
        *nearest,
        f"    if (at < next) {PLAIN}(at, next{tail});" if found.body else "",
        f"    if (next < end) {AT_ROWS}(next, next + 1{tail});",
        "}",
    ]
    parameters = ["int64_t begin", "int64_t end", *context.signature]
    return function("void pf_loop", parameters, [INDENT + line for line in lines if line])
