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
from typing import Any

import numpy as np

from pyfuser.ir.dtypes import DType, common_type, integral_promotion
from pyfuser.support.caches import once
from pyfuser.support.records import dataclass

VARIADIC = -1


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One function of the language: all that the compiler knows of it.

    arity: how many arguments (VARIADIC: any number).
    flops: its rough cost, in additions.
    rule: how its types follow from its arguments' (see `overload`).
    c_name: its name in the C library ("" where the library has none); its vector version there and
    its names in the libraries of GPUs follow from it.
    exact: what it is in NumPy, where IEEE 754 defines the result; None: the C library's.
    on_complex: the same for complex numbers; None: there is none.
    builtin: whether compilers know it by that name, and make one instruction or a few of it.
    formula: C++ over `x` and `y` that computes it, with {type} and {f}, the suffix of its type.
    inlines: whether it becomes a few instructions, with or without vectors.
    timed: whether `cost.pipeline` knows how long it takes.
    upstream: whether PyKokkos translates it.
    """

    name: str
    arity: int
    flops: int
    rule: str = "float"
    c_name: str = ""
    exact: Callable[..., Any] | None = None
    on_complex: Callable[..., Any] | None = None
    builtin: bool = False
    formula: str = ""
    inlines: bool = False
    timed: bool = False
    upstream: bool = False

    @property
    def pure(self) -> bool:
        """Whether a call may be moved, repeated or dropped."""
        return self.rule != "effect"


@dataclass(frozen=True, slots=True)
class Overload:
    """The types of one call: every argument is converted to `operand`."""

    operand: DType
    result: DType


# --------------------------------------------------------------------------- the table


def _round(x: Any) -> Any:
    """C's round: halves go away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign(type(x)(1), x) if np.abs(x - whole) >= 0.5 else whole


def _degrees(x: Any) -> Any:
    return x * type(x)(180.0 / math.pi)


def _radians(x: Any) -> Any:
    return x * type(x)(math.pi / 180.0)


def _rsqrt(x: Any) -> Any:
    return type(x)(1) / np.sqrt(x)


def _fmax(x: Any, y: Any) -> Any:
    """Not NumPy's: which of 0.0 and -0.0 it returns depends on its version."""
    return x if y != y or x > y else y


def _either(formula: str) -> str:
    """C++ for a function that returns x where y is NaN; t stands for y, or x there.

    With `y != y || ...`, g++ joins branches of several such calls in ways that are no vectors.
    """
    return formula.replace("{t}", "(y == y ? y : x)")


def _fmin(x: Any, y: Any) -> Any:
    return x if y != y or x < y else y


def _root(x: Any) -> Any:
    return -x if x == -np.inf else np.sqrt(x + type(x)(0))


def _fma(x: Any, y: Any, z: Any) -> Any:
    """The sum `x * y + z`, rounded once."""
    if not np.isfinite([x, y, z]).all():
        return z if np.isfinite([x, y]).all() else x * y + z
    from fractions import Fraction  # only folding needs it

    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if not exact:
        return x * y + z  # which has the sign
    try:
        wide = float(exact)
    except OverflowError:
        return type(x)(math.inf if exact > 0 else -math.inf)
    if type(x) is np.float32 and Fraction(wide) != exact:  # so that rounding again is no change
        towards = math.inf if Fraction(wide) < exact else -math.inf
        odd = np.float64(wide).view(np.int64) & 1
        wide = wide if odd else float(np.nextafter(wide, towards))
    return type(x)(wide)


