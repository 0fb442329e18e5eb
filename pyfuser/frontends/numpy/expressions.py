"""NumPy's arithmetic as expressions of the ir, which are C++'s.

Operands have the types of NumPy's loop; so has what a function here returns. Where C++ differs
(floors, remainders, shifts, narrow integers, NaNs), these say how NumPy computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyfuser.ir.dtypes import DType, integral_promotion
from pyfuser.ir.nodes import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Logical,
    Read,
    Select,
    Stmt,
    Sym,
    Unary,
)

BOOL = DType.BOOL
FLOATS = DType.FLOAT32, DType.FLOAT64


class Code:
    """The body of a workunit while it is made, or a part of it (of another Code)."""

    def __init__(self, first: int | Code) -> None:
        self.statements: list[Stmt] = []
        self._next: list[int] = first._next if isinstance(first, Code) else [first]

    def sym(self, name: str, dtype: DType) -> Sym:
        """A new local; nothing declares it yet."""
        self._next[0] += 1
        return Sym(name, self._next[0] - 1, dtype)

    def let(self, value: Expr, name: str = "") -> Expr:
        """A value as a local, so that it is computed once."""
        if isinstance(value, (Read, Const)):
            return value
        sym = self.sym(name or f"t{self._next[0]}", value.dtype)
        self.statements.append(Declare(sym, value))
        return Read(sym)


Build: TypeAlias = Callable[..., Expr]  # (code, *operands) -> result


def cast(value: Expr, dtype: DType) -> Expr:
    """A conversion as NumPy's assignment does it."""
    if value.dtype is dtype:
        return value
    if dtype is BOOL:
        return Compare("!=", value, zero(value.dtype))
    return Cast(value, dtype)


def zero(dtype: DType) -> Const:
    if dtype.is_complex:
        return Const(0j, dtype)
    return number(0, dtype)


def number(value: int, dtype: DType) -> Const:
    """A small integer as a constant of any real type."""
    if dtype is BOOL:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else value, dtype)


def _wide(value: Expr) -> Expr:
    """An integer as C++ computes with it."""
    return cast(value, integral_promotion(value.dtype))


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """An operation on two numbers of one type; integers wrap."""
    dtype = left.dtype
    return cast(Binary(op, _wide(left), _wide(right)), dtype)


def is_nan(x: Expr) -> Expr:
    return Compare("!=", x, x)


def add(code: Code, x: Expr, y: Expr) -> Expr:
    return Logical("||", x, y) if x.dtype is BOOL else arithmetic("+", x, y)


def multiply(code: Code, x: Expr, y: Expr) -> Expr:
    return Logical("&&", x, y) if x.dtype is BOOL else arithmetic("*", x, y)


def divide(code: Code, x: Expr, y: Expr) -> Expr:
    return Binary("/", x, y)


