"""Python's `max` and `min` of two or more numbers.

The first of the largest is the result: a later one replaces it only if it compares as larger, so of
`max(nan, 1.0)` and `max(1.0, nan)` each is its first argument. Numbers of several types get C++'s
common type, which must be able to hold all of them.
"""

from __future__ import annotations

import ast
from functools import reduce

from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Binary, Cast, Const, Expr, Extent, Read, Select
from pyfuser.ir.visit import expressions
from pyfuser.lower import convert
from pyfuser.lower.context import Context

_SMALL = 4  # operations and numbers of an expression that is computed again


def extreme(ctx: Context, node: ast.Call, name: str) -> Expr:
    """`max(a, b, ...)` or `min(a, b, ...)` as a chain of choices."""
    if len(node.args) < 2 or node.keywords:
        raise ctx.error(node, f"{name} takes two numbers or more, as in {name}(a, b)")
    operands = [convert.promoted(operand) for operand in ctx.ordered(node.args)]
    dtype = reduce(common_type, (operand.dtype for operand in operands))
    if dtype.is_complex:
        raise ctx.error(node, "complex numbers have no order: compare their parts or abs()")
    mixed = dtype.is_integer and not dtype.is_signed
    for argument, operand in zip(node.args, operands, strict=True):
        if mixed and operand.dtype.is_signed and not _is_positive(operand):
            raise ctx.error(
                argument,
                f"{name} of signed and unsigned integers: make them of one type, as in "
                f"pk.int64({ast.unparse(argument)})",
            )
    best, *others = (convert.cast(operand, dtype) for operand in operands)
    best = _repeatable(ctx, best)
    op = ">" if name == "max" else "<"
    for n, operand in enumerate(others):
        other = _repeatable(ctx, operand)
        best = Select(convert.compare(op, other, best), other, best)
        if n + 1 < len(others):
            best = Read(ctx.temporary("best", dtype, best))
    return best


def _is_positive(operand: Expr) -> bool:
    return isinstance(operand, Const) and operand.dtype is DType.INT32 and operand.value >= 0  # type: ignore[operator]


def _repeatable(ctx: Context, operand: Expr) -> Expr:
    """An expression that may be evaluated twice, at little cost."""
    parts = list(expressions(operand))
    kinds = (Binary, Cast, Const, Extent, Read)
    if len(parts) <= _SMALL and all(isinstance(part, kinds) for part in parts):
        return operand
    return ctx.stable(operand, "value")
