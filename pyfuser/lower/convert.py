"""C++'s conversions, made explicit: every function here builds an expression with its Casts."""

from __future__ import annotations

from pyfuser.ir import maths
from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.ir.nodes import Binary, Call, Cast, Compare, Const, Expr, SourceLocation, Unary


class TypeMismatch(Exception):
    """C++ has no such operation for these types; the message is meant for the user."""


def cast(expr: Expr, dtype: DType) -> Expr:
    """The implicit conversion to `dtype`; raises TypeMismatch for complex to real."""
    if expr.dtype is dtype:
        return expr
    if expr.dtype.is_complex and not dtype.is_complex:
        raise TypeMismatch(
            f"a {expr.dtype.value} value cannot become {dtype.value}: store it in a complex view"
        )
    return Cast(expr, dtype)


def condition(expr: Expr) -> Expr:
    """The expression as a bool."""
    return cast(expr, DType.BOOL)


def promoted(expr: Expr) -> Expr:
    """The expression after integral promotion."""
    return cast(expr, integral_promotion(expr.dtype))


def operation_type(op: str, left: DType, right: DType) -> DType:
    """The type in which C++ computes `left op right`; raises TypeMismatch where it does not."""
    if op in ("<<", ">>"):
        _integers(op, left, right)
        return integral_promotion(left)
    if op in ("%", "&", "|", "^"):
        _integers(op, left, right)
    return common_type(left, right)


def binary(op: str, left: Expr, right: Expr, location: SourceLocation | None = None) -> Binary:
    """`left op right` as C++ computes it (`/` of integers is the integers' division)."""
    dtype = operation_type(op, left.dtype, right.dtype)
    if op in ("<<", ">>"):
        return Binary(op, cast(left, dtype), promoted(right), location)
    return Binary(op, cast(left, dtype), cast(right, dtype), location)


def true_division(left: Expr, right: Expr) -> Binary:
    """Python's `/`: in double precision whatever the operands."""
    dtype = common_type(common_type(left.dtype, right.dtype), DType.FLOAT64)
    return Binary("/", cast(left, dtype), cast(right, dtype))


def floor_division(
    left: Expr,
    right: Expr,
    result: DType = DType.INT32,
    location: SourceLocation | None = None,
) -> Expr:
    """Python's `//` as PyKokkos has it: C++'s division, truncated to an int.

    `result` is the type of indices: spaces past 2**31 need halves of their indices in 64 bits.
    """
    return cast(binary("/", left, right, location), result)


def compare(op: str, left: Expr, right: Expr) -> Compare:
    """A comparison in the operands' common type."""
    dtype = common_type(left.dtype, right.dtype)
    if dtype.is_complex and op not in ("==", "!="):
        raise TypeMismatch("complex numbers have no order: compare their parts or abs()")
    return Compare(op, cast(left, dtype), cast(right, dtype))


def unary(op: str, operand: Expr) -> Expr:
    """A unary operation; a minus before a number is part of the number."""
    if op == "!":
        return Unary("!", condition(operand), DType.BOOL)
    if op == "~" and not operand.dtype.is_integer:
        raise TypeMismatch(f"'~' needs an integer, not {operand.dtype.value}")
    if op == "-" and type(operand) is Const and _negates_exactly(operand):
        return Const(-operand.value, operand.dtype)  # type: ignore[operator]
    value = promoted(operand)
    return Unary(op, value, value.dtype)


def _negates_exactly(number: Const) -> bool:
    if number.dtype in (DType.INT32, DType.INT64):
        return isinstance(number.value, int) and number.value >= 0
    return number.dtype.is_float


def _integers(op: str, left: DType, right: DType) -> None:
    if left.is_integer and right.is_integer:
        return
    wrong = right if left.is_integer else left
    hint = _INSTEAD.get(op, "; convert with int(...)")
    raise TypeMismatch(f"'{op}' needs integers, not {wrong.value}{hint}")


_INSTEAD = {"%": "; use fmod(a, b)", "^": "; a power is a ** b, convert others with int(...)"}


def call(name: str, args: tuple[Expr, ...]) -> Expr:
    """A call of a function of the language, with its arguments converted to the overload's type."""
    found = maths.overload(name, [arg.dtype for arg in args])
    if found is None:
        kinds = ", ".join(arg.dtype.value for arg in args)
        raise TypeMismatch(f"there is no {name}({kinds})")
    return Call(name, tuple(cast(arg, found.operand) for arg in args), found.result)
