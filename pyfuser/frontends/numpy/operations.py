"""The operations that are recorded: NumPy's ufunc, and how a kernel computes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy import complex_numbers as c
from pyfuser.frontends.numpy import expressions as e
from pyfuser.frontends.numpy.expressions import FLOATS, Build
from pyfuser.ir.dtypes import DType
from pyfuser.support.records import dataclass

_REALS = frozenset(dtype for dtype in DType if not dtype.is_complex)
_INTEGERS = frozenset(dtype for dtype in _REALS if dtype.is_integer)
_NUMBERS = _REALS - {DType.BOOL}
_FLOATS = frozenset(FLOATS)
_ALL = _REALS | c.COMPLEX
_PRODUCTS = frozenset() if c.is_fused() is None else c.COMPLEX


@dataclass(frozen=True, eq=False)
class Operation:
    """An elementwise operation with one result.

    loops: the types of operands that kernels compute it for. divides: integers are divided, so the
    divisor has to be a number that cannot fail. ufunc: NumPy's; None: `where`, or a copy. costly:
    NumPy takes nanoseconds an element. called: what NumPy's warnings say, if not the ufunc's name.
    """

    name: str
    build: Build
    loops: frozenset[DType]
    ufunc: Any
    divides: bool = False
    costly: bool = False
    called: str = ""


def _ufunc(name: str, build: Build, loops: frozenset[DType], **more: Any) -> Operation:
    ufunc = getattr(np._core.umath, name)  # type: ignore[attr-defined]
    return Operation(name, build, loops, ufunc, **more)


_C_NAMES = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan",
    "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "expm1": "expm1", "log1p": "log1p", "log2": "log2", "log10": "log10", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "fabs": "fabs", "power": "pow", "hypot": "hypot",
    "arctan2": "atan2", "copysign": "copysign", "fmod": "fmod",
}  # fmt: skip

INEXACT = frozenset(_C_NAMES) - {"sqrt", "floor", "ceil", "trunc", "fabs", "copysign", "fmod"}
"""Operations whose results may differ from NumPy's by some units in the last place."""


# law: True
def is_exact(operation: Operation, loops: tuple[DType, ...]) -> bool:
    """Whether an operation on operands of such types has NumPy's bits."""
    of_complex = operation.name == "absolute" and loops[0].is_complex
    return operation.name not in INEXACT and not of_complex


_OF_COMPLEX = frozenset({"exp", "log", "sqrt"})
"""Of them, those of complex numbers: the C library's."""

_SYMBOLS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=",
}  # fmt: skip

_OPERATIONS = (
    _ufunc("add", e.add, _ALL),
    _ufunc("subtract", e.wrapping("-"), _NUMBERS | c.COMPLEX),
    _ufunc("multiply", c.of_both(e.multiply, c.multiply), _REALS | _PRODUCTS),
    _ufunc("divide", c.of_both(e.divide, c.divide), _FLOATS | c.COMPLEX),
    _ufunc("floor_divide", e.floor_divide, _NUMBERS, divides=True),
    _ufunc("remainder", e.remainder, _NUMBERS, divides=True),
    _ufunc("negative", e.negative, _NUMBERS | c.COMPLEX),
    _ufunc("positive", e.positive, _NUMBERS | c.COMPLEX),
    _ufunc("conjugate", c.conjugate, c.COMPLEX),
    _ufunc("absolute", c.of_both(e.absolute, c.absolute), _ALL),
    _ufunc("maximum", e.maximum, _REALS),
    _ufunc("minimum", e.minimum, _REALS),
    _ufunc("clip", e.clip, _NUMBERS),
    _ufunc("sign", e.sign, _NUMBERS),
    _ufunc("square", c.of_both(e.square, c.square), _NUMBERS | _PRODUCTS),
    _ufunc("reciprocal", e.reciprocal, _FLOATS),
    _ufunc("left_shift", e.left_shift, _INTEGERS - {DType.BOOL}),
    _ufunc("right_shift", e.right_shift, _INTEGERS - {DType.BOOL}),
    _ufunc("bitwise_and", e.wrapping("&"), _INTEGERS),
    _ufunc("bitwise_or", e.wrapping("|"), _INTEGERS),
    _ufunc("bitwise_xor", e.wrapping("^"), _INTEGERS),
    _ufunc("invert", e.invert, _INTEGERS),
    _ufunc("logical_and", e.logical("&&"), _REALS),
    _ufunc("logical_or", e.logical("||"), _REALS),
    _ufunc("logical_xor", e.logical_xor, _REALS),
    _ufunc("logical_not", e.logical_not, _REALS),
    *(
        _ufunc(name, e.comparison(symbol), _ALL if symbol in ("==", "!=") else _REALS)
        for name, symbol in _SYMBOLS.items()
    ),
    *(
        _ufunc(
            name,
            e.function(c_name),
            _FLOATS | c.COMPLEX if name in _OF_COMPLEX else _FLOATS,
            costly=name in INEXACT,
        )
        for name, c_name in _C_NAMES.items()
    ),
    *(_ufunc(name, e.classification(name), _FLOATS) for name in ("isnan", "isinf", "isfinite")),
)

OPERATIONS: dict[Any, Operation] = {operation.ufunc: operation for operation in _OPERATIONS}
"""By NumPy's ufunc."""

NAMED: dict[str, Operation] = {operation.name: operation for operation in _OPERATIONS}

COPY = Operation("copy", e.positive, _ALL, None)
WHERE = Operation("where", c.of_both(e.choose, c.choose), _ALL, None)


@dataclass(frozen=True, eq=False)
class Conversion:
    """A copy of an array as a method makes it. dtype: that it asks for; None: the array's own, and
    in row-major order.
    """

    dtype: Any
    name: str = "copy"
    divides: bool = False
    costly: bool = False


SAME = Conversion(None)

CONVERSIONS: dict[Any, Conversion] = {
    key: conversion
    for kind in DType
    if kind in _REALS
    for conversion in (Conversion(kind.numpy),)
    for key in (kind.numpy, kind.numpy.type, kind.numpy.name)
} | {python: Conversion(np.dtype(python)) for python in (float, int, bool)}
"""What `x.astype(key)` is."""
