"""PyKokkos' element-by-element functions: `pk.sqrt(view)`, `pk.add(a, b)` and the like.

Each returns a new View of the operand's data type, unless it says otherwise; of numbers, a number.
They work on Views of floating-point numbers, unless they say otherwise. Parameters are called as
PyKokkos calls them. Those of two operands raise ValueError for shapes that do not fit.
"""

from __future__ import annotations

import builtins
import math
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


def _any_type(
    name: str, expression: str, view: Any, dtype: Any = None, label: str | None = None
) -> Any:
    view = view_of(view)
    if not isinstance(view, ViewType):
        return of_numbers(expression, view)
    out = View(view.shape, dtype_of(view) if dtype is None else dtype)
    return compute(name, expression, out, [view], label)


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


def log2(view: Any) -> Any:
    """Logarithm to the base of 2."""
    return _unary("log2", "log2({a})", view)


def log10(view: Any) -> Any:
    """Logarithm to the base of 10."""
    return _unary("log10", "log10({a})", view)


def log1p(view: Any) -> Any:
    """log(1 + x)."""
    return _unary("log1p", "log1p({a})", view)


def sign(view: Any) -> Any:
    """-1, 0 or 1, and NaN for NaN; of any data type."""
    return _any_type("sign", "{a} if {a} != {a} else ({a} > 0) - ({a} < 0)", view)


def negative(view: Any, profiler_name: str | None = None) -> Any:
    """-x."""
    return _unary("negative", "-{a}", view, profiler_name)


def positive(view: Any) -> Any:
    """A copy; of any data type."""
    return _any_type("positive", "{a}", view)


def square(view: Any) -> Any:
    """The square x * x; of any data type."""
    return _any_type("square", "{a} * {a}", view)


def sin(view: Any, profiler_name: str | None = None) -> Any:
    """Sine."""
    return _unary("sin", "sin({a})", view, profiler_name)


def cos(view: Any) -> Any:
    """Cosine."""
    return _unary("cos", "cos({a})", view)


def tan(view: Any, profiler_name: str | None = None) -> Any:
    """Tangent."""
    return _unary("tan", "tan({a})", view, profiler_name)


def tanh(view: Any, profiler_name: str | None = None) -> Any:
    """Hyperbolic tangent."""
    return _unary("tanh", "tanh({a})", view, profiler_name)


def exp(view: Any, profiler_name: str | None = None) -> Any:
    """The exponential."""
    return _unary("exp", "exp({a})", view, profiler_name)


def exp2(view: Any) -> Any:
    """2 to the power of x."""
    return _unary("exp2", "pow(2, {a})", view)


def logical_not(view: Any) -> Any:
    """Whether x is 0, as a View of `pk.uint8`."""
    return _any_type("logical_not", "not {a}", view, uint8)


def isnan(view: Any, profiler_name: str | None = None) -> Any:
    """Whether x is not a number, as a View of `pk.bool`; of any data type."""
    return _any_type("isnan", "isnan({a})", view, boolean, profiler_name)


def isinf(view: Any, profiler_name: str | None = None) -> Any:
    """Whether x is infinite, as a View of `pk.bool`; of any data type."""
    return _any_type("isinf", "isinf({a})", view, boolean, profiler_name)


def isfinite(view: Any, profiler_name: str | None = None) -> Any:
    """Whether x is neither infinite nor NaN, as a View of `pk.bool`; of any data type."""
    return _any_type("isfinite", "isfinite({a})", view, boolean, profiler_name)


def _rounded(name: str, view: Any, label: str | None) -> Any:
    if isinstance(view, ViewType) and view._region.dtype.is_integer:
        return view
    return _unary(name, f"{name}({{a}})", view, label)


def round(view: Any, profiler_name: str | None = None) -> Any:
    """The nearest integer, halves away from 0; a View of integers itself."""
    return _rounded("round", view, profiler_name)


def trunc(view: Any, profiler_name: str | None = None) -> Any:
    """The integer towards 0; a View of integers itself."""
    return _rounded("trunc", view, profiler_name)


def ceil(view: Any, profiler_name: str | None = None) -> Any:
    """The integer not below x; a View of integers itself."""
    return _rounded("ceil", view, profiler_name)


def floor(view: Any, profiler_name: str | None = None) -> Any:
    """The integer not above x; a View of integers itself."""
    return _rounded("floor", view, profiler_name)


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


def divide(viewA: Any, viewB: Any, profiler_name: str | None = None) -> Any:
    """Quotient; a View of rank 1 divides each row of one of rank 2."""
    return _binary("divide", "{a} / {b}", viewA, viewB, profiler_name)


def true_divide(viewA: Any, viewB: Any) -> Any:
    """The same as `divide`."""
    return divide(viewA, viewB)


def floor_divide(viewA: Any, viewB: Any) -> Any:
    """`a // b` as workunits have it: the quotient as an int of 32 bits, truncated."""
    return _binary("floor_divide", "{a} // {b}", viewA, viewB)


def power(viewA: Any, viewB: Any) -> Any:
    """The power a ** b."""
    return _binary("power", "pow({a}, {b})", viewA, viewB)


def fmod(viewA: Any, viewB: Any) -> Any:
    """C's remainder, with the sign of a."""
    return _binary("fmod", "fmod({a}, {b})", viewA, viewB)


def fmax(viewA: Any, viewB: Any) -> Any:
    """The greater; a number beside NaN is that number."""
    return _binary("fmax", "fmax({a}, {b})", viewA, viewB)


def fmin(viewA: Any, viewB: Any) -> Any:
    """The smaller; a number beside NaN is that number."""
    return _binary("fmin", "fmin({a}, {b})", viewA, viewB)


def logaddexp(viewA: Any, viewB: Any) -> Any:
    """log(exp(a) + exp(b)), computed as it stands."""
    return _binary("logaddexp", "log(exp({a}) + exp({b}))", viewA, viewB)


def logaddexp2(viewA: Any, viewB: Any) -> Any:
    """log2(2**a + 2**b), computed as it stands."""
    return _binary("logaddexp2", "log2(pow(2, {a}) + pow(2, {b}))", viewA, viewB)


def greater(viewA: Any, viewB: Any) -> Any:
    """Whether a > b, as a View of `pk.uint8`."""
    return _binary("greater", "{a} > {b}", viewA, viewB, dtype=uint8)


def logical_and(viewA: Any, viewB: Any) -> Any:
    """Whether neither is 0, as a View of `pk.uint8`."""
    return _binary("logical_and", "{a} and {b}", viewA, viewB, dtype=uint8)


def logical_or(viewA: Any, viewB: Any) -> Any:
    """Whether one is not 0, as a View of `pk.uint8`."""
    return _binary("logical_or", "{a} or {b}", viewA, viewB, dtype=uint8)


def logical_xor(viewA: Any, viewB: Any) -> Any:
    """Whether exactly one is not 0, as a View of `pk.uint8`."""
    return _binary("logical_xor", "bool({a}) ^ bool({b})", viewA, viewB, dtype=uint8)


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
