"""The functions of the language: arity, C++ overloads, cost, and how to evaluate them.

Argument and result types follow `<cmath>`: all-float32 arguments give float32, any integer argument
counts as float64. `evaluate` is what the reference interpreter computes with: exact where IEEE 754
defines the result (sqrt, floor, fmin, ...), else the C library's own function, because that is what
compiled scalar code calls.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.support.caches import once

VARIADIC = -1


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One function of the language.

    arity: how many arguments (VARIADIC: any number).
    rule: how its types follow from its arguments' (see `overload`).
    flops: its rough cost, in additions.
    c_name: its name in the C library ("" where the library has none).
    complex_ok: whether complex arguments are allowed.
    """

    name: str
    arity: int
    flops: int
    rule: str = "float"
    c_name: str = ""
    complex_ok: bool = False

    @property
    def pure(self) -> bool:
        """Whether a call may be moved, repeated or dropped."""
        return self.rule != "effect"


@dataclass(frozen=True, slots=True)
class Overload:
    """The types of one call: every argument is converted to `operand`."""

    operand: DType
    result: DType


def _table() -> dict[str, MathFunction]:
    unary = {
        "acos": 25, "acosh": 30, "asin": 25, "asinh": 30, "atan": 25, "atanh": 30, "cos": 20,
        "cosh": 25, "erf": 30, "erfc": 35, "exp": 15, "expm1": 20, "lgamma": 50, "log": 15,
        "log10": 20, "log1p": 20, "log2": 15, "sin": 20, "sinh": 25, "sqrt": 6, "tan": 30,
        "tanh": 25, "tgamma": 60, "ceil": 1, "fabs": 1, "floor": 1, "round": 2, "trunc": 1,
    }  # fmt: skip
    binary = {
        "atan2": 30, "copysign": 1, "fmax": 1, "fmin": 1, "fmod": 15, "hypot": 12, "pow": 40,
        "remainder": 20,
    }  # fmt: skip
    complex_ok = {"exp", "log", "sqrt", "pow"}
    functions = [
        MathFunction(name, arity, flops, "float", name, name in complex_ok)
        for arity, costs in ((1, unary), (2, binary))
        for name, flops in costs.items()
    ]
    functions += [MathFunction(name, 1, 1, "test", name) for name in ("isfinite", "isinf", "isnan")]
    functions += [
        MathFunction("degrees", 1, 1),
        MathFunction("radians", 1, 1),
        MathFunction("rsqrt", 1, 10),
        MathFunction("cyl_bessel_j0", 1, 60, c_name="j0"),
        MathFunction("cyl_bessel_j1", 1, 60, c_name="j1"),
        MathFunction("abs", 1, 1, "abs", complex_ok=True),
        MathFunction("complex", 2, 0, "complex", complex_ok=True),
        MathFunction("printf", VARIADIC, 100, "effect", "printf"),
        MathFunction("fence", VARIADIC, 100, "effect"),
    ]
    return {function.name: function for function in functions}


FUNCTIONS: dict[str, MathFunction] = _table()

CONSTANTS: dict[str, float] = {
    "e": math.e,
    "pi": math.pi,
    "tau": math.tau,
    "inf": math.inf,
    "nan": math.nan,
}

POWERS: dict[object, str] = {2: "square", 3: "cube", 0.5: "root"}
"""The exponents for which `pow` is faster than the C library's, and as accurate, and our names for
these functions. It is the same where the exponent is known at run time only: one value for one
argument."""


def is_pure(name: str) -> bool:
    """Whether calls of the function may be moved, repeated or dropped."""
    return FUNCTIONS[name].pure


