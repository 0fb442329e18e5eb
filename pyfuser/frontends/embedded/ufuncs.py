"""PyKokkos' element-by-element functions: `pk.sqrt(view)`, `pk.add(a, b)` and the like.

Each returns a new View of the operand's data type, unless it says otherwise; of numbers, a number.
They work on Views of floating-point numbers, unless they say otherwise. Parameters are called as
PyKokkos calls them. Those of two operands raise ValueError for shapes that do not fit.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.data_types import bool as boolean
from pyfuser.frontends.embedded.data_types import uint8
from pyfuser.frontends.embedded.elementwise import (
    common_shape,
    compute,
    dtype_of,
    incompatible,
    of_numbers,
    view_of,
)
from pyfuser.frontends.embedded.views import View, ViewType


def _floats(*operands: Any) -> None:
    for x in operands:
        if isinstance(x, ViewType) and not x._region.dtype.is_float:
            raise incompatible(x)


def _unary(name: str, expression: str, view: Any, label: str | None = None) -> Any:
    view = view_of(view)
    if not isinstance(view, ViewType):
        return of_numbers(expression, view)
    _floats(view)
    return compute(name, expression, View(view.shape, dtype_of(view)), [view], label)


def _named(function: Callable[..., Any], name: str, doc: str) -> Any:
    """A function that was made here, as if it had a `def` of its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _of_one(name: str, expression: str, doc: str) -> Any:
    """A function of a View of floating-point numbers."""

    def function(view: Any, profiler_name: str | None = None) -> Any:
        return _unary(name, expression, view, profiler_name)

    return _named(function, name, doc)


def _of_any(name: str, expression: str, doc: str, dtype: Any = None) -> Any:
    """A function of a View of any data type. dtype: of the result, if it is another."""

    def function(view: Any, profiler_name: str | None = None) -> Any:
        view = view_of(view)
        if not isinstance(view, ViewType):
            return of_numbers(expression, view)
        out = View(view.shape, dtype_of(view) if dtype is None else dtype)
        return compute(name, expression, out, [view], profiler_name)

    return _named(function, name, doc)


def _rounded(name: str, doc: str) -> Any:
    """A function that gives integers: a View of integers itself."""

    def function(view: Any, profiler_name: str | None = None) -> Any:
        if isinstance(view, ViewType) and view._region.dtype.is_integer:
            return view
        return _unary(name, f"{name}({{a}})", view, profiler_name)

    return _named(function, name, doc)


def reciprocal(view: Any, profiler_name: str | None = None) -> Any:
    """1 / view, in place; returns the View."""
    _floats(view)
    return compute("reciprocal", "1 / {a}", view, [view], profiler_name)


def log(view: Any, profiler_name: str | None = None) -> Any:
    """Natural logarithm; of a number, a number."""
    if not isinstance(view, ViewType):
        return math.log(view)
    return _unary("log", "log({a})", view, profiler_name)


def sqrt(view: Any) -> Any:
    """Square root; of a NumPy number, a number."""
    if isinstance(view, (np.integer, np.floating)):
        return math.sqrt(view)
    return _unary("sqrt", "sqrt({a})", view)


log2 = _of_one("log2", "log2({a})", "Logarithm to the base of 2.")
log10 = _of_one("log10", "log10({a})", "Logarithm to the base of 10.")
log1p = _of_one("log1p", "log1p({a})", "log(1 + x).")
negative = _of_one("negative", "-{a}", "-x.")
sin = _of_one("sin", "sin({a})", "Sine.")
cos = _of_one("cos", "cos({a})", "Cosine.")
tan = _of_one("tan", "tan({a})", "Tangent.")
tanh = _of_one("tanh", "tanh({a})", "Hyperbolic tangent.")
exp = _of_one("exp", "exp({a})", "The exponential.")
exp2 = _of_one("exp2", "pow(2, {a})", "2 to the power of x.")

sign = _of_any("sign", "{a} if {a} != {a} else ({a} > 0) - ({a} < 0)", "-1, 0, 1; of NaN, NaN.")
positive = _of_any("positive", "{a}", "A copy.")
square = _of_any("square", "{a} * {a}", "The square x * x.")
logical_not = _of_any("logical_not", "not {a}", "Whether x is 0, as a View of `pk.uint8`.", uint8)
isnan = _of_any("isnan", "isnan({a})", "Whether x is NaN, as a View of `pk.bool`.", boolean)
isinf = _of_any("isinf", "isinf({a})", "Whether x is infinite, as a View of `pk.bool`.", boolean)
isfinite = _of_any(
    "isfinite",
    "isfinite({a})",
    "Whether x is neither infinite nor NaN, as a View of `pk.bool`.",
    boolean,
)

round = _rounded("round", "The nearest integer, halves away from 0; a View of integers itself.")
trunc = _rounded("trunc", "The integer towards 0; a View of integers itself.")
ceil = _rounded("ceil", "The integer not below x; a View of integers itself.")
floor = _rounded("floor", "The integer not above x; a View of integers itself.")


# --------------------------------------------------------------------------- two operands


def _number(x: Any) -> Any:
    """A number as the double that PyKokkos makes of it; a View of one element stays one."""
    x = view_of(x)
    return x if isinstance(x, ViewType) else builtins.float(x)


