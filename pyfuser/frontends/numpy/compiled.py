"""`ndarray`: the class of arrays, with the operators of the extension if there is one."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.array import Array
from pyfuser.frontends.numpy.memory import FRESH, Owner, host
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import KIND, adopt, view
from pyfuser.runtime.session import TRACER
from pyfuser.support.extension import NUMPY, with_buffer
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Buffer


class _Meta(type):
    """Arrays of NumPy's are instances, too: programs ask whether something is an array.

    What a program derives from the class is a class of NumPy's arrays, which runs at once: NumPy
    calls its methods, such as `__array_finalize__`, at times that laziness would move.
    """

    def __new__(
        cls, name: str, bases: tuple[type, ...], names: dict[str, Any], **more: Any
    ) -> type:
        if KIND.array not in bases:
            return super().__new__(cls, name, bases, names, **more)
        bases = tuple(np.ndarray if base is KIND.array else base for base in bases)
        return types.new_class(name, bases, more, lambda own: own.update(names))

    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is cls or isinstance(value, np.ndarray)

    def __subclasscheck__(cls, other: type) -> bool:
        return type.__subclasscheck__(cls, other) or issubclass(other, np.ndarray)


_Base: Any = Array if NUMPY is None else NUMPY.fast(Array)


@with_buffer
class ndarray(_Base, metaclass=_Meta):  # type: ignore[misc]
    """An array with NumPy's values, types, shapes, strides and aliasing."""

    __slots__ = ()
    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __new__(cls, shape: Any, dtype: Any = float, buffer: Any = None, **more: Any) -> Any:
        if buffer is None and not more:
            return adopt(np.ndarray(shape, dtype))
        return apply.call(np.ndarray, (shape, dtype, buffer), more)


KIND.array = ndarray
if NUMPY is not None:
    NUMPY.bind(
        ndarray, Owner, Buffer, np.integer, np.dtype, FRESH, apply.SCALARS, TRACER, USE,
        LIMITS, view, host, apply.taken, np.zeros((3, 5)),
    )  # fmt: skip
    NUMPY.bind_few(
        np._core._multiarray_umath._ARRAY_API,  # type: ignore[attr-defined]
        tuple(map(np.dtype, ("f8", "f4", "i8", "i4", "u8", "u4", "u1", "?"))),
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