FUNCTIONS: dict[str, MathFunction] = {
    function.name: function
    for function in (
        MathFunction("acos", 1, 25, c_name="acos"),
        MathFunction("acosh", 1, 30, c_name="acosh", upstream=True),
        MathFunction("asin", 1, 25, c_name="asin"),
        MathFunction("asinh", 1, 30, c_name="asinh"),
        MathFunction("atan", 1, 25, c_name="atan"),
        MathFunction("atanh", 1, 30, c_name="atanh"),
        MathFunction(
            "ceil", 1, 1, c_name="ceil", exact=np.ceil, builtin=True, inlines=True, upstream=True
        ),
        MathFunction("cos", 1, 20, c_name="cos", upstream=True),
        MathFunction("cosh", 1, 25, c_name="cosh", upstream=True),
        MathFunction("erf", 1, 30, c_name="erf", upstream=True),
        MathFunction("erfc", 1, 35, c_name="erfc", upstream=True),
        MathFunction("exp", 1, 15, c_name="exp", on_complex=np.exp, upstream=True),
        MathFunction("expm1", 1, 20, c_name="expm1", upstream=True),
        MathFunction(
            "fabs",
            1,
            1,
            c_name="fabs",
            exact=np.fabs,
            builtin=True,
            inlines=True,
            timed=True,
            upstream=True,
        ),
        MathFunction(
            "floor", 1, 1, c_name="floor", exact=np.floor, builtin=True, inlines=True, upstream=True
        ),
        MathFunction("lgamma", 1, 50, c_name="lgamma", upstream=True),
        MathFunction("log", 1, 15, c_name="log", on_complex=np.log, upstream=True),
        MathFunction("log10", 1, 20, c_name="log10"),
        MathFunction("log1p", 1, 20, c_name="log1p"),
        MathFunction("log2", 1, 15, c_name="log2", upstream=True),
        MathFunction(
            "round", 1, 2, c_name="round", exact=_round, builtin=True, inlines=True, upstream=True
        ),
        MathFunction("sin", 1, 20, c_name="sin", upstream=True),
        MathFunction("sinh", 1, 25, c_name="sinh"),
        MathFunction(
            "sqrt",
            1,
            6,
            c_name="sqrt",
            exact=np.sqrt,
            on_complex=np.sqrt,
            builtin=True,
            inlines=True,
            timed=True,
            upstream=True,
        ),
        MathFunction("tan", 1, 30, c_name="tan"),
        MathFunction("tanh", 1, 25, c_name="tanh", upstream=True),
        MathFunction("tgamma", 1, 60, c_name="tgamma", upstream=True),
        MathFunction(
            "trunc", 1, 1, c_name="trunc", exact=np.trunc, builtin=True, inlines=True, upstream=True
        ),
        MathFunction("atan2", 2, 30, c_name="atan2", upstream=True),
        MathFunction(
            "copysign",
            2,
            1,
            c_name="copysign",
            exact=np.copysign,
            builtin=True,
            inlines=True,
            upstream=True,
        ),
        MathFunction(
            "fmax",
            2,
            1,
            c_name="fmax",
            exact=_fmax,
            formula=_either("x > {t} ? x : {t}"),
            inlines=True,
            timed=True,
            upstream=True,
        ),
        MathFunction(
            "fmin",
            2,
            1,
            c_name="fmin",
            exact=_fmin,
            formula=_either("x < {t} ? x : {t}"),
            inlines=True,
            timed=True,
            upstream=True,
        ),
        MathFunction("fmod", 2, 15, c_name="fmod", exact=np.fmod, builtin=True, upstream=True),
        MathFunction("hypot", 2, 12, c_name="hypot", upstream=True),
        MathFunction("pow", 2, 40, c_name="pow", on_complex=np.power, upstream=True),
        MathFunction("remainder", 2, 20, c_name="remainder", builtin=True, upstream=True),
        MathFunction(
            "isfinite",
            1,
            1,
            "test",
            exact=np.isfinite,
            formula="__builtin_isfinite(x)",
            inlines=True,
        ),
        MathFunction(
            "isinf", 1, 1, "test", exact=np.isinf, formula="__builtin_isinf(x) != 0", inlines=True
        ),
        MathFunction(
            "isnan", 1, 1, "test", exact=np.isnan, formula="x != x", inlines=True, upstream=True
        ),
        MathFunction(
            "degrees",
            1,
            1,
            exact=_degrees,
            formula=f"pf_rounded(x * ({{type}}){180.0 / math.pi!r})",
            inlines=True,
        ),
        MathFunction(
            "radians",
            1,
            1,
            exact=_radians,
            formula=f"pf_rounded(x * ({{type}}){math.pi / 180.0!r})",
            inlines=True,
        ),
        MathFunction(
            "rsqrt", 1, 10, exact=_rsqrt, formula="1 / __builtin_sqrt{f}(x)", inlines=True
        ),
        MathFunction("cyl_bessel_j0", 1, 60, c_name="j0"),
        MathFunction("cyl_bessel_j1", 1, 60, c_name="j1"),
        MathFunction(
            "abs",
            1,
            1,
            "abs",
            exact=np.abs,
            on_complex=np.abs,
            inlines=True,
            timed=True,
            upstream=True,
        ),
        MathFunction("complex", 2, 0, "complex", inlines=True),
        MathFunction("fma", 3, 1, c_name="fma", exact=_fma, builtin=True, inlines=True, timed=True),
        MathFunction("real", 1, 0, "part", on_complex=np.real, inlines=True),
        MathFunction("imag", 1, 0, "part", on_complex=np.imag, inlines=True),
        MathFunction("printf", VARIADIC, 100, "effect", c_name="printf"),
        MathFunction("fence", VARIADIC, 100, "effect"),
    )
}
# In alphabetical order, by arity; then those that the C library lacks.

POWERS: dict[object, MathFunction] = {
    2: MathFunction(
        "square", 1, 1, exact=lambda x: x * x, formula="pf_rounded(x * x)", inlines=True
    ),
    3: MathFunction(
        "cube",
        1,
        2,
        exact=lambda x: x * x * x,
        formula="pf_rounded(pf_rounded(x * x) * x)",
        inlines=True,
    ),
    # The C library's pow has other zeros and infinities than its sqrt.
    0.5: MathFunction(
        "root",
        1,
        6,
        exact=_root,
        formula="(x < 0 && x + x == x ? -x : __builtin_sqrt{f}(x + 0))",
        inlines=True,
    ),
}
"""The exponents for which `pow` is faster than the C library's, and as accurate, and the functions
that take its place. It is the same where the exponent is known at run time only: one value for one
argument."""

_ALL = FUNCTIONS | {power.name: power for power in POWERS.values()}


def definition(name: str) -> MathFunction:
    """The function of a name, or the power that takes the place of `pow`."""
    return _ALL[name]


CONSTANTS: dict[str, float] = {
    "e": math.e,
    "pi": math.pi,
    "tau": math.tau,
    "inf": math.inf,
    "nan": math.nan,
}


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
        if function.on_complex is None:
            return None
        common = arguments[0]
        for dtype in arguments[1:]:
            common = common_type(common, dtype)
        if function.rule in ("abs", "part"):
            real = DType.FLOAT32 if common is DType.COMPLEX64 else DType.FLOAT64
            return Overload(common, real)
        return Overload(common, common)
    if function.rule == "part":
        return None
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
            on_complex = FUNCTIONS[name].on_complex
            assert on_complex is not None
            return kind(on_complex(*args))
        function = definition(name)
        if name == "pow" and float(args[1]) in POWERS:
            function, args = POWERS[float(args[1])], args[:1]
        if function.exact is not None:
            return kind(function.exact(*args))
        compute = _c_function(function.c_name, dtype is DType.FLOAT32, function.arity)
        return kind(compute(*map(float, args)))
