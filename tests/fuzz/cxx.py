"""C++'s integers for the oracle, by rules of its own: nothing here is shared with the package.

A Number has a type and computes as C++ does: types narrower than int are promoted to int, of two
types the wider one counts, and of two of one width the unsigned one. What is too large wraps, as
with g++'s `-fwrapv`. What C++ leaves undefined raises an ArithmeticError or ValueError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

WORDS = ("int8", "int16", "uint8", "uint16", "uint32", "uint64")
"""The element types for which NumPy's rules, or Python's, are not C++'s."""

STORES = {"wrapped": 0}
"""How many stores changed a value so that it fits its element's type."""

UNLIKE_PYTHON = {"overflowed": 0, "rounded": 0, "compared": 0}
"""How many signed results did not fit, how many quotients Python would have rounded down, or
remainders it would have made positive, and how many numbers were others to be compared."""

_BITS = {"bool": 1, **{f"{u}int{bits}": bits for u in ("", "u") for bits in (8, 16, 32, 64)}}


def fitted(value: int, kind: str) -> int:
    """The integer modulo 2**bits, in the range of the type; of a bool, whether it is not 0."""
    if kind == "bool":
        return int(value != 0)
    bits = _BITS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "i" and value >> (bits - 1) else value


def _computed(value: int, kind: str) -> Number:
    """What an operation gives whose mathematical value is `value`."""
    found = fitted(value, kind)
    UNLIKE_PYTHON["overflowed"] += kind[0] == "i" and found != value
    return Number(found, kind)


def converted(value: Any, kind: str) -> int:
    """Any number as a value of an integer type."""
    if isinstance(value, (Number, bool, int, np.integer, np.bool_)):
        return fitted(int(value), kind)
    if kind == "bool":
        return int(value != 0)
    whole = math.trunc(value)  # raises for NaN and infinity
    if fitted(whole, kind) != whole:
        raise ValueError(f"{value} does not fit {kind}")
    return whole


def number(value: Any) -> Any:
    """A Number for an integer, as a literal or an argument of a call has it; else the value."""
    kind = type(value)
    if kind is bool or kind is np.bool_:
        return Number(int(value), "bool")
    if kind is int:
        return Number(value, "int32" if -(2**31) <= value < 2**31 else "int64")
    return Number(int(value), value.dtype.name) if isinstance(value, np.integer) else value


def promoted(kind: str) -> str:
    return "int32" if _BITS[kind] < 32 else kind


def common(left: str, right: str) -> str:
    """The type of both operands of an operator."""
    left, right = promoted(left), promoted(right)
    if _BITS[left] == _BITS[right]:
        return left if left[0] == "u" else right
    return left if _BITS[left] > _BITS[right] else right


def _quotient(left: int, right: int) -> int:
    whole = abs(left) // abs(right)  # raises for 0
    return whole if (left < 0) == (right < 0) else -whole


def _division(left: int, right: int, kind: str) -> int:
    whole = _quotient(left, right)
    if fitted(whole, kind) != whole:
        raise ArithmeticError("the least number divided by -1")
    return whole


def _remainder(left: int, right: int, kind: str) -> int:
    rest = left - right * _division(left, right, kind)
    UNLIKE_PYTHON["rounded"] += rest != left % right
    return rest


_Operation = Callable[[int, int, str], int]
_OPERATIONS: dict[str, _Operation] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "mod": lambda a, b, kind: _remainder(a, b, kind),
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Number:
    """An integer of a C++ type: `value` is in its range."""

    __slots__ = ("kind", "value")
    __array_ufunc__ = None  # so that NumPy's scalars leave operators to this class

    def __init__(self, value: int, kind: str) -> None:
        self.value, self.kind = value, kind

    def __int__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __index__(self) -> int:
        if self.value < 0:
            raise IndexError(f"{self.value} is no index")
        return self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{self.kind}({self.value})"

    def _unary(self, operation: Callable[[int], int]) -> Number:
        kind = promoted(self.kind)
        return Number(fitted(operation(self.value), kind), kind)

    def __neg__(self) -> Number:
        return self._unary(operator.neg)

    def __pos__(self) -> Number:
        return self._unary(operator.pos)

    def __invert__(self) -> Number:
        return self._unary(operator.invert)

    def __abs__(self) -> Number:
        return self._unary(abs)

    def __truediv__(self, other: Any) -> Any:
        return float(self) / float(other)

    def __rtruediv__(self, other: Any) -> Any:
        return float(other) / float(self)

    def __pow__(self, other: Any) -> Any:
        return math.pow(self, other)

    def __rpow__(self, other: Any) -> Any:
        return math.pow(other, self)

    def __floordiv__(self, other: Any) -> Number:
        """PyKokkos' `//`: C++'s division, made an int."""
        kind = common(self.kind, number(other).kind)
        left, right = _both(self, other, kind)
        whole = _division(left, right, kind)
        UNLIKE_PYTHON["rounded"] += whole != left // right
        return Number(fitted(whole, "int32"), "int32")

    def __rfloordiv__(self, other: Any) -> Number:
        return number(other) // self  # type: ignore[no-any-return]

    def __lshift__(self, other: Any) -> Number:
        kind = promoted(self.kind)
        return _computed(self.value << _count(other, kind), kind)

    def __rshift__(self, other: Any) -> Number:
        kind = promoted(self.kind)
        return Number(self.value >> _count(other, kind), kind)

    def __rlshift__(self, other: Any) -> Number:
        return number(other) << self  # type: ignore[no-any-return]

    def __rrshift__(self, other: Any) -> Number:
        return number(other) >> self  # type: ignore[no-any-return]