def _binary(
    name: str,
    expression: str,
    a: Any,
    b: Any,
    label: str | None = None,
    dtype: Any = None,
    by_rows: bool = False,
) -> Any:
    operands = _number(a), _number(b)
    views = [x for x in operands if isinstance(x, ViewType)]
    if not views:
        return of_numbers(expression, *operands)
    if len({view._region.dtype for view in views}) > 1:
        raise incompatible(*views)
    _floats(*views)
    out = View(common_shape(operands), dtype_of(views[0]) if dtype is None else dtype)
    return compute(name, expression, out, operands, label, by_rows)


def _same_rank_2(name: str, a: Any, b: Any) -> None:
    shapes = [getattr(x, "shape", ()) for x in (a, b)]
    if len(shapes[0]) == len(shapes[1]) == 2 and shapes[0] != shapes[1]:
        raise RuntimeError(
            f"2D views must have the same shape for {name} ufunc. Mismatch: "
            f"{shapes[0]} and {shapes[1]}"
        )


def add(viewA: Any, viewB: Any, profiler_name: str | None = None) -> Any:
    """Sum; a View of rank 1 is added to each row of one of rank 2."""
    _same_rank_2("add", viewA, viewB)
    return _binary("add", "{a} + {b}", viewA, viewB, profiler_name)


def multiply(viewA: Any, viewB: Any, profiler_name: str | None = None) -> Any:
    """Product; an element of a View of rank 1 multiplies a whole row of one of rank 2."""
    _same_rank_2("multiply", viewA, viewB)
    return _binary("multiply", "{a} * {b}", viewA, viewB, profiler_name, by_rows=True)


def subtract(viewA: Any, valB: Any, profiler_name: str | None = None) -> Any:
    """Difference; shapes are broadcast as NumPy does."""
    return _binary("subtract", "{a} - {b}", viewA, valB, profiler_name)


def _of_two(name: str, expression: str, doc: str, dtype: Any = None) -> Any:
    """A function of two operands. dtype: of the result, if it is not theirs."""

    def function(viewA: Any, viewB: Any, profiler_name: str | None = None) -> Any:
        return _binary(name, expression, viewA, viewB, profiler_name, dtype)

    return _named(function, name, doc)


divide = _of_two(
    "divide", "{a} / {b}", "Quotient; a View of rank 1 divides each row of one of rank 2."
)
true_divide = divide
floor_divide = _of_two(
    "floor_divide",
    "{a} // {b}",
    "`a // b` as workunits have it: the quotient as an int of 32 bits, truncated.",
)
power = _of_two("power", "pow({a}, {b})", "The power a ** b.")
fmod = _of_two("fmod", "fmod({a}, {b})", "C's remainder, with the sign of a.")
fmax = _of_two("fmax", "fmax({a}, {b})", "The greater; a number beside NaN is that number.")
fmin = _of_two("fmin", "fmin({a}, {b})", "The smaller; a number beside NaN is that number.")
logaddexp = _of_two(
    "logaddexp", "log(exp({a}) + exp({b}))", "log(exp(a) + exp(b)), computed as it stands."
)
logaddexp2 = _of_two(
    "logaddexp2", "log2(pow(2, {a}) + pow(2, {b}))", "log2(2**a + 2**b), computed as it stands."
)
greater = _of_two("greater", "{a} > {b}", "Whether a > b, as a View of `pk.uint8`.", uint8)
logical_and = _of_two(
    "logical_and", "{a} and {b}", "Whether neither is 0, as a View of `pk.uint8`.", uint8
)
logical_or = _of_two(
    "logical_or", "{a} or {b}", "Whether one is not 0, as a View of `pk.uint8`.", uint8
)
logical_xor = _of_two(
    "logical_xor",
    "bool({a}) ^ bool({b})",
    "Whether exactly one is not 0, as a View of `pk.uint8`.",
    uint8,
)


def equal(view1: Any, view2: Any, profiler_name: str | None = None) -> Any:
    """Whether a == b, as a View of `pk.bool`; of any data types, broadcast as NumPy does."""
    operands = view_of(view1), view_of(view2)
    if builtins.all(getattr(x, "size", 1) == 0 for x in operands):
        return compute("equal", "True", View((), boolean), [], profiler_name)
    out = View(common_shape(operands), boolean)
    return compute("equal", "{a} == {b}", out, operands, profiler_name)


def copyto(viewA: Any, viewB: Any, profiler_name: str | None = None) -> None:
    """Copy viewB, broadcast as NumPy does, into viewA; any data types.

    Raises ValueError for what is no View, or does not broadcast to viewA's shape.
    """
    if not (isinstance(viewA, ViewType) and isinstance(viewB, ViewType)):
        raise ValueError("copyto: copies from a View to a View")
    _broadcast(viewA, viewB, profiler_name)


def broadcast_view(val: Any, viewB: Any) -> View:
    """A View of viewB's shape and type, filled with a number or a smaller View.

    Raises ValueError where `val` does not broadcast to that shape.
    """
    out = View(viewB.shape, dtype_of(viewB))
    _broadcast(out, val)
    return out


def _broadcast(out: Any, value: Any, label: str | None = None) -> None:
    value = view_of(value)
    shape = getattr(value, "shape", ())
    try:
        fits = np.broadcast_shapes(out.shape, shape) == out.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"Views must be broadcastable: {shape} to {out.shape}")
    compute("copyto", "{a}", out, [value], label)
