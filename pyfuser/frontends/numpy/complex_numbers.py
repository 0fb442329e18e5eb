"""NumPy's arithmetic of complex numbers, as expressions of their parts.

The law: the bits are NumPy's. Its products round once where its loops were compiled for a processor
that does (`_fused` asks NumPy), and the first operand's parts are factors of the rounded products.
"""

from __future__ import annotations

import numpy as np

from pyfuser.frontends.numpy.expressions import BOOL, Build, Code, cast
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Call, Compare, Const, Expr, Logical, Select, Unary
from pyfuser.support.caches import once

PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
COMPLEX = frozenset(PARTS)


def parts(code: Code, z: Expr) -> tuple[Expr, Expr]:
    """The real and the imaginary part."""
    kind = PARTS[z.dtype]
    return code.let(Call("real", (z,), kind)), code.let(Call("imag", (z,), kind))


def _of(re: Expr, im: Expr) -> Expr:
    dtype = DType.COMPLEX64 if re.dtype is DType.FLOAT32 else DType.COMPLEX128
    return Call("complex", (re, im), dtype)


@once
def is_fused() -> bool | None:
    """Whether NumPy's products round once; None: in some other way."""
    tiny = 2.0**-30
    x = np.full(9, complex(1 + tiny, 1))
    y = np.full(9, complex(1 + tiny, 1))
    real = (x * y).real
    if (real == (1 + tiny) ** 2 - 1).all():
        return False
    return True if (real == 2 * tiny + tiny * tiny).all() else None


def _products(a: Expr, b: Expr, op: str, c: Expr, d: Expr) -> Expr:
    """The sum `a * b + c * d`, or the difference."""
    kind = a.dtype
    last: Expr = Binary("*", c, d)
    if not is_fused():
        return Binary(op, Binary("*", a, b), last)
    return Call("fma", (a, b, last if op == "+" else Unary("-", last, kind)), kind)


def multiply(code: Code, x: Expr, y: Expr) -> Expr:
    (a, b), (c, d) = parts(code, x), parts(code, y)
    return _of(_products(a, c, "-", b, d), _products(a, d, "+", b, c))


def square(code: Code, x: Expr) -> Expr:
    return multiply(code, x, x)


def divide(code: Code, x: Expr, y: Expr) -> Expr:
    """Smith's algorithm (Communications of the ACM 5 (1962) 435), as NumPy has it."""
    (a, b), (c, d) = parts(code, x), parts(code, y)
    kind = a.dtype
    most, least = (code.let(Call("fabs", (part,), kind)) for part in (c, d))
    flat = code.let(Compare(">=", most, least))
    first, second = code.let(Select(flat, c, d)), code.let(Select(flat, d, c))
    ratio = code.let(Binary("/", second, first))
    whole = Binary("+", first, Binary("*", second, ratio))
    scale = code.let(Binary("/", Const(1.0, kind), whole))
    one, other = code.let(Select(flat, a, b)), code.let(Select(flat, b, a))
    rest = code.let(Binary("*", one, ratio))
    re = Binary("+", one, Binary("*", other, ratio))
    im = Select(flat, Binary("-", other, rest), Binary("-", rest, other))
    none = code.let(
        Logical("&&", Compare("==", most, _zero(kind)), Compare("==", least, _zero(kind)))
    )
    return _of(
        Select(none, Binary("/", a, most), Binary("*", re, scale)),
        Select(none, Binary("/", b, most), Binary("*", im, scale)),
    )


def _zero(kind: DType) -> Expr:
    return Const(0.0, kind)


def conjugate(code: Code, x: Expr) -> Expr:
    re, im = parts(code, x)
    return _of(re, Unary("-", im, im.dtype))


def absolute(code: Code, x: Expr) -> Expr:
    re, im = parts(code, x)
    return Call("hypot", (re, im), re.dtype)


def choose(code: Code, condition: Expr, x: Expr, y: Expr) -> Expr:
    (a, b), (c, d) = parts(code, x), parts(code, y)
    chosen = code.let(cast(condition, BOOL))
    return _of(Select(chosen, a, c), Select(chosen, b, d))


def of_both(real: Build, of_complex: Build) -> Build:
    """An operation on numbers of either kind."""

    def build(code: Code, *operands: Expr) -> Expr:
        return (of_complex if operands[-1].dtype.is_complex else real)(code, *operands)

    return build