def _divmod(code: Code, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """NumPy's `npy_divmod` of floats: the floor of a quotient, and the remainder; y is not 0."""
    nought = zero(x.dtype)
    mod = code.let(Call("fmod", (x, y), x.dtype))
    quotient = code.let(Binary("/", Binary("-", x, mod), y))
    other = code.let(
        Logical(
            "&&",
            Compare("!=", mod, nought),
            Compare("!=", Compare("<", y, nought), Compare("<", mod, nought)),
        )
    )
    quotient = code.let(
        Select(other, Binary("-", quotient, number(1, x.dtype)), quotient),
    )
    signed = Call("copysign", (nought, y), x.dtype)
    remainder = code.let(
        Select(other, Binary("+", mod, y), Select(Compare("!=", mod, nought), mod, signed))
    )
    down = code.let(Call("floor", (quotient,), x.dtype))
    half = Const(0.5, x.dtype)
    nearest = Select(
        Compare(">", Binary("-", quotient, down), half),
        Binary("+", down, number(1, x.dtype)),
        down,
    )
    exact = Call("copysign", (nought, Binary("/", x, y)), x.dtype)
    return code.let(Select(Compare("!=", quotient, nought), nearest, exact)), remainder


def floor_divide(code: Code, x: Expr, y: Expr) -> Expr:
    """Of integers only by a number that is neither 0 nor -1."""
    nought = zero(x.dtype)
    if x.dtype.is_float:
        floor, _ = _divmod(code, x, y)
        return Select(Compare("==", y, nought), Binary("/", x, y), floor)
    wide, divisor = code.let(_wide(x)), code.let(_wide(y))
    quotient = code.let(Binary("/", wide, divisor))
    if not x.dtype.is_signed:
        return cast(quotient, x.dtype)
    rest = code.let(Binary("-", wide, Binary("*", quotient, divisor)))
    below = Binary("-", quotient, number(1, quotient.dtype))
    return cast(Select(_opposed(rest, divisor), below, quotient), x.dtype)


def _opposed(rest: Expr, divisor: Expr) -> Expr:
    nought = zero(rest.dtype)
    signs = Compare("!=", Compare("<", rest, nought), Compare("<", divisor, nought))
    return Logical("&&", Compare("!=", rest, nought), signs)


def remainder(code: Code, x: Expr, y: Expr) -> Expr:
    """As `floor_divide`."""
    if x.dtype.is_float:
        _, rest = _divmod(code, x, y)
        return Select(Compare("==", y, zero(x.dtype)), Call("fmod", (x, y), x.dtype), rest)
    wide, divisor = code.let(_wide(x)), code.let(_wide(y))
    rest = code.let(Binary("%", wide, divisor))
    if not x.dtype.is_signed:
        return cast(rest, x.dtype)
    return cast(Select(_opposed(rest, divisor), Binary("+", rest, divisor), rest), x.dtype)


def negative(code: Code, x: Expr) -> Expr:
    return cast(Unary("-", _wide(x), integral_promotion(x.dtype)), x.dtype)


def positive(code: Code, x: Expr) -> Expr:
    return x


def absolute(code: Code, x: Expr) -> Expr:
    if x.dtype.is_float:
        return Call("fabs", (x,), x.dtype)
    if not x.dtype.is_signed:
        return x
    return Select(Compare("<", x, zero(x.dtype)), negative(code, x), x)


def maximum(code: Code, x: Expr, y: Expr) -> Expr:
    """Of equal numbers the second, as NumPy's vectors have it (0.0 and -0.0 are equal)."""
    return _extreme(">", x, y)


def minimum(code: Code, x: Expr, y: Expr) -> Expr:
    return _extreme("<", x, y)


def _extreme(op: str, x: Expr, y: Expr) -> Expr:
    chosen = Select(Compare(op, x, y), x, y)
    return Select(is_nan(x), x, chosen) if x.dtype.is_float else chosen


def clip(code: Code, x: Expr, low: Expr, high: Expr) -> Expr:
    """Between two numbers that are no NaNs; of equal numbers `x`."""
    above = code.let(Select(Compare("<", x, low), low, x))
    return Select(Compare(">", above, high), high, above)


def sign(code: Code, x: Expr) -> Expr:
    nought = zero(x.dtype)
    rest: Expr = Select(Compare("==", x, nought), nought, x) if x.dtype.is_float else nought
    if x.dtype.is_float or x.dtype.is_signed:
        rest = Select(Compare("<", x, nought), number(-1, x.dtype), rest)
    return Select(Compare(">", x, nought), number(1, x.dtype), rest)


def square(code: Code, x: Expr) -> Expr:
    return arithmetic("*", x, x)


def reciprocal(code: Code, x: Expr) -> Expr:
    return Binary("/", number(1, x.dtype), x)


def left_shift(code: Code, x: Expr, y: Expr) -> Expr:
    return _shift("<<", code, x, y, zero(x.dtype))


def right_shift(code: Code, x: Expr, y: Expr) -> Expr:
    nought = zero(x.dtype)
    if not x.dtype.is_signed:
        return _shift(">>", code, x, y, nought)
    return _shift(">>", code, x, y, Select(Compare("<", x, nought), number(-1, x.dtype), nought))


def _shift(op: str, code: Code, x: Expr, y: Expr, beyond: Expr) -> Expr:
    """Counts from the number of bits on, and negative ones, give `beyond`."""
    bits = 8 * x.dtype.size
    wide = code.let(cast(y, DType.INT64 if y.dtype.is_signed else DType.UINT64))
    inside: Expr = Compare("<", wide, number(bits, wide.dtype))
    if wide.dtype.is_signed:
        inside = Logical("&&", Compare(">=", wide, zero(wide.dtype)), inside)
    inside = code.let(inside)
    count = code.let(Select(inside, wide, zero(wide.dtype)))
    return Select(inside, cast(Binary(op, _wide(x), count), x.dtype), beyond)


def wrapping(op: str) -> Build:
    """`-`, `&`, `|` or `^`; integers wrap."""

    def build(code: Code, x: Expr, y: Expr) -> Expr:
        return arithmetic(op, x, y)

    return build


def invert(code: Code, x: Expr) -> Expr:
    if x.dtype is BOOL:
        return Unary("!", x, BOOL)
    return cast(Unary("~", _wide(x), integral_promotion(x.dtype)), x.dtype)


def comparison(op: str) -> Build:
    """`==`, `<` and so on; of bools, too."""

    def build(code: Code, x: Expr, y: Expr) -> Expr:
        return Compare(op, x, y)

    return build


def logical(op: str) -> Build:
    """`&&` or `||` of what is not 0."""

    def build(code: Code, x: Expr, y: Expr) -> Expr:
        return Logical(op, cast(x, BOOL), cast(y, BOOL))

    return build


def logical_xor(code: Code, x: Expr, y: Expr) -> Expr:
    return Compare("!=", cast(x, BOOL), cast(y, BOOL))


def logical_not(code: Code, x: Expr) -> Expr:
    return Unary("!", cast(x, BOOL), BOOL)


def function(name: str) -> Build:
    """A function of the C library's, of floats."""

    def build(code: Code, *operands: Expr) -> Expr:
        return Call(name, operands, operands[0].dtype)

    return build


def classification(name: str) -> Build:
    """`isnan` and the like, of floats."""

    def build(code: Code, x: Expr) -> Expr:
        return Call(name, (x,), BOOL)

    return build


def choose(code: Code, condition: Expr, x: Expr, y: Expr) -> Expr:
    return Select(cast(condition, BOOL), x, y)
