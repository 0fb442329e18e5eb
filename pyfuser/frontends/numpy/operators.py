"""Python's operators on our arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import ViewMemory
from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.apply import binary
from pyfuser.frontends.numpy.memory import ArrayMemory, host
from pyfuser.frontends.numpy.operations import NAMED, Operation
from pyfuser.frontends.numpy.wrap import KIND


def _is_known(value: Any) -> bool:
    return type(value) is KIND.array or isinstance(value, ViewMemory) or apply.is_plain(value)


def _by_numpy(function: Callable[..., Any], *operands: Any) -> Any:
    """An operator with somebody's object, which may implement it: as NumPy decides."""
    return apply.call(function, operands, {})


def _with(function: Any, ufunc: Any, x: Any, y: Any) -> Any:
    """An operator of an array of ours with what is none of ours, nor a number."""
    if _is_known(x) and _is_known(y):
        return apply.apply(ufunc, (x, y))
    return _by_numpy(function, x, y)


def _binary(name: str) -> tuple[Any, Any, Any]:
    """The operator's method, the reflected one, and the one in place."""
    operation = NAMED[name]
    function = _FUNCTIONS[name]
    changing = getattr(operator, f"i{function.__name__.strip('_')}")

    scalars, ufunc = apply.SCALARS, operation.ufunc

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind in scalars:
            if other is not None:
                return binary(operation, self, other)
        elif kind is KIND.array:
            return binary(operation, self, other)
        return _with(function, ufunc, self, other)

    def reflected(self: Any, other: Any) -> Any:
        if type(other) in scalars and other is not None:
            return binary(operation, other, self)
        return _with(function, ufunc, other, self)

    def in_place(self: Any, other: Any) -> Any:
        kind = type(other)
        if (kind in scalars and other is not None) or kind is KIND.array:
            return apply.in_place(operation, self, other)
        if not _is_known(other):
            return _by_numpy(changing, self, other)
        return apply.apply(ufunc, (self, other), {"out": (self,)})

    return method, reflected, in_place


_FUNCTIONS: dict[str, Any] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "power": operator.pow, "left_shift": operator.lshift, "right_shift": operator.rshift,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
}  # fmt: skip


def _compared(name: str, function: Callable[[Any, Any], Any]) -> Any:
    operation = NAMED[name]

    def method(self: Any, other: Any) -> Any:
        if type(other) is KIND.array or type(other) in _NUMBERS:
            try:
                return binary(operation, self, other)
            except TypeError:  # of arrays of other kinds, which the operator knows more of
                pass
        return _by_numpy(function, self, other)

    return method


_NUMBERS = apply.SCALARS - {str, bytes, type(None)}

_POWERS: dict[Any, Operation] = {2: NAMED["square"], 0.5: NAMED["sqrt"], 1: NAMED["positive"]}


def _power(self: Any, other: Any) -> Any:
    if type(other) in (int, float) and other in _POWERS:
        fast = _POWERS[other]
        kind = self.dtype.kind
        if kind in "fc" or (kind in "iub" and type(other) is int and other == 2):
            return apply.unary(fast, self)
    elif type(other) is int and other == -1 and self.dtype.kind in "fc":
        return apply.unary(NAMED["reciprocal"], self)
    return _plain_power(self, other)


def _unary(name: str) -> Any:
    operation = NAMED[name]

    def method(self: Any) -> Any:
        return apply.unary(operation, self)

    return method


_plain_power, _reflected_power, _power_in_place = _binary("power")


class Operators(ArrayMemory):
    """Arithmetic, comparison, and conversion to Python's numbers."""

    __slots__ = ()

    __add__, __radd__, __iadd__ = _binary("add")
    __sub__, __rsub__, __isub__ = _binary("subtract")
    __mul__, __rmul__, __imul__ = _binary("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _binary("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floor_divide")
    __mod__, __rmod__, __imod__ = _binary("remainder")
    __lshift__, __rlshift__, __ilshift__ = _binary("left_shift")
    __rshift__, __rrshift__, __irshift__ = _binary("right_shift")
    __and__, __rand__, __iand__ = _binary("bitwise_and")
    __or__, __ror__, __ior__ = _binary("bitwise_or")
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor")
    __rpow__ = _reflected_power
    __eq__ = _compared("equal", operator.eq)
    __ne__ = _compared("not_equal", operator.ne)
    __lt__ = _compared("less", operator.lt)
    __le__ = _compared("less_equal", operator.le)
    __gt__ = _compared("greater", operator.gt)
    __ge__ = _compared("greater_equal", operator.ge)
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __abs__ = _unary("absolute")
    __invert__ = _unary("invert")
    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, other: Any) -> Any:
        return _power(self, other)

    def __ipow__(self, other: Any) -> Any:
        if type(other) is int and other == 2 and self.dtype.kind in "fiuc":
            return apply.apply(np.square, (self,), {"out": (self,)})
        return _power_in_place(self, other)

    def __divmod__(self, other: Any) -> Any:
        return _with(divmod, np.divmod, self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _with(divmod, np.divmod, other, self)

    def __matmul__(self, other: Any) -> Any:
        return _with(operator.matmul, np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _with(operator.matmul, np.matmul, other, self)

    def __imatmul__(self, other: Any) -> Any:
        return _by_numpy(operator.imatmul, self, other)

    def __float__(self) -> float:
        return float(host(self))

    def __int__(self) -> int:
        return int(host(self))

    def __complex__(self) -> complex:
        return complex(host(self))

    def __index__(self) -> int:
        return operator.index(host(self))

    def __bool__(self) -> bool:
        return bool(host(self))
