"""`ndarray`: the class of arrays, with the operators of the extension if there is one."""

from __future__ import annotations

import copyreg
import types
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import (
    apply,
    methods,  # noqa: F401  # the rest of the class of arrays
)
from pyfuser.frontends.numpy.array import Array
from pyfuser.frontends.numpy.memory import FRESH, Owner, host
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import KIND, adopt, view
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import NUMPY, numpys_api, with_buffer
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Buffer


def _method(name: str) -> Any:
    """A method of the class, which programs call with arrays of NumPy's and of their own, too."""
    numpys = getattr(np.ndarray, name)

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, np.ndarray):
            return numpys(self, *args, **kwargs)
        return getattr(self, name)(*args, **kwargs)

    method.__name__, method.__qualname__ = name, f"ndarray.{name}"
    method.__doc__, method.__wrapped__ = numpys.__doc__, numpys  # type: ignore[attr-defined]
    return method


_METHODS: dict[str, Any] = {}
"""What the class gives who asks it, and not an array, for a method."""


class _Plain(type):
    """As the extension's."""

    def __getattribute__(cls, name: str) -> Any:
        found = _METHODS.get(name) if cls is KIND.array else None
        return type.__getattribute__(cls, name) if found is None else found


_UFUNC = _method("__array_ufunc__")
_Type: Any = _Plain if NUMPY is None else NUMPY.meta(_METHODS, _UFUNC)


class _Meta(_Type):  # type: ignore[misc]
    """Arrays of NumPy's are instances, too: programs ask whether something is an array.

    What a program derives from the class is a class of NumPy's arrays, which runs at once: NumPy
    calls its methods, such as `__array_finalize__`, at times that laziness would move.
    """

    def __new__(
        cls, name: str, bases: tuple[type, ...], names: dict[str, Any], **more: Any
    ) -> type:
        if KIND.array not in bases:
            return type.__new__(cls, name, bases, names, **more)
        numpys = _Overrides if "__array_ufunc__" in names else _Derived
        bases = tuple(numpys if base is KIND.array else base for base in bases)
        return types.new_class(name, bases, more, lambda own: own.update(names))

    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is cls or isinstance(value, np.ndarray)

    def __subclasscheck__(cls, other: type) -> bool:
        return type.__subclasscheck__(cls, other) or issubclass(other, np.ndarray)


_Base: Any = Array if NUMPY is None else NUMPY.fast(Array)


class _Derived(np.ndarray):
    """What a program's own class of arrays derives from."""

    __module__, __qualname__ = "numpy", "ndarray"

    def view(self, *args: Any, **kwargs: Any) -> Any:
        args = tuple(np.ndarray if arg is KIND.array else arg for arg in args)
        kwargs = {n: np.ndarray if arg is KIND.array else arg for n, arg in kwargs.items()}
        return super().view(*args, **kwargs)


class _Overrides(_Derived):
    """... that has `__array_ufunc__`, which calls NumPy's with arrays of ours, too."""

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        inputs, kwargs = apply.exported(inputs), apply.exported(kwargs)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


def _class() -> Any:
    return KIND.array


_OF_CLASSES = frozenset([*dir(object), "__class_getitem__"]) - {
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
}
"""What the class has of its own."""


@with_buffer
class ndarray(_Base, metaclass=_Meta):  # type: ignore[misc]
    """An array with NumPy's values, types, shapes, strides and aliasing."""

    __slots__ = ()
    __class_getitem__: Any = classmethod(types.GenericAlias)

    __module__ = "numpy"

    def __new__(cls, shape: Any, dtype: Any = float, buffer: Any = None, **more: Any) -> Any:
        if cls is not KIND.array:  # of a program's own
            return np.ndarray.__new__(cls, apply.exported(shape), dtype, buffer, **more)
        if buffer is None and not more:
            return adopt(np.ndarray(shape, dtype))
        return apply.call(np.ndarray, (shape, dtype, buffer), more)


KIND.array = ndarray
copyreg.pickle(_Meta, lambda _: (_class, ()))  # the name that it has is that of NumPy's
_METHODS |= {
    name: _method(name)
    for name in dir(np.ndarray)
    if name not in _OF_CLASSES and callable(getattr(np.ndarray, name))
}
_METHODS |= {"__array_ufunc__": _UFUNC if NUMPY is None else NUMPY.__array_ufunc__}
_TYPES = ("f8", "f4", "i8", "i4", "u8", "u4", "u1", "?", "c16", "c8", "i2", "u2", "i1")
"""As `hot_numpy/array.h` counts them."""

if NUMPY is not None:
    NUMPY.bind(
        ndarray, Owner, Buffer, np.integer, np.dtype, FRESH, apply.SCALARS, TRACER, USE,
        LIMITS, view, host, apply.taken, np.zeros((3, 5)),
    )  # fmt: skip
    NUMPY.bind_few(
        numpys_api(),
        tuple(map(np.dtype, _TYPES)),
        (
            np.add, np.subtract, np.multiply, np.true_divide,
            np.ndarray.copy, np.negative, np.square, np.absolute, np.sqrt,
            np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift,
            np.right_shift, np.maximum, np.minimum,
            np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal,
        ),
        np.where,
    )  # fmt: skip

np.empty(1 << 24, np.uint8)
"""Freed at once: from now on the C library (glibc; see M_MMAP_THRESHOLD in mallopt(3)) keeps freed
memory of up to that size for the next arrays. It gave the system back each temporary of more than
128 KiB, and faulting it in again took 8 times as long as what NumPy then computed there."""
