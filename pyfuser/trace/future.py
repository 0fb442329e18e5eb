"""The value of a reduction or scan that may not have run yet: a number in every respect.

A `Future` is passed to later kernels without being computed, and in a captured step, or where much
is pending, `+ - * /` of floating-point ones are calls themselves (`frontends.scalar_work`). Any
other use (comparison, formatting, NumPy, `math`, indexing) first runs what is pending and then acts
on the plain number.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from pyfuser.ir.dtypes import DType
from pyfuser.support.errors import PyFuserError


def plain(value: Any) -> Any:
    """`value`, or the number it stands for if it is a Future."""
    return value.result() if type(value) is Future else value


def _unwrap(value: Any) -> Any:
    """`plain` applied inside tuples, lists and dicts, as NumPy's functions nest their arguments."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(_unwrap(item) for item in value)
    if kind is dict:
        return {key: _unwrap(item) for key, item in value.items()}
    return plain(value)


def _unary(operation: Callable[[Any], Any]) -> Callable[[Future], Any]:
    def method(self: Future) -> Any:
        return operation(self.result())

    return method


def _binary(operation: Callable[[Any, Any], Any]) -> Callable[[Future, Any], Any]:
    def method(self: Future, other: Any) -> Any:
        return operation(self.result(), plain(other))

    return method


def _not_recorded(op: str, *operands: Any) -> Any:
    """No front end is there."""
    return None


def _recorded(
    op: str, operation: Callable[[Any, Any], Any]
) -> tuple[Callable[[Future, Any], Any], Callable[[Future, Any], Any]]:
    """An operator and the reflected one, recorded where that can be done."""

    def method(self: Future, other: Any) -> Any:
        known = self._value is not None and (type(other) is not Future or other._value is not None)
        found = None if known else self.record(op, self, other)
        return operation(self.result(), plain(other)) if found is None else found

    def reflected(self: Future, other: Any) -> Any:
        found = None if self._value is not None else self.record(op, other, self)
        return operation(other, self.result()) if found is None else found

    return method, reflected


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[Future, Any], Any]:
    def method(self: Future, other: Any) -> Any:
        return operation(other, self.result())

    return method


class Deferred:
    """A number that is computed but still on a device."""

    __slots__ = ()

    def read(self) -> Any:
        """Wait for it and fetch it."""
        raise NotImplementedError


class Future:
    """Stands for a number: most uses of it but as a kernel's argument run what is pending.

    record: makes a call of an operation on two (or one) of them, or gives None.
    dtype: of the accumulator; the value is a `float`, `complex` or, for integer types, an `int`.
    force: runs pending calls, among them the one that computes the value of the Future it is given.
    """

    __slots__ = ("__weakref__", "_error", "_force", "_value", "deferred", "dtype")
    record: ClassVar[Callable[..., Any]] = staticmethod(_not_recorded)

    def __init__(self, dtype: DType, force: Callable[[Future], None]) -> None:
        self.dtype = dtype
        self._value: Any = None
        self._error: BaseException | None = None
        self._force = force
        self.deferred: Deferred | None = None  # where the value is, until it is read

    @property
    def ready(self) -> bool:
        return self._value is not None

    @property
    def given(self) -> bool:
        """Whether there is a value, here or on a device."""
        return self._value is not None or self.deferred is not None

    @property
    def failed(self) -> bool:
        """Whether the call that was to compute it did not."""
        return self._error is not None

    def give(self, value: Any) -> None:
        """`set`, or keep for whoever asks where on a device the value is."""
        if isinstance(value, Deferred):
            self.deferred = value
            self._value = self._error = None
        else:
            self.set(value)

    def set(self, value: Any) -> None:
        """Called by the runtime once the kernel that computes it has run."""
        if self.dtype.is_float:
            self._value = float(value)
        elif self.dtype.is_complex:
            self._value = complex(value)
        else:
            self._value = int(value)
        self._error = None

    def fail(self, error: BaseException) -> None:
        """Called by the runtime if the kernel that computes it cannot run; every use re-raises."""
        self._error = error

    def result(self) -> Any:
        """The value as a Python number; runs the pending calls if it must.

        Raises whatever the deferred call raised, or PyFuserError if it never ran.
        """
        if self._value is None:
            if self._read():
                return self._value
            if self._error is None:
                self._force(self)
            if self._value is None:
                if self._read():  # the pending calls ran on a device
                    return self._value
                self._raise()
        return self._value

    def _read(self) -> bool:
        """Fetch the value from the device; whether it is there."""
        if self.deferred is None:
            return False
        self.set(self.deferred.read())
        self.deferred = None
        return True

    def _raise(self) -> None:
        if self._error is None:
            raise PyFuserError(
                "the reduction that computes this value did not run, because an earlier deferred "
                "call failed; see the error raised there"
            )
        # The same exception object would collect a longer traceback with every use.
        raise self._error.with_traceback(None)

    # ------------------------------------------------------------------- conversions

    __float__ = _unary(float)
    __int__ = _unary(int)
    __complex__ = _unary(complex)
    __bool__ = _unary(bool)
    __index__ = _unary(operator.index)
    __hash__ = _unary(hash)
    __str__ = _unary(str)
    __repr__ = _unary(repr)
    __trunc__ = _unary(math.trunc)
    __floor__ = _unary(math.floor)
    __ceil__ = _unary(math.ceil)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.result(), digits)

    def __format__(self, spec: str) -> str:
        return format(self.result(), spec)

    # ------------------------------------------------------------------- operators

    def __neg__(self) -> Any:
        found = None if self._value is not None else self.record("-", self)
        return -self.result() if found is None else found

    __pos__ = _unary(operator.pos)
    __abs__ = _unary(abs)
    __invert__ = _unary(operator.invert)

    __eq__ = _binary(operator.eq)
    __ne__ = _binary(operator.ne)
    __lt__ = _binary(operator.lt)
    __le__ = _binary(operator.le)
    __gt__ = _binary(operator.gt)
    __ge__ = _binary(operator.ge)

    __add__, __radd__ = _recorded("+", operator.add)
    __sub__, __rsub__ = _recorded("-", operator.sub)
    __mul__, __rmul__ = _recorded("*", operator.mul)
    __truediv__, __rtruediv__ = _recorded("/", operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __divmod__, __rdivmod__ = _binary(divmod), _reflected(divmod)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __rpow__ = _reflected(operator.pow)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        return pow(self.result(), plain(exponent), plain(modulus))

    # ------------------------------------------------------------------- NumPy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.result(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # A plain Python number, so that NumPy's promotion treats it as one (float32 stays float32).
        return getattr(ufunc, method)(*map(plain, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_unwrap(args), **_unwrap(kwargs))

    # ------------------------------------------------------------------- everything else

    def __getattr__(self, name: str) -> Any:
        # `real`, `is_integer`, `bit_length`, ...; never dunders, which are mere probes.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.result(), name)

    def __reduce__(self) -> Any:
        value = self.result()
        return type(value), (value,)

    def __copy__(self) -> Any:
        return self.result()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.result()


numbers.Number.register(Future)
