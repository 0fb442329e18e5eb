"""Interval arithmetic for integer expressions (R. E. Moore, "Interval Analysis", 1966)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyfuser.analysis.affine import Interval
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    Logical,
    Read,
    Select,
    Sym,
    Unary,
)

__all__ = ["Interval", "fits", "interval"]

_GREATEST_EXTENT = (1 << 63) - 1


def fits(interval: Interval, dtype: DType) -> bool:
    """Whether every value of the interval is a value of an integer type."""
    low, high = dtype.range()
    return low <= interval[0] and interval[1] <= high


def interval(expr: Expr, env: Mapping[Sym, Interval]) -> Interval | None:
    """Bounds on an integer expression's value while each Sym stays in its interval.

    None: it is no integer expression, or it or a part of it may leave the range of its type, so
    that its value need not be the mathematical one. Syms that `env` lacks, and elements of views,
    may have any value of their type.
    """
    if not expr.dtype.is_integer:
        return None
    rule = _RULES.get(type(expr))
    result = expr.dtype.range() if rule is None else rule(expr, env)
    return result if result is not None and fits(result, expr.dtype) else None


def _read(expr: Read, env: Mapping[Sym, Interval]) -> Interval:
    return env.get(expr.sym) or expr.dtype.range()


def _cast(expr: Cast, env: Mapping[Sym, Interval]) -> Interval | None:
    source = expr.operand.dtype
    if not source.is_integer:
        return expr.dtype.range()  # from a float: any value (out of range is undefined)
    known = interval(expr.operand, env)
    if known is None:
        return None
    if expr.dtype is DType.BOOL:
        return int(known[0] > 0 or known[1] < 0), int(known != (0, 0))
    return known  # one that does not fit is caught by `interval`


def _unary(expr: Unary, env: Mapping[Sym, Interval]) -> Interval | None:
    known = interval(expr.operand, env)
    if known is None or expr.op == "+":
        return known
    low, high = known
    if expr.op == "-":
        return -high, -low
    if expr.op == "~":
        return -high - 1, -low - 1
    return 0, 1


def _select(expr: Select, env: Mapping[Sym, Interval]) -> Interval | None:
    then, orelse = interval(expr.then, env), interval(expr.orelse, env)
    if then is None or orelse is None:
        return None
    return min(then[0], orelse[0]), max(then[1], orelse[1])


def _call(expr: Call, env: Mapping[Sym, Interval]) -> Interval | None:
    if expr.name != "abs":
        return expr.dtype.range()
    known = interval(expr.args[0], env)
    return known and (max(known[0], -known[1], 0), max(-known[0], known[1]))


def _quotient(left: Interval, right: Interval) -> Interval | None:
    if right[0] <= 0 <= right[1]:
        return None
    corners = [_truncated(a, b) for a in left for b in right]
    return min(corners), max(corners)


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(left: Interval, right: Interval) -> Interval | None:
    if right[0] <= 0 <= right[1]:
        return None
    most = max(abs(right[0]), abs(right[1])) - 1
    return (max(left[0], -most) if left[0] < 0 else 0), (min(left[1], most) if left[1] > 0 else 0)


def _product(left: Interval, right: Interval) -> Interval:
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def _shift_left(left: Interval, right: Interval) -> Interval | None:
    if right[0] < 0 or right[1] > 63:
        return None
    return _product(left, (1 << right[0], 1 << right[1]))


def _shift_right(left: Interval, right: Interval) -> Interval | None:
    if right[0] < 0 or right[1] > 63:
        return None
    corners = [a >> b for a in left for b in right]
    return min(corners), max(corners)


def _mask(left: Interval, right: Interval) -> Interval | None:
    known = [high for low, high in (left, right) if low >= 0]
    return (0, min(known)) if known else None


def _or(left: Interval, right: Interval) -> Interval | None:
    if left[0] < 0 or right[0] < 0:
        return None
    return 0, (1 << max(left[1], right[1]).bit_length()) - 1


_BINARY: dict[str, Callable[[Interval, Interval], Interval | None]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _mask,
    "|": _or,
    "^": _or,
}


def _binary(expr: Binary, env: Mapping[Sym, Interval]) -> Interval | None:
    left, right = interval(expr.left, env), interval(expr.right, env)
    if left is None or right is None:
        return None
    return _BINARY[expr.op](left, right)


_RULES: dict[type, Callable[..., Interval | None]] = {
    Const: lambda expr, env: (int(expr.value), int(expr.value)),
    Read: _read,
    Extent: lambda expr, env: (0, _GREATEST_EXTENT),
    Cast: _cast,
    Unary: _unary,
    Binary: _binary,
    Compare: lambda expr, env: (0, 1),
    Logical: lambda expr, env: (0, 1),
    Select: _select,
    Call: _call,
}