def _count(other: Any, kind: str) -> int:
    count = int(other)
    if not 0 <= count < _BITS[kind]:
        raise ValueError(f"a shift of {kind} by {count}")
    return count


def _both(left: Any, right: Any, kind: str) -> tuple[int, int]:
    return fitted(int(left), kind), fitted(int(right), kind)


def _add_operators() -> None:
    """Numbers with Numbers and Python's integers; beside a float or complex, a float."""

    def binary(operation: _Operation, plain: Any, swapped: bool) -> Any:
        def method(self: Number, other: Any) -> Any:
            other = number(other)
            left, right = (other, self) if swapped else (self, other)
            if not isinstance(other, Number):
                return plain(float(self), other) if not swapped else plain(other, float(self))
            kind = common(left.kind, right.kind)
            return _computed(operation(*_both(left, right, kind), kind), kind)

        return method

    def comparison(plain: Any) -> Any:
        def method(self: Number, other: Any) -> Any:
            other = number(other)
            if not isinstance(other, Number):
                return plain(float(self), other)
            both = _both(self, other, common(self.kind, other.kind))
            UNLIKE_PYTHON["compared"] += both != (self.value, other.value)
            return plain(*both)

        return method

    for name, operation in _OPERATIONS.items():
        plain = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(Number, f"__{name}__", binary(operation, plain, False))
        setattr(Number, f"__r{name}__", binary(operation, plain, True))
    for name in _COMPARISONS:
        setattr(Number, f"__{name}__", comparison(getattr(operator, name)))


_add_operators()


class Elements:
    """An array of integers, whose elements are Numbers."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array, self._kind = array, array.dtype.name

    def __getitem__(self, index: Any) -> Any:
        found = self._array[index]
        return Elements(found) if isinstance(found, np.ndarray) else Number(int(found), self._kind)

    def __setitem__(self, index: Any, value: Any) -> None:
        fit = converted(value, self._kind)
        STORES["wrapped"] += self._kind != "bool" and fit != int(value)
        self._array[index] = fit


class Sum:
    """A reduction's running sum: an integer of its type after each addition."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.value: Any = Number(0, kind) if kind in _BITS else 0.0

    def _set(self, value: Any) -> Sum:
        integer = self.kind in _BITS
        self.value = Number(converted(value, self.kind), self.kind) if integer else float(value)
        UNLIKE_PYTHON["overflowed"] += integer and self.value.value != int(value)
        return self

    def __iadd__(self, value: Any) -> Sum:
        return self._set(self.value + value)

    def __isub__(self, value: Any) -> Sum:
        return self._set(self.value - value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)


def as_kind(kind: str, value: Any) -> Any:
    """A value as a local of a type, or of a name that is called, holds it."""
    if kind in _BITS:
        return Number(converted(value, kind), kind)
    return float(np.float32(float(value))) if kind == "float32" else float(value)


def like(old: Any, value: Any) -> Any:
    """A value as a local of an inferred type holds it, by the value that it has."""
    return as_kind(old.kind if isinstance(old, Number) else "float64", value)


def chosen(test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """`a if c else b`, in the common type of both."""
    value, other = (then, orelse) if test else (orelse, then)
    found = number(value())
    try:
        beside = number(other())
    except (ArithmeticError, ValueError, IndexError):
        return found  # what is not chosen is not computed: here only its type would count
    if isinstance(found, Number) and isinstance(beside, Number):
        kind = found.kind if found.kind == beside.kind else common(found.kind, beside.kind)
        return as_kind(kind, found)
    return found if isinstance(beside, Number) or not isinstance(found, Number) else float(found)


def pk(of_language: SimpleNamespace) -> SimpleNamespace:
    """What `pk` offers to a workunit that computes with Numbers."""

    def real(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            return function(*(float(v) if isinstance(v, Number) else v for v in values))

        return call

    conversions = {kind: _conversion(kind) for kind in _BITS}
    floats = {name: real(getattr(of_language, name)) for name in ("floor", "fmin", "fmax")}
    atomics = {f"atomic_{name}": _atomic(operation) for name, operation in _ATOMICS.items()}
    return SimpleNamespace(**{**vars(of_language), **floats, **conversions, **atomics})


_ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "xor")},
    "and": operator.and_,
    "or": operator.or_,
    "min": min,
    "max": max,
}


def _atomic(operation: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """An atomic's value is converted to the element's type first, as Kokkos' template does."""

    def atomic(view: Any, index: list[Any], value: Any) -> None:
        old = view[tuple(index)]
        view[tuple(index)] = operation(
            old, as_kind(old.kind, value) if isinstance(old, Number) else value
        )

    return atomic


def _conversion(kind: str) -> Callable[[Any], Any]:
    return lambda value: as_kind(kind, value)


NAMES: dict[str, Any] = {
    "int": _conversion("int32"),
    "as_kind": as_kind,
    "chosen": chosen,
    "like": like,
    "number": number,
    "Number": Number,
}
"""What the source that `typed.typed` makes needs beside `pk`."""
