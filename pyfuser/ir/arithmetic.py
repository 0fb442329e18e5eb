"""C++ arithmetic on Python numbers: the operations that the reference interpreter's code calls."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.ir import maths
from pyfuser.ir.dtypes import DType
from pyfuser.support.errors import PyFuserError


class UndefinedBehaviour(PyFuserError):
    """The program does what C++ gives no meaning: an index outside a view, 1 // 0, int(nan)..."""


class _Uninitialised:
    """The value of a local before its first assignment: every use of it is a TypeError."""


def _wrapper(dtype: DType) -> Callable[[int], int]:
    """Brings an integer into the range of a dtype, modulo 2**bits."""
    low, high = dtype.range()
    size = high - low + 1

    def wrap(value: int) -> int:
        return value if low <= value <= high else (value - low) % size + low

    return wrap


_c_float = ctypes.c_float


def wrap_float32(value: float) -> float:
    """The nearest float32, infinity where it is too large."""
    return _c_float(value).value


def float32_of_int(value: int) -> float:
    """Rounded once, which the way through float64 would not do for 64-bit integers."""
    if -(2**53) <= value <= 2**53:
        return wrap_float32(value)
    kind = np.uint64 if value > 2**63 - 1 else np.int64
    return float(kind(value).astype(np.float32))


def wrap_complex64(value: complex) -> complex:
    return complex(wrap_float32(value.real), wrap_float32(value.imag))


def truncate(value: float, limits: tuple[int, int]) -> int:
    """A floating-point number to an integer type; out of range it is undefined."""
    if not math.isfinite(value) or not limits[0] <= math.trunc(value) <= limits[1]:
        raise UndefinedBehaviour(f"{value} does not fit an integer from {limits[0]} to {limits[1]}")
    return math.trunc(value)


def shift_count(count: int, bits: int) -> int:
    if not 0 <= count < bits:
        raise UndefinedBehaviour(f"a shift of a {bits}-bit number by {count}")
    return count


def inside(index: int, length: int) -> int:
    """An index of a local array."""
    if not 0 <= index < length:
        raise UndefinedBehaviour(f"index {index} is outside a local array of length {length}")
    return index


def divide_integer(left: int, right: int) -> int:
    """Truncates towards zero."""
    if right == 0:
        raise UndefinedBehaviour(f"integer division {left} / 0")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder_integer(left: int, right: int) -> int:
    """Has the sign of the dividend."""
    return left - right * divide_integer(left, right)


def divide_float64(left: float, right: float) -> float:
    """IEEE division, which Python's refuses for zero."""
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def multiply_complex128(a: complex, b: complex) -> complex:
    """The textbook formula, without recovery of infinities."""
    return complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def multiply_complex64(a: complex, b: complex) -> complex:
    r = wrap_float32
    return complex(
        r(r(a.real * b.real) - r(a.imag * b.imag)), r(r(a.real * b.imag) + r(a.imag * b.real))
    )


def divide_complex(left: complex, right: complex) -> complex:
    if right == 0:
        return complex(math.nan, math.nan)
    return left / right


def _fmod(x: float, y: float) -> float:
    try:
        return math.fmod(x, y)
    except ValueError:  # of an infinity, or by zero
        return math.nan


#: Functions that Python computes as C does, at a tenth of the time of NumPy's scalars: for float64.
FAST: dict[str, Callable[..., float]] = {
    "fabs": math.fabs,
    "floor": lambda x: x // 1.0 if x - x == 0 else x,
    "fmax": lambda x, y: x if y != y or x > y else y,
    "fmin": lambda x, y: x if y != y or x < y else y,
    "fmod": _fmod,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
}


def function(
    name: str, operands: tuple[DType, ...], result: DType
) -> Callable[..., bool | int | float | complex]:
    """A function of `ir.maths` on Python numbers of these dtypes."""
    fast = FAST.get(name)
    if fast is not None and all(dtype is DType.FLOAT64 for dtype in (*operands, result)):
        return fast
    kinds = [dtype.numpy.type for dtype in operands]

    def call(*args: Any) -> Any:
        values = [kind(arg) for kind, arg in zip(kinds, args, strict=True)]
        return maths.evaluate(name, values, result).item()

    return call


def c_fence(*_: Any) -> None:
    """One iteration after the other: there is nothing to wait for."""


def c_printf(template: str, *values: Any) -> None:
    print(template % values, end="")


OPERATIONS: dict[str, Any] = {
    f"wrap_{dtype.value}": _wrapper(dtype)
    for dtype in DType
    if dtype.is_integer and dtype is not DType.BOOL
}
OPERATIONS.update(
    uninitialised=_Uninitialised(),
    wrap_float32=wrap_float32,
    wrap_complex64=wrap_complex64,
    float32_of_int=float32_of_int,
    truncate=truncate,
    shift_count=shift_count,
    inside=inside,
    divide_integer=divide_integer,
    divide_float32=divide_float64,
    divide_float64=divide_float64,
    divide_complex64=divide_complex,
    divide_complex128=divide_complex,
    remainder_integer=remainder_integer,
    multiply_complex64=multiply_complex64,
    multiply_complex128=multiply_complex128,
    c_min=min,
    c_max=max,
    c_fence=c_fence,
    c_printf=c_printf,
)