def overload(name: str, arguments: Sequence[DType]) -> Overload | None:
    """The overload that C++ picks for these argument types; None where there is none.

    Of an effect ("printf", "fence") the result is int32 and the arguments keep their types, so
    `operand` says nothing.
    """
    function = FUNCTIONS[name]
    if function.arity not in (VARIADIC, len(arguments)):
        return None
    if function.rule == "effect":
        return Overload(DType.INT32, DType.INT32)
    if any(dtype.is_complex for dtype in arguments):
        if not function.complex_ok or function.rule == "complex":
            return None
        common = arguments[0]
        for dtype in arguments[1:]:
            common = common_type(common, dtype)
        if function.rule == "abs":
            real = DType.FLOAT32 if common is DType.COMPLEX64 else DType.FLOAT64
            return Overload(common, real)
        return Overload(common, common)
    if function.rule == "abs" and arguments[0].is_integer:
        promoted = integral_promotion(arguments[0])
        return Overload(promoted, promoted)
    single = all(dtype is DType.FLOAT32 for dtype in arguments)
    operand = DType.FLOAT32 if single else DType.FLOAT64
    if function.rule == "test":
        return Overload(operand, DType.BOOL)
    if function.rule == "complex":
        return Overload(operand, DType.COMPLEX64 if single else DType.COMPLEX128)
    return Overload(operand, operand)


# --------------------------------------------------------------------------- evaluation


def _round(x: Any) -> Any:
    """C's round: halves go away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign(type(x)(1), x) if np.abs(x - whole) >= 0.5 else whole


def _degrees(x: Any) -> Any:
    return x * type(x)(180.0 / math.pi)


def _radians(x: Any) -> Any:
    return x * type(x)(math.pi / 180.0)


_EXACT: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cube": lambda x: x * x * x,
    "degrees": _degrees,
    "fabs": np.fabs,
    "floor": np.floor,
    # Not NumPy's: which of 0.0 and -0.0 it returns depends on its version.
    "fmax": lambda x, y: x if y != y or x > y else y,
    "fmin": lambda x, y: x if y != y or x < y else y,
    "fmod": np.fmod,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "radians": _radians,
    "root": lambda x: -x if x == -np.inf else np.sqrt(x + type(x)(0)),
    "round": _round,
    "rsqrt": lambda x: type(x)(1) / np.sqrt(x),
    "sqrt": np.sqrt,
    "square": lambda x: x * x,
    "trunc": np.trunc,
}
_COMPLEX: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "pow": np.power,
    "sqrt": np.sqrt,
}


@once
def _c_function(name: str, single: bool, arity: int) -> Callable[..., float]:
    """The C library's function, float32 or float64; Python's own if there is no such symbol."""
    try:
        function = getattr(ctypes.CDLL(None), name + "f" if single else name)
    except (AttributeError, OSError, TypeError):  # no such symbol; not a POSIX system
        return _python_function(name)
    kind = ctypes.c_float if single else ctypes.c_double
    function.argtypes = [kind] * arity
    function.restype = kind
    return function  # type: ignore[no-any-return]


def _python_function(name: str) -> Callable[..., float]:
    function = getattr(math, {"tgamma": "gamma"}.get(name, name))

    def safe(*args: float) -> float:
        try:
            return float(function(*args))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return safe


def evaluate(name: str, args: Sequence[Any], dtype: DType) -> Any:
    """The value of a pure call as a NumPy scalar of `dtype`.

    `args` are NumPy scalars that already have the operand type of the overload. Some powers are
    products, see `powers`.
    """
    kind = dtype.numpy.type
    with np.errstate(all="ignore"):
        if name == "complex":
            return kind(complex(float(args[0]), float(args[1])))
        if isinstance(args[0], np.complexfloating):
            return kind(_COMPLEX[name](*args))
        if name == "pow" and float(args[1]) in POWERS:
            name, args = POWERS[float(args[1])], args[:1]
        exact = _EXACT.get(name)
        if exact is not None:
            return kind(exact(*args))
        function = FUNCTIONS[name]
        compute = _c_function(function.c_name, dtype is DType.FLOAT32, function.arity)
        return kind(compute(*map(float, args)))
